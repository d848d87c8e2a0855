DROP INDEX draft_events_by_deadline;
DROP TABLE deliveries;
DROP TABLE webhooks;
