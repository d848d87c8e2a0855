CREATE TRIGGER sessions_insert_is_a_change AFTER INSERT ON sessions BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER sessions_update_is_a_change AFTER UPDATE ON sessions BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER sessions_delete_is_a_change AFTER DELETE ON sessions BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER api_tokens_insert_is_a_change AFTER INSERT ON api_tokens BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER api_tokens_update_is_a_change AFTER UPDATE ON api_tokens BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER api_tokens_delete_is_a_change AFTER DELETE ON api_tokens BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
DROP TRIGGER users_update_is_a_change;
CREATE TRIGGER users_update_is_a_change AFTER UPDATE ON users BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
