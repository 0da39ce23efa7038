"""JSON documents written and read again with the standard library; with PYTHONMALLOC=malloc each object is a block of the allocator.
documents.py ROUNDS THREADS"""
import json
import sys
import threading


def work(rounds, sums):
    document = {"orders": [{"id": n, "name": f"order {n}", "lines": [{"sku": f"s{n}-{k}", "price": n * 1.25 + k} for k in range(8)]}
                           for n in range(2000)]}
    text = json.dumps(document)
    total = 0
    for _ in range(rounds):
        read = json.loads(text)
        total += sum(len(order["lines"]) for order in read["orders"])
    sums.append(total)


ROUNDS, THREADS = int(sys.argv[1]), int(sys.argv[2])
SUMS = []
WORKERS = [threading.Thread(target=work, args=(ROUNDS, SUMS)) for _ in range(THREADS)]
for worker in WORKERS:
    worker.start()
for worker in WORKERS:
    worker.join()
print(sum(SUMS), "lines")
