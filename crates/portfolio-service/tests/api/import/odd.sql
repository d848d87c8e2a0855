-- What is left out: a second account of one type, addresses that are none, spans that end before they start, a name that
-- is taken, a level that does not exist, a team without its contest, members whom nobody knows. What is too long stays.
INSERT INTO users VALUES
    (id_of(1, 1), 'one', REPEAT('x', 300), 1, 1), (id_of(1, 2), 'two', '', 0, 1), (id_of(1, 9), 'gone', 'I left', 0, 0);
INSERT INTO accounts VALUES
    (id_of(2, 1), 5, 'one', 'https://github.com/one', id_of(1, 1)),
    (id_of(2, 2), 5, 'again', 'https://github.com/again', id_of(1, 1)),
    (id_of(2, 3), 0, 'home', 'javascript:alert(1)', id_of(1, 1)),
    (id_of(2, 4), 99, 'x', 'https://x.example', id_of(1, 1));
INSERT INTO projects VALUES
    (id_of(3, 1), 'robot', REPEAT('d', 300), '', 2024, 0, 0, 0, '2024-04-01', '2024-04-01'),
    (id_of(3, 2), 'robot', 'd', '', 2024, 0, 0, 0, '2024-04-01', '2024-04-01'),
    (id_of(3, 3), 'link', 'd', 'club.example', 2024, 0, 0, 0, '2024-04-01', '2024-04-01'),
    (id_of(3, 4), 'back', 'd', '', 2024, 0, 2023, 0, '2024-04-01', '2024-04-01'),
    (id_of(3, 5), 'site', 'd', '', 2024, 0, 0, 0, '2024-04-01', '2024-04-01'),
    (id_of(3, 6), 'bridge', 'd', '', 2024, 0, 0, 0, '2024-04-01', '2024-04-01');
INSERT INTO project_members VALUES
    (id_of(3, 1), id_of(1, 1), 2024, 0, 0, 0), (id_of(3, 1), id_of(1, 77), 2024, 0, 0, 0),
    (id_of(3, 1), id_of(1, 2), 2024, 0, 2023, 0), (id_of(3, 5), id_of(1, 9), 2024, 0, 2024, 1);
INSERT INTO contests VALUES
    (id_of(4, 1), 'night', 'd', '', '2024-08-01', '0001-01-01', '2024-07-01', '2024-07-01'),
    (id_of(4, 2), 'back', 'd', '', '2024-08-01', '2023-01-01', '2024-07-01', '2024-07-01');
INSERT INTO contest_teams VALUES
    (id_of(5, 1), id_of(4, 1), 'us', 'd', 'won', ''), (id_of(5, 2), id_of(4, 2), 'them', 'd', 'lost', '');
INSERT INTO contest_team_user_belongings VALUES (id_of(5, 1), id_of(1, 1));
INSERT INTO `groups` VALUES (id_of(6, 1), 'graphics', 'https://club.example/graphics', 'Drawing');
INSERT INTO group_user_belongings VALUES (id_of(1, 1), id_of(6, 1), 2019, 0, 0, 0), (id_of(1, 9), id_of(6, 1), 2019, 0, 2020, 1);
INSERT INTO event_level_relations VALUES (id_of(7, 1), 1), (id_of(7, 2), 7);
