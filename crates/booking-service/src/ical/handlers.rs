//! The operations on the calendar feed.

use std::time::SystemTime;

use actix_web::{
    HttpRequest, get,
    http::{
        StatusCode,
        header::{self, HttpDate},
    },
    put,
    web::{Data, Path},
};
use common::{input::Id, problem::Problem};
use service_kit::{
    credentials::{self, Keys},
    database::{AnyConnection, JobOwner, types::DbUuid},
    error::{Error, Failure},
    guard::{Target, conditional::Conditions},
    http::{Query, Reply, client_ip::ClientIp, notes::RequestNotes, rate_limit::RateLimitKey},
    state::{AppState, TimeDependent},
};

use super::{
    feed::Feed,
    queries::{self, Answers},
    wire::{FeedQuery, IcalSecret},
};
use crate::{
    auth::{Caller, SignedIn, stay_active},
    club::Club,
    events::{
        self,
        selection::{Criterion, Selection},
    },
    limits::Limits,
};

/// The secret of the caller's feed
///
/// Created on first use. The address is `/api/ical/v1/` and the user's id directly followed by the secret.
#[utoipa::path(
    tag = "ical",
    operation_id = "getIcalSecret",
    responses((status = 200, description = "The present secret", body = IcalSecret))
)]
#[get("/me/ical")]
pub async fn get_secret(who: SignedIn, club: Club) -> Result<Reply, Failure> {
    let keys = club.keys.clone();
    who.read_or_create(
        move |conn, me| {
            let nonce = queries::nonce(conn, me.id)?;
            nonce.map(|nonce| secret_reply(&club.keys, me.id, &nonce)).transpose()
        },
        move |conn, me| {
            stay_active(conn, me.id)?;
            queries::set_first_nonce(conn, me.id, &credentials::random_secret()?)?;
            let nonce = queries::nonce(conn, me.id)?.ok_or_else(|| Problem::internal("the nonce was not stored"))?;
            secret_reply(&keys, me.id, &nonce)
        },
    )
    .await
}

/// A new secret for the caller's feed
///
/// The old address stops working at once.
#[utoipa::path(
    tag = "ical",
    operation_id = "resetIcalSecret",
    responses((status = 200, description = "The new secret", body = IcalSecret))
)]
#[put("/me/ical")]
pub async fn replace_secret(who: SignedIn, club: Club) -> Result<Reply, Failure> {
    who.update(target(&club), move |conn, me| {
        stay_active(conn, me.id)?;
        let nonce = credentials::random_secret()?;
        queries::replace_nonce(conn, me.id, &nonce)?;
        secret_reply(&club.keys, me.id, &nonce)
    })
    .await
}

/// The caller's secret, which an operation changes.
pub fn target(club: &Club) -> Target<Caller> {
    let keys = club.keys.clone();
    Target::of_caller("feed secret", move |conn, me: &Caller| show(conn, me.id, &keys))
}

fn secret(keys: &Keys, user: DbUuid, nonce: &str) -> String {
    keys.derive(&["feed", &user.to_string(), nonce])
}

fn secret_reply(keys: &Keys, user: DbUuid, nonce: &str) -> Result<Reply, Error> {
    Ok(Reply::json(&IcalSecret { secret: secret(keys, user, nonce) })?.secret())
}

/// The address of a user's feed.
pub fn address(club: &Club, user: DbUuid, nonce: &str) -> String {
    format!("{}/api/ical/v1/{user}{}.ics", club.origin, secret(&club.keys, user, nonce))
}

/// The secret as `GET` shows it; 404 before its first use.
fn show(conn: &mut AnyConnection, user: DbUuid, keys: &Keys) -> Result<Reply, Error> {
    let nonce = queries::nonce(conn, user)?.ok_or_else(|| Problem::not_found("secret"))?;
    secret_reply(keys, user, &nonce)
}

