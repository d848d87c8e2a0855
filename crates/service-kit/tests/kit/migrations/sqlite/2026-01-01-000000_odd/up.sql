-- One column of each kind that the services have.
CREATE TABLE odd (
    id BLOB NOT NULL PRIMARY KEY,
    at INTEGER,
    words TEXT,
    bytes BLOB,
    small INTEGER,
    whole INTEGER,
    big INTEGER,
    yes INTEGER CHECK (yes IN (0, 1))
) STRICT;
CREATE TABLE notes (
    words TEXT NOT NULL PRIMARY KEY,
    odd_id BLOB NOT NULL REFERENCES odd (id)
) STRICT, WITHOUT ROWID;
