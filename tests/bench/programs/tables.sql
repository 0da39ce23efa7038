-- A database in memory: inserts, an index, joins and sorts.
CREATE TABLE orders(id INTEGER PRIMARY KEY, customer INTEGER, name TEXT, price REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
INSERT INTO orders SELECT i, i % 977, 'order ' || (i * 7919 % 200003), i * 0.25 FROM n;
CREATE INDEX by_name ON orders(name);
CREATE TABLE lines(order_id INTEGER, sku TEXT);
INSERT INTO lines SELECT id, 'sku' || (id % 1013) FROM orders WHERE id % 2 = 0;
SELECT customer, count(*), round(sum(price)) FROM orders GROUP BY customer ORDER BY 3 DESC LIMIT 3;
SELECT count(DISTINCT sku), count(*) FROM lines JOIN orders ON orders.id = lines.order_id WHERE orders.name LIKE 'order 1%';
SELECT group_concat(name, ',') FROM (SELECT name FROM orders ORDER BY price * 31 % 1009, name LIMIT 5);
