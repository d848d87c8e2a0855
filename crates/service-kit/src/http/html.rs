//! Pages for people. A page has no script and needs no other file; its style is inline. Handlers make them by
//! [`PageContext`](crate::page::PageContext).

use actix_web::{
    HttpRequest,
    http::{
        StatusCode,
        header::{self, Accept, Header as _, HeaderName},
    },
    mime,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use maud::{DOCTYPE, Markup, html};
use sha2::{Digest as _, Sha256};

use super::{language::Language, reply::Reply};

/// Whether the client of a request prefers a page to data, as browsers do.
pub fn is_preferred(req: &HttpRequest) -> bool {
    Accept::parse(req).is_ok_and(|accept| accept.preference().essence_str() == mime::TEXT_HTML.essence_str())
}

/// The style of every page.
const STYLE: &str = include_str!("style/core.css");

/// The style of cards, which some pages need besides.
pub const CARDS: &str = include_str!("style/cards.css");

/// A calendar sheet.
const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cpath \
    fill='%232a5bd7' d='M2 2h12v12H2z'/%3E%3Cpath stroke='%23fff' d='M4 6h8M4 9h5M4 12h7'/%3E%3C/svg%3E";

/// A page. `maud` escapes the text in it.
pub struct HtmlPage<'a> {
    /// Title and first heading.
    pub title: &'a str,
    /// What the title names behind that: the club, or nothing.
    pub site: &'a str,
    /// Its language.
    pub language: Language,
    /// What precedes the main part.
    pub header: Markup,
    /// What follows the main part.
    pub footer: Markup,
    /// More elements of the head.
    pub head: Markup,
    /// Whether search engines may list it.
    pub is_indexed: bool,
    /// Style besides that of every page.
    pub style: &'a str,
    /// The style that sets the colour of the club, or nothing.
    pub club_style: &'a str,
    /// The address of its icon; a calendar sheet without one.
    pub icon: Option<&'a str>,
    /// What precedes the heading: what has just happened.
    pub notice: Markup,
    /// What the reader can do here, beside the heading.
    pub actions: Markup,
    /// What follows the heading.
    pub body: Markup,
}

impl<'a> HtmlPage<'a> {
    /// A page with nothing special.
    pub fn new(title: &'a str, body: Markup) -> Self {
        let nothing = || html! {};
        Self {
            title,
            site: "",
            language: Language::English,
            header: nothing(),
            footer: nothing(),
            head: nothing(),
            is_indexed: false,
            style: "",
            club_style: "",
            icon: None,
            notice: nothing(),
            actions: nothing(),
            body,
        }
    }

    /// The page as an answer. Its policy allows no script, and no style but the page's own.
    pub fn reply(self, status: StatusCode) -> Reply {
        let style = [STYLE, self.style, self.club_style].concat();
        let hash = STANDARD.encode(Sha256::digest(&style));
        let policy = format!(
            "default-src 'none'; style-src 'sha256-{hash}'; img-src 'self' data:; form-action 'self'; \
             frame-ancestors 'none'; base-uri 'none'"
        );
        let page = html! {
            (DOCTYPE)
            html lang=(self.language.code()) {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title {
                        (self.title)
                        @if !self.site.is_empty() && self.site != self.title { " – " (self.site) }
                    }
                    link rel="icon" href=(self.icon.unwrap_or(ICON));
                    style { (maud::PreEscaped(style)) }
                    (self.head)
                }
                body {
                    (self.header)
                    main id="main" {
                        (self.notice)
                        div.head {
                            h1 { (self.title) }
                            @if !self.actions.0.is_empty() { div.actions { (self.actions) } }
                        }
                        (self.body)
                    }
                    (self.footer)
                }
            }
        };
        let reply = Reply::new(status, "text/html; charset=utf-8", page.into_string().into_bytes())
            .with(header::CONTENT_SECURITY_POLICY, policy);
        if self.is_indexed { reply } else { reply.with(HeaderName::from_static("x-robots-tag"), "noindex") }
    }
}
