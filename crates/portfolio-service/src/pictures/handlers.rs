//! The operations on pictures.

use actix_web::{
    delete, get,
    http::StatusCode,
    put,
    web::{self, Path},
};
use common::{input::Id, problem::Problem};
use service_kit::{
    database::{AnyConnection, types::DbTimestamp},
    error::{Error, Failure},
    guard::{Authenticator, Guard, Target},
    history::Action,
    http::{Query, Reply},
    state::Now,
};
use tokio::sync::Semaphore;

pub use super::queries::Subject;
use super::{
    encoding::Encoded,
    queries,
    wire::{PictureFile, PictureQuery, PictureSize},
};
use crate::{
    auth::{Anybody, Caller, ProjectEditor, UserSelf},
    objects::PROFILE,
    projects, users,
};

/// One picture is decoded at a time: each takes up to 150 MB. Those that wait count as bodies under way.
static DECODING: Semaphore = Semaphore::const_new(1);

/// What an operation changes. The history records it as a change of the project or profile.
fn target(subject: Subject) -> Target<Caller> {
    let shown = move |conn: &mut AnyConnection, _: &Caller| match queries::get(conn, subject, false) {
        Ok(picture) => Ok(Reply::raw(StatusCode::OK, picture.bytes)),
        // So that `If-Match` is compared with nothing.
        Err(Error::Problem(problem)) if problem.status() == 404 => Ok(Reply::no_content()),
        Err(error) => Err(error),
    };
    match subject {
        Subject::Project(id) => projects::recorded(Target::new(format!("project {id}"), shown), id),
        Subject::User(id) => {
            let fields = move |conn: &mut AnyConnection| users::fields(conn, id);
            Target::new(format!("user {id}"), shown).recorded(&PROFILE, id, Action::Changed, fields)
        }
    }
}

/// Gives a project or user a picture.
///
/// # Errors
/// 400 `invalid-picture`; those of the guard.
pub async fn put<A: Authenticator<Caller = Caller>>(
    who: Guard<A>,
    subject: Subject,
    bytes: impl AsRef<[u8]> + Send + 'static,
    Now(now): Now,
    done: impl Fn(&Caller) -> Reply + Send + 'static,
) -> Result<Reply, Failure> {
    who.authorize().await?;
    let turn = DECODING.acquire().await.map_err(Problem::internal)?;
    let encoded = web::block(move || {
        let _turn = turn;
        Encoded::new(bytes.as_ref())
    });
    let picture = encoded.await.map_err(Problem::internal)??;
    who.update(target(subject), move |conn, me| {
        queries::put(conn, subject, &picture, DbTimestamp(now))?;
        Ok(done(me))
    })
    .await
}

/// Removes the picture of a project or user.
///
/// # Errors
/// 404 when there is none; those of the guard.
pub async fn delete<A: Authenticator<Caller = Caller>>(
    who: Guard<A>,
    subject: Subject,
    Now(now): Now,
    done: impl Fn(&Caller) -> Reply + Send + 'static,
) -> Result<Reply, Failure> {
    who.update(target(subject), move |conn, me| {
        queries::delete(conn, subject, DbTimestamp(now))?;
        Ok(done(me))
    })
    .await
}

async fn show(who: Anybody, subject: Subject, query: PictureQuery) -> Result<Reply, Failure> {
    who.in_one_statement()
        .read(move |conn, _| {
            let picture = queries::get(conn, subject, query.size == PictureSize::Small)?;
            let is_present = query.v.as_ref() == Some(&picture.hash);
            let reply = Reply::new(StatusCode::OK, &picture.media_type, picture.bytes);
            Ok(if is_present { reply.immutable() } else { reply })
        })
        .await
}

