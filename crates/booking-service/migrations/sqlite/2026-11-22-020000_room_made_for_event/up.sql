-- The room was made for an event that names a place, and disappears with the last event that uses it.
ALTER TABLE rooms ADD COLUMN made_for_event INTEGER NOT NULL DEFAULT 0 CHECK (made_for_event IN (0, 1));
UPDATE rooms SET made_for_event = 1 WHERE id IN (SELECT room_id FROM events WHERE owns_room);
-- rooms.reach_from is no longer read. It is still written, so that the previous version can run during an upgrade.
