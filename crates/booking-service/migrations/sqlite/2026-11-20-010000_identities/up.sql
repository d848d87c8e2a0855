-- Who signs in as which user: the stable id of a person at a sign-in provider.
CREATE TABLE identities (
    provider TEXT NOT NULL,
    subject TEXT NOT NULL,
    user_id BLOB NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (provider, subject),
    -- A user is one person: whoever has their name later is another.
    UNIQUE (user_id, provider)
) STRICT, WITHOUT ROWID;
