DROP INDEX projects_updated;
DROP INDEX contests_updated;
