//! The reading of the club directory by a running service.

use club_directory::{Snapshot, Source};
use common::problem::{Problem, code};
use tokio::sync::Semaphore;

use crate::{copies::is_suspicious, error::Error};

/// The name of a service's copy of the directory in `/metrics` and `/readyz?verbose`.
pub const COPY: &str = "directory";

/// One read at a time: it occupies a blocking thread for as long as the directory takes.
static READER: Semaphore = Semaphore::const_new(1);

/// Reads the directory on a blocking thread.
pub async fn fetch(source: Option<&Source>) -> Result<Snapshot, Error> {
    let source = source.cloned().ok_or_else(|| Error::Unavailable("no club directory is configured".to_owned()))?;
    let permit = READER.acquire().await.map_err(Problem::internal)?;
    let task = tokio::task::spawn_blocking(move || {
        // Released by the thread, also when the caller has given up.
        let _permit = permit;
        source.read()
    });
    let snapshot = task.await.map_err(Problem::internal)?.map_err(|error| Error::Unavailable(error.to_string()))?;
    log::info!("club directory: {} users and {} groups", snapshot.users.len(), snapshot.groups.len());
    Ok(snapshot)
}

/// Refuses a directory that would deactivate more than half of the active members (contract, "The club directory").
pub fn check_deactivations(active: usize, deactivated: usize) -> Result<(), Problem> {
    if !is_suspicious(active, deactivated) {
        return Ok(());
    }
    Err(Problem::new(code::SUSPICIOUS_DIRECTORY).detail(format!(
        "Nothing was changed: the directory would deactivate {deactivated} of {active} active members. If it is right, \
         repeat this with force."
    )))
}
