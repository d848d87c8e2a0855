CREATE TABLE users (
    id char(36) NOT NULL PRIMARY KEY, privilege boolean NOT NULL, state int NOT NULL, ical_secret text NOT NULL
);
CREATE TABLE providers (user_id char(36) NOT NULL PRIMARY KEY, issuer text NOT NULL, subject text);
CREATE TABLE tokens (user_id char(36) NOT NULL PRIMARY KEY, access_token text, refresh_token text);
CREATE TABLE `groups` (
    id char(36) NOT NULL PRIMARY KEY, name varchar(32) NOT NULL, description text NOT NULL, join_freely boolean,
    created_by_refer char(36), created_at datetime(6) NOT NULL, updated_at datetime(6) NOT NULL, deleted_at datetime(6)
);
CREATE TABLE group_members (
    user_id char(36) NOT NULL, group_id char(36) NOT NULL, created_at datetime(6), updated_at datetime(6),
    deleted_at datetime(6), PRIMARY KEY (user_id, group_id), KEY (group_id)
);
CREATE TABLE group_admins LIKE group_members;
CREATE TABLE tags (
    id char(36) NOT NULL PRIMARY KEY, name varchar(16) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL UNIQUE,
    created_at datetime(6) NOT NULL, updated_at datetime(6) NOT NULL, deleted_at datetime(6)
);
CREATE TABLE rooms (
    id char(36) NOT NULL PRIMARY KEY, place varchar(32) NOT NULL, verified boolean NOT NULL,
    time_start datetime NOT NULL, time_end datetime NOT NULL, created_by_refer char(36) NOT NULL,
    created_at datetime(6) NOT NULL, updated_at datetime(6) NOT NULL, deleted_at datetime(6)
);
CREATE TABLE room_admins (
    user_id char(36) NOT NULL, room_id char(36) NOT NULL, created_at datetime(6), updated_at datetime(6),
    deleted_at datetime(6), PRIMARY KEY (user_id, room_id), KEY (room_id)
);
CREATE TABLE events (
    id char(36) NOT NULL PRIMARY KEY, name varchar(32) NOT NULL, description text NOT NULL, group_id char(36) NOT NULL,
    room_id char(36) NOT NULL, time_start datetime NOT NULL, time_end datetime NOT NULL,
    created_by_refer char(36) NOT NULL, allow_together boolean NOT NULL, open boolean NOT NULL,
    created_at datetime(6) NOT NULL, updated_at datetime(6) NOT NULL, deleted_at datetime(6), KEY (room_id)
);
CREATE TABLE event_tags (
    tag_id char(36) NOT NULL, event_id char(36) NOT NULL, locked boolean NOT NULL, created_at datetime(6),
    updated_at datetime(6), deleted_at datetime(6), PRIMARY KEY (tag_id, event_id), KEY (event_id)
);
CREATE TABLE event_admins (
    user_id char(36) NOT NULL, event_id char(36) NOT NULL, created_at datetime(6), updated_at datetime(6),
    deleted_at datetime(6), PRIMARY KEY (user_id, event_id), KEY (event_id)
);
CREATE TABLE event_attendees (
    user_id char(36) NOT NULL, event_id char(36) NOT NULL, schedule int NOT NULL, PRIMARY KEY (user_id, event_id),
    KEY (event_id)
);
-- The id with this number, for each kind of thing one range.
CREATE FUNCTION id_of(kind int, number int) RETURNS char(36) DETERMINISTIC
    RETURN LOWER(CONCAT(LPAD(HEX(number), 8, '0'), '-0000-4000-8000-', LPAD(HEX(kind), 12, '0')));
