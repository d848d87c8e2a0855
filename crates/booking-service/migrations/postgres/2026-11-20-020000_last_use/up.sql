-- When a session or token was last used, to the hour; a session is used by being made.
ALTER TABLE sessions ADD COLUMN last_used_at timestamptz NOT NULL DEFAULT 'epoch';
UPDATE sessions SET last_used_at = created_at;
ALTER TABLE api_tokens ADD COLUMN last_used_at timestamptz;
