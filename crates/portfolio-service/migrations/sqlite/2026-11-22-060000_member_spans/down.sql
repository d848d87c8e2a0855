DROP TABLE departures;
ALTER TABLE project_members DROP COLUMN follows_until;
ALTER TABLE project_members DROP COLUMN follows_since;
