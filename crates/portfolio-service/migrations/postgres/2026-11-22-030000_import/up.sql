-- What an import wrote, so that the next one tells what has changed since, there or here.
CREATE TABLE imported_rows (
    kind text NOT NULL,
    id uuid NOT NULL,
    -- Hash of the row, with the rows that belong to it.
    hash bytea NOT NULL,
    PRIMARY KEY (kind, id)
);
