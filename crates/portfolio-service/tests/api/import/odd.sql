-- What older versions left. The columns allow NULL, and other bytes than those of UTF-8, as they once did.
SET sql_mode = '';
ALTER TABLE accounts MODIFY type tinyint, MODIFY name varbinary(256), MODIFY url text;
ALTER TABLE projects MODIFY link text, MODIFY since_year smallint, MODIFY since_semester tinyint, MODIFY until_year smallint,
    MODIFY until_semester tinyint, MODIFY description text, MODIFY created_at datetime(6), MODIFY updated_at datetime(6);
ALTER TABLE contests MODIFY since datetime(6), MODIFY link text;
ALTER TABLE contest_teams MODIFY name varchar(128), MODIFY result text, MODIFY link text;
ALTER TABLE event_level_relations MODIFY level tinyint;
INSERT INTO users VALUES
    (id_of(1, 1), 'one', REPEAT('x', 300), 1, 1), (id_of(1, 2), 'two', '', 0, 1),
    (id_of(1, 8), 'no sign in name', '', 0, 1), (id_of(1, 9), 'gone', 'I left', 0, 0);
INSERT INTO accounts VALUES
    (id_of(2, 1), 5, 'one', 'https://github.com/one', id_of(1, 1)),
    (id_of(2, 2), 5, 'again', 'https://github.com/again', id_of(1, 1)),
    (id_of(2, 3), 0, 'home', 'javascript:alert(1)', id_of(1, 1)),
    (id_of(2, 4), 99, 'x', 'https://x.example', id_of(1, 1)),
    (id_of(2, 5), 4, 0x636166E9, 'https://www.pixiv.net/users/123/artworks', id_of(1, 1)),
    (id_of(2, 6), 6, NULL, 'https://qiita.example/one', id_of(1, 1)),
    (id_of(2, 7), 7, 'z', ' zenn.dev/one ', id_of(1, 1)),
    (id_of(2, 8), 7, 'z', 'https://zenn.dev/two', id_of(1, 77));
INSERT INTO projects VALUES
    (id_of(3, 1), 'robot', REPEAT('d', 300), '', 2024, 0, 0, 0, '2024-04-01', '2024-04-01'),
    (id_of(3, 2), 'robot', 'd', 'ftp://club.example', 2024, 0, 0, 0, '2024-04-01', '2024-04-01'),
    (id_of(3, 3), 'link', 'd', 'github.com/club/robot', 2024, 0, 0, 0, '2024-04-01', '2024-04-01'),
    (id_of(3, 4), 'back', 'd', '', 2024, 0, 2023, 0, '2024-04-01', '2024-04-01'),
    (id_of(3, 5), 'site', 'd', ' https://club.example/a b', 2024, 0, 0, 0, '2024-04-01', '2024-04-01'),
    (id_of(3, 6), 'bridge', 'd', 'mailto:a@club.example', 2024, 0, 0, 0, '2024-04-01', '2024-04-01'),
    (id_of(3, 7), 'seven', 'd', '日本語.example/道', NULL, NULL, NULL, NULL, '0000-00-00', NULL),
    (id_of(3, 8), 'eight', NULL, NULL, 2024, 7, 32767, -1, NULL, '2024-04-01'),
    (id_of(3, 9), '', 'd', 'club.example', 0, 0, 0, 0, '2024-04-01', '2024-04-01');
INSERT INTO project_members VALUES
    (id_of(3, 1), id_of(1, 1), 2024, 0, 0, 0), (id_of(3, 1), id_of(1, 77), 2024, 0, 0, 0),
    (id_of(3, 1), id_of(1, 2), 2024, 0, 2023, 0), (id_of(3, 5), id_of(1, 9), 2024, 0, 2024, 1);
INSERT INTO contests VALUES
    (id_of(4, 1), 'night', 'd', '', '2024-08-01', '0001-01-01', '2024-07-01', '2024-07-01'),
    (id_of(4, 2), 'back', 'd', '', '2024-08-01', '2023-01-01', '2024-07-01', '2024-07-01'),
    (id_of(4, 3), 'when', 'd', NULL, NULL, NULL, '2024-07-01', '2024-07-01');
INSERT INTO contest_teams VALUES
    (id_of(5, 1), id_of(4, 1), 'us', 'd', 'won', ''), (id_of(5, 2), id_of(4, 2), NULL, 'd', NULL, 'club.example'),
    (id_of(5, 3), id_of(4, 77), 'lost', 'd', '', '');
INSERT INTO contest_team_user_belongings VALUES (id_of(5, 1), id_of(1, 1));
INSERT INTO `groups` VALUES (id_of(6, 1), 'graphics', 'https://club.example/graphics', 'Drawing');
INSERT INTO group_user_belongings VALUES (id_of(1, 1), id_of(6, 1), 2019, 0, 0, 0), (id_of(1, 9), id_of(6, 1), 2019, 0, 2020, 1);
INSERT INTO event_level_relations VALUES (id_of(7, 1), 1), (id_of(7, 2), 7), (id_of(7, 3), -1), (id_of(7, 4), NULL);
