DROP INDEX draft_events_deleted;
DELETE FROM draft_events WHERE deleted_at IS NOT NULL;
ALTER TABLE draft_events DROP COLUMN deleted_at;
