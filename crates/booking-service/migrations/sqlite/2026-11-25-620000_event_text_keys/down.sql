ALTER TABLE events DROP COLUMN text_key;
