-- Deleted polls stay for 30 days, so that they can be restored.
ALTER TABLE draft_events ADD COLUMN deleted_at timestamptz;
CREATE INDEX draft_events_deleted ON draft_events (deleted_at) WHERE deleted_at IS NOT NULL;
