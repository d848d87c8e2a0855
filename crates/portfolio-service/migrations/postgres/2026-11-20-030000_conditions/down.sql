DROP VIEW last_change;
DROP TABLE idempotency_keys;
