-- A run of white space in the name of a place counts as one space (contract, "No double booking"). Existing events that
-- conflict because of this stay as they are.
CREATE TEMPORARY TABLE changed_keys ON COMMIT DROP AS
SELECT key AS former, regexp_replace(key, '[\s\u1680\u2028\u2029]+', ' ', 'g') AS present FROM places;
DELETE FROM changed_keys WHERE former = present;

INSERT INTO places (key) SELECT present FROM changed_keys ON CONFLICT DO NOTHING;
UPDATE rooms SET place_key = present FROM changed_keys WHERE place_key = former;
UPDATE events SET place_key = present FROM changed_keys WHERE place_key = former;
DELETE FROM places WHERE key IN (SELECT former FROM changed_keys);
