//! Atom feeds (RFC 4287) of the projects and contests that changed last. They are the same for everybody.
//!
//! The id of an entry is that of the project or contest, and never changes. The id of a feed is computed from its
//! address.

use std::{borrow::Cow, time::SystemTime};

use actix_web::{
    get,
    http::{
        StatusCode,
        header::{self, HttpDate},
    },
    web::Data,
};
use chrono::{DateTime, SecondsFormat, Utc};
use common::problem::Problem;
use diesel::prelude::*;
use maud::{Markup, PreEscaped, html};
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::{Error, Failure},
    http::{Language, Reply},
    state::AppState,
};
use url::Url;
use utoipa_actix_web::service_config::ServiceConfig;
use uuid::Uuid;

use crate::{
    auth::Anybody,
    club::Club,
    contests,
    deletion::{self, CONTESTS, PROJECTS},
    page::{Words, days, semesters},
    projects,
    schema::{contests as contest, projects as project},
};

/// The most entries of a feed.
pub const MAX_ENTRIES: i64 = 50;

/// The media type (RFC 4287, section 7).
const MEDIA_TYPE: &str = "application/atom+xml";

/// Registers the operations below `/feeds`.
pub fn routes(config: &mut ServiceConfig<'_>) {
    config.service(projects_feed).service(contests_feed);
}

/// Feed of projects
///
/// The 50 that changed last, the latest change first.
#[utoipa::path(
    tags = ["feeds", "additions"],
    operation_id = "getProjectsFeed",
    security((), ("proxy" = []), ("session" = []), ("token" = [])),
    responses((status = 200, description = "RFC 4287", body = String, content_type = MEDIA_TYPE, example = json!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><feed xmlns=\"http://www.w3.org/2005/Atom\">…</feed>"
    )))
)]
#[get("/projects.atom")]
pub async fn projects_feed(who: Anybody, club: Club, state: Data<AppState>) -> Result<Reply, Failure> {
    who.read(move |conn, _| {
        let entries = load_projects(conn)?.into_iter().map(|(row, (link, description), times)| {
            let span = semesters(Words::english(&state), row.span()?);
            Ok(Entry { path: PROJECTS, id: row.id, name: row.name, summary: span, description, link, times })
        });
        let (entries, deletion) = (entries.collect::<Result<Vec<_>, Error>>()?, deletion::last(conn, PROJECTS)?);
        Feed { club: &state.club_name, origin: &club.origin, kind: PROJECTS, title: "Projects", deletion }
            .render(&entries)
    })
    .await
}

/// Feed of contests
///
/// The 50 that changed last, the latest change first. A new team is a change, a result is not.
#[utoipa::path(
    tags = ["feeds", "additions"],
    operation_id = "getContestsFeed",
    security((), ("proxy" = []), ("session" = []), ("token" = [])),
    responses((status = 200, description = "RFC 4287", body = String, content_type = MEDIA_TYPE, example = json!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><feed xmlns=\"http://www.w3.org/2005/Atom\">…</feed>"
    )))
)]
#[get("/contests.atom")]
pub async fn contests_feed(who: Anybody, club: Club, state: Data<AppState>) -> Result<Reply, Failure> {
    who.read(move |conn, _| {
        let entries = load_contests(conn)?.into_iter().map(|(row, (link, description), times)| {
            let days = days(Words::english(&state), row.duration()?, club.zone, Language::date);
            Ok(Entry { path: CONTESTS, id: row.id, name: row.name, summary: days, description, link, times })
        });
        let (entries, deletion) = (entries.collect::<Result<Vec<_>, Error>>()?, deletion::last(conn, CONTESTS)?);
        Feed { club: &state.club_name, origin: &club.origin, kind: CONTESTS, title: "Contests", deletion }
            .render(&entries)
    })
    .await
}

/// A row, its link and description, and when it was created and last changed.
type FeedRow<R> = (R, (String, String), (DbTimestamp, DbTimestamp));

