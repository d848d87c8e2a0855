//! The series of the example club.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;
use common::{input::IdSet, problem::Problem, time::Timestamp};
use service_kit::{
    database::{AnyConnection, types::DbTimestamp},
    error::Error,
};

use super::{Builder, author, plan::ONLINE};
use crate::{
    events::changes::{Draft, Venue},
    series::{creation, record_new_series},
};

/// A series online: name, group, rule, start and end of each occurrence.
const SERIES: [(&str, &str, &str, (u32, u32)); 3] = [
    ("Beginners' hour", "Newcomers", "FREQ=WEEKLY;COUNT=15", (18, 19)),
    ("Rust book club", "Rust readers", "FREQ=WEEKLY;INTERVAL=2;COUNT=8", (19, 21)),
    ("Server check", "sysadmin", "FREQ=DAILY;INTERVAL=5;COUNT=20", (12, 13)),
];

/// They begin so many weeks before today.
const WEEKS_BEFORE: i64 = 7;

impl Builder {
    /// Creates the series and returns their number.
    pub(super) fn create_series(&mut self, conn: &mut AnyConnection, now: Timestamp) -> Result<usize, Error> {
        let today = now.utc().with_timezone(&self.zone).date_naive();
        for (name, group, rule, (start, end)) in SERIES {
            let at = |hour| self.at(today, -7 * WEEKS_BEFORE, hour).map(DbTimestamp);
            let (starts_at, ends_at) = (at(start)?, at(end)?);
            let rule = rule.parse().map_err(Problem::internal)?;
            let group = self.group(group);
            let by = group.organizers[0];
            let (venue, admins) = (Venue::Place(ONLINE.to_owned()), IdSet::new([by.0]));
            let draft = Draft {
                shared: true,
                open: true,
                tags: vec![("online".to_owned(), false)],
                ..Draft::new(name.to_owned(), (starts_at, ends_at), venue, group.id, admins)
            };
            let (exdates, places) = (BTreeSet::new(), BTreeMap::new());
            let new = creation::NewSeries { draft, rule, exdates, skips_conflicts: true, places };
            let created_at = DbTimestamp(starts_at.plus(TimeDelta::days(-1)));
            let author = author(by, created_at);
            let (id, _) = creation::create(conn, &new, &author, self.zone, created_at)?;
            record_new_series(conn, id, &author, self.zone)?;
        }
        Ok(SERIES.len())
    }
}
