DROP INDEX attendees_user_id;
CREATE INDEX attendees_user_id ON attendees (user_id, schedule);
