DROP INDEX events_by_series;
ALTER TABLE events DROP COLUMN changed_by_itself;
ALTER TABLE events DROP COLUMN occurrence;
ALTER TABLE events DROP COLUMN series_id;
DROP TABLE skipped_occurrences;
DROP TABLE event_series;
