-- Deleted projects and contests, which can be restored for 30 days.
CREATE TABLE deleted_objects (
    id BLOB NOT NULL PRIMARY KEY,
    created_by BLOB NOT NULL REFERENCES users (id),
    deleted_at INTEGER NOT NULL,
    -- Who could change it besides its creator: a JSON array of ids.
    editors TEXT NOT NULL,
    -- Its rows, as JSON.
    content TEXT NOT NULL
) STRICT;
CREATE INDEX deleted_objects_by_time ON deleted_objects (deleted_at);
CREATE INDEX deleted_objects_by_creator ON deleted_objects (created_by);
