ALTER TABLE events DROP COLUMN deleted_by_until;
