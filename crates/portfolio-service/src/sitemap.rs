//! The sitemap (<https://www.sitemaps.org/protocol.html>): the addresses of the public pages, for search engines. Only
//! active members have a page; teams are shown on those of their contests.

use actix_web::{http::StatusCode, web};
use chrono::SecondsFormat;
use diesel::prelude::*;
use maud::{PreEscaped, html};
use service_kit::{
    database::{
        AnyConnection, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    error::{Error, Failure},
    http::Reply,
};

use crate::{
    auth::Anybody,
    club::Club,
    groups,
    schema::{contests, projects},
    users::{self, queries::Selection},
};

/// Its path.
pub const PATH: &str = "/sitemap.xml";

/// The most pages of each kind. A sitemap may have 50,000 addresses.
const MAX_OF_KIND: i64 = 12_000;

/// The pages of which there is one.
const SINGLE: [&str; 5] = ["/", "/people", "/projects", "/contests", "/groups"];

pub fn pages(config: &mut web::ServiceConfig) {
    config.route(PATH, web::get().to(show));
}

async fn show(who: Anybody, club: Club) -> Result<Reply, Failure> {
    who.read(move |conn, _| {
        let entries = load(conn)?;
        let sitemap = html! {
            (PreEscaped(r#"<?xml version="1.0" encoding="utf-8"?>"#))
            urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" {
                @for (path, changed) in &entries {
                    url {
                        loc { (club.origin) (path) }
                        @if let Some(at) = changed {
                            lastmod { (at.utc().to_rfc3339_opts(SecondsFormat::Secs, true)) }
                        }
                    }
                }
            }
        };
        Ok(Reply::new(StatusCode::OK, "application/xml", sitemap.into_string().into_bytes()))
    })
    .await
}

/// The path of a page, and when it last changed if its own row says so: of members and groups it does not.
type Entry = (String, Option<DbTimestamp>);

/// All public pages, of projects and contests those that changed last.
pub fn load(conn: &mut AnyConnection) -> Result<Vec<Entry>, Error> {
    let bounds = PageBounds { after: None, rows: MAX_OF_KIND };
    let people = users::queries::list(conn, &Selection::Active, &bounds)?;
    let groups = groups::queries::list(conn, &bounds)?;
    let projects: Vec<(DbUuid, DbTimestamp)> = projects::table
        .select((projects::id, projects::updated_at))
        .order((projects::updated_at.desc(), projects::id))
        .limit(MAX_OF_KIND)
        .load(conn)?;
    let contests: Vec<(DbUuid, DbTimestamp)> = contests::table
        .select((contests::id, contests::updated_at))
        .order((contests::updated_at.desc(), contests::id))
        .limit(MAX_OF_KIND)
        .load(conn)?;
    let single = SINGLE.into_iter().map(|path| (path.to_owned(), None));
    let people = people.into_iter().map(|person| (format!("/people/{}", person.name), None));
    let groups = groups.into_iter().map(|group| (format!("/groups/{}", group.id), None));
    let projects = projects.into_iter().map(|(id, changed)| (format!("/projects/{id}"), Some(changed)));
    let contests = contests.into_iter().map(|(id, changed)| (format!("/contests/{id}"), Some(changed)));
    Ok(single.chain(people).chain(groups).chain(projects).chain(contests).collect())
}
