DROP INDEX tags_list;
DROP INDEX rooms_list;
DROP INDEX events_list;
