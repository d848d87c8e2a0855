-- A search for the events of a group during a span finds the long ones here, and not among the long ones of all groups.
CREATE INDEX events_long_by_group ON events (group_id, starts_at) WHERE is_long IS TRUE;
