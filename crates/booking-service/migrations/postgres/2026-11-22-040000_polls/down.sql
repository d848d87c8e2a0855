DROP TABLE draft_event_choices;
DROP TABLE draft_event_answers;
DROP TABLE draft_event_tags;
DROP TABLE draft_event_invitees;
DROP TABLE draft_event_admins;
DROP TABLE draft_event_slots;
DROP TABLE draft_events;
