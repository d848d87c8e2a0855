-- Who signs in as which user: the stable id of a person at a sign-in provider.
CREATE TABLE identities (
    provider text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    user_id uuid NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (provider, subject),
    -- A user is one person: whoever has their name later is another.
    UNIQUE (user_id, provider)
);