/// The projects that changed last.
pub fn load_projects(conn: &mut AnyConnection) -> Result<Vec<FeedRow<projects::queries::Row>>, Error> {
    Ok(project::table
        .select((
            projects::queries::Row::as_select(),
            (project::link, project::description),
            (project::created_at, project::updated_at),
        ))
        .order((project::updated_at.desc(), project::id))
        .limit(MAX_ENTRIES)
        .load(conn)?)
}

/// The contests that changed last.
pub fn load_contests(conn: &mut AnyConnection) -> Result<Vec<FeedRow<contests::queries::Row>>, Error> {
    Ok(contest::table
        .select((
            contests::queries::Row::as_select(),
            (contest::link, contest::description),
            (contest::created_at, contest::updated_at),
        ))
        .order((contest::updated_at.desc(), contest::id))
        .limit(MAX_ENTRIES)
        .load(conn)?)
}

/// An entry of a feed.
struct Entry {
    /// The first segment of the address of its page.
    path: &'static str,
    id: DbUuid,
    name: String,
    summary: String,
    description: String,
    /// Empty if there is none.
    link: String,
    /// When it was created, and last changed.
    times: (DbTimestamp, DbTimestamp),
}

/// A feed without its entries.
struct Feed<'a> {
    /// The name of the club, if it is known.
    club: &'a str,
    origin: &'a str,
    /// The first segment of the addresses of the entries' pages.
    kind: &'a str,
    title: &'a str,
    /// When an entry was last deleted.
    deletion: Option<DbTimestamp>,
}

impl Feed<'_> {
    /// The feed as an answer. `maud` escapes as XML requires. It would omit the end tag of `link`, so `link` has braces.
    fn render(&self, entries: &[Entry]) -> Result<Reply, Error> {
        let origin = self.origin;
        let address = format!("{origin}/feeds/{}.atom", self.kind);
        let host = Url::parse(origin).map_err(Problem::internal)?;
        let name = if self.club.is_empty() { host.host_str().unwrap_or_default() } else { self.club };
        // A feed that never had entries has never changed.
        let changes = entries.first().map(|entry| entry.times.1).into_iter().chain(self.deletion);
        let updated = changes.max().map_or(DateTime::UNIX_EPOCH, |at| at.utc().max(DateTime::UNIX_EPOCH));
        let feed = html! {
            (PreEscaped(r#"<?xml version="1.0" encoding="utf-8"?>"#))
            feed xmlns="http://www.w3.org/2005/Atom" {
                id { (urn(Uuid::new_v5(&Uuid::NAMESPACE_URL, address.as_bytes()))) }
                title { (self.title) " – " (text(name)) }
                updated { (time(updated)) }
                author { name { (text(name)) } uri { (origin) "/" } }
                link rel="self" type=(MEDIA_TYPE) href=(address) {}
                link rel="alternate" type="text/html" href={ (origin) "/" } {}
                @for entry in entries { (entry.render(origin)) }
            }
        };
        // Readers compare only the tag, as for calendar feeds.
        Ok(Reply::new(StatusCode::OK, MEDIA_TYPE, feed.into_string().into_bytes())
            .with(header::LAST_MODIFIED, HttpDate::from(SystemTime::from(updated)).to_string()))
    }
}

impl Entry {
    fn render(&self, origin: &str) -> Markup {
        let (created, updated) = self.times;
        html! {
            entry {
                id { (urn(self.id.0)) }
                title { (text(&self.name)) }
                published { (time(created.utc())) }
                updated { (time(updated.utc())) }
                link rel="alternate" type="text/html" href={ (origin) "/" (self.path) "/" (self.id) } {}
                @if !self.link.is_empty() { link rel="related" href=(text(&self.link)) {} }
                summary { (self.summary) }
                content { (text(&self.description)) }
            }
        }
    }
}

fn urn(id: Uuid) -> String {
    id.urn().to_string()
}

fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

/// A text without the characters that XML does not have (XML 1.0, section 2.2).
fn text(text: &str) -> Cow<'_, str> {
    let is_missing = |c: char| matches!(c, '\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' | '\u{fffe}' | '\u{ffff}');
    if text.contains(is_missing) { Cow::Owned(text.replace(is_missing, "\u{fffd}")) } else { Cow::Borrowed(text) }
}
