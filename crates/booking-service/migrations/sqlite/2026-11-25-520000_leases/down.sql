DROP INDEX groups_deleted;
DROP INDEX rooms_deleted;
DROP INDEX events_deleted;
DROP TABLE leases;
