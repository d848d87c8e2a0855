CREATE OR REPLACE VIEW last_change AS
    SELECT CASE WHEN pg_is_in_recovery() THEN gen_random_uuid()::text
        ELSE pg_current_snapshot()::text || ' ' || extract(epoch FROM pg_postmaster_start_time())::text
    END AS mark;
