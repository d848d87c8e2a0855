ALTER TABLE identities DROP COLUMN invited;
DROP TABLE invitations;
