-- Which replica does a background task; free again when it has expired.
CREATE TABLE leases (
    task text COLLATE "C" NOT NULL PRIMARY KEY,
    holder uuid NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX events_deleted ON events (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX rooms_deleted ON rooms (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX groups_deleted ON groups (deleted_at) WHERE deleted_at IS NOT NULL;
