"""A script of SQL in a database in memory for each thread. tables.py FILE THREADS"""
import sqlite3
import sys
import threading


def work(script):
    database = sqlite3.connect(":memory:")
    database.executescript(script)
    database.close()


with open(sys.argv[1], encoding="utf-8") as file:
    SCRIPT = file.read()
WORKERS = [threading.Thread(target=work, args=(SCRIPT,)) for _ in range(int(sys.argv[2]))]
for worker in WORKERS:
    worker.start()
for worker in WORKERS:
    worker.join()
