-- What older versions left. The columns allow NULL, and other bytes than those of UTF-8, as they once did.
SET sql_mode = '';
ALTER TABLE users MODIFY privilege boolean, MODIFY ical_secret text;
ALTER TABLE `groups` MODIFY name varbinary(99), MODIFY description text, MODIFY created_at datetime(6), MODIFY updated_at datetime(6);
ALTER TABLE tags MODIFY created_at datetime(6), MODIFY updated_at datetime(6);
ALTER TABLE rooms MODIFY place varbinary(99), MODIFY verified boolean, MODIFY time_start datetime, MODIFY time_end datetime,
    MODIFY created_by_refer char(36), MODIFY created_at datetime(6), MODIFY updated_at datetime(6), ADD created_by char(36);
ALTER TABLE events MODIFY name varbinary(99), MODIFY description text, MODIFY group_id char(36), MODIFY time_start datetime,
    MODIFY time_end datetime, MODIFY created_by_refer char(36), MODIFY allow_together boolean, MODIFY open boolean,
    MODIFY created_at datetime(6), MODIFY updated_at datetime(6);
ALTER TABLE event_tags MODIFY locked boolean;
ALTER TABLE event_attendees MODIFY schedule int;
INSERT INTO users VALUES (id_of(1, 1), NULL, 1, NULL), (id_of(1, 2), 7, 1, ''), ('no id', 0, 1, '');
INSERT INTO `groups` VALUES
    (id_of(2, 1), 0x636166E9, NULL, NULL, id_of(1, 99), NULL, '0000-00-00', NULL),
    (id_of(2, 2), '', '', 5, '', '2025-04-01', NULL, '0000-00-00');
INSERT INTO tags VALUES (id_of(3, 1), '', NULL, NULL, NULL), (id_of(3, 2), 'rust', '0000-00-00', '2025-04-01', NULL);
INSERT INTO rooms VALUES
    (id_of(4, 1), 'One', 0, '2026-01-05 18:00', '2026-01-05 20:00', NULL, '2020-12-01', '2020-12-01', NULL, id_of(1, 1)),
    (id_of(4, 2), 'Two', 0, '2026-01-05 18:00', '2026-01-05 20:00', '', '2020-12-01', '2020-12-01', NULL, id_of(1, 99)),
    (id_of(4, 3), 'Three', 0, '2026-01-05 18:00', '2026-01-05 20:00', NULL, NULL, '2020-12-01', '0000-00-00', NULL),
    (id_of(4, 4), 'Four', 0, '2026-01-05 18:00', '2026-01-05 20:00', id_of(1, 99), '0000-00-00', NULL, NULL, id_of(1, 1)),
    (id_of(4, 5), 'Five', 0, '2026-01-05 20:00', '2026-01-05 18:00', id_of(1, 1), '2020-12-01', '2020-12-01', NULL, NULL),
    (id_of(4, 6), 'Six', NULL, NULL, '0000-00-00', id_of(1, 1), '2020-12-01', '2020-12-01', NULL, NULL),
    (id_of(4, 7), 0x436166E90007, 0, '2026-01-05 18:00', NULL, id_of(1, 1), '2020-12-01', '2020-12-01', NULL, NULL),
    (id_of(4, 8), NULL, 0, '9999-12-31 23:59:59', '9999-12-31 23:59:59', id_of(1, 1), '2020-12-01', '2020-12-01', NULL, NULL);
INSERT INTO events SELECT id_of(6, number), CONCAT('event ', number), '', id_of(2, 1), id_of(4, number), '2026-01-05 18:00',
    '2026-01-05 20:00', id_of(1, 1), 0, 0, '2025-12-02', '2025-12-02', NULL
    FROM (WITH RECURSIVE n (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM n WHERE number < 9) SELECT number FROM n) n;
UPDATE events SET created_by_refer = NULL, group_id = '', name = 0x6F006E65 WHERE id = id_of(6, 1);
UPDATE events SET created_by_refer = id_of(1, 99), description = NULL, allow_together = NULL, open = NULL WHERE id = id_of(6, 2);
UPDATE events SET time_start = NULL, time_end = NULL, group_id = id_of(2, 77), name = NULL WHERE id = id_of(6, 3);
UPDATE events SET time_start = '2026-01-05 20:00', time_end = '2026-01-05 18:00', created_at = NULL, updated_at = NULL,
    group_id = NULL WHERE id = id_of(6, 4);
INSERT INTO event_tags VALUES (id_of(3, 1), id_of(6, 1), NULL, NULL, NULL, '0000-00-00'), (id_of(3, 9), id_of(6, 1), 0, NULL, NULL, NULL);
INSERT INTO event_attendees VALUES
    (id_of(1, 1), id_of(6, 1), 9), (id_of(1, 2), id_of(6, 1), NULL), (id_of(1, 99), id_of(6, 1), 2), (id_of(1, 1), id_of(6, 9), 2);
