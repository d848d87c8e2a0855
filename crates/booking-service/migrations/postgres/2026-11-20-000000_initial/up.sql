-- The same tables as for SQLite, with the types that PostgreSQL has for identifiers, points in time and booleans.

CREATE TABLE users (
    id uuid NOT NULL PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    display_name text NOT NULL,
    -- Absolute address, or empty: then the service shows one of its own.
    icon text NOT NULL,
    -- 0 deactivated, 1 active, 2 suspended.
    state smallint NOT NULL CHECK (state IN (0, 1, 2)),
    privileged boolean NOT NULL DEFAULT FALSE,
    -- The feed's secret is derived from this and the service's key; NULL until the first use.
    feed_nonce text,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);
CREATE INDEX users_privileged ON users (privileged) WHERE privileged;

CREATE TABLE sessions (
    id uuid NOT NULL PRIMARY KEY,
    token_hash bytea NOT NULL UNIQUE,
    user_id uuid NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    revoked_at timestamptz
);
CREATE INDEX sessions_user_id ON sessions (user_id);
CREATE INDEX sessions_expires_at ON sessions (expires_at);

CREATE TABLE api_tokens (
    id uuid NOT NULL PRIMARY KEY,
    token_hash bytea NOT NULL UNIQUE,
    user_id uuid NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    name text COLLATE "C" NOT NULL,
    scope text NOT NULL CHECK (scope IN ('read', 'write')),
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    revoked_at timestamptz
);
CREATE INDEX api_tokens_user_id ON api_tokens (user_id);

-- A pending login may be finished once; which ones were is remembered until they would have expired.
CREATE TABLE spent_logins (
    state_hash bytea NOT NULL PRIMARY KEY,
    expires_at timestamptz NOT NULL
);
CREATE INDEX spent_logins_expires_at ON spent_logins (expires_at);

CREATE TABLE groups (
    id uuid NOT NULL PRIMARY KEY,
    -- 0 made here, 1 the everyone group, 2 from the directory: the order of the list.
    kind smallint NOT NULL CHECK (kind IN (0, 1, 2)),
    name text COLLATE "C" NOT NULL,
    description text NOT NULL,
    open boolean NOT NULL,
    -- NULL for groups that nobody made here.
    created_by uuid REFERENCES users (id),
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    -- A deleted group is still shown by its past events.
    deleted_at timestamptz
);
CREATE INDEX groups_list ON groups (kind, name, id) WHERE deleted_at IS NULL;

CREATE TABLE group_members (
    group_id uuid NOT NULL REFERENCES groups (id) ON DELETE CASCADE,
    user_id uuid NOT NULL REFERENCES users (id),
    PRIMARY KEY (group_id, user_id)
);
CREATE INDEX group_members_user_id ON group_members (user_id);

CREATE TABLE group_admins (
    group_id uuid NOT NULL REFERENCES groups (id) ON DELETE CASCADE,
    user_id uuid NOT NULL REFERENCES users (id),
    PRIMARY KEY (group_id, user_id)
);
CREATE INDEX group_admins_user_id ON group_admins (user_id);

CREATE TABLE tags (
    id uuid NOT NULL PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    -- The name in NFC: names that look the same are the same.
    name_key text COLLATE "C" NOT NULL UNIQUE,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

-- One row for each place however it is written; bookings lock it.
CREATE TABLE places (
    key text COLLATE "C" NOT NULL PRIMARY KEY
);

CREATE TABLE rooms (
    id uuid NOT NULL PRIMARY KEY,
    place text COLLATE "C" NOT NULL,
    place_key text COLLATE "C" NOT NULL REFERENCES places (key),
    starts_at timestamptz NOT NULL,
    ends_at timestamptz NOT NULL,
    -- Longer than 24 hours. What is not long and overlaps an instant starts in the 24 hours before it, so that a
    -- search by time reads a short piece of an index however much lies before it.
    is_long boolean NOT NULL,
    -- 24 hours before starts_at: an event that is not long and overlaps this room starts after it.
    reach_from timestamptz NOT NULL,
    verified boolean NOT NULL,
    created_by uuid NOT NULL REFERENCES users (id),
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    -- A deleted room is still shown by its past and cancelled events.
    deleted_at timestamptz,
    CHECK (starts_at < ends_at)
);
CREATE INDEX rooms_by_start ON rooms (is_long, starts_at);
CREATE INDEX rooms_by_place ON rooms (place_key, verified, ends_at);

CREATE TABLE room_admins (
    room_id uuid NOT NULL REFERENCES rooms (id) ON DELETE CASCADE,
    user_id uuid NOT NULL REFERENCES users (id),
    PRIMARY KEY (room_id, user_id)
);

CREATE TABLE events (
    id uuid NOT NULL PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    description text NOT NULL,
    shared boolean NOT NULL,
    starts_at timestamptz NOT NULL,
    ends_at timestamptz NOT NULL,
    is_long boolean NOT NULL,
    -- Those of the room; a room's place changes only together with the event that owns it.
    place text COLLATE "C" NOT NULL,
    place_key text COLLATE "C" NOT NULL REFERENCES places (key),
    room_id uuid NOT NULL REFERENCES rooms (id),
    -- The room was made for this event (an instant one) and moves, changes and goes with it.
    owns_room boolean NOT NULL,
    group_id uuid NOT NULL REFERENCES groups (id),
    open boolean NOT NULL,
    -- iCalendar SEQUENCE: one more at each change of time, place or status.
    sequence integer NOT NULL,
    created_by uuid NOT NULL REFERENCES users (id),
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    deleted_at timestamptz,
    CHECK (starts_at < ends_at)
);
CREATE INDEX events_by_start ON events (is_long, starts_at);
CREATE INDEX events_by_place ON events (place_key, is_long, starts_at);
CREATE INDEX events_by_room ON events (room_id);
CREATE INDEX events_by_group ON events (group_id, starts_at);
CREATE INDEX events_by_change ON events (updated_at);

CREATE TABLE event_admins (
    event_id uuid NOT NULL REFERENCES events (id) ON DELETE CASCADE,
    user_id uuid NOT NULL REFERENCES users (id),
    PRIMARY KEY (event_id, user_id)
);
CREATE INDEX event_admins_user_id ON event_admins (user_id);

CREATE TABLE event_tags (
    event_id uuid NOT NULL REFERENCES events (id) ON DELETE CASCADE,
    tag_id uuid NOT NULL REFERENCES tags (id),
    locked boolean NOT NULL,
    PRIMARY KEY (event_id, tag_id)
);
CREATE INDEX event_tags_tag_id ON event_tags (tag_id);

CREATE TABLE attendees (
    event_id uuid NOT NULL REFERENCES events (id) ON DELETE CASCADE,
    user_id uuid NOT NULL REFERENCES users (id),
    schedule text NOT NULL CHECK (schedule IN ('pending', 'absent', 'attendance')),
    PRIMARY KEY (event_id, user_id)
);
CREATE INDEX attendees_user_id ON attendees (user_id, schedule);
