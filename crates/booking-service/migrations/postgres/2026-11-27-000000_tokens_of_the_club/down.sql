DELETE FROM api_tokens WHERE user_id IS NULL;
ALTER TABLE api_tokens DROP CONSTRAINT api_tokens_of_the_club_read;
ALTER TABLE api_tokens ALTER COLUMN user_id SET NOT NULL;
