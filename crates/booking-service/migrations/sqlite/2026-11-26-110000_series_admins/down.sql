DROP TABLE event_series_admins;
