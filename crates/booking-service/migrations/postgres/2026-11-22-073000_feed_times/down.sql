ALTER TABLE users DROP COLUMN display_name_changed_at;
ALTER TABLE attendees DROP COLUMN changed_at;
