ALTER TABLE api_tokens DROP COLUMN last_used_at;
ALTER TABLE sessions DROP COLUMN last_used_at;
