DROP TABLE pictures;
ALTER TABLE projects DROP COLUMN picture;
ALTER TABLE users DROP COLUMN picture;
