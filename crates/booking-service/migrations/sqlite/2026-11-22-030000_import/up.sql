-- What an import wrote, so that the next one tells what has changed since, there or here.
CREATE TABLE imported_rows (
    kind TEXT NOT NULL,
    id BLOB NOT NULL,
    -- Hash of the row, with the rows that belong to it.
    hash BLOB NOT NULL,
    PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;
-- Hash of a feed address that was imported. It is good until its owner asks for a new one.
ALTER TABLE users ADD COLUMN imported_feed_hash BLOB;
