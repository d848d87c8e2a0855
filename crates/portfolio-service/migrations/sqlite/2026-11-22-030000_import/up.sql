-- What an import wrote, so that the next one tells what has changed since, there or here.
CREATE TABLE imported_rows (
    kind TEXT NOT NULL,
    id BLOB NOT NULL,
    -- Hash of the row, with the rows that belong to it.
    hash BLOB NOT NULL,
    PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;
