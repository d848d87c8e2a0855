//! Fills an empty database of a service with a generated club. Its rows depend only on the size and the day, and users
//! and groups are the same in both services.

pub mod booking;
mod booking_plan;
mod directory;
pub mod portfolio;

use chrono::{NaiveDate, NaiveTime};
use clap::ValueEnum;
use common::{
    problem::{Problem, Rule, code},
    time::Timestamp,
};
use diesel::{RunQueryDsl, sql_query};
use service_kit::{
    database::{AnyConnection, Database, JobOwner},
    error::Error,
};

/// Rows of one statement. Databases limit the number of bind parameters.
const CHUNK: usize = 1000;

/// The size of a generated club.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Size {
    /// For a first try: ten weeks as full as those of `large`
    Small,
    /// A club of 100 members
    Club,
    /// 1,000 users, 200 groups, 20,000 events in two years, 2,000 projects, 500 contests
    Large,
    /// As large, with ten times the events of other people, at the same times, and ten times the contests
    Crowded,
    /// As large, with 50 times the events, in 100 years, and 50 times the contests
    Huge,
}

impl Size {
    /// Users, all of them active.
    pub const fn users(self) -> usize {
        match self {
            Self::Small | Self::Club => 100,
            Self::Large | Self::Crowded | Self::Huge => 1000,
        }
    }

    /// Groups, of 20 members each.
    pub const fn groups(self) -> usize {
        match self {
            Self::Small => 20,
            Self::Club => 12,
            Self::Large | Self::Crowded | Self::Huge => 200,
        }
    }
}

/// Prints a line. It ignores a closed pipe, so that the generator completes.
pub type Say<'a> = &'a dyn Fn(&str);

fn midnight(day: NaiveDate) -> Result<Timestamp, Error> {
    let midnight = Timestamp::new(day.and_time(NaiveTime::MIN).and_utc());
    Ok(midnight.ok_or_else(|| Problem::parameter("day", Rule::Range, "must be in the years 1 to 9999"))?)
}

fn in_use() -> Error {
    Problem::new(code::CONFLICT).detail("The database is in use: only an empty one can be seeded.").into()
}

/// Updates the statistics of PostgreSQL. Autovacuum would do so only some minutes later.
async fn analyze(db: &Database) -> Result<(), Error> {
    db.write(JobOwner::Internal, |conn| {
        if let AnyConnection::Postgresql(pg) = conn {
            sql_query("ANALYZE").execute(pg)?;
        }
        Ok(())
    })
    .await
}
