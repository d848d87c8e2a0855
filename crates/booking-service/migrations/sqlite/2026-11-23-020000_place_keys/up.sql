-- A run of white space in the name of a place counts as one space (contract, "No double booking"). Existing events that
-- conflict because of this stay as they are.
CREATE TEMPORARY TABLE changed_keys AS
WITH spaced (key, text) AS (
    SELECT key, replace(replace(replace(replace(replace(replace(key,
        char(9), ' '), char(10), ' '), char(13), ' '), char(5760), ' '), char(8232), ' '), char(8233), ' ')
    FROM places
)
-- No key contains control characters other than white space.
SELECT key AS former, replace(replace(replace(text, ' ', char(1, 2)), char(2, 1), ''), char(1, 2), ' ') AS present
FROM spaced;
DELETE FROM changed_keys WHERE former = present;

INSERT OR IGNORE INTO places (key) SELECT present FROM changed_keys;
UPDATE rooms SET place_key = present FROM changed_keys WHERE place_key = former;
UPDATE events SET place_key = present FROM changed_keys WHERE place_key = former;
DELETE FROM places WHERE key IN (SELECT former FROM changed_keys);
DROP TABLE changed_keys;
