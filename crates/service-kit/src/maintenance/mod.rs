//! The maintenance commands: back up and restore a SQLite database, and copy it to PostgreSQL.

mod backup;
mod check;
pub mod cli;
mod copy_to_postgres;
mod database_file;

mod restore;
pub mod tables;
