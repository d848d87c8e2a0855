//! The commands that keep a database: back it up, restore it, copy it to PostgreSQL.

mod backup;
mod check;
pub mod cli;
mod copy_to_postgres;
mod database_file;

mod restore;
pub mod tables;
