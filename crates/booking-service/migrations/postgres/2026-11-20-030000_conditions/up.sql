-- What a POST with an Idempotency-Key was answered, to be answered again to the same request.
CREATE TABLE idempotency_keys (
    -- Hash of caller, path and key.
    id bytea NOT NULL PRIMARY KEY,
    -- Hash of query and body.
    request_hash bytea NOT NULL,
    -- The answer; all NULL until the transaction that makes it ends.
    status smallint,
    -- A JSON array of pairs.
    headers text,
    body bytea,
    -- The body holds a secret and is encrypted with the key of the installation.
    sealed boolean NOT NULL DEFAULT false,
    expires_at timestamptz NOT NULL
);
CREATE INDEX idempotency_keys_expires_at ON idempotency_keys (expires_at);

-- What a transaction sees, in a word: two that see the same word see the same rows. Transactions are numbered for as long
-- as the server runs; a server restored from a backup numbers others alike, but starts at another time. A server that
-- follows another does not say in its snapshots which transactions are under way, so there each word is a new one.
CREATE VIEW last_change AS
    SELECT CASE WHEN pg_is_in_recovery() THEN gen_random_uuid()::text
        ELSE pg_current_snapshot()::text || ' ' || extract(epoch FROM pg_postmaster_start_time())::text
    END AS mark;
