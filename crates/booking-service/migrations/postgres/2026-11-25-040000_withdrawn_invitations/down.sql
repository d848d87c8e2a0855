DROP INDEX IF EXISTS draft_events_event_id;
DROP TABLE withdrawn_invitations;
