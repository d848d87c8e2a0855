-- Deleted projects and contests, which can be restored for 30 days.
CREATE TABLE deleted_objects (
    id uuid NOT NULL PRIMARY KEY,
    created_by uuid NOT NULL REFERENCES users (id),
    deleted_at timestamptz NOT NULL,
    -- Who could change it besides its creator: a JSON array of ids.
    editors text NOT NULL,
    -- Its rows, as JSON.
    content text NOT NULL
);
CREATE INDEX deleted_objects_by_time ON deleted_objects (deleted_at);
CREATE INDEX deleted_objects_by_creator ON deleted_objects (created_by);
