//! The reading of the club directory by a running service.

use std::{collections::HashSet, fmt, hash::BuildHasher};

use club_directory::{DirectoryUser, Snapshot, Source, UserState};
use common::problem::{Problem, code};
use tokio::sync::Semaphore;

use crate::{copies::is_suspicious, database::types::DbUuid, error::Error};

/// The name of a service's copy of the directory in `/metrics` and `/readyz?verbose`.
pub const COPY: &str = "directory";

/// One read at a time: it occupies a blocking thread for as long as the directory takes.
static READER: Semaphore = Semaphore::const_new(1);

/// Reads the directory on a blocking thread.
pub async fn fetch(source: Option<&Source>) -> Result<Snapshot, Error> {
    let source = source.cloned().ok_or_else(|| unavailable("no club directory is configured"))?;
    let permit = READER.acquire().await.map_err(Problem::internal)?;
    let task = tokio::task::spawn_blocking(move || {
        // Released by the thread, also when the caller has given up.
        let _permit = permit;
        read(&source)
    });
    let snapshot = task.await.map_err(Problem::internal)?.map_err(unavailable)?;
    log::info!("club directory: users {}, groups {}", snapshot.users.len(), snapshot.groups.len());
    Ok(snapshot)
}

/// The problem that the directory cannot be read. The cause goes to the log only.
fn unavailable(cause: impl fmt::Display) -> Problem {
    let detail = "The club directory cannot be read. The log of the service says why.";
    Problem::new(code::UNAVAILABLE).detail(detail).because(cause)
}

/// Reads the directory. An error names the option.
pub(crate) fn read(source: &Source) -> Result<Snapshot, String> {
    let option = match source {
        Source::Demo => "--demo",
        Source::File(_) => "--directory-file",
        Source::Traq { .. } => "--traq-url",
        Source::Booking { .. } => "--booking-url",
    };
    source.read().map_err(|error| format!("{option}: {error}"))
}

/// The numbers of users or groups that a sync changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changes {
    /// New ones.
    pub added: usize,
    /// Those with another name, state, description, picture or other members.
    pub changed: usize,
    /// Those that the directory no longer lists.
    pub removed: usize,
}

impl Changes {
    /// The numbers for the ids of what was saved, when `is_present` says which were there before.
    pub fn new<T>(saved: impl IntoIterator<Item = T>, is_present: impl Fn(T) -> bool, removed: usize) -> Self {
        let (changed, added): (Vec<_>, Vec<_>) = saved.into_iter().map(is_present).partition(|is_present| *is_present);
        Self { added: added.len(), changed: changed.len(), removed }
    }
}

/// What a sync changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Synced {
    /// Users.
    pub users: Changes,
    /// Groups.
    pub groups: Changes,
}

impl fmt::Display for Synced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |what, Changes { added, changed, removed }: Changes| {
            format!("{what}: {added} added, {changed} changed, {removed} removed")
        };
        write!(f, "{}; {}", words("users", self.users), words("groups", self.groups))
    }
}

/// What a service accepts as a sign-in name, and what becomes of a user whose name in the directory is none.
#[derive(Debug, Clone, Copy)]
pub struct NameRule {
    /// Whether this is a sign-in name.
    pub accepts: fn(&str) -> bool,
    /// What becomes of the user, as in "the user … is left out".
    pub otherwise: &'static str,
}

impl NameRule {
    /// Logs a warning for each user who cannot sign in because of their name.
    pub fn warn(self, users: &[DirectoryUser]) {
        for DirectoryUser { id, name, .. } in users.iter().filter(|user| !(self.accepts)(&user.name)) {
            log::warn!("club directory: the user {id} {}, as {name:?} is no sign-in name", self.otherwise);
        }
    }
}

/// Refuses a directory that would take access from more than half of the active users: by suspension, deactivation, or
/// because it no longer lists them (contract, "The club directory"). `directory` has the users that will be copied,
/// `unlisted` those that will be deactivated.
pub fn check_lost_access(
    active: &HashSet<DbUuid, impl BuildHasher>,
    directory: &[DirectoryUser],
    unlisted: &[DbUuid],
) -> Result<(), Problem> {
    let inactive = directory.iter().filter(|user| user.state != UserState::Active).map(|user| DbUuid(user.id));
    let lost = inactive.chain(unlisted.iter().copied()).filter(|user| active.contains(user)).count();
    let active = active.len();
    if !is_suspicious(active, lost) {
        return Ok(());
    }
    Err(Problem::new(code::SUSPICIOUS_DIRECTORY).detail(format!(
        "Nothing was changed: {lost} of {active} active members would lose access. If the directory is right, run \
         `sync --force`, or `POST …/users/sync?force=true`."
    )))
}
