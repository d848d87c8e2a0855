//! Bringing in what the systems had that the services replace, from their MariaDB or MySQL databases.
//!
//! * [`options`]: the options of the command. [`report`]: what it prints.
//! * [`row`], [`source`]: a row and a table; the connection, which only reads, and what is checked before anything is
//!   written.
//! * [`run`]: one transaction, which a dry run rolls back.
//! * [`local_time`]: times without a zone.
//! * [`merge`]: which rows are new, changed there, or changed here since the last import.
//! * [`pages`]: a table page by page, with the rows that belong to each.
//!
//! A service brings the meaning of the tables: it reads pages of rows, and writes what [`Import::merge`] answers.

pub mod local_time;
pub mod merge;
pub mod options;
pub mod pages;
pub mod report;
pub mod row;
pub mod run;
pub mod source;

pub use self::{options::ImportOptions, run::Import, source::CHUNK};
