-- Which replica does a background task; free again when it has expired.
CREATE TABLE leases (
    task TEXT NOT NULL PRIMARY KEY,
    holder BLOB NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX events_deleted ON events (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX rooms_deleted ON rooms (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX groups_deleted ON groups (deleted_at) WHERE deleted_at IS NOT NULL;
