-- Transactions are numbered for all databases of a server together. So one that was restored beside another may see the
-- same number over other rows; where the rows lie tells the two apart.
CREATE OR REPLACE VIEW last_change AS
    SELECT CASE WHEN pg_is_in_recovery() THEN gen_random_uuid()::text
        ELSE pg_current_snapshot()::text || ' ' || extract(epoch FROM pg_postmaster_start_time())::text
            || ' ' || pg_relation_filepath('users'::regclass)
    END AS mark;
