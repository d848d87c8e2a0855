//! Authentication and authorization. The guard type in the signature of a handler says who may call it; the contract's
//! table of operations lists the guards.

use actix_web::{HttpRequest, http::header::HeaderName, web::Data};
use club_sign_in::SignIn;
use common::problem::{Problem, code};
use diesel::{OptionalExtension, prelude::*};
use service_kit::{
    credentials,
    database::{
        AnyConnection, DataVersion,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    guard::{Access, Authenticator, Guard, Identified},
    history::Author,
    http::notes::RequestNotes,
    state::AppState,
    with_connection,
};

pub use crate::caller::{ACTIVE, Caller};
use crate::{
    bearer::{NameKind, Named},
    club::{Club, StoredAdmins},
    identity::Person,
    proxy_user::Proxies,
    rights::{self, Right},
    schema::{sessions, users},
};

/// Guard of an operation whose answer is the same for everybody. The caller is not looked up.
pub type Anybody = Guard<AnybodyAuth>;
/// Guard of a public operation: everybody. The operation gets the caller if they are an active member.
pub type Visitor = Guard<VisitorAuth>;
/// Guard: any active member.
pub type Member = Guard<MemberAuth<rights::IsMember>>;
/// Guard: any active member, for their own profile. An unknown sign-in name is 404, not 403.
pub type ProfileOwner = Guard<MemberAuth<rights::IsProfileOwner>>;
/// Guard: the user `userId`, and admins.
pub type UserSelf = Guard<MemberAuth<rights::IsUserSelf>>;
/// Guard: the creator of the project `projectId`, its members, and admins.
pub type ProjectEditor = Guard<MemberAuth<rights::IsProjectEditor>>;
/// Guard: as [`ProjectEditor`], and members who removed themselves within the last minute.
pub type RecentProjectEditor = Guard<MemberAuth<rights::Recent<rights::IsProjectEditor>>>;
/// Guard: the creator of the project `projectId`, and admins.
pub type ProjectCreator = Guard<MemberAuth<rights::IsProjectCreator>>;
/// Guard: the hosts of the event `eventId`, and admins.
pub type EventHost = Guard<MemberAuth<rights::IsEventHost>>;
/// Guard: the creator of the contest `contestId`, and admins.
pub type ContestCreator = Guard<MemberAuth<rights::IsContestCreator>>;
/// Guard: the creators of the team `teamId` and of its contest, the team's members, and admins.
pub type TeamEditor = Guard<MemberAuth<rights::IsTeamEditor>>;
/// Guard: as [`TeamEditor`], and members who removed themselves within the last minute.
pub type RecentTeamEditor = Guard<MemberAuth<rights::Recent<rights::IsTeamEditor>>>;
/// Guard: the creators of the team `teamId` and of its contest, and admins.
pub type TeamCreator = Guard<MemberAuth<rights::IsTeamCreator>>;
/// Guard: as [`ProjectEditor`], also for a deleted project.
pub type FormerProjectEditor = Guard<MemberAuth<rights::EvenDeleted<rights::IsProjectEditor>>>;
/// Guard: as [`ProjectCreator`], also for a deleted project.
pub type FormerProjectCreator = Guard<MemberAuth<rights::EvenDeleted<rights::IsProjectCreator>>>;
/// Guard: as [`ContestCreator`], also for a deleted contest.
pub type FormerContestCreator = Guard<MemberAuth<rights::EvenDeleted<rights::IsContestCreator>>>;
/// Guard: admins.
pub type Admin = Guard<MemberAuth<rights::IsAdmin>>;

/// Authenticates nobody, but refuses a bad credential.
pub struct AnybodyAuth;

/// Authenticates callers of public operations.
pub struct VisitorAuth {
    named: Option<(Named, Author)>,
    club: Data<Club>,
}

/// Authenticates members who have the right `R`.
pub struct MemberAuth<R> {
    named: Named,
    author: Author,
    club: Data<Club>,
    right: R,
}

/// The result of looking up a sign-in name.
enum Lookup {
    Unknown,
    Inactive,
    Active(Caller),
}

impl Authenticator for AnybodyAuth {
    type Caller = Option<Caller>;

    async fn from_request(req: &HttpRequest) -> Result<Self, Problem> {
        // A bad credential is refused even where none is needed.
        let state = AppState::from_request(req)?;
        Person::from_request(req, &state).await?;
        Ok(Self)
    }

    fn identify(&self, _: &mut AnyConnection) -> Result<Identified<Option<Caller>>, Error> {
        Ok(Identified { caller: None, data_version: None })
    }

    fn authorize(&self, _: &mut AnyConnection, _: &Option<Caller>, _: Access) -> Result<(), Error> {
        Ok(())
    }

    fn credential(&self) -> Option<&str> {
        None
    }
}

impl Authenticator for VisitorAuth {
    type Caller = Option<Caller>;

    async fn from_request(req: &HttpRequest) -> Result<Self, Problem> {
        let state = AppState::from_request(req)?;
        let named = Person::from_request(req, &state).await?.into_named();
        let named = named.map(|named| {
            let author = author(req, &state, &named);
            (named, author)
        });
        Ok(Self { named, club: club(req)? })
    }

    fn identify(&self, conn: &mut AnyConnection) -> Result<Identified<Option<Caller>>, Error> {
        let (lookup, data_version) = match &self.named {
            Some((named, author)) => look_up(conn, &self.club, named, author)?,
            None => (Lookup::Unknown, None),
        };
        // An inactive or unknown user sees what an anonymous caller sees.
        let caller = if let Lookup::Active(caller) = lookup { Some(caller) } else { None };
        Ok(Identified { caller, data_version })
    }

    fn authorize(&self, _: &mut AnyConnection, _: &Option<Caller>, _: Access) -> Result<(), Error> {
        Ok(())
    }

    fn credential(&self) -> Option<&str> {
        self.named.as_ref().map(|(named, _)| named.name.as_str())
    }

    fn refuses_bad_credentials(&self) -> bool {
        false
    }
}

impl<R: Right> Authenticator for MemberAuth<R> {
    type Caller = Caller;

    async fn from_request(req: &HttpRequest) -> Result<Self, Problem> {
        let state = AppState::from_request(req)?;
        let named = match Person::from_request(req, &state).await? {
            Person::Named(named) => named,
            Person::Anonymous => return Err(Problem::new(code::NOT_SIGNED_IN).detail(how_to_sign_in(req, &state))),
            Person::Unnamed => {
                let detail = "You are signed in with a name that no member can have.";
                return Err(Problem::new(code::BAD_CREDENTIALS).detail(detail));
            }
        };
        let author = author(req, &state, &named);
        Ok(Self { named, author, club: club(req)?, right: R::from_path(req)? })
    }

    fn identify(&self, conn: &mut AnyConnection) -> Result<Identified<Caller>, Error> {
        match look_up(conn, &self.club, &self.named, &self.author)? {
            (Lookup::Active(caller), data_version) => Ok(Identified { caller, data_version }),
            (Lookup::Inactive, _) => Err(Problem::new(code::ACCOUNT_INACTIVE).into()),
            (Lookup::Unknown, _) if self.named.kind == NameKind::Session => {
                Err(Problem::new(code::BAD_CREDENTIALS).into())
            }
            (Lookup::Unknown, _) => Err(R::unknown_name().into()),
        }
    }

    fn authorize(&self, conn: &mut AnyConnection, caller: &Caller, _: Access) -> Result<(), Error> {
        self.right.check(conn, caller)
    }

    fn credential(&self) -> Option<&str> {
        Some(&self.named.name)
    }
}

/// What a request without a credential lacks.
fn how_to_sign_in(req: &HttpRequest, state: &AppState) -> String {
    if state.answer_options.is_development {
        return "This needs sign-in, in development by a header such as X-Forwarded-User: alice, which a proxy may remove."
            .to_owned();
    }
    if req.app_data::<Data<SignIn>>().is_some() {
        return "This needs sign-in, at /sign-in or by a bearer token.".to_owned();
    }
    let headers = req.app_data::<Data<Proxies>>().map(|proxies| &proxies.headers).filter(|headers| !headers.is_empty());
    headers.map_or_else(
        || "This needs sign-in, by a bearer token.".to_owned(),
        |headers| {
            let names = headers.iter().map(HeaderName::as_str).collect::<Vec<_>>().join(" or ");
            format!("This needs sign-in, at the site's own proxy or by a bearer token. The proxy has sent no {names}.")
        },
    )
}

/// What the history says about the changes of a request.
fn author(req: &HttpRequest, state: &AppState, named: &Named) -> Author {
    let author = Author::new(named.by, DbTimestamp(state.clock.now()));
    Author { request_id: RequestNotes::read(req, |notes| Some((&*notes.request_id).into())), ..author }
}

fn club(req: &HttpRequest) -> Result<Data<Club>, Problem> {
    req.app_data::<Data<Club>>().cloned().ok_or_else(|| Problem::internal("the app has no club"))
}

/// Looks up a caller by sign-in name, by the e-mail address in the directory, or by session. If there is such a user,
/// the version of the data is returned as well.
fn look_up(
    conn: &mut AnyConnection,
    club: &Club,
    named: &Named,
    author: &Author,
) -> Result<(Lookup, Option<String>), Error> {
    let columns = (users::id, users::name, users::state, users::admin, users::in_directory, DataVersion);
    let row: Option<(DbUuid, String, i16, bool, bool, String)> = match named.kind {
        NameKind::User => {
            let query = users::table.filter(users::name.eq(&named.name)).select(columns);
            with_connection!(conn, c => query.first(c)).optional()?
        }
        NameKind::Address => {
            let query = users::table.filter(users::email.eq(&named.name)).select(columns);
            with_connection!(conn, c => query.first(c)).optional()?
        }
        NameKind::Session => {
            let live = sessions::table
                .inner_join(users::table)
                .filter(sessions::token_hash.eq(credentials::hash(&named.name)))
                .filter(sessions::revoked_at.is_null())
                .filter(sessions::expires_at.gt(author.at))
                .select(columns);
            with_connection!(conn, c => live.first(c)).optional()?
        }
    };
    Ok(match row {
        Some((id, name, ACTIVE, is_admin, in_directory, version)) => {
            let is_stored = is_admin && club.stored_admins != StoredAdmins::None;
            let is_proven = named.kind != NameKind::Session || club.proves_names || in_directory;
            let admin = named.is_admin || is_stored || is_proven && club.admins.contains(&name);
            let author = Author { actor: Some(id), ..author.uncounted() };
            (Lookup::Active(Caller { id, admin, author }), Some(version))
        }
        Some((.., version)) => (Lookup::Inactive, Some(version)),
        None => (Lookup::Unknown, None),
    })
}
