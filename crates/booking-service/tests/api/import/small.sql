-- Users 1 to 5 are known to the directory; ffffffff is not. Number 3 has no feed.
INSERT INTO users VALUES
    (id_of(1, 1), 1, 1, 'first-secret'), (id_of(1, 2), 0, 1, 'second-secret'), (id_of(1, 3), 0, 1, ''),
    (id_of(1, 4), 0, 1, 'fourth-secret'), (id_of(1, 5), 0, 0, ''),
    ('ffffffff-0000-4000-8000-000000000001', 0, 1, 'secret-of-nobody');
INSERT INTO tokens VALUES (id_of(1, 1), 'canary-foreign-token-7d11', '');
INSERT INTO `groups` VALUES
    (id_of(2, 1), 'readers', 'The book', 1, id_of(1, 2), '2025-04-01 12:00', '2025-04-02 12:00', NULL),
    (id_of(2, 2), 'talkative', REPEAT('x', 10001), 0, id_of(1, 2), '2025-04-01', '2025-04-01', NULL),
    (id_of(2, 3), 'deleted', '', 0, id_of(1, 2), '2025-04-01', '2025-05-01', '2025-05-01');
INSERT INTO group_members VALUES
    (id_of(1, 2), id_of(2, 1), NOW(), NOW(), NULL), (id_of(1, 3), id_of(2, 1), NOW(), NOW(), NULL),
    (id_of(1, 4), id_of(2, 1), NOW(), NOW(), '2025-05-01'), (id_of(1, 99), id_of(2, 1), NOW(), NOW(), NULL);
INSERT INTO group_admins VALUES (id_of(1, 2), id_of(2, 1), NOW(), NOW(), NULL);
INSERT INTO tags VALUES
    (id_of(3, 1), 'rust', '2025-04-01', '2025-04-01', NULL),
    (id_of(3, 2), CONVERT(0x636166C3A9 USING utf8mb4), '2025-04-01', '2025-04-01', NULL),
    (id_of(3, 3), CONVERT(0x63616665CC81 USING utf8mb4), '2025-04-01', '2025-04-01', NULL);
-- 1 and 2 are held and overlap; 3 was made for its event; 4 is like it, but by another user; 5 has no administrator; 6
-- does not end after it starts; the times of 7 are those of a change of the clocks.
INSERT INTO rooms VALUES
    (id_of(4, 1), 'S516', 1, '2026-01-05 09:00', '2026-01-05 21:00', id_of(1, 1), '2025-12-01', '2025-12-01', NULL),
    (id_of(4, 2), 'Ｓ５１６', 1, '2026-01-05 20:00', '2026-01-05 22:00', id_of(1, 1), '2025-12-01', '2025-12-01', NULL),
    (id_of(4, 3), 'S516', 0, '2026-01-05 18:00', '2026-01-05 20:00', id_of(1, 2), '2025-12-01', '2025-12-01', NULL),
    (id_of(4, 4), 'Discord', 0, '2026-01-05 18:00', '2026-01-05 20:00', id_of(1, 2), '2025-12-01', '2025-12-01', NULL),
    (id_of(4, 5), 'Hall', 0, '2026-01-05 18:00', '2026-01-05 20:00', id_of(1, 3), '2025-12-01', '2025-12-01', NULL),
    (id_of(4, 6), 'Hall', 0, '2026-01-05 18:00', '2026-01-05 18:00', id_of(1, 3), '2025-12-01', '2025-12-01', NULL),
    (id_of(4, 7), 'Hall', 0, '2026-03-29 02:30', '2026-10-25 02:30', id_of(1, 3), '2025-12-01', '2025-12-01', NULL);
INSERT INTO room_admins SELECT created_by_refer, id, NOW(), NOW(), NULL FROM rooms WHERE id <> id_of(4, 5);
-- 1 and 2 are in one room at one time; 3 is at the place of both, in the room made for it; 4 reaches out of its room; 5 is
-- in the room that is left out; 6 is deleted; 7 is for a group that nobody knows.
INSERT INTO events VALUES
    (id_of(6, 1), 'one', '', id_of(2, 1), id_of(4, 1), '2026-01-05 18:00', '2026-01-05 20:00', id_of(1, 1), 0, 0, '2025-12-02', '2025-12-02', NULL),
    (id_of(6, 2), 'two', '', id_of(2, 1), id_of(4, 1), '2026-01-05 19:00', '2026-01-05 21:00', id_of(1, 2), 1, 0, '2025-12-02', '2025-12-02', NULL),
    (id_of(6, 3), 'three', '', id_of(2, 1), id_of(4, 3), '2026-01-05 18:00', '2026-01-05 20:00', id_of(1, 2), 1, 0, '2025-12-02', '2025-12-02', NULL),
    (id_of(6, 4), 'four', '', id_of(2, 1), id_of(4, 4), '2026-01-05 18:00', '2026-01-05 23:00', id_of(1, 3), 0, 1, '2025-12-02', '2025-12-02', NULL),
    (id_of(6, 5), 'five', '', id_of(2, 1), id_of(4, 6), '2026-01-05 18:00', '2026-01-05 23:00', id_of(1, 3), 0, 1, '2025-12-02', '2025-12-02', NULL),
    (id_of(6, 6), 'six', '', id_of(2, 1), id_of(4, 5), '2026-01-05 18:00', '2026-01-05 19:00', id_of(1, 3), 0, 1, '2025-12-02', '2025-12-03', '2025-12-03'),
    (id_of(6, 7), 'seven', '', 'eeeeeeee-0000-4000-8000-000000000002', id_of(4, 5), '2026-01-05 18:00', '2026-01-05 19:00', id_of(1, 3), 0, 1, '2025-12-02', '2025-12-03', NULL);
INSERT INTO event_admins SELECT created_by_refer, id, NOW(), NOW(), NULL FROM events;
INSERT INTO event_tags VALUES
    (id_of(3, 2), id_of(6, 1), 1, NOW(), NOW(), NULL), (id_of(3, 3), id_of(6, 1), 0, NOW(), NOW(), NULL),
    (id_of(3, 1), id_of(6, 1), 0, NOW(), NOW(), '2025-12-05');
INSERT INTO event_attendees VALUES
    (id_of(1, 1), id_of(6, 1), 1), (id_of(1, 2), id_of(6, 1), 2), (id_of(1, 3), id_of(6, 1), 3),
    (id_of(1, 4), id_of(6, 1), 9), (id_of(1, 2), id_of(6, 2), 2);
