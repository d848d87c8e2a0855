-- Who changed what: one row for each change of an object.
CREATE TABLE history (
    -- Later changes of an object have greater ones.
    id INTEGER NOT NULL PRIMARY KEY,
    at INTEGER NOT NULL,
    -- The user, if there is one. No foreign key: a row stays as it is.
    actor BLOB,
    origin TEXT NOT NULL CHECK (origin IN ('session', 'token', 'proxy', 'command', 'directory', 'import')),
    -- The name of the token.
    token TEXT,
    request_id TEXT,
    object_type TEXT NOT NULL,
    object_id BLOB NOT NULL,
    action TEXT NOT NULL,
    -- The fields that changed, as a JSON object.
    changes TEXT NOT NULL
) STRICT;
CREATE INDEX history_of_object ON history (object_id, id);
CREATE INDEX history_by_time ON history (at, id);
CREATE INDEX history_by_actor ON history (actor, at, id);
CREATE TRIGGER history_insert_is_a_change AFTER INSERT ON history BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER history_update_is_a_change AFTER UPDATE ON history BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER history_delete_is_a_change AFTER DELETE ON history BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
