-- Series of events: a recurrence rule, expanded when the series is made.
CREATE TABLE event_series (
    id uuid NOT NULL PRIMARY KEY,
    -- RFC 5545, without the name of the property.
    rrule text NOT NULL,
    -- The zone of the wall clock.
    time_zone text NOT NULL,
    -- The dates that the rule has and the series does not: `YYYY-MM-DD`, separated by commas.
    exdates text NOT NULL,
    -- The first occurrence, as it was requested.
    starts_at timestamptz NOT NULL,
    ends_at timestamptz NOT NULL,
    -- The number of the next date.
    next_occurrence integer NOT NULL,
    created_by uuid REFERENCES users (id),
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    CHECK (starts_at < ends_at)
);

-- Dates that could not be booked.
CREATE TABLE skipped_occurrences (
    series_id uuid NOT NULL REFERENCES event_series (id) ON DELETE CASCADE,
    occurrence integer NOT NULL,
    starts_at timestamptz NOT NULL,
    ends_at timestamptz NOT NULL,
    code text NOT NULL CHECK (code IN ('room-conflict', 'outside-room-window', 'nonexistent-time')),
    PRIMARY KEY (series_id, occurrence)
);

ALTER TABLE events ADD COLUMN series_id uuid REFERENCES event_series (id);
-- The number of the date in the series.
ALTER TABLE events ADD COLUMN occurrence integer;
-- Changed by an operation on the event: changes of the series leave it out.
ALTER TABLE events ADD COLUMN changed_by_itself boolean NOT NULL DEFAULT false;
CREATE INDEX events_by_series ON events (series_id, starts_at) WHERE series_id IS NOT NULL;
