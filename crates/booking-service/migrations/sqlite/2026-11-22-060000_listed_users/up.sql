-- Whether the directory listed the user when it was last copied.
ALTER TABLE users ADD COLUMN in_directory INTEGER NOT NULL DEFAULT 0 CHECK (in_directory IN (0, 1));
-- A user whom the directory did not bring in was made by signing in, together with an identity.
UPDATE users SET in_directory = 1 WHERE NOT EXISTS (
    SELECT 1 FROM identities WHERE identities.user_id = users.id AND identities.created_at = users.created_at
);
