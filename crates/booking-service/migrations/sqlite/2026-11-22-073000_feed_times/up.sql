-- Times from which the calendar feed takes DTSTAMP and LAST-MODIFIED, besides events.updated_at. Rows of before have
-- 1970-01-01, which is never the latest of them.

-- When the answer was given, or the user invited.
ALTER TABLE attendees ADD COLUMN changed_at INTEGER NOT NULL DEFAULT 0;

-- When the user's display name last changed.
ALTER TABLE users ADD COLUMN display_name_changed_at INTEGER NOT NULL DEFAULT 0;
