//! What a public page says of itself to search engines, and to programs that show links: a description, the canonical
//! address, Open Graph (<https://ogp.me>), and schema.org data as JSON-LD.

use maud::{Markup, PreEscaped, html};
use serde_json::{Value, json};
use service_kit::page::PageContext;

/// The most characters of a description. Search engines show fewer.
const MAX_CHARS: usize = 200;

/// What a public page says of itself.
pub struct Metadata<'a> {
    /// Its path, without parameters.
    pub path: &'a str,
    /// What it shows, in a text of any length, or nothing.
    pub description: &'a str,
    /// The type that Open Graph has for it: `website` or `profile`.
    pub kind: &'static str,
    /// The schema.org object that it shows.
    pub data: Option<Value>,
    /// Further elements of its head.
    pub head: Markup,
}

impl<'a> Metadata<'a> {
    /// Those of a page with nothing special.
    pub fn new(path: &'a str, description: &'a str) -> Self {
        Self { path, description, kind: "website", data: None, head: html! {} }
    }

    /// The elements of the head of the page, which has this title.
    pub fn render(self, page: &PageContext, title: &str) -> Markup {
        let Self { path, description, kind, data, head } = self;
        let (description, club, address) = (shortened(description), &page.state().club_name, address(page, path));
        let data = data.map(|mut data| {
            data["@context"] = "https://schema.org".into();
            // A text must not end the element.
            data.to_string().replace('<', "\\u003c")
        });
        html! {
            @if !description.is_empty() {
                meta name="description" content=(description);
                meta property="og:description" content=(description);
            }
            meta property="og:title" content=(title);
            meta property="og:type" content=(kind);
            @if !club.is_empty() { meta property="og:site_name" content=(club); }
            @if let Some(address) = &address {
                meta property="og:url" content=(address);
                link rel="canonical" href=(address);
            }
            // Data, which a browser does not run. The policy of the page forbids scripts only.
            @if let Some(data) = &data { script type="application/ld+json" { (PreEscaped(data)) } }
            (head)
        }
    }
}

/// A schema.org object of this type and name, with the address of its page if it has one.
pub fn object(page: &PageContext, kind: &str, name: &str, path: Option<&str>) -> Value {
    let mut object = json!({"@type": kind, "name": name});
    if let Some(address) = path.and_then(|path| address(page, path)) {
        object["url"] = address.into();
    }
    object
}

/// The address of a page, if it is known at which address browsers reach the service.
fn address(page: &PageContext, path: &str) -> Option<String> {
    page.state().public_url.as_ref().map(|origin| format!("{origin}{path}"))
}

/// The beginning of a text, in one line.
fn shortened(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
