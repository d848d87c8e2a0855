-- Links by which people become members. The secret in a link is stored as a hash.
CREATE TABLE invitations (
    id uuid NOT NULL PRIMARY KEY,
    secret_hash bytea NOT NULL UNIQUE,
    -- How many people may join by it, and how many have.
    uses integer NOT NULL CHECK (uses > 0),
    used integer NOT NULL CHECK (used BETWEEN 0 AND uses),
    -- Whether whoever joins by it is privileged.
    privileged boolean NOT NULL,
    -- NULL for one of the command line.
    created_by uuid REFERENCES users (id),
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX invitations_expires_at ON invitations (expires_at);
-- Whether the account became a member's by an invitation, so that neither directory nor rule must name it.
ALTER TABLE identities ADD COLUMN invited boolean NOT NULL DEFAULT false;
