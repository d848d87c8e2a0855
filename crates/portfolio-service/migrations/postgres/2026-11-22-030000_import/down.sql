DROP TABLE imported_rows;
