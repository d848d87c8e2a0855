-- The same tables as for SQLite, with the types that PostgreSQL has for identifiers, points in time and booleans.
-- Semesters are counted: 2 × year, and 1 more for the second half. A span of them includes both ends.

CREATE TABLE users (
    id uuid NOT NULL PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    -- As the directory tells it, or empty. Shown only if the owner says so.
    real_name text NOT NULL,
    publishes_real_name boolean NOT NULL DEFAULT FALSE,
    -- 0 deactivated, 1 active, 2 suspended.
    state smallint NOT NULL CHECK (state IN (0, 1, 2)),
    bio text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

CREATE TABLE accounts (
    id uuid NOT NULL PRIMARY KEY,
    user_id uuid NOT NULL REFERENCES users (id),
    -- One of the account types in the code.
    type smallint NOT NULL,
    display_name text NOT NULL,
    url text NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    UNIQUE (user_id, type)
);

-- A group that the directory no longer knows stays, for the history of its members.
CREATE TABLE groups (
    id uuid NOT NULL PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    link text NOT NULL DEFAULT '',
    description text NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);
CREATE INDEX groups_list ON groups (name, id);

CREATE TABLE group_admins (
    group_id uuid NOT NULL REFERENCES groups (id) ON DELETE CASCADE,
    user_id uuid NOT NULL REFERENCES users (id),
    PRIMARY KEY (group_id, user_id)
);
CREATE INDEX group_admins_user_id ON group_admins (user_id);

-- Somebody who leaves and returns has several spans in a group, even within one semester.
CREATE TABLE group_memberships (
    id uuid NOT NULL PRIMARY KEY,
    group_id uuid NOT NULL REFERENCES groups (id) ON DELETE CASCADE,
    user_id uuid NOT NULL REFERENCES users (id),
    since integer NOT NULL,
    until integer,
    CHECK (since <= until)
);
CREATE INDEX group_memberships_group_id ON group_memberships (group_id);
CREATE INDEX group_memberships_user_id ON group_memberships (user_id);
CREATE UNIQUE INDEX group_memberships_open ON group_memberships (group_id, user_id) WHERE until IS NULL;

-- A copy of what the booking-service has.
CREATE TABLE events (
    id uuid NOT NULL PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    description text NOT NULL,
    place text NOT NULL,
    since timestamptz NOT NULL,
    until timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);
CREATE INDEX events_list ON events (since, id);

-- A host may be somebody whom the directory did not tell us of yet, and is shown as soon as it does.
CREATE TABLE event_hosts (
    event_id uuid NOT NULL REFERENCES events (id) ON DELETE CASCADE,
    user_id uuid NOT NULL,
    PRIMARY KEY (event_id, user_id)
);
CREATE INDEX event_hosts_user_id ON event_hosts (user_id);

-- This service's own, so it outlives the copy. 0 anonymous, which is also meant when there is no row; 1 public;
-- 2 private.
CREATE TABLE event_levels (
    event_id uuid NOT NULL PRIMARY KEY,
    level smallint NOT NULL CHECK (level IN (0, 1, 2))
);

CREATE TABLE projects (
    id uuid NOT NULL PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    link text NOT NULL,
    description text NOT NULL,
    since integer NOT NULL,
    until integer,
    created_by uuid NOT NULL REFERENCES users (id),
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    CHECK (since <= until)
);
CREATE INDEX projects_list ON projects (since DESC, id);

-- The span as sent; what is shown is its part inside the project's.
CREATE TABLE project_members (
    project_id uuid NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    user_id uuid NOT NULL REFERENCES users (id),
    since integer NOT NULL,
    until integer,
    PRIMARY KEY (project_id, user_id),
    CHECK (since <= until)
);
CREATE INDEX project_members_user_id ON project_members (user_id);

CREATE TABLE contests (
    id uuid NOT NULL PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    link text NOT NULL,
    description text NOT NULL,
    since timestamptz NOT NULL,
    until timestamptz,
    created_by uuid NOT NULL REFERENCES users (id),
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    CHECK (since <= until)
);
CREATE INDEX contests_list ON contests (since DESC, id);

CREATE TABLE contest_teams (
    id uuid NOT NULL PRIMARY KEY,
    contest_id uuid NOT NULL REFERENCES contests (id) ON DELETE CASCADE,
    name text COLLATE "C" NOT NULL,
    link text NOT NULL,
    description text NOT NULL,
    result text NOT NULL,
    created_by uuid NOT NULL REFERENCES users (id),
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);
CREATE INDEX contest_teams_list ON contest_teams (contest_id, name, id);

CREATE TABLE contest_team_members (
    team_id uuid NOT NULL REFERENCES contest_teams (id) ON DELETE CASCADE,
    user_id uuid NOT NULL REFERENCES users (id),
    PRIMARY KEY (team_id, user_id)
);
CREATE INDEX contest_team_members_user_id ON contest_team_members (user_id);

-- Which replica does a background task; free again when it has expired.
CREATE TABLE leases (
    task text COLLATE "C" NOT NULL PRIMARY KEY,
    holder uuid NOT NULL,
    expires_at timestamptz NOT NULL
);

-- How far a copy from elsewhere has come.
CREATE TABLE copies (
    source text COLLATE "C" NOT NULL PRIMARY KEY,
    copied_at timestamptz NOT NULL
);
