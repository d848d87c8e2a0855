-- A feed reads the answers of its owner from this index alone. In the table they lie apart.
DROP INDEX attendees_user_id;
CREATE INDEX attendees_user_id ON attendees (user_id, event_id, schedule, changed_at);
