-- Deleted because the rule of its series got an earlier end. A later end makes that date again, but none that somebody
-- has deleted by hand.
ALTER TABLE events ADD COLUMN deleted_by_until boolean NOT NULL DEFAULT false;
