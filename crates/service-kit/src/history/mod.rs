//! Who changed what (contract, "History"): one row for each change of an object, in the transaction of the change.
//!
//! The guard writes the rows of changes: it compares the object before and after the operation
//! ([`Target::recorded`](crate::guard::Target::recorded)). The code that creates or deletes objects writes those rows
//! by [`created`] and [`deleted`].

mod author;
mod difference;
mod kind;
mod rows;
mod wire;

pub use self::{
    author::{Author, By},
    difference::{Changes, difference, undo},
    kind::{Action, Kind, fields_of},
    rows::{
        Entry, Row, Selection, began, changed, created, deleted, load, load_selected, record, remove_before, restored,
        since,
    },
    wire::ResponseHistory,
};
