-- Whether an edge was sent as the project's own; then it follows the project's.
ALTER TABLE project_members ADD COLUMN follows_since boolean NOT NULL DEFAULT FALSE;
ALTER TABLE project_members ADD COLUMN follows_until boolean NOT NULL DEFAULT FALSE;

-- Who took themselves off the members of a project or team, for a minute.
CREATE TABLE departures (
    -- The project or team.
    object_id uuid NOT NULL,
    user_id uuid NOT NULL REFERENCES users (id),
    left_at timestamptz NOT NULL,
    PRIMARY KEY (object_id, user_id)
);
CREATE INDEX departures_left_at ON departures (left_at);