/// Picture of a project
///
/// A JPEG, or a PNG with transparency. The same for everybody.
#[utoipa::path(
    tags = ["projects", "additions"],
    operation_id = "getProjectPicture",
    security((), ("proxy" = []), ("session" = []), ("token" = [])),
    params(("projectId" = uuid::Uuid, Path), PictureQuery),
    responses((status = 200, description = "The picture", body = PictureFile, content_type = "image/*"))
)]
#[get("/{projectId}/picture")]
pub async fn of_project(who: Anybody, id: Path<Id>, query: Query<PictureQuery>) -> Result<Reply, Failure> {
    show(who, Subject::Project((*id).into()), query.0).await
}

/// Give a project a picture
///
/// For its creator, its members and admins. PNG, JPEG or WebP of at most 1 MiB and 4000 pixels a side; turned as its
/// metadata say, of which nothing is stored.
#[utoipa::path(
    tags = ["projects", "additions"],
    operation_id = "putProjectPicture",
    params(("projectId" = uuid::Uuid, Path)),
    request_body(content = PictureFile, content_type = "image/*"),
    responses(
        (status = 204, description = "Changed"),
        (status = 400, description = "It is no such picture (`invalid-picture`), or a parameter breaks a rule"),
    )
)]
#[put("/{projectId}/picture")]
pub async fn put_of_project(who: ProjectEditor, now: Now, id: Path<Id>, body: PictureFile) -> Result<Reply, Failure> {
    put(who, Subject::Project((*id).into()), body.0, now, |_| Reply::no_content()).await
}

/// Remove the picture of a project
///
/// For its creator, its members and admins.
#[utoipa::path(
    tags = ["projects", "additions"],
    operation_id = "deleteProjectPicture",
    params(("projectId" = uuid::Uuid, Path)),
    responses((status = 204, description = "Removed"))
)]
#[delete("/{projectId}/picture")]
pub async fn delete_of_project(who: ProjectEditor, now: Now, id: Path<Id>) -> Result<Reply, Failure> {
    delete(who, Subject::Project((*id).into()), now, |_| Reply::no_content()).await
}

/// Picture of a user
///
/// A JPEG, or a PNG with transparency. The same for everybody. 404 for a user who is not active.
#[utoipa::path(
    tags = ["users", "additions"],
    operation_id = "getUserPicture",
    security((), ("proxy" = []), ("session" = []), ("token" = [])),
    params(("userId" = uuid::Uuid, Path), PictureQuery),
    responses((status = 200, description = "The picture", body = PictureFile, content_type = "image/*"))
)]
#[get("/{userId}/picture")]
pub async fn of_user(who: Anybody, id: Path<Id>, query: Query<PictureQuery>) -> Result<Reply, Failure> {
    show(who, Subject::User((*id).into()), query.0).await
}

/// Give a user a picture
///
/// For the user themself and admins. As that of a project.
#[utoipa::path(
    tags = ["users", "additions"],
    operation_id = "putUserPicture",
    params(("userId" = uuid::Uuid, Path)),
    request_body(content = PictureFile, content_type = "image/*"),
    responses(
        (status = 204, description = "Changed"),
        (status = 400, description = "It is no such picture (`invalid-picture`), or a parameter breaks a rule"),
    )
)]
#[put("/{userId}/picture")]
pub async fn put_of_user(who: UserSelf, now: Now, id: Path<Id>, body: PictureFile) -> Result<Reply, Failure> {
    put(who, Subject::User((*id).into()), body.0, now, |_| Reply::no_content()).await
}

/// Remove the picture of a user
///
/// For the user themself and admins.
#[utoipa::path(
    tags = ["users", "additions"],
    operation_id = "deleteUserPicture",
    params(("userId" = uuid::Uuid, Path)),
    responses((status = 204, description = "Removed"))
)]
#[delete("/{userId}/picture")]
pub async fn delete_of_user(who: UserSelf, now: Now, id: Path<Id>) -> Result<Reply, Failure> {
    delete(who, Subject::User((*id).into()), now, |_| Reply::no_content()).await
}
