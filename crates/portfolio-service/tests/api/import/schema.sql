CREATE TABLE users (
    id char(36) NOT NULL PRIMARY KEY, name varchar(32) NOT NULL UNIQUE, description text NOT NULL,
    `check` boolean NOT NULL, state tinyint NOT NULL
);
CREATE TABLE accounts (
    id char(36) NOT NULL PRIMARY KEY, type tinyint NOT NULL, name varchar(256) NOT NULL, url text NOT NULL,
    user_id char(36) NOT NULL
);
CREATE TABLE projects (
    id char(36) NOT NULL PRIMARY KEY, name varchar(128) NOT NULL, description text NOT NULL, link text NOT NULL,
    since_year smallint NOT NULL, since_semester tinyint NOT NULL, until_year smallint NOT NULL,
    until_semester tinyint NOT NULL, created_at datetime(6) NOT NULL, updated_at datetime(6) NOT NULL
);
CREATE TABLE project_members (
    project_id char(36) NOT NULL, user_id char(36) NOT NULL, since_year smallint NOT NULL, since_semester tinyint NOT NULL,
    until_year smallint NOT NULL, until_semester tinyint NOT NULL, PRIMARY KEY (project_id, user_id)
);
CREATE TABLE contests (
    id char(36) NOT NULL PRIMARY KEY, name varchar(128) NOT NULL, description text NOT NULL, link text NOT NULL,
    since datetime(6) NOT NULL, until datetime(6), created_at datetime(6) NOT NULL, updated_at datetime(6) NOT NULL
);
CREATE TABLE contest_teams (
    id char(36) NOT NULL PRIMARY KEY, contest_id char(36) NOT NULL, name varchar(128) NOT NULL, description text NOT NULL,
    result text NOT NULL, link text NOT NULL
);
CREATE TABLE contest_team_user_belongings (
    team_id char(36) NOT NULL, user_id char(36) NOT NULL, PRIMARY KEY (team_id, user_id)
);
CREATE TABLE `groups` (
    group_id char(36) NOT NULL PRIMARY KEY, name varchar(32) NOT NULL, link text NOT NULL, description text NOT NULL
);
CREATE TABLE group_user_belongings (
    user_id char(36) NOT NULL, group_id char(36) NOT NULL, since_year smallint NOT NULL, since_semester tinyint NOT NULL,
    until_year smallint NOT NULL, until_semester tinyint NOT NULL, PRIMARY KEY (user_id, group_id)
);
CREATE TABLE group_user_admins (
    user_id char(36) NOT NULL, group_id char(36) NOT NULL, PRIMARY KEY (user_id, group_id)
);
CREATE TABLE event_level_relations (id char(36) NOT NULL PRIMARY KEY, level tinyint NOT NULL);
-- The id with this number, for each kind of thing one range.
CREATE FUNCTION id_of(kind int, number int) RETURNS char(36) DETERMINISTIC
    RETURN LOWER(CONCAT(LPAD(HEX(number), 8, '0'), '-0000-4000-8000-', LPAD(HEX(kind), 12, '0')));
