//! The common parts of the public pages. The server renders the pages, the same for everybody, if there is no front
//! end.

use actix_web::http::StatusCode;
use chrono_tz::Tz;
use common::{duration::Duration, time::Timestamp};
use maud::{Markup, html};
use service_kit::http::{HtmlPage, Reply};

use crate::timeline;

/// The most rows of a list on a page.
pub const MAX_ROWS: i64 = 200;

/// The links above every page.
const LINKS: [(&str, &str); 5] = [
    ("/", "Start"),
    ("/people", "People"),
    ("/projects", "Projects"),
    ("/contests", "Contests"),
    ("/groups", "Groups"),
];

/// The feeds, as readers look for them in a page: address and title.
pub const FEEDS: [(&str, &str); 2] = [("/feeds/projects.atom", "Projects"), ("/feeds/contests.atom", "Contests")];

/// A page. `head` are further elements of its head.
#[must_use]
pub fn reply(title: &str, head: &Markup, body: Markup) -> Reply {
    let head = html! {
        @for (address, title) in FEEDS {
            link rel="alternate" type="application/atom+xml" title=(title) href=(address);
        }
        (head)
    };
    HtmlPage { head, style: timeline::STYLE, ..HtmlPage::new(title, &LINKS, body) }.reply(StatusCode::OK)
}

/// The note below a list that may have been cut.
#[must_use]
pub fn limit_note(rows: usize) -> Markup {
    html! { @if i64::try_from(rows) == Ok(MAX_ROWS) { p.faint { "This page shows at most " (MAX_ROWS) "." } } }
}

/// The link of a project or contest, if it has one.
#[must_use]
pub fn link(address: &str) -> Markup {
    html! { @if !address.is_empty() { p { a href=(address) { (address) } } } }
}

/// The days of a span in a zone: `3 April 2026 – 5 April 2026`, `3 April 2026`, or `since 3 April 2026`.
#[must_use]
pub fn days(duration: Duration, zone: Tz) -> String {
    let day = |at: Timestamp| at.utc().with_timezone(&zone).format("%-d %B %Y").to_string();
    let since = day(duration.since());
    match duration.until().map(day) {
        None => format!("since {since}"),
        Some(until) if until == since => since,
        Some(until) => format!("{since} – {until}"),
    }
}
