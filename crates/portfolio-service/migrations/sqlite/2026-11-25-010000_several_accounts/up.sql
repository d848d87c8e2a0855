-- An imported account besides the first of its user and type. SQLite cannot drop a UNIQUE, so the table is made anew.
CREATE TABLE new_accounts (
    id BLOB NOT NULL PRIMARY KEY,
    user_id BLOB NOT NULL REFERENCES users (id),
    -- One of the account types in the code.
    type INTEGER NOT NULL,
    display_name TEXT NOT NULL,
    url TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    further INTEGER NOT NULL DEFAULT 0 CHECK (further IN (0, 1))
) STRICT;
INSERT INTO new_accounts (id, user_id, type, display_name, url, created_at, updated_at)
    SELECT id, user_id, type, display_name, url, created_at, updated_at FROM accounts;
DROP TABLE accounts;
ALTER TABLE new_accounts RENAME TO accounts;
CREATE UNIQUE INDEX accounts_user_id_type_key ON accounts (user_id, type) WHERE further = 0;
CREATE INDEX accounts_user_id ON accounts (user_id);
CREATE TRIGGER accounts_insert_is_a_change AFTER INSERT ON accounts BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER accounts_update_is_a_change AFTER UPDATE ON accounts BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER accounts_delete_is_a_change AFTER DELETE ON accounts BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
