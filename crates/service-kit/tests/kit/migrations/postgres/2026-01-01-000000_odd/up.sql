-- One column of each kind that the services have.
CREATE TABLE odd (
    id uuid NOT NULL PRIMARY KEY,
    at timestamptz,
    words text,
    bytes bytea,
    small smallint,
    whole integer,
    big bigint,
    yes boolean
);
CREATE TABLE notes (
    words text COLLATE "C" NOT NULL PRIMARY KEY,
    odd_id uuid NOT NULL REFERENCES odd (id)
);
