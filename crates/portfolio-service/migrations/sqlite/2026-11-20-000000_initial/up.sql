-- Identifiers are 16 bytes; points in time are microseconds since 1970-01-01T00:00:00Z; booleans are 0 or 1.
-- Semesters are counted: 2 × year, and 1 more for the second half. A span of them includes both ends.

CREATE TABLE users (
    id BLOB NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    -- As the directory tells it, or empty. Shown only if the owner says so.
    real_name TEXT NOT NULL,
    publishes_real_name INTEGER NOT NULL DEFAULT 0 CHECK (publishes_real_name IN (0, 1)),
    -- 0 deactivated, 1 active, 2 suspended.
    state INTEGER NOT NULL CHECK (state IN (0, 1, 2)),
    bio TEXT NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

CREATE TABLE accounts (
    id BLOB NOT NULL PRIMARY KEY,
    user_id BLOB NOT NULL REFERENCES users (id),
    -- One of the account types in the code.
    type INTEGER NOT NULL,
    display_name TEXT NOT NULL,
    url TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (user_id, type)
) STRICT;

-- A group that the directory no longer knows stays, for the history of its members.
CREATE TABLE groups (
    id BLOB NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    link TEXT NOT NULL DEFAULT '',
    description TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX groups_list ON groups (name, id);

CREATE TABLE group_admins (
    group_id BLOB NOT NULL REFERENCES groups (id) ON DELETE CASCADE,
    user_id BLOB NOT NULL REFERENCES users (id),
    PRIMARY KEY (group_id, user_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX group_admins_user_id ON group_admins (user_id);

-- Somebody who leaves and returns has several spans in a group, even within one semester.
CREATE TABLE group_memberships (
    id BLOB NOT NULL PRIMARY KEY,
    group_id BLOB NOT NULL REFERENCES groups (id) ON DELETE CASCADE,
    user_id BLOB NOT NULL REFERENCES users (id),
    since INTEGER NOT NULL,
    until INTEGER,
    CHECK (since <= until)
) STRICT;
CREATE INDEX group_memberships_group_id ON group_memberships (group_id);
CREATE INDEX group_memberships_user_id ON group_memberships (user_id);
CREATE UNIQUE INDEX group_memberships_open ON group_memberships (group_id, user_id) WHERE until IS NULL;

-- A copy of what the booking-service has.
CREATE TABLE events (
    id BLOB NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    place TEXT NOT NULL,
    since INTEGER NOT NULL,
    until INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX events_list ON events (since, id);

-- A host may be somebody whom the directory did not tell us of yet, and is shown as soon as it does.
CREATE TABLE event_hosts (
    event_id BLOB NOT NULL REFERENCES events (id) ON DELETE CASCADE,
    user_id BLOB NOT NULL,
    PRIMARY KEY (event_id, user_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX event_hosts_user_id ON event_hosts (user_id);

-- This service's own, so it outlives the copy. 0 anonymous, which is also meant when there is no row; 1 public;
-- 2 private.
CREATE TABLE event_levels (
    event_id BLOB NOT NULL PRIMARY KEY,
    level INTEGER NOT NULL CHECK (level IN (0, 1, 2))
) STRICT, WITHOUT ROWID;

CREATE TABLE projects (
    id BLOB NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    link TEXT NOT NULL,
    description TEXT NOT NULL,
    since INTEGER NOT NULL,
    until INTEGER,
    created_by BLOB NOT NULL REFERENCES users (id),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    CHECK (since <= until)
) STRICT;
CREATE INDEX projects_list ON projects (since DESC, id);

-- The span as sent; what is shown is its part inside the project's.
CREATE TABLE project_members (
    project_id BLOB NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    user_id BLOB NOT NULL REFERENCES users (id),
    since INTEGER NOT NULL,
    until INTEGER,
    PRIMARY KEY (project_id, user_id),
    CHECK (since <= until)
) STRICT, WITHOUT ROWID;
CREATE INDEX project_members_user_id ON project_members (user_id);

CREATE TABLE contests (
    id BLOB NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    link TEXT NOT NULL,
    description TEXT NOT NULL,
    since INTEGER NOT NULL,
    until INTEGER,
    created_by BLOB NOT NULL REFERENCES users (id),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    CHECK (since <= until)
) STRICT;
CREATE INDEX contests_list ON contests (since DESC, id);

CREATE TABLE contest_teams (
    id BLOB NOT NULL PRIMARY KEY,
    contest_id BLOB NOT NULL REFERENCES contests (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    link TEXT NOT NULL,
    description TEXT NOT NULL,
    result TEXT NOT NULL,
    created_by BLOB NOT NULL REFERENCES users (id),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX contest_teams_list ON contest_teams (contest_id, name, id);

CREATE TABLE contest_team_members (
    team_id BLOB NOT NULL REFERENCES contest_teams (id) ON DELETE CASCADE,
    user_id BLOB NOT NULL REFERENCES users (id),
    PRIMARY KEY (team_id, user_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX contest_team_members_user_id ON contest_team_members (user_id);

-- Which replica does a background task; free again when it has expired.
CREATE TABLE leases (
    task TEXT NOT NULL PRIMARY KEY,
    holder BLOB NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- How far a copy from elsewhere has come.
CREATE TABLE copies (
    source TEXT NOT NULL PRIMARY KEY,
    copied_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
