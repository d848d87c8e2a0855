//! The common parts of the pages. The server renders them if there is no front end. The public ones are the same for
//! everybody who reads them in one language.

use std::sync::LazyLock;

use actix_web::http::{StatusCode, header};
use chrono::NaiveDate;
use chrono_tz::Tz;
use common::{
    duration::Duration,
    semester::{YearWithSemester, YearWithSemesterDuration},
    time::Timestamp,
};
use maud::{Markup, html};
use service_kit::{
    http::{HtmlPage, Language, Reply, html::CARDS, texts::Texts},
    page::{Icon, PageContext, icon, picture as letter},
    state::AppState,
};

use crate::{metadata::Metadata, picture, timeline};

/// The most rows of a list on a page.
pub const MAX_ROWS: i64 = 200;

/// The feeds, as readers look for them in a page: address and the key of its title.
const FEEDS: [(&str, &str); 2] = [("/feeds/projects.atom", "projects"), ("/feeds/contests.atom", "contests")];

/// The style of cards and time lines.
static STYLE: LazyLock<String> = LazyLock::new(|| [CARDS, timeline::STYLE].concat());

/// A public page.
pub fn reply(page: &PageContext, title: &str, metadata: Metadata<'_>, body: Markup) -> Reply {
    reply_with_actions(page, title, metadata, html! {}, body)
}

/// A public page with links beside its heading.
pub fn reply_with_actions(
    page: &PageContext,
    title: &str,
    metadata: Metadata<'_>,
    actions: Markup,
    body: Markup,
) -> Reply {
    let head = html! {
        @for (address, key) in FEEDS {
            link rel="alternate" type="application/atom+xml" title=(page.text(key)) href=(address);
        }
        (metadata.render(page, title))
    };
    HtmlPage { head, is_indexed: true, actions, style: &STYLE, ..page.page(title, body) }
        .reply(StatusCode::OK)
        .with(header::VARY, "Accept-Language")
}

/// The note below a list that may have been cut.
pub fn limit_note(page: &PageContext, rows: usize) -> Markup {
    html! { @if i64::try_from(rows) == Ok(MAX_ROWS) { p.mute { (page.count("at-most", rows)) } } }
}

/// The link of a project or contest, if it has one.
pub fn link(address: &str) -> Markup {
    html! { @if !address.is_empty() { p { (icon(Icon::Link)) " " a href=(address) { (address) } } } }
}

/// The picture of something of this name, else a letter. `sizes` says how wide it is shown.
pub fn picture(name: &str, address: Option<&str>, sizes: &str) -> Markup {
    let Some(address) = address else { return letter(name) };
    let small = picture::small(address);
    html! {
        img.pic src=(address) srcset={ (small) " 320w, " (address) " 1200w" } sizes=(sizes) alt="" loading="lazy";
    }
}

/// Links to the pages below the one at `path`, on which members change what it shows: the key of the text of each, and
/// how its address goes on. Everybody who is signed in has them; the pages say who may change it.
pub fn links(page: &PageContext, path: &str, below: &[(&str, &str)]) -> Markup {
    html! {
        @if page.is_signed_in() { @for (key, end) in below { a.button href={ (path) (end) } { (page.text(key)) } } }
    }
}

/// What writes texts in one language.
#[derive(Clone, Copy)]
pub struct Words<'a>(&'a Texts, Language);

impl<'a> Words<'a> {
    /// For what everybody gets in English.
    pub fn english(state: &'a AppState) -> Self {
        Self(&state.interface.texts, Language::English)
    }

    fn span(self, since: String, until: Option<String>) -> String {
        let Self(texts, language) = self;
        match until {
            None => texts.get(language, "since", &[("at", since.into())]),
            Some(until) if until == since => since,
            Some(until) => texts.get(language, "between", &[("since", since.into()), ("until", until.into())]),
        }
    }
}

impl<'a> From<&'a PageContext> for Words<'a> {
    fn from(page: &'a PageContext) -> Self {
        Self(&page.state().interface.texts, page.language)
    }
}

/// The days of a span in a zone, each written by `day`: `3 April 2026 – 5 April 2026`, `3 April 2026`, or
/// `since 3 April 2026`.
pub fn days<'a>(
    words: impl Into<Words<'a>>,
    duration: Duration,
    zone: Tz,
    day: fn(Language, NaiveDate) -> String,
) -> String {
    let words = words.into();
    let day = |at: Timestamp| day(words.1, at.utc().with_timezone(&zone).date_naive());
    words.span(day(duration.since()), duration.until().map(day))
}

/// The months of a span of semesters: `April 2025 – March 2026`, or `since April 2025`.
pub fn semesters<'a>(words: impl Into<Words<'a>>, duration: YearWithSemesterDuration) -> String {
    let words = words.into();
    let until = duration.until().map(|until| last_month(words.1, until));
    words.span(words.1.month(duration.since().first_day()), until)
}

/// The last month of a semester.
pub fn last_month(language: Language, semester: YearWithSemester) -> String {
    let end = semester.end();
    language.month(end.pred_opt().unwrap_or(end))
}
