-- The pictures of projects and of users, re-encoded. That of a deleted project stays until the project is removed.
CREATE TABLE pictures (
    -- Of the project or user.
    object_id BLOB NOT NULL PRIMARY KEY,
    media_type TEXT NOT NULL,
    large BLOB NOT NULL,
    small BLOB NOT NULL
) STRICT;
-- A hash of the picture, if there is one, so that lists need no other table.
ALTER TABLE projects ADD COLUMN picture TEXT;
ALTER TABLE users ADD COLUMN picture TEXT;
CREATE TRIGGER pictures_insert_is_a_change AFTER INSERT ON pictures BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER pictures_update_is_a_change AFTER UPDATE ON pictures BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER pictures_delete_is_a_change AFTER DELETE ON pictures BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