/// A calendar feed
///
/// Events from 90 days before today (UTC) on; deleted ones are cancelled for 30 days. Each names its organizer and, of
/// its attendees, the owner of the feed alone or, with `attendees=true`, all. One that the owner declined takes no time
/// (`TRANSP`).
#[utoipa::path(
    tag = "ical",
    operation_id = "getIcal",
    security(()),
    params(("icalToken" = String, Path, description = "The user's id directly followed by the secret; `.ics` may follow"),
        FeedQuery),
    responses(
        (status = 200, description = "RFC 5545", body = String, content_type = "text/calendar", example = json!(
            "BEGIN:VCALENDAR\r\nVERSION:2.0\r\n…\r\nEND:VCALENDAR\r\n"
        )),
        (status = 304, description = "The caller has it already")
    )
)]
#[get("/ical/v1/{icalToken}")]
pub async fn feed(
    req: HttpRequest,
    state: Data<AppState>,
    club: Club,
    now: TimeDependent,
    limits: Data<Limits>,
    token: Path<String>,
    query: Query<FeedQuery>,
) -> Result<Reply, Failure> {
    let conditions = Conditions::from_request(&req)?;
    // Some programs want this ending. No secret has a dot.
    let token = token.strip_suffix(".ics").unwrap_or(&token).to_owned();
    let (address, mut job_owner) = (ClientIp::extract(&req), state.credential_owners.owner(&token));
    let is_unknown = matches!(job_owner, JobOwner::Credential(_));
    if is_unknown {
        state.look_up_limit.check(address.into())?;
        job_owner = JobOwner::Address(address.0);
    }
    let shared = state.clone();
    let result = state.database.read(job_owner, move |conn| {
        // The shape of the token says nothing about whether the user exists.
        let (user, secret) = split(&token).ok_or_else(no_feed)?;
        let secrets = queries::secrets_of_active(conn, user)?;
        let parts = ["feed", &user.to_string(), secrets.nonce.as_deref().unwrap_or_default()];
        // Both are always computed, so that the duration does not reveal which of them exists.
        let is_present = club.keys.has_derived(&parts, secret) && secrets.nonce.is_some();
        let is_imported = credentials::is_hash_of(secrets.imported_hash.as_deref().unwrap_or_default(), &token);
        if !is_present && !is_imported {
            shared.credential_owners.forget(&token);
            return Err(no_feed().into());
        }
        shared.credential_owners.remember(&token, user.0);
        limits.feed.charge(RateLimitKey::User(user.0))?;
        // The feed depends on the time only by the day, so that it stays the same for as long.
        let today = now.0.midnight();
        let fingerprint = conditions.fingerprint_at(today, &user.to_string(), secrets.data_version.as_deref());
        if let Some(unchanged) = conditions.unchanged_reply(fingerprint.as_deref()) {
            return Ok(unchanged);
        }
        let criterion = match &query.0.q {
            Some(q) => Criterion::Matching(events::parse_filter(q)?),
            None => Criterion::ForFeed(user),
        };
        let answers = Answers { owner: user, all: query.0.attendees.0 };
        let name = Some(&shared.club_name).filter(|name| !name.is_empty()).unwrap_or(&club.everyone_group);
        let mut feed = Feed::new(&format!("{name} events"), &club.origin);
        queries::each(conn, &queries::selection(criterion, today), answers, |event| feed.add(event))?;
        let changed = feed.last_modified();
        let reply = Reply::new(StatusCode::OK, "text/calendar; charset=utf-8", feed.end().into_bytes());
        let reply = match changed {
            Some(changed) => reply.with(header::LAST_MODIFIED, HttpDate::from(SystemTime::from(changed)).to_string()),
            None => reply,
        };
        // Compares tags only. `If-Modified-Since` may be ignored (RFC 9110, section 13.1.3), and must be here: a feed
        // also changes when somebody joins a group or time passes, and neither is a change of an event.
        Ok(conditions.tag(reply, fingerprint))
    });
    let result = result.await;
    if matches!(&result, Err(Error::Problem(problem)) if problem.status() == 404) {
        if is_unknown {
            state.look_up_limit.record(address.into());
        }
    } else {
        RequestNotes::change(&req, |notes| notes.is_charged = true);
    }
    Ok(result?)
}

/// A calendar with one event, as somebody's feed shows it.
pub fn one_event(conn: &mut AnyConnection, id: DbUuid, owner: DbUuid, club: &Club) -> Result<String, Error> {
    let name = events::queries::find(conn, id)?.name;
    let mut calendar = Feed::new(&name, &club.origin);
    let selection = Selection::new(Criterion::These(vec![id]));
    queries::each(conn, &selection, Answers { owner, all: false }, |event| calendar.add(event))?;
    Ok(calendar.end())
}

/// The user and the secret of a feed's address.
fn split(token: &str) -> Option<(DbUuid, &str)> {
    let (user, secret) = token.split_at_checked(36)?;
    Some((DbUuid::from(user.parse::<Id>().ok()?), secret))
}

/// The one answer for a user who does not exist or is not active, and for a wrong or replaced secret.
fn no_feed() -> Problem {
    Problem::not_found("feed")
}
