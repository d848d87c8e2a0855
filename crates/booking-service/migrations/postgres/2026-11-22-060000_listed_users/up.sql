-- Whether the directory listed the user when it was last copied.
ALTER TABLE users ADD COLUMN in_directory boolean NOT NULL DEFAULT FALSE;
-- A user whom the directory did not bring in was made by signing in, together with an identity.
UPDATE users SET in_directory = TRUE WHERE NOT EXISTS (
    SELECT 1 FROM identities WHERE identities.user_id = users.id AND identities.created_at = users.created_at
);
