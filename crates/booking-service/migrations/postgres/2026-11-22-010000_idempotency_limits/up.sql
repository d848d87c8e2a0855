-- The stored answers of each caller are limited in number and size. Hash of the caller; rows from before belong to nobody.
ALTER TABLE idempotency_keys ADD COLUMN caller_hash bytea NOT NULL DEFAULT '';
-- Bytes of the stored body. Bodies are compressed (gzip) from here on; older ones are not.
ALTER TABLE idempotency_keys ADD COLUMN size integer NOT NULL DEFAULT 0;
ALTER TABLE idempotency_keys ADD COLUMN compressed boolean NOT NULL DEFAULT false;
CREATE INDEX idempotency_keys_caller ON idempotency_keys (caller_hash, expires_at);
