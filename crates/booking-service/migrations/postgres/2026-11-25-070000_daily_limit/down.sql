DROP TABLE creations;
