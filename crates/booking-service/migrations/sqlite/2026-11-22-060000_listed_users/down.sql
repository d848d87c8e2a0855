ALTER TABLE users DROP COLUMN in_directory;
