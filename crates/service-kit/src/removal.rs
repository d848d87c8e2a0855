//! The removal of old rows, a few in each transaction.

use std::time::{Duration, Instant};

use chrono::TimeDelta;
use common::time::Timestamp;

use crate::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    history,
};

/// A transaction begins no further rows after this time.
const STEP: Duration = Duration::from_millis(5);

/// Rows that are removed by one statement. Other rows, such as the answers to an event, go with each.
const ROWS: usize = 4;

/// Rows of a page that is searched.
const PAGE: i64 = 500;

/// The place of a deleted object in the order of removal: when it was deleted, and its id.
pub type Place = (DbTimestamp, DbUuid);

/// Finds the deleted objects of a kind: until a time, after a place, at most this number.
pub type Search = fn(&mut AnyConnection, DbTimestamp, Place, i64) -> Result<Vec<Place>, Error>;

/// How the deleted objects of a kind are removed.
#[derive(Debug)]
pub struct Removal {
    /// The deleted ones, in order.
    pub deleted: Search,
    /// Those of some that are deleted and that nothing refers to.
    pub unused: fn(&mut AnyConnection, &[DbUuid]) -> Result<Vec<DbUuid>, Error>,
    /// Removes these.
    pub remove: fn(&mut AnyConnection, &[DbUuid]) -> Result<(), Error>,
}

impl Removal {
    /// The objects of the next page that can be removed, and its last place; `None` after the last page.
    pub fn page(
        &self,
        conn: &mut AnyConnection,
        oldest: DbTimestamp,
        after: Place,
    ) -> Result<Option<(Place, Vec<DbUuid>)>, Error> {
        let page = (self.deleted)(conn, oldest, after, PAGE)?;
        let Some(last) = page.last().copied() else { return Ok(None) };
        let ids: Vec<_> = page.into_iter().map(|(_, id)| id).collect();
        Ok(Some((last, (self.unused)(conn, &ids)?)))
    }

    /// Removes the first of these objects for a moment, and returns how many it has dealt with.
    pub fn remove_some(&self, conn: &mut AnyConnection, ids: &[DbUuid]) -> Result<usize, Error> {
        let (begun, mut done) = (Instant::now(), 0);
        for ids in ids.chunks(ROWS) {
            // Something may refer to them since they were found.
            let unused = (self.unused)(conn, ids)?;
            (self.remove)(conn, &unused)?;
            done += ids.len();
            if begun.elapsed() >= STEP {
                break;
            }
        }
        Ok(done)
    }
}

/// The place before all others.
pub fn first_place() -> Place {
    (DbTimestamp(Timestamp::EPOCH.plus(TimeDelta::MIN)), DbUuid::nil())
}

/// Removes old rows of the history for a moment, and returns whether there may be more.
pub fn remove_history(conn: &mut AnyConnection, oldest: DbTimestamp) -> Result<bool, Error> {
    let begun = Instant::now();
    while begun.elapsed() < STEP {
        if history::remove_before(conn, oldest, 10 * ROWS)? == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}
