-- How much each user has created in a period of 24 hours.
CREATE TABLE creations (
    user_id BLOB NOT NULL PRIMARY KEY,
    -- The end of the period.
    expires_at INTEGER NOT NULL,
    number INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
