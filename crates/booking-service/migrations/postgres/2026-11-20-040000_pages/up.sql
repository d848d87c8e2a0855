-- Lists in their order, so that a page of a long one is read from where it begins and not sorted out of the whole.
CREATE INDEX events_list ON events (starts_at, id) WHERE deleted_at IS NULL;
CREATE INDEX rooms_list ON rooms (starts_at, place, id) WHERE deleted_at IS NULL;
CREATE INDEX tags_list ON tags (name, id);
