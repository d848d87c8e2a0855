-- Identifiers are 16 bytes; points in time are microseconds since 1970-01-01T00:00:00Z; booleans are 0 or 1.

CREATE TABLE users (
    id BLOB NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    display_name TEXT NOT NULL,
    -- Absolute address, or empty: then the service shows one of its own.
    icon TEXT NOT NULL,
    -- 0 deactivated, 1 active, 2 suspended.
    state INTEGER NOT NULL CHECK (state IN (0, 1, 2)),
    privileged INTEGER NOT NULL DEFAULT 0 CHECK (privileged IN (0, 1)),
    -- The feed's secret is derived from this and the service's key; NULL until the first use.
    feed_nonce TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX users_privileged ON users (privileged) WHERE privileged = 1;

CREATE TABLE sessions (
    id BLOB NOT NULL PRIMARY KEY,
    token_hash BLOB NOT NULL UNIQUE,
    user_id BLOB NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;
CREATE INDEX sessions_user_id ON sessions (user_id);
CREATE INDEX sessions_expires_at ON sessions (expires_at);

CREATE TABLE api_tokens (
    id BLOB NOT NULL PRIMARY KEY,
    token_hash BLOB NOT NULL UNIQUE,
    user_id BLOB NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    scope TEXT NOT NULL CHECK (scope IN ('read', 'write')),
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
) STRICT;
CREATE INDEX api_tokens_user_id ON api_tokens (user_id);

-- A pending login may be finished once; which ones were is remembered until they would have expired.
CREATE TABLE spent_logins (
    state_hash BLOB NOT NULL PRIMARY KEY,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX spent_logins_expires_at ON spent_logins (expires_at);

CREATE TABLE groups (
    id BLOB NOT NULL PRIMARY KEY,
    -- 0 made here, 1 the everyone group, 2 from the directory: the order of the list.
    kind INTEGER NOT NULL CHECK (kind IN (0, 1, 2)),
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    open INTEGER NOT NULL CHECK (open IN (0, 1)),
    -- NULL for groups that nobody made here.
    created_by BLOB REFERENCES users (id),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    -- A deleted group is still shown by its past events.
    deleted_at INTEGER
) STRICT;
CREATE INDEX groups_list ON groups (kind, name, id) WHERE deleted_at IS NULL;

CREATE TABLE group_members (
    group_id BLOB NOT NULL REFERENCES groups (id) ON DELETE CASCADE,
    user_id BLOB NOT NULL REFERENCES users (id),
    PRIMARY KEY (group_id, user_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX group_members_user_id ON group_members (user_id);

CREATE TABLE group_admins (
    group_id BLOB NOT NULL REFERENCES groups (id) ON DELETE CASCADE,
    user_id BLOB NOT NULL REFERENCES users (id),
    PRIMARY KEY (group_id, user_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX group_admins_user_id ON group_admins (user_id);

CREATE TABLE tags (
    id BLOB NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    -- The name in NFC: names that look the same are the same.
    name_key TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

-- One row for each place however it is written; bookings lock it.
CREATE TABLE places (
    key TEXT NOT NULL PRIMARY KEY
) STRICT, WITHOUT ROWID;

CREATE TABLE rooms (
    id BLOB NOT NULL PRIMARY KEY,
    place TEXT NOT NULL,
    place_key TEXT NOT NULL REFERENCES places (key),
    starts_at INTEGER NOT NULL,
    ends_at INTEGER NOT NULL,
    -- Longer than 24 hours. What is not long and overlaps an instant starts in the 24 hours before it, so that a
    -- search by time reads a short piece of an index however much lies before it.
    is_long INTEGER NOT NULL CHECK (is_long IN (0, 1)),
    -- 24 hours before starts_at: an event that is not long and overlaps this room starts after it.
    reach_from INTEGER NOT NULL,
    verified INTEGER NOT NULL CHECK (verified IN (0, 1)),
    created_by BLOB NOT NULL REFERENCES users (id),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    -- A deleted room is still shown by its past and cancelled events.
    deleted_at INTEGER,
    CHECK (starts_at < ends_at)
) STRICT;
CREATE INDEX rooms_by_start ON rooms (is_long, starts_at);
CREATE INDEX rooms_by_place ON rooms (place_key, verified, ends_at);

CREATE TABLE room_admins (
    room_id BLOB NOT NULL REFERENCES rooms (id) ON DELETE CASCADE,
    user_id BLOB NOT NULL REFERENCES users (id),
    PRIMARY KEY (room_id, user_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
    id BLOB NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    shared INTEGER NOT NULL CHECK (shared IN (0, 1)),
    starts_at INTEGER NOT NULL,
    ends_at INTEGER NOT NULL,
    is_long INTEGER NOT NULL CHECK (is_long IN (0, 1)),
    -- Those of the room; a room's place changes only together with the event that owns it.
    place TEXT NOT NULL,
    place_key TEXT NOT NULL REFERENCES places (key),
    room_id BLOB NOT NULL REFERENCES rooms (id),
    -- The room was made for this event (an instant one) and moves, changes and goes with it.
    owns_room INTEGER NOT NULL CHECK (owns_room IN (0, 1)),
    group_id BLOB NOT NULL REFERENCES groups (id),
    open INTEGER NOT NULL CHECK (open IN (0, 1)),
    -- iCalendar SEQUENCE: one more at each change of time, place or status.
    sequence INTEGER NOT NULL,
    created_by BLOB NOT NULL REFERENCES users (id),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER,
    CHECK (starts_at < ends_at)
) STRICT;
CREATE INDEX events_by_start ON events (is_long, starts_at);
CREATE INDEX events_by_place ON events (place_key, is_long, starts_at);
CREATE INDEX events_by_room ON events (room_id);
CREATE INDEX events_by_group ON events (group_id, starts_at);
CREATE INDEX events_by_change ON events (updated_at);

CREATE TABLE event_admins (
    event_id BLOB NOT NULL REFERENCES events (id) ON DELETE CASCADE,
    user_id BLOB NOT NULL REFERENCES users (id),
    PRIMARY KEY (event_id, user_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX event_admins_user_id ON event_admins (user_id);

CREATE TABLE event_tags (
    event_id BLOB NOT NULL REFERENCES events (id) ON DELETE CASCADE,
    tag_id BLOB NOT NULL REFERENCES tags (id),
    locked INTEGER NOT NULL CHECK (locked IN (0, 1)),
    PRIMARY KEY (event_id, tag_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX event_tags_tag_id ON event_tags (tag_id);

CREATE TABLE attendees (
    event_id BLOB NOT NULL REFERENCES events (id) ON DELETE CASCADE,
    user_id BLOB NOT NULL REFERENCES users (id),
    schedule TEXT NOT NULL CHECK (schedule IN ('pending', 'absent', 'attendance')),
    PRIMARY KEY (event_id, user_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX attendees_user_id ON attendees (user_id, schedule);
