-- Links by which people become members. The secret in a link is stored as a hash.
CREATE TABLE invitations (
    id BLOB NOT NULL PRIMARY KEY,
    secret_hash BLOB NOT NULL UNIQUE,
    -- How many people may join by it, and how many have.
    uses INTEGER NOT NULL CHECK (uses > 0),
    used INTEGER NOT NULL CHECK (used BETWEEN 0 AND uses),
    -- Whether whoever joins by it is privileged.
    privileged INTEGER NOT NULL CHECK (privileged IN (0, 1)),
    -- NULL for one of the command line.
    created_by BLOB REFERENCES users (id),
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX invitations_expires_at ON invitations (expires_at);
CREATE TRIGGER invitations_insert_is_a_change AFTER INSERT ON invitations BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER invitations_update_is_a_change AFTER UPDATE ON invitations BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER invitations_delete_is_a_change AFTER DELETE ON invitations BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
-- Whether the account became a member's by an invitation, so that neither directory nor rule must name it.
ALTER TABLE identities ADD COLUMN invited INTEGER NOT NULL DEFAULT 0 CHECK (invited IN (0, 1));
