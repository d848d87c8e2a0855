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
CREATE TRIGGER accounts_insert_is_a_change AFTER INSERT ON accounts BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER accounts_update_is_a_change AFTER UPDATE ON accounts BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER accounts_delete_is_a_change AFTER DELETE ON accounts BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER groups_insert_is_a_change AFTER INSERT ON groups BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER groups_update_is_a_change AFTER UPDATE ON groups BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER groups_delete_is_a_change AFTER DELETE ON groups BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER group_admins_insert_is_a_change AFTER INSERT ON group_admins BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER group_admins_update_is_a_change AFTER UPDATE ON group_admins BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER group_admins_delete_is_a_change AFTER DELETE ON group_admins BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER group_memberships_insert_is_a_change AFTER INSERT ON group_memberships BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER group_memberships_update_is_a_change AFTER UPDATE ON group_memberships BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER group_memberships_delete_is_a_change AFTER DELETE ON group_memberships BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER events_insert_is_a_change AFTER INSERT ON events BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER events_update_is_a_change AFTER UPDATE ON events BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER events_delete_is_a_change AFTER DELETE ON events BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER event_hosts_insert_is_a_change AFTER INSERT ON event_hosts BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER event_hosts_update_is_a_change AFTER UPDATE ON event_hosts BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER event_hosts_delete_is_a_change AFTER DELETE ON event_hosts BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER event_levels_insert_is_a_change AFTER INSERT ON event_levels BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER event_levels_update_is_a_change AFTER UPDATE ON event_levels BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER event_levels_delete_is_a_change AFTER DELETE ON event_levels BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER projects_insert_is_a_change AFTER INSERT ON projects BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER projects_update_is_a_change AFTER UPDATE ON projects BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER projects_delete_is_a_change AFTER DELETE ON projects BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER project_members_insert_is_a_change AFTER INSERT ON project_members BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER project_members_update_is_a_change AFTER UPDATE ON project_members BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER project_members_delete_is_a_change AFTER DELETE ON project_members BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER contests_insert_is_a_change AFTER INSERT ON contests BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER contests_update_is_a_change AFTER UPDATE ON contests BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER contests_delete_is_a_change AFTER DELETE ON contests BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER contest_teams_insert_is_a_change AFTER INSERT ON contest_teams BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER contest_teams_update_is_a_change AFTER UPDATE ON contest_teams BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER contest_teams_delete_is_a_change AFTER DELETE ON contest_teams BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER contest_team_members_insert_is_a_change AFTER INSERT ON contest_team_members BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER contest_team_members_update_is_a_change AFTER UPDATE ON contest_team_members BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER contest_team_members_delete_is_a_change AFTER DELETE ON contest_team_members BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
