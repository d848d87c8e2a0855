-- A token without a user is the club's: it reads what every member may read.
-- SQLite cannot change a column, so the table is made anew.
CREATE TABLE new_api_tokens (
    id BLOB NOT NULL PRIMARY KEY,
    token_hash BLOB NOT NULL UNIQUE,
    user_id BLOB REFERENCES users (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    scope TEXT NOT NULL CHECK (scope IN ('read', 'write', 'board')),
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    last_used_at INTEGER,
    CHECK (user_id IS NOT NULL OR scope = 'read')
) STRICT;
INSERT INTO new_api_tokens
    SELECT id, token_hash, user_id, name, scope, created_at, expires_at, revoked_at, last_used_at FROM api_tokens;
DROP TABLE api_tokens;
ALTER TABLE new_api_tokens RENAME TO api_tokens;
CREATE INDEX api_tokens_user_id ON api_tokens (user_id);
