-- What a POST with an Idempotency-Key was answered, to be answered again to the same request.
CREATE TABLE idempotency_keys (
    -- Hash of caller, path and key.
    id BLOB NOT NULL PRIMARY KEY,
    -- Hash of query and body.
    request_hash BLOB NOT NULL,
    -- The answer; all NULL until the transaction that makes it ends.
    status INTEGER,
    -- A JSON array of pairs.
    headers TEXT,
    body BLOB,
    -- The body holds a secret and is encrypted with the key of the installation.
    sealed INTEGER NOT NULL DEFAULT 0 CHECK (sealed IN (0, 1)),
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_keys_expires_at ON idempotency_keys (expires_at);

-- One row, whose mark is another one after every change of anything that is shown to callers. Triggers keep it, so that
-- a change made by hand counts as well.
CREATE TABLE last_change (
    mark TEXT NOT NULL
) STRICT;
INSERT INTO last_change (mark) VALUES (hex(randomblob(16)));
CREATE TRIGGER users_insert_is_a_change AFTER INSERT ON users BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER users_update_is_a_change AFTER UPDATE ON users BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER users_delete_is_a_change AFTER DELETE ON users BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER sessions_insert_is_a_change AFTER INSERT ON sessions BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER sessions_update_is_a_change AFTER UPDATE ON sessions BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER sessions_delete_is_a_change AFTER DELETE ON sessions BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER api_tokens_insert_is_a_change AFTER INSERT ON api_tokens BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER api_tokens_update_is_a_change AFTER UPDATE ON api_tokens BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER api_tokens_delete_is_a_change AFTER DELETE ON api_tokens BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER groups_insert_is_a_change AFTER INSERT ON groups BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER groups_update_is_a_change AFTER UPDATE ON groups BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER groups_delete_is_a_change AFTER DELETE ON groups BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER group_members_insert_is_a_change AFTER INSERT ON group_members BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER group_members_update_is_a_change AFTER UPDATE ON group_members BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER group_members_delete_is_a_change AFTER DELETE ON group_members BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER group_admins_insert_is_a_change AFTER INSERT ON group_admins BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER group_admins_update_is_a_change AFTER UPDATE ON group_admins BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER group_admins_delete_is_a_change AFTER DELETE ON group_admins BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER tags_insert_is_a_change AFTER INSERT ON tags BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER tags_update_is_a_change AFTER UPDATE ON tags BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER tags_delete_is_a_change AFTER DELETE ON tags BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER rooms_insert_is_a_change AFTER INSERT ON rooms BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER rooms_update_is_a_change AFTER UPDATE ON rooms BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER rooms_delete_is_a_change AFTER DELETE ON rooms BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER room_admins_insert_is_a_change AFTER INSERT ON room_admins BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER room_admins_update_is_a_change AFTER UPDATE ON room_admins BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER room_admins_delete_is_a_change AFTER DELETE ON room_admins BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER events_insert_is_a_change AFTER INSERT ON events BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER events_update_is_a_change AFTER UPDATE ON events BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER events_delete_is_a_change AFTER DELETE ON events BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER event_admins_insert_is_a_change AFTER INSERT ON event_admins BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER event_admins_update_is_a_change AFTER UPDATE ON event_admins BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER event_admins_delete_is_a_change AFTER DELETE ON event_admins BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER event_tags_insert_is_a_change AFTER INSERT ON event_tags BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER event_tags_update_is_a_change AFTER UPDATE ON event_tags BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER event_tags_delete_is_a_change AFTER DELETE ON event_tags BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER attendees_insert_is_a_change AFTER INSERT ON attendees BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER attendees_update_is_a_change AFTER UPDATE ON attendees BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER attendees_delete_is_a_change AFTER DELETE ON attendees BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
