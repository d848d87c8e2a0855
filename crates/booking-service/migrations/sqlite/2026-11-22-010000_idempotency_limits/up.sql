-- The stored answers of each caller are limited in number and size. Hash of the caller; rows from before belong to nobody.
ALTER TABLE idempotency_keys ADD COLUMN caller_hash BLOB NOT NULL DEFAULT x'';
-- Bytes of the stored body. Bodies are compressed (gzip) from here on; older ones are not.
ALTER TABLE idempotency_keys ADD COLUMN size INTEGER NOT NULL DEFAULT 0;
ALTER TABLE idempotency_keys ADD COLUMN compressed INTEGER NOT NULL DEFAULT 0;
CREATE INDEX idempotency_keys_caller ON idempotency_keys (caller_hash, expires_at);
