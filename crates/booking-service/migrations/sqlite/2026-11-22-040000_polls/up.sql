-- Availability polls (`draft-events` on the wire): when can everybody come?
CREATE TABLE draft_events (
    id BLOB NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    -- Anybody may answer, not only those invited.
    open INTEGER NOT NULL CHECK (open IN (0, 1)),
    deadline INTEGER NOT NULL,
    -- The event that the poll was confirmed as.
    event_id BLOB REFERENCES events (id),
    created_by BLOB NOT NULL REFERENCES users (id),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

CREATE TABLE draft_event_slots (
    id BLOB NOT NULL PRIMARY KEY,
    draft_event_id BLOB NOT NULL REFERENCES draft_events (id) ON DELETE CASCADE,
    starts_at INTEGER NOT NULL,
    ends_at INTEGER NOT NULL,
    CHECK (starts_at < ends_at),
    UNIQUE (draft_event_id, starts_at, ends_at)
) STRICT;

CREATE TABLE draft_event_admins (
    draft_event_id BLOB NOT NULL REFERENCES draft_events (id) ON DELETE CASCADE,
    user_id BLOB NOT NULL REFERENCES users (id),
    PRIMARY KEY (draft_event_id, user_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX draft_event_admins_user_id ON draft_event_admins (user_id);

CREATE TABLE draft_event_invitees (
    draft_event_id BLOB NOT NULL REFERENCES draft_events (id) ON DELETE CASCADE,
    user_id BLOB NOT NULL REFERENCES users (id),
    PRIMARY KEY (draft_event_id, user_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX draft_event_invitees_user_id ON draft_event_invitees (user_id);

CREATE TABLE draft_event_tags (
    draft_event_id BLOB NOT NULL REFERENCES draft_events (id) ON DELETE CASCADE,
    tag_id BLOB NOT NULL REFERENCES tags (id),
    locked INTEGER NOT NULL CHECK (locked IN (0, 1)),
    PRIMARY KEY (draft_event_id, tag_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE draft_event_answers (
    draft_event_id BLOB NOT NULL REFERENCES draft_events (id) ON DELETE CASCADE,
    user_id BLOB NOT NULL REFERENCES users (id),
    comment TEXT,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (draft_event_id, user_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX draft_event_answers_user_id ON draft_event_answers (user_id);

-- The slots for which somebody said yes or maybe.
CREATE TABLE draft_event_choices (
    draft_event_id BLOB NOT NULL,
    user_id BLOB NOT NULL,
    slot_id BLOB NOT NULL REFERENCES draft_event_slots (id) ON DELETE CASCADE,
    maybe INTEGER NOT NULL CHECK (maybe IN (0, 1)),
    PRIMARY KEY (draft_event_id, user_id, slot_id),
    FOREIGN KEY (draft_event_id, user_id) REFERENCES draft_event_answers (draft_event_id, user_id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX draft_event_choices_slot_id ON draft_event_choices (slot_id);

-- Triggers, so that entity tags change with what is shown: see the migration on conditions.
CREATE TRIGGER draft_events_insert_is_a_change AFTER INSERT ON draft_events BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER draft_events_update_is_a_change AFTER UPDATE ON draft_events BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER draft_events_delete_is_a_change AFTER DELETE ON draft_events BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER draft_event_slots_insert_is_a_change AFTER INSERT ON draft_event_slots BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER draft_event_slots_update_is_a_change AFTER UPDATE ON draft_event_slots BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER draft_event_slots_delete_is_a_change AFTER DELETE ON draft_event_slots BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER draft_event_admins_insert_is_a_change AFTER INSERT ON draft_event_admins BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER draft_event_admins_update_is_a_change AFTER UPDATE ON draft_event_admins BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER draft_event_admins_delete_is_a_change AFTER DELETE ON draft_event_admins BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER draft_event_invitees_insert_is_a_change AFTER INSERT ON draft_event_invitees BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER draft_event_invitees_update_is_a_change AFTER UPDATE ON draft_event_invitees BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER draft_event_invitees_delete_is_a_change AFTER DELETE ON draft_event_invitees BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER draft_event_tags_insert_is_a_change AFTER INSERT ON draft_event_tags BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER draft_event_tags_update_is_a_change AFTER UPDATE ON draft_event_tags BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER draft_event_tags_delete_is_a_change AFTER DELETE ON draft_event_tags BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER draft_event_answers_insert_is_a_change AFTER INSERT ON draft_event_answers BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER draft_event_answers_update_is_a_change AFTER UPDATE ON draft_event_answers BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER draft_event_answers_delete_is_a_change AFTER DELETE ON draft_event_answers BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER draft_event_choices_insert_is_a_change AFTER INSERT ON draft_event_choices BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER draft_event_choices_update_is_a_change AFTER UPDATE ON draft_event_choices BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER draft_event_choices_delete_is_a_change AFTER DELETE ON draft_event_choices BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
