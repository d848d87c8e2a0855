-- The pictures of projects and of users, re-encoded. That of a deleted project stays until the project is removed.
CREATE TABLE pictures (
    -- Of the project or user.
    object_id uuid NOT NULL PRIMARY KEY,
    media_type text NOT NULL,
    large bytea NOT NULL,
    small bytea NOT NULL
);
-- A hash of the picture, if there is one, so that lists need no other table.
ALTER TABLE projects ADD COLUMN picture text;
ALTER TABLE users ADD COLUMN picture text;
