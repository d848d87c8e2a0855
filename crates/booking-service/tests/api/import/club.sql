-- 5,000 events with 15 answers each: 4,000 in 1,000 rooms that the club holds, 1,000 in rooms of their own.
-- Kinds of ids: 1 users, 2 groups, 3 tags, 4 rooms, 5 rooms of their own, 6 events, 7 events in rooms of their own.
INSERT INTO users SELECT id_of(1, seq), seq = 1, 1, IF(seq % 2, CONCAT('secret-of-', seq), '') FROM seq_1_to_300;
INSERT INTO providers SELECT id_of(1, seq), 'traQ', id_of(1, seq) FROM seq_1_to_300;
INSERT INTO tokens SELECT id_of(1, seq), 'canary-foreign-token-7d11', '' FROM seq_1_to_300;
INSERT INTO `groups`
    SELECT id_of(2, seq), CONCAT('group ', seq), 'made there', seq % 2, id_of(1, seq), '2023-04-01 12:00:00.123456',
        '2023-04-02 12:00:00.654321', NULL FROM seq_1_to_40;
INSERT INTO group_members SELECT id_of(1, u.seq), id_of(2, g.seq), NOW(), NOW(), NULL
    FROM seq_1_to_300 u JOIN seq_1_to_40 g WHERE u.seq % 40 = g.seq - 1;
INSERT INTO group_admins SELECT id_of(1, seq), id_of(2, seq), NOW(), NOW(), NULL FROM seq_1_to_40;
INSERT INTO tags SELECT id_of(3, seq), CONCAT('tag ', seq), '2023-04-01', '2023-04-01', NULL FROM seq_1_to_50;
INSERT INTO rooms SELECT id_of(4, seq), CONCAT('S5', 10 + seq % 20), 1,
        '2024-01-01 09:00:00' + INTERVAL seq DIV 20 DAY, '2024-01-01 21:00:00' + INTERVAL seq DIV 20 DAY,
        id_of(1, 1), '2023-12-01', '2023-12-01', NULL FROM seq_1_to_1000;
INSERT INTO room_admins SELECT id_of(1, 1), id_of(4, seq), NOW(), NOW(), NULL FROM seq_1_to_1000;
INSERT INTO rooms SELECT id_of(5, seq), 'Discord', 0, '2024-01-01 20:00:00' + INTERVAL seq HOUR,
        '2024-01-01 22:00:00' + INTERVAL seq HOUR, id_of(1, 1 + seq % 300), '2023-12-01', '2023-12-01', NULL
    FROM seq_1_to_1000;
INSERT INTO room_admins SELECT id_of(1, 1 + seq % 300), id_of(5, seq), NOW(), NOW(), NULL FROM seq_1_to_1000;
INSERT INTO events SELECT id_of(6, 4 * r.seq + n.seq), CONCAT('event ', r.seq, '.', n.seq), 'Bring a laptop.',
        id_of(2, 1 + r.seq % 40), id_of(4, r.seq), '2024-01-01 09:00:00' + INTERVAL r.seq DIV 20 DAY + INTERVAL 2 * n.seq HOUR,
        '2024-01-01 11:00:00' + INTERVAL r.seq DIV 20 DAY + INTERVAL 2 * n.seq HOUR, id_of(1, 1 + r.seq % 300), r.seq % 2,
        n.seq % 2, '2023-12-02 12:00:00.5', '2023-12-03 12:00:00.000001', NULL
    FROM seq_1_to_1000 r JOIN seq_0_to_3 n;
INSERT INTO events SELECT id_of(7, seq), CONCAT('voice chat ', seq), '日本語', id_of(2, 1 + seq % 40), id_of(5, seq),
        '2024-01-01 20:00:00' + INTERVAL seq HOUR, '2024-01-01 22:00:00' + INTERVAL seq HOUR, id_of(1, 1 + seq % 300), 0, 1,
        '2023-12-02', '2023-12-03', NULL FROM seq_1_to_1000;
INSERT INTO event_admins SELECT created_by_refer, id, NOW(), NOW(), NULL FROM events;
INSERT INTO event_tags SELECT id_of(3, 1 + CONV(LEFT(id, 8), 16, 10) % 50), id, 0, NOW(), NOW(), NULL FROM events;
INSERT INTO event_attendees SELECT id_of(1, 1 + (CONV(LEFT(id, 8), 16, 10) + 13 * a.seq) % 300), id, 1 + a.seq % 3
    FROM events JOIN seq_1_to_15 a;
