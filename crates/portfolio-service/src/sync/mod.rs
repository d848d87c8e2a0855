//! The copy of the club directory: users and groups (contract, "Where the data comes from").
//!
//! * Users and groups are identified by id, not by name.
//! * `people`: names, real names and states follow the directory. A user whom it no longer lists is deactivated, and
//!   never deleted.
//! * `memberships`: the spans of members in groups are stored here, because the directory lists only present members.
//! * A directory that would take access from more than half of the active users is refused, unless forced. So is every
//!   one while the clock is earlier than the newest change in the database: spans would begin in a wrong semester.
//! * One transaction writes everything after the directory has been read, so a failed read changes nothing.

mod memberships;
mod people;

use std::time::Duration;

use actix_web::{post, web::Data};
use chrono::TimeDelta;
use club_directory::Snapshot;
use common::{
    input::Flag,
    problem::{Problem, Violations},
    semester::YearWithSemester,
    time::Timestamp,
};
use deserr::Deserr;
use diesel::{prelude::*, sql_query};
use service_kit::{
    database::{AnyConnection, Database, JobOwner, schema::history, types::DbTimestamp},
    directory::{self, COPY, Synced},
    error::{Error, Failure},
    http::{Query, Reply},
    state::{AppState, Now},
};
use utoipa::IntoParams;
use utoipa_actix_web::service_config::ServiceConfig;

pub use self::people::NAMES;
use crate::{
    auth::Admin,
    club::{Club, StoredAdmins},
    codes,
    schema::{groups, users},
};

/// By how much the clocks of two replicas may differ, and how long the directory may take to answer.
const CLOCK_DIFFERENCE: TimeDelta = TimeDelta::minutes(5);

/// How soon a sync is tried again that the clock did not allow: it is often set a moment after the start of the machine.
const CLOCK_RETRY: Duration = Duration::from_secs(10);

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
    /// Accept a directory that takes access from more than half of the active members, and a clock that is earlier than
    /// the newest change.
    #[deserr(default)]
    #[param(value_type = Option<bool>, nullable = false)]
    force: Flag,
}

/// Copy users and groups from the club directory
///
/// For admins. Adds and renames users, changes their states, deactivates those whom the directory no longer lists, and
/// updates the groups and the spans of their members. Never deletes a user. Answers 503 and changes nothing if the
/// directory cannot be read, if there is none, and if the clock is earlier than the newest change (`wrong-clock`).
#[utoipa::path(
    tag = "users",
    operation_id = "syncUsers",
    params(SyncQuery),
    responses(
        (status = 204, description = "Users and groups match the directory"),
        (status = 409, description = "The directory would take access from more than half of the active \
            members (`suspicious-directory`)")
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
    // Reading the directory takes long, so the right is also checked before it.
    who.authorize().await?;
    let (directory, present) = (read(&club).await?, club.semester(now.0));
    let reply = who.create(move |conn, _| {
        apply(conn, &directory, query.0.force.0, present, DbTimestamp(now.0))?;
        Ok(Reply::no_content())
    });
    let reply = reply.await?;
    state.copies.record_success(COPY, now.0);
    Ok(reply)
}

/// Reads the directory and copies its users and groups.
///
/// # Errors
/// 503 when there is no directory or it cannot be read; as of [`apply`]. Nothing changes then.
pub async fn run(db: &Database, club: &Club, force: bool, now: Timestamp) -> Result<Synced, Error> {
    let (directory, present) = (read(club).await?, club.semester(now));
    for name in club.admins.iter().filter(|name| directory.users.iter().all(|user| user.name != **name)) {
        log::warn!("club directory: it has no {name:?}, whom --admins names");
    }
    db.write(JobOwner::Internal, move |conn| apply(conn, &directory, force, present, DbTimestamp(now))).await
}

