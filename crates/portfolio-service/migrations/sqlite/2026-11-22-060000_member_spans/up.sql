-- Whether an edge was sent as the project's own; then it follows the project's.
ALTER TABLE project_members ADD COLUMN follows_since INTEGER NOT NULL DEFAULT 0 CHECK (follows_since IN (0, 1));
ALTER TABLE project_members ADD COLUMN follows_until INTEGER NOT NULL DEFAULT 0 CHECK (follows_until IN (0, 1));

-- Who took themselves off the members of a project or team, for a minute.
CREATE TABLE departures (
    -- The project or team.
    object_id BLOB NOT NULL,
    user_id BLOB NOT NULL REFERENCES users (id),
    left_at INTEGER NOT NULL,
    PRIMARY KEY (object_id, user_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX departures_left_at ON departures (left_at);
