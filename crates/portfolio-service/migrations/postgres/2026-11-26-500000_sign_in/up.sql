-- Whether the directory lists the user. Others have joined by signing in, and the directory does not end their access.
ALTER TABLE users ADD COLUMN in_directory boolean NOT NULL DEFAULT true;
-- Whether the sign-in provider makes the user an admin.
ALTER TABLE users ADD COLUMN admin boolean NOT NULL DEFAULT false;
-- Names are compared regardless of upper and lower case before a user is created by signing in.
CREATE INDEX users_name_lower ON users (lower(name));

CREATE TABLE sessions (
    id uuid NOT NULL PRIMARY KEY,
    token_hash bytea NOT NULL UNIQUE,
    user_id uuid NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    revoked_at timestamptz,
    -- When it was created.
    last_used_at timestamptz NOT NULL
);
CREATE INDEX sessions_user_id ON sessions (user_id);
CREATE INDEX sessions_expires_at ON sessions (expires_at);

-- Sign-ins that have been finished, until they would have expired.
CREATE TABLE spent_logins (
    state_hash bytea NOT NULL PRIMARY KEY,
    expires_at timestamptz NOT NULL
);
CREATE INDEX spent_logins_expires_at ON spent_logins (expires_at);

-- The accounts at sign-in providers.
CREATE TABLE identities (
    provider text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    user_id uuid NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at timestamptz NOT NULL,
    -- Not used here: the booking-service has invitations.
    invited boolean NOT NULL DEFAULT false,
    PRIMARY KEY (provider, subject),
    -- A user is one person: whoever has their name later is another.
    UNIQUE (user_id, provider)
);
