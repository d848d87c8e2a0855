-- The feeds: what changed last.
CREATE INDEX projects_updated ON projects (updated_at DESC, id);
CREATE INDEX contests_updated ON contests (updated_at DESC, id);
