//! What a page takes from its request: language and layout.

use std::future::{Ready, ready};

use actix_web::{
    FromRequest, HttpRequest,
    dev::Payload,
    http::{StatusCode, header},
    web::Data,
};
use common::problem::Problem;
use fluent_bundle::FluentValue;
use maud::{Markup, html};
use uuid::Uuid;

use super::{
    address::{DELETED, NOTICE, NOTICES, address, is_local},
    buttons::button,
};
use crate::{
    error::Failure,
    http::{HtmlPage, Language, Reply, notes::RequestNotes, query, texts::Argument},
    state::{AppState, DEVELOPERS_PATH, LANGUAGE_PATH, LOGO_PATH, SIGN_OUT_PATH},
};

/// What every page takes from its request: language and layout.
#[derive(Clone)]
pub struct PageContext {
    state: Data<AppState>,
    /// Its language.
    pub language: Language,
    /// The path, if it is that of a page. Any other path may hold a secret.
    path: Option<String>,
    /// Where links lead back to: the path with those parameters that are known to hold no secret.
    here: Option<String>,
    pub(super) is_get: bool,
    /// What has happened, one of [`NOTICES`].
    notice: Option<&'static str>,
    /// What was deleted, if this is the list from which it was; or what has lost parts, if this is its page.
    deleted: Option<Uuid>,
    is_signed_in: bool,
}

