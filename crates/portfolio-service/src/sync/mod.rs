//! The copy of the club directory: users and groups (contract, "Where the data comes from").
//!
//! * Ids are the identity: a user or group of the directory is the one with that id here, whatever either is called.
//! * `people`: names, real names and states follow the directory. Whom it no longer lists is deactivated. Nobody is ever
//!   deleted.
//! * `memberships`: who is in which group since when, and until when, is kept here: the directory knows the present
//!   only.
//! * A directory that would deactivate more than half of the active members is refused, unless forced.
//! * All of it in one transaction, after the whole directory has been read: a failed read changes nothing.

mod memberships;
mod people;

use std::time::Duration;

use actix_web::{post, web::Data};
use common::{input::Flag, problem::Violations, semester::YearWithSemester, time::Timestamp};
use deserr::Deserr;
use diesel::{RunQueryDsl, sql_query};
use service_kit::{
    database::{AnyConnection, Database, JobOwner, types::DbTimestamp},
    directory::{self, COPY, Snapshot},
    error::{Error, Failure},
    http::{Query, Reply},
    state::{AppState, Now},
};
use utoipa::IntoParams;
use utoipa_actix_web::service_config::ServiceConfig;

use crate::{auth::Admin, club::Club};

/// How long the start waits for the first copy.
const FIRST_SYNC_TIMEOUT: Duration = Duration::from_secs(5);

/// Registers the operation below `/users`.
pub fn routes(config: &mut ServiceConfig<'_>) {
    config.service(synchronize);
}

/// How to copy the directory.
#[derive(Debug, Deserr, IntoParams)]
#[deserr(error = Violations)]
#[into_params(parameter_in = Query)]
struct SyncQuery {
    /// Accept a directory that deactivates more than half of the active members.
    #[deserr(default)]
    #[param(value_type = Option<bool>, nullable = false)]
    force: Flag,
}

/// Bring users and groups in from the club's directory
///
/// For admins. Adds and renames users, changes their states, deactivates those whom the directory no longer lists, keeps
/// the groups and the spans of their members. Never deletes a user. 503, with nothing changed, when the directory cannot
/// be read or there is none.
#[utoipa::path(
    tag = "users",
    operation_id = "syncUsers",
    params(SyncQuery),
    responses(
        (status = 204, description = "Everything is as the directory says"),
        (status = 409, description = "The directory would deactivate more than half of the active members")
    )
)]
#[post("/sync")]
async fn synchronize(
    who: Admin,
    state: Data<AppState>,
    club: Club,
    now: Now,
    query: Query<SyncQuery>,
) -> Result<Reply, Failure> {
    // Reading the directory takes long, so the right to do this is looked up before as well.
    who.authorize().await?;
    let (directory, present) = (directory::fetch(club.directory.as_ref()).await?, club.semester(now.0));
    let done = who.create(move |conn, _| {
        apply(conn, &directory, query.0.force.0, present, DbTimestamp(now.0))?;
        Ok(Reply::no_content())
    });
    let reply = done.await?;
    state.copies.record_success(COPY, now.0);
    Ok(reply)
}

/// Makes users and groups what the directory says now.
///
/// # Errors
/// 503 with nothing changed when there is no directory, when it cannot be read, or when the database fails; 409 when the
/// directory is suspicious and `force` is not set.
pub async fn run(db: &Database, club: &Club, force: bool, now: Timestamp) -> Result<(), Error> {
    let (directory, present) = (directory::fetch(club.directory.as_ref()).await?, club.semester(now));
    db.write(JobOwner::Internal, move |conn| apply(conn, &directory, force, present, DbTimestamp(now))).await
}

/// Makes users and groups equal to a snapshot, in the present semester.
///
/// # Errors
/// When the database fails; 409 when the directory is suspicious and `force` is not set.
pub fn apply(
    conn: &mut AnyConnection,
    directory: &Snapshot,
    force: bool,
    present: YearWithSemester,
    now: DbTimestamp,
) -> Result<(), Error> {
    // Names and open spans are read before they are changed, so only one transaction may change them. Reads go on.
    if let AnyConnection::Postgresql(pg) = conn {
        sql_query("LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE").execute(pg)?;
    }
    let users = people::update(conn, &directory.users, force, now)?;
    memberships::update(conn, &directory.groups, &users, present, now)
}

/// Copies the directory at the start and then every `minutes`, or only at the start if that is 0. The service also starts
/// if the directory cannot be read, and does not wait for a slow one.
pub async fn start(state: &Data<AppState>, club: &Club, minutes: u64) {
    if club.directory.is_none() {
        return;
    }
    let (state, club) = (state.clone(), club.clone());
    let (finished, first) = tokio::sync::oneshot::channel();
    actix_web::rt::spawn(async move {
        attempt(&state, &club).await;
        let _ = finished.send(());
        if minutes == 0 {
            return;
        }
        loop {
            tokio::time::sleep(Duration::from_secs(60 * minutes)).await;
            attempt(&state, &club).await;
        }
    });
    if tokio::time::timeout(FIRST_SYNC_TIMEOUT, first).await.is_err() {
        log::warn!("the club directory is slow; its users and groups come later");
    }
}

async fn attempt(state: &AppState, club: &Club) {
    let now = state.clock.now();
    let done = run(&state.database, club, false, now).await;
    state.copies.record(COPY, now, &done);
    if let Err(error) = done {
        state.database.log_failure("users and groups are not up to date", error);
    }
}
