-- A token without a user is the club's: it reads what every member may read.
ALTER TABLE api_tokens ALTER COLUMN user_id DROP NOT NULL;
ALTER TABLE api_tokens ADD CONSTRAINT api_tokens_of_the_club_read CHECK (user_id IS NOT NULL OR scope = 'read');
