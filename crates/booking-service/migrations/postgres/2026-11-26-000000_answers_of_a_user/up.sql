-- All that a feed shows of its owner's answers, and only theirs: among the answers to an event they lie as far apart as
-- there are events.
DROP INDEX attendees_user_id;
CREATE INDEX attendees_user_id ON attendees (user_id, event_id, schedule, changed_at);
