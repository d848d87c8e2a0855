-- 300 users, of whom the directory knows 295, and 2,000 projects with 5 members each.
-- Kinds of ids: 1 users, 2 accounts, 3 projects, 4 contests, 5 teams, 6 groups, 7 events.
INSERT INTO users SELECT id_of(1, seq), CONCAT('old', seq), CONCAT('I am number ', seq), seq % 2, 1 FROM seq_1_to_300;
INSERT INTO accounts SELECT id_of(2, seq), 5, CONCAT('user ', seq), CONCAT('https://github.com/user-', seq), id_of(1, seq)
    FROM seq_1_to_300;
INSERT INTO projects SELECT id_of(3, seq), CONCAT('project ', seq), '説明', IF(seq % 3, 'https://club.example/', ''),
    2018 + seq % 4, seq % 2, IF(seq % 2, 0, 2022 + seq % 4), 0, '2023-04-01 03:00:00.123456', '2023-05-01 03:00:00.654321'
    FROM seq_1_to_2000;
INSERT INTO project_members SELECT id_of(3, p.seq), id_of(1, 1 + (p.seq + 7 * m.seq) % 300), 2018 + p.seq % 4, p.seq % 2,
    IF(m.seq % 2, 0, 2022), m.seq % 2 FROM seq_1_to_2000 p JOIN seq_1_to_5 m;
INSERT INTO contests SELECT id_of(4, seq), CONCAT('contest ', seq), 'A long night', 'https://contest.example/',
    '2023-08-01 01:00:00', IF(seq % 2, '0001-01-01 00:00:00', '2023-08-02 01:00:00'), '2023-07-01', '2023-07-02'
    FROM seq_1_to_100;
INSERT INTO contest_teams SELECT id_of(5, seq), id_of(4, 1 + seq % 100), CONCAT('team ', seq), 'We', '3rd', ''
    FROM seq_1_to_200;
INSERT INTO contest_team_user_belongings SELECT id_of(5, t.seq), id_of(1, 1 + (t.seq + m.seq) % 300)
    FROM seq_1_to_200 t JOIN seq_1_to_3 m;
INSERT INTO `groups` SELECT id_of(6, seq), CONCAT('group ', seq), 'https://club.example/group', 'old'
    FROM seq_1_to_10;
INSERT INTO group_user_belongings SELECT id_of(1, seq), id_of(6, 1 + seq % 10), 2019, 0, IF(seq % 2, 0, 2021), 1
    FROM seq_1_to_300;
INSERT INTO event_level_relations SELECT id_of(7, seq), seq % 3 FROM seq_1_to_500;
