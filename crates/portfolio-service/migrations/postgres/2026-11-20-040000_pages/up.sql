-- Pages of the active users by name, without reading those who left, of whom there are more every year.
CREATE INDEX users_list ON users (state, name, id);
