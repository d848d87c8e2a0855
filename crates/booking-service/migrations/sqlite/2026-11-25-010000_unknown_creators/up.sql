-- NULL for imported rows whose creator is not known; shown as the nil UUID, as for groups.
ALTER TABLE rooms ALTER COLUMN created_by DROP NOT NULL;
ALTER TABLE events ALTER COLUMN created_by DROP NOT NULL;
