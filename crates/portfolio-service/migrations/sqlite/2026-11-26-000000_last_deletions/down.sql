DROP TABLE last_deletions;
