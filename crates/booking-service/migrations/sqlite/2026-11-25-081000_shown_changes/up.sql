-- Only changes of what answers show count. The lists of sessions and tokens have no fingerprint: their rows change with
-- each use.
DROP TRIGGER sessions_insert_is_a_change;
DROP TRIGGER sessions_update_is_a_change;
DROP TRIGGER sessions_delete_is_a_change;
DROP TRIGGER api_tokens_insert_is_a_change;
DROP TRIGGER api_tokens_update_is_a_change;
DROP TRIGGER api_tokens_delete_is_a_change;
DROP TRIGGER users_update_is_a_change;
CREATE TRIGGER users_update_is_a_change AFTER UPDATE OF id, name, display_name, display_name_changed_at, icon, state, privileged ON users BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
