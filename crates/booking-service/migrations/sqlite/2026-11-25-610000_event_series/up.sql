-- Series of events: a recurrence rule, expanded when the series is made.
CREATE TABLE event_series (
    id BLOB NOT NULL PRIMARY KEY,
    -- RFC 5545, without the name of the property.
    rrule TEXT NOT NULL,
    -- The zone of the wall clock.
    time_zone TEXT NOT NULL,
    -- The dates that the rule has and the series does not: `YYYY-MM-DD`, separated by commas.
    exdates TEXT NOT NULL,
    -- The first occurrence, as it was requested.
    starts_at INTEGER NOT NULL,
    ends_at INTEGER NOT NULL,
    -- The number of the next date.
    next_occurrence INTEGER NOT NULL,
    created_by BLOB REFERENCES users (id),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    CHECK (starts_at < ends_at)
) STRICT;

-- Dates that could not be booked.
CREATE TABLE skipped_occurrences (
    series_id BLOB NOT NULL REFERENCES event_series (id) ON DELETE CASCADE,
    occurrence INTEGER NOT NULL,
    starts_at INTEGER NOT NULL,
    ends_at INTEGER NOT NULL,
    code TEXT NOT NULL CHECK (code IN ('room-conflict', 'outside-room-window', 'nonexistent-time')),
    PRIMARY KEY (series_id, occurrence)
) STRICT, WITHOUT ROWID;

ALTER TABLE events ADD COLUMN series_id BLOB REFERENCES event_series (id);
-- The number of the date in the series.
ALTER TABLE events ADD COLUMN occurrence INTEGER;
-- Changed by an operation on the event: changes of the series leave it out.
ALTER TABLE events ADD COLUMN changed_by_itself INTEGER NOT NULL DEFAULT 0 CHECK (changed_by_itself IN (0, 1));
CREATE INDEX events_by_series ON events (series_id, starts_at) WHERE series_id IS NOT NULL;

-- Triggers, so that entity tags change with what is shown: see the migration on conditions.
CREATE TRIGGER event_series_insert_is_a_change AFTER INSERT ON event_series BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER event_series_update_is_a_change AFTER UPDATE ON event_series BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER event_series_delete_is_a_change AFTER DELETE ON event_series BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER skipped_occurrences_insert_is_a_change AFTER INSERT ON skipped_occurrences BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER skipped_occurrences_update_is_a_change AFTER UPDATE ON skipped_occurrences BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
CREATE TRIGGER skipped_occurrences_delete_is_a_change AFTER DELETE ON skipped_occurrences BEGIN UPDATE last_change SET mark = hex(randomblob(16)); END;
