DROP INDEX users_name_lower;