/// Reads the directory. Who is an admin is decided by the sign-in provider where that is configured, else by a directory
/// that says who is privileged.
async fn read(club: &Club) -> Result<Snapshot, Error> {
    let mut directory = directory::fetch(club.directory.as_ref()).await?;
    directory.privileged.take_if(|_| club.stored_admins == StoredAdmins::OfProvider);
    Ok(directory)
}

/// Makes users and groups equal to a snapshot, in the present semester.
///
/// # Errors
/// Unless `force` is set: 409 when the directory is suspicious, 503 when the clock is earlier than the newest change.
pub fn apply(
    conn: &mut AnyConnection,
    directory: &Snapshot,
    force: bool,
    present: YearWithSemester,
    now: DbTimestamp,
) -> Result<Synced, Error> {
    // Names and open spans are read before they are changed, so only one transaction may change them. Readers do not
    // wait.
    if let AnyConnection::Postgresql(pg) = conn {
        sql_query("LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE").execute(pg)?;
    }
    if !force {
        check_clock(conn, now)?;
    }
    let (users, ids) = people::update(conn, &directory.users, force, now)?;
    if let Some(privileged) = &directory.privileged {
        people::set_admins(conn, privileged, now)?;
    }
    Ok(Synced { users, groups: memberships::update(conn, &directory.groups, &ids, present, now)? })
}

/// Refuses a clock that is earlier than the newest change in the database.
fn check_clock(conn: &mut AnyConnection, now: DbTimestamp) -> Result<(), Error> {
    let newest: [Option<DbTimestamp>; 3] = [
        users::table.select(users::updated_at).order(users::updated_at.desc()).first(conn).optional()?,
        groups::table.select(groups::updated_at).order(groups::updated_at.desc()).first(conn).optional()?,
        history::table.select(history::at).order(history::id.desc()).first(conn).optional()?,
    ];
    match newest.into_iter().flatten().max() {
        Some(newest) if now.0.plus(CLOCK_DIFFERENCE) < newest.0 => {
            let (now, newest) = (now.0, newest.0);
            Err(Problem::new(codes::WRONG_CLOCK)
                .detail(format!(
                    "Nothing was changed: the clock says {now}, but the newest change in the database is of {newest}. If \
                     the clock is right, run `sync --force`, or `POST …/users/sync?force=true`."
                ))
                .into())
        }
        _ => Ok(()),
    }
}

/// Copies the directory at the start and then every `minutes`, or only at the start if that is 0. The service also
/// starts if the directory cannot be read, and does not wait for a slow one, but the demonstration data waits for its
/// members.
pub async fn start(state: &Data<AppState>, club: &Club, minutes: u64, is_demo: bool) {
    if club.directory.is_none() {
        return;
    }
    let (state, club) = (state.clone(), club.clone());
    let (sender, receiver) = tokio::sync::oneshot::channel();
    actix_web::rt::spawn(async move {
        let mut is_clock_wrong = attempt(&state, &club).await;
        let _ = sender.send(());
        while is_clock_wrong || minutes > 0 {
            let pause = if is_clock_wrong { CLOCK_RETRY } else { Duration::from_secs(60 * minutes) };
            tokio::time::sleep(pause).await;
            is_clock_wrong = attempt(&state, &club).await;
        }
    });
    let patience = if is_demo { Duration::MAX } else { FIRST_SYNC_TIMEOUT };
    if tokio::time::timeout(patience, receiver).await.is_err() {
        log::warn!("the club directory is slow; its users and groups come later");
    }
}

/// Copies the directory once more. The log says if that fails.
pub async fn run_once(state: &AppState, club: &Club) {
    attempt(state, club).await;
}

/// Returns whether the clock is wrong.
async fn attempt(state: &AppState, club: &Club) -> bool {
    let now = state.clock.now();
    let result = run(&state.database, club, false, now).await;
    state.copies.record(COPY, now, &result);
    let Err(error) = result else { return false };
    let is_clock_wrong = matches!(&error, Error::Problem(problem) if problem.code() == codes::WRONG_CLOCK);
    state.database.log_failure("users and groups are not up to date", error);
    is_clock_wrong
}