impl PageContext {
    /// The context of a request.
    pub fn of(req: &HttpRequest) -> Result<Self, Problem> {
        let state = AppState::from_request(req)?;
        let path = req.uri().path();
        let navigation = state.info.navigation.iter().map(|(page, _)| *page);
        let others =
            state.info.front_page_paths.iter().map(|page| page.split_once("/{").map_or(*page, |(page, _)| page));
        let is_page = navigation.chain(others).any(|page| is_below(path, page));
        let path = is_page.then(|| path.to_owned());
        let parameters = query::pairs(req);
        let is_plain = |name: &str| state.info.page_parameters.contains(&name);
        let plain = parameters.iter().filter(|(name, _)| is_plain(name));
        let plain: Vec<_> = plain.map(|(name, value)| (name.as_str(), value.as_str())).collect();
        // With too many parameters it would not be accepted as the address of a page.
        let here = path.as_deref().map(|path| address(path, &plain));
        let here = here.map(|here| if is_local(&here) { here } else { path.clone().unwrap_or_default() });
        // A link of another site says nothing of what has happened here.
        let site = req.headers().get("sec-fetch-site");
        let is_from_elsewhere = site.is_some_and(|site| site != "same-origin");
        let value = |name: &str| parameters.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str());
        Ok(Self {
            notice: NOTICES.into_iter().find(|notice| value(NOTICE) == Some(notice)).filter(|_| !is_from_elsewhere),
            deleted: value(DELETED).and_then(|id| id.parse().ok()),
            here,
            language: Language::from_request(req),
            is_get: matches!(req.method().as_str(), "GET" | "HEAD"),
            is_signed_in: (state.info.has_credential)(req),
            state,
            path,
        })
    }

    /// The state of the service.
    pub fn state(&self) -> &AppState {
        &self.state
    }

    /// Whether the request carries a credential, good or bad.
    pub fn is_signed_in(&self) -> bool {
        self.is_signed_in
    }

    /// A text without values.
    pub fn text(&self, key: &str) -> String {
        self.state.interface.texts.get(self.language, key, &[])
    }

    /// A text with values.
    pub fn format(&self, key: &str, arguments: &[Argument<'_>]) -> String {
        self.state.interface.texts.get(self.language, key, arguments)
    }

    /// A text with a number, `$n`.
    pub fn count(&self, key: &str, n: usize) -> String {
        self.format(key, &[("n", FluentValue::from(n))])
    }

    /// A text, if there is one.
    pub fn find(&self, key: &str) -> Option<String> {
        self.state.interface.texts.find(self.language, key, &[])
    }

    /// A page of this service.
    pub fn page<'a>(&'a self, title: &'a str, body: Markup) -> HtmlPage<'a> {
        HtmlPage {
            site: &self.state.club_name,
            club_style: &self.state.club_style,
            icon: self.logo(),
            notice: self.notice().unwrap_or_default(),
            language: self.language,
            header: self.header(),
            footer: self.footer(),
            ..HtmlPage::new(title, body)
        }
    }

    /// What has happened, as the address says, with the button that takes it back.
    fn notice(&self) -> Option<Markup> {
        let notice = self.notice.filter(|_| self.is_get)?;
        let restore = self.path.as_deref().zip(self.deleted).and_then(|(path, id)| {
            let list = path.strip_suffix(format!("/{id}").as_str()).unwrap_or(path);
            let mut ends = self.state.info.front_form_paths.iter().filter_map(|form| form.strip_prefix(list));
            let is_of_list = ends.any(|end| end.starts_with("/{") && end.ends_with("}/restore"));
            is_of_list.then(|| format!("{list}/{id}/restore"))
        });
        Some(html! {
            div.flash role="status" {
                (self.text(&format!("notice-{notice}")))
                @if let Some(restore) = restore { (button(&restore, &[], &self.text("undo"), None)) }
            }
        })
    }

    /// A page as an answer.
    pub fn reply(&self, title: &str, body: Markup) -> Reply {
        self.reply_with(StatusCode::OK, title, body)
    }

    /// A page as an answer with another status.
    pub fn reply_with(&self, status: StatusCode, title: &str, body: Markup) -> Reply {
        self.page(title, body).reply(status).with(header::VARY, "Accept-Language")
    }

    /// A page as an answer, with what the reader can do there beside its heading.
    pub fn reply_with_actions(&self, title: &str, actions: Markup, body: Markup) -> Reply {
        let page = HtmlPage { actions, ..self.page(title, body) };
        page.reply(StatusCode::OK).with(header::VARY, "Accept-Language")
    }

    /// The address of the club's logo, if it has one.
    fn logo(&self) -> Option<&'static str> {
        (self.state.club_logo.is_some() && self.state.static_files.is_none()).then_some(LOGO_PATH)
    }

    /// The address that signs somebody in and returns to this page, if the service has a page for that.
    pub fn sign_in_address(&self) -> Option<String> {
        self.state.sign_in_address(self.way_back())
    }

    /// The address to which a link leads back.
    fn way_back(&self) -> &str {
        self.here.as_deref().filter(|_| self.is_get).unwrap_or("/")
    }

    fn header(&self) -> Markup {
        let skip = html! { a.skip href="#main" { (self.text("skip")) } };
        if self.state.static_files.is_some() {
            return skip;
        }
        let is_here = |page: &str| self.path.as_deref().is_some_and(|path| is_below(path, page));
        let link = |(page, key): &(&str, &str)| {
            html! { a href=(page) aria-current=[is_here(page).then_some("page")] { (self.text(key)) } }
        };
        // What is the reader's own stands at the end.
        let (own, pages): (Vec<_>, Vec<_>) = self.state.info.navigation.iter().partition(|(page, _)| *page == "/me");
        let sign_in = self.sign_in_address().filter(|_| !self.is_signed_in);
        let (to, service) = (self.way_back(), self.text(self.state.info.name));
        html! {
            (skip)
            header.top {
                div {
                    a.club href="/" {
                        @if let Some(logo) = self.logo() { img src=(logo) alt="" width="28" height="28"; }
                        @if self.state.club_name.is_empty() { (service) }
                        @else { (self.state.club_name) small { (service) } }
                    }
                    nav aria-label=(self.text("pages")) { @for page in pages { (link(page)) } }
                    div.me {
                        @for language in Language::ALL.into_iter().filter(|other| *other != self.language) {
                            a href=(address(LANGUAGE_PATH, &[("set", language.code()), ("to", to)])) lang=(language.code())
                                hreflang=(language.code()) { (language.name()) }
                        }
                        @if let Some(sign_in) = sign_in { a href=(sign_in) { (self.text("sign-in")) } }
                        @else { @for page in own { (link(page)) } }
                    }
                }
            }
        }
    }

    fn footer(&self) -> Markup {
        if self.state.static_files.is_some() {
            return html! {};
        }
        let name = &self.state.club_name;
        html! {
            footer {
                span {
                    @if let Some(site) = &self.state.club_url {
                        a href=(site) { @if name.is_empty() { (site) } @else { (name) } }
                    } @else { (name) }
                }
                a href=(DEVELOPERS_PATH) { (self.text("for-developers")) }
                @if self.is_signed_in && self.state.answer_options.has_sign_out {
                    form method="post" action=(SIGN_OUT_PATH) { button.link { (self.text("sign-out")) } }
                }
            }
        }
    }
}

impl FromRequest for PageContext {
    type Error = Failure;
    type Future = Ready<Result<Self, Failure>>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        // The fingerprint of an answer does not depend on the language.
        RequestNotes::change(req, |notes| notes.is_time_dependent = true);
        ready(Self::of(req).map_err(Failure::from))
    }
}

/// Whether a path is that of a page, or of one below it.
fn is_below(path: &str, page: &str) -> bool {
    path == page || (page.len() > 1 && path.strip_prefix(page).is_some_and(|rest| rest.starts_with('/')))
}
