-- When an invitation to an event was last withdrawn: the calendar feed takes DTSTAMP from it, as from
-- attendees.changed_at.
CREATE TABLE withdrawn_invitations (
    event_id BLOB NOT NULL REFERENCES events (id) ON DELETE CASCADE,
    user_id BLOB NOT NULL REFERENCES users (id),
    withdrawn_at INTEGER NOT NULL,
    PRIMARY KEY (event_id, user_id)
) STRICT, WITHOUT ROWID;

-- Whether the poll of an event asks somebody.
CREATE INDEX IF NOT EXISTS draft_events_event_id ON draft_events (event_id);
