//! Addresses of pages, and the links that change the language.

use actix_web::{
    HttpRequest,
    http::{StatusCode, header},
    web::Data,
};
use url::form_urlencoded;

use crate::{
    database::types::DbUuid,
    http::{Language, Reply, language, query},
    state::AppState,
};

/// The most characters of an address to return to.
const MAX_ADDRESS: usize = 500;

/// A path with parameters.
pub fn address(path: &str, parameters: &[(&str, &str)]) -> String {
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

/// 303: a form is followed by another page.
pub fn see_other(address: impl Into<String>) -> Reply {
    Reply::empty(StatusCode::SEE_OTHER).with(header::LOCATION, address)
}

/// The parameter with what has happened, one of [`NOTICES`].
pub(super) const NOTICE: &str = "notice";

/// The parameter with the id of what was deleted from the list at the path, or of what has lost parts, for the button that
/// restores it.
pub(super) const DELETED: &str = "deleted";

/// What a page may say has happened; the keys of the texts begin with `notice-`.
pub(super) const NOTICES: [&str; 3] = ["saved", "deleted", "booked"];

/// 303 to a page that says that what was typed has been saved.
pub fn see_saved(path: &str) -> Reply {
    see_other(address(path, &[(NOTICE, NOTICES[0])]))
}

/// 303 to a page that says that something has been deleted.
pub fn see_deleted(path: &str) -> Reply {
    see_other(address(path, &[(NOTICE, NOTICES[1])]))
}

/// 303 to a page that says that it is booked.
pub fn see_booked(path: &str) -> Reply {
    see_other(address(path, &[(NOTICE, NOTICES[2])]))
}

/// 303 to the list from which an object has been deleted. Its button sends a form to `{path}/{id}/restore`. The path may
/// also be the page of an object that has lost parts, `{list}/{id}`.
pub fn see_deleted_from(path: &str, id: DbUuid) -> Reply {
    see_deleted_from_part(path, &[], id)
}

/// The same for a part of a list, which these parameters choose.
pub fn see_deleted_from_part(path: &str, part: &[(&str, &str)], id: DbUuid) -> Reply {
    let id = id.to_string();
    let notice = [(NOTICE, NOTICES[1]), (DELETED, id.as_str())];
    see_other(address(path, &part.iter().copied().chain(notice).collect::<Vec<_>>()))
}

/// Whether this is the address of a page of this service, so that a link with it leads nowhere else.
pub fn is_local(address: &str) -> bool {
    let is_plain = address.len() <= MAX_ADDRESS && address.bytes().all(|byte| byte.is_ascii_graphic());
    let path = address.split(['?', '#']).next().unwrap_or_default();
    is_plain && path.starts_with('/') && !path.starts_with("//") && !path.contains('\\') && !path.contains("/.")
}

/// Changes the language, and returns to the page with the link.
pub async fn set_language(req: HttpRequest, state: Data<AppState>) -> Reply {
    let parameters = query::pairs(&req);
    let parameter = |name: &str| parameters.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str());
    let to = parameter("to").filter(|to| is_local(to)).unwrap_or("/");
    let reply = see_other(to).with(header::CACHE_CONTROL, "no-store");
    let Some(language) = parameter("set").and_then(Language::by_code) else { return reply };
    let secure = if state.origins.public().starts_with("https") { "; Secure" } else { "" };
    let (name, code) = (language::COOKIE, language.code());
    let cookie = format!("{name}={code}; Path=/; Max-Age=31536000; SameSite=Lax; HttpOnly{secure}");
    reply.with(header::SET_COOKIE, cookie)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_service_are_local() {
        for local in ["/", "/events?month=2026-04", "/events/new#main", "/docs/#/rooms/addRooms"] {
            assert!(is_local(local), "{local}");
        }
        for other in
            ["", "events", "//evil.example", "/\\evil.example", "https://evil.example/", "/a\r\nb: c", "/../api", "/日"]
        {
            assert!(!is_local(other), "{other}");
        }
        assert!(!is_local(&format!("/{}", "a".repeat(MAX_ADDRESS))));
    }

    #[test]
    fn addresses_are_encoded() {
        assert_eq!(address("/events", &[]), "/events");
        assert_eq!(address("/events", &[("search", "会 a&b")]), "/events?search=%E4%BC%9A+a%26b");
    }
}
