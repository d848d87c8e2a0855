-- The e-mail address of a user in the directory, in lower case: who is signed in with this verified address is this user.
ALTER TABLE users ADD COLUMN email TEXT;
CREATE INDEX users_email ON users (email) WHERE email IS NOT NULL;
