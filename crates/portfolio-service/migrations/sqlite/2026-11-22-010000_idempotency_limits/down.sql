-- Compressed answers cannot be read without the column.
DELETE FROM idempotency_keys WHERE compressed;
DROP INDEX idempotency_keys_caller;
ALTER TABLE idempotency_keys DROP COLUMN compressed;
ALTER TABLE idempotency_keys DROP COLUMN size;
ALTER TABLE idempotency_keys DROP COLUMN caller_hash;
