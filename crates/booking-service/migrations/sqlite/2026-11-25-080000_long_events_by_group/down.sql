DROP INDEX events_long_by_group;
