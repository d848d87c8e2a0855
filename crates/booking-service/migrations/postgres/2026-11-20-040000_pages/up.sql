-- Lists in their order, so that a page of a long one is read from where it begins and not sorted out of the whole.
-- The second condition is always true. Only queries for all events or rooms say it: a query for a span of time that
-- went through the list in order would read all that lies before the span.
CREATE INDEX events_list ON events (starts_at, id) WHERE deleted_at IS NULL AND starts_at < ends_at;
CREATE INDEX rooms_list ON rooms (starts_at, place, id) WHERE deleted_at IS NULL AND starts_at < ends_at;
CREATE INDEX tags_list ON tags (name, id);
