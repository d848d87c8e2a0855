DROP TABLE identities;
DROP TABLE spent_logins;
DROP TABLE sessions;
DROP INDEX users_name_lower;
ALTER TABLE users DROP COLUMN admin;
ALTER TABLE users DROP COLUMN in_directory;
