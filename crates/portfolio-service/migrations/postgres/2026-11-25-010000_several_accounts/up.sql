-- An imported account besides the first of its user and type.
ALTER TABLE accounts ADD COLUMN further boolean NOT NULL DEFAULT false;
ALTER TABLE accounts DROP CONSTRAINT accounts_user_id_type_key;
CREATE UNIQUE INDEX accounts_user_id_type_key ON accounts (user_id, type) WHERE NOT further;
CREATE INDEX accounts_user_id ON accounts (user_id);
