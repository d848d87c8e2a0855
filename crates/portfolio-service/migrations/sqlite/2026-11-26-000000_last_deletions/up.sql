-- When a project or contest was deleted last: the time of the last change of a feed never goes back.
CREATE TABLE last_deletions (
    -- projects, contests
    kind TEXT NOT NULL PRIMARY KEY,
    deleted_at INTEGER NOT NULL
) STRICT;
