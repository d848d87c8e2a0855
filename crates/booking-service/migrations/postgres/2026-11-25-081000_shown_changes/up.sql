-- SQLite's triggers change. PostgreSQL has none.
SELECT 1;
