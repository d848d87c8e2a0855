-- Whether the directory lists the user. Others have joined by signing in, and the directory does not end their access.
ALTER TABLE users ADD COLUMN in_directory INTEGER NOT NULL DEFAULT 1 CHECK (in_directory IN (0, 1));
-- Whether the sign-in provider makes the user an admin.
ALTER TABLE users ADD COLUMN admin INTEGER NOT NULL DEFAULT 0 CHECK (admin IN (0, 1));
-- Names are compared regardless of upper and lower case before a user is created by signing in.
CREATE INDEX users_name_lower ON users (lower(name));

CREATE TABLE sessions (
    id BLOB NOT NULL PRIMARY KEY,
    token_hash BLOB NOT NULL UNIQUE,
    user_id BLOB NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    revoked_at INTEGER,
    -- When it was created.
    last_used_at INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_user_id ON sessions (user_id);
CREATE INDEX sessions_expires_at ON sessions (expires_at);

-- Sign-ins that have been finished, until they would have expired.
CREATE TABLE spent_logins (
    state_hash BLOB NOT NULL PRIMARY KEY,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX spent_logins_expires_at ON spent_logins (expires_at);

-- The accounts at sign-in providers.
CREATE TABLE identities (
    provider TEXT NOT NULL,
    subject TEXT NOT NULL,
    user_id BLOB NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    -- Not used here: the booking-service has invitations.
    invited INTEGER NOT NULL DEFAULT 0 CHECK (invited IN (0, 1)),
    PRIMARY KEY (provider, subject),
    -- A user is one person: whoever has their name later is another.
    UNIQUE (user_id, provider)
) STRICT, WITHOUT ROWID;
