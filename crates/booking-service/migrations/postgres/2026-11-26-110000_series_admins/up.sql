-- The administrators of a series, who may differ from those of its events. An older series gets those of its first
-- remaining event, else of its first one.
CREATE TABLE event_series_admins (
    series_id uuid NOT NULL REFERENCES event_series (id) ON DELETE CASCADE,
    user_id uuid NOT NULL REFERENCES users (id),
    PRIMARY KEY (series_id, user_id)
);

INSERT INTO event_series_admins (series_id, user_id)
SELECT event_series.id, event_admins.user_id
FROM event_series
JOIN event_admins ON event_admins.event_id = (
    SELECT events.id FROM events WHERE events.series_id = event_series.id
    ORDER BY events.deleted_at IS NOT NULL, events.starts_at, events.id LIMIT 1
);
