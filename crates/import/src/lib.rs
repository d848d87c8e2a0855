//! Import of data from the MariaDB or MySQL databases of the systems that the services replace. Only the commands
//! `import` use it.
//!
//! * [`options`]: the options of the command. [`report`]: its output.
//! * [`row`], [`source`]: rows and tables; the read-only connection and its checks. `relay` bounds its answers.
//! * [`run`]: one transaction, which a dry run rolls back.
//! * [`columns`]: the values of a row; what cannot be kept becomes the nearest value. `local_time`: local times as instants.
//! * [`merge`]: which rows are new, changed there, or changed here since the last import.
//! * [`pages`]: a table page by page, with the rows that belong to each.
//! * [`schema`]: the table of imported rows and their hashes.
//!
//! A service converts the rows: it reads pages of them, and writes those that [`Import::merge`] returns.

pub mod columns;
mod local_time;
pub mod merge;
pub mod options;
pub mod pages;
mod relay;
pub mod report;
pub mod row;
pub mod run;
pub mod schema;
pub mod source;

pub use self::{options::ImportOptions, run::Import, source::CHUNK};
