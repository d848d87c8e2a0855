-- When a session or token was last used, to the hour; a session is used by being made.
ALTER TABLE sessions ADD COLUMN last_used_at INTEGER NOT NULL DEFAULT 0;
UPDATE sessions SET last_used_at = created_at;
ALTER TABLE api_tokens ADD COLUMN last_used_at INTEGER;
