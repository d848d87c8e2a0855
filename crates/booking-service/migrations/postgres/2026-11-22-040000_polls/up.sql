-- Availability polls (`draft-events` on the wire): when can everybody come?
CREATE TABLE draft_events (
    id uuid NOT NULL PRIMARY KEY,
    name text NOT NULL,
    description text NOT NULL,
    -- Anybody may answer, not only those invited.
    open boolean NOT NULL,
    deadline timestamptz NOT NULL,
    -- The event that the poll was confirmed as.
    event_id uuid REFERENCES events (id),
    created_by uuid NOT NULL REFERENCES users (id),
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

CREATE TABLE draft_event_slots (
    id uuid NOT NULL PRIMARY KEY,
    draft_event_id uuid NOT NULL REFERENCES draft_events (id) ON DELETE CASCADE,
    starts_at timestamptz NOT NULL,
    ends_at timestamptz NOT NULL,
    CHECK (starts_at < ends_at),
    UNIQUE (draft_event_id, starts_at, ends_at)
);

CREATE TABLE draft_event_admins (
    draft_event_id uuid NOT NULL REFERENCES draft_events (id) ON DELETE CASCADE,
    user_id uuid NOT NULL REFERENCES users (id),
    PRIMARY KEY (draft_event_id, user_id)
);
CREATE INDEX draft_event_admins_user_id ON draft_event_admins (user_id);

CREATE TABLE draft_event_invitees (
    draft_event_id uuid NOT NULL REFERENCES draft_events (id) ON DELETE CASCADE,
    user_id uuid NOT NULL REFERENCES users (id),
    PRIMARY KEY (draft_event_id, user_id)
);
CREATE INDEX draft_event_invitees_user_id ON draft_event_invitees (user_id);

CREATE TABLE draft_event_tags (
    draft_event_id uuid NOT NULL REFERENCES draft_events (id) ON DELETE CASCADE,
    tag_id uuid NOT NULL REFERENCES tags (id),
    locked boolean NOT NULL,
    PRIMARY KEY (draft_event_id, tag_id)
);

CREATE TABLE draft_event_answers (
    draft_event_id uuid NOT NULL REFERENCES draft_events (id) ON DELETE CASCADE,
    user_id uuid NOT NULL REFERENCES users (id),
    comment text,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (draft_event_id, user_id)
);
CREATE INDEX draft_event_answers_user_id ON draft_event_answers (user_id);

-- The slots for which somebody said yes or maybe.
CREATE TABLE draft_event_choices (
    draft_event_id uuid NOT NULL,
    user_id uuid NOT NULL,
    slot_id uuid NOT NULL REFERENCES draft_event_slots (id) ON DELETE CASCADE,
    maybe boolean NOT NULL,
    PRIMARY KEY (draft_event_id, user_id, slot_id),
    FOREIGN KEY (draft_event_id, user_id) REFERENCES draft_event_answers (draft_event_id, user_id) ON DELETE CASCADE
);
CREATE INDEX draft_event_choices_slot_id ON draft_event_choices (slot_id);
