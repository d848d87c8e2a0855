//! The page at `/`, and what every page promises. Both services include this file in their tests, by its path, as a
//! module of theirs.

use std::collections::BTreeSet;

use service_kit::{http::path_methods::ROOT_PATHS, state::ServiceInfo};

use super::forms::{HTML, attribute};
use crate::harness::{Answer, Club};

/// The beginning of an element with data, which a browser does not run.
pub const DATA: &str = "<script type=\"application/ld+json\">";

/// Holds a page to what every page promises: small, no script, nothing from elsewhere. Returns its text.
#[track_caller]
pub fn check(answer: &Answer) -> String {
    assert!(answer.header("content-type").unwrap().starts_with("text/html"), "{answer:?}");
    let policy = answer.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(!policy.contains("script-src") && !policy.contains("unsafe"), "{policy}");
    let page = answer.text();
    assert!(page.len() < 60_000, "{} bytes", page.len());
    let own = page.replace(" src=\"/club-logo\"", "").replace(" src=\"/api/v1/", "").replace(DATA, "");
    for outside in ["<script", " src=", "style=\"", "@import", "url(http"] {
        assert!(!own.contains(outside), "{outside} in {page}");
    }
    assert!(page.contains("<html lang=\"") && page.contains("light-dark("), "{page}");
    page
}

/// The addresses that a page links to.
pub fn links(page: &str) -> Vec<&str> {
    page.split("<a").skip(1).filter_map(|element| attribute(element.split('>').next().unwrap(), "href")).collect()
}

/// Sends every method to every path, as nobody and as a member, with objects that do not exist, and with bodies that
/// cannot be used. Each refusal is a page of the one layout. Returns the statuses of the refusals.
pub fn refusals(club: &Club, member: &str, info: &ServiceInfo) -> BTreeSet<u16> {
    let operations = info.openapi().paths.paths.into_keys();
    let pages = [info.page_paths, info.front_page_paths, info.front_form_paths, ROOT_PATHS];
    let pages = pages.concat().into_iter().map(str::to_owned);
    let nowhere = ["/nowhere", "/api/nowhere", "/api/v1/nowhere", "/docs/nowhere", "/icons/nowhere.svg", "/board/"];
    let paths: BTreeSet<_> = operations.chain(pages).chain(nowhere.map(str::to_owned)).collect();
    let mut statuses = BTreeSet::new();
    for path in paths.iter().filter(|path| !path.ends_with("/logout") && !path.ends_with("/sign-out")) {
        let mut parts = path.split('{');
        let first = parts.next().unwrap().to_owned();
        let id = |part: &str| format!("0198c0de-0000-7000-8000-00000000ffff{}", part.split_once('}').unwrap().1);
        let path = parts.map(id).fold(first, |path, part| path + &part);
        for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] {
            let bodies = if method.len() < 5 && method != "PUT" && method != "POST" { 1 } else { 3 };
            for body in ["", "[", "a=b"].into_iter().take(bodies) {
                for client in [club.anonymous(), club.by(member)] {
                    let client = match body {
                        "" => client,
                        "[" => client.header("content-type", "application/json"),
                        _ => client.header("content-type", "text/plain"),
                    };
                    let answer = client.header("accept", HTML).send_bytes(method, &path, body.as_bytes().to_vec());
                    if answer.status < 400 {
                        continue;
                    }
                    assert!(answer.status < 500, "{method} {path}: {answer:?}");
                    statuses.insert(answer.status);
                    assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"), "{method} {path}");
                    if method != "HEAD" {
                        let page = check(&answer);
                        assert!(page.contains("<a class=\"skip\"") && page.contains("<nav aria-label="), "{page}");
                    }
                }
            }
        }
    }
    statuses
}

/// Checks that the lists of pages and forms of a service have each path that this source registers.
pub fn check_lists(source: &str, info: &ServiceInfo) {
    let (mut found, lists) = (0, [(".get(", info.front_page_paths), (".post(", info.front_form_paths)]);
    for registered in source.split(".service(").skip(1) {
        let registered = registered.split(';').next().unwrap();
        let Some(path) = registered.split('"').nth(1).filter(|path| path.starts_with('/')) else { continue };
        for (method, list) in lists.iter().filter(|(method, _)| registered.contains(method)) {
            assert!(list.contains(&path), "{method}) {path} is not listed");
            found += 1;
        }
    }
    assert!(found > 30, "{found}");
}
