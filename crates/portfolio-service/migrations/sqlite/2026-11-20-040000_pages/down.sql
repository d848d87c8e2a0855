DROP INDEX users_list;
