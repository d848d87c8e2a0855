ALTER TABLE users DROP COLUMN imported_feed_hash;
DROP TABLE imported_rows;
