ALTER TABLE rooms DROP COLUMN made_for_event;
