//! Conditional requests, safe retries and pages (contract, "Conditional requests and retries" and "Lists"): every
//! operation of the OpenAPI document has them. Both services include this file in their tests, by its path.

use super::table::{Builder, Caller, Fixture, Operation, send, successes};
use crate::harness::Answer;

/// An operation with a caller who may call it, and the status of its answer.
struct TestCase<'a, W> {
    operation: &'a Operation,
    world: &'a W,
    builder: Option<&'a Builder<W>>,
    caller: &'a Caller<'a>,
    expected: u16,
}

impl<W> TestCase<'_, W> {
    fn make(&self) -> Fixture {
        self.builder.map_or_else(Fixture::default, |make| make(self.world, self.caller))
    }

    fn send(&self, made: &Fixture, headers: &[(&str, &str)]) -> Answer {
        let mut client = self.caller.client.clone();
        for (name, value) in headers {
            client = client.header(name, value);
        }
        send(self.operation, made, &client)
    }
}

/// Checks every operation that some caller may call. The operations of `end_the_session` invalidate the credential.
pub fn check_all<W>(
    service: &str,
    world: &W,
    builders: &[(&str, Builder<W>)],
    callers: &[Caller<'_>],
    end_the_session: &[&str],
) {
    let rows = successes(service, builders, callers);
    assert!(rows.len() > 40, "{service}: only {} operations can be done", rows.len());
    for (name, operation, builder, caller, expected) in rows {
        let case = TestCase { operation: &operation, world, builder, caller, expected };
        match operation.method.as_str() {
            "GET" if expected == 200 => {
                check_if_none_match(&name, &case);
                if operation.lists() {
                    check_pages(&name, &case);
                }
            }
            "GET" => {}
            "POST" if operation.is_public() => {}
            "POST" => check_replay(&name, &case, end_the_session.contains(&name.as_str())),
            _ => check_if_match(&name, &case),
        }
    }
}

fn check_if_none_match<W>(name: &str, case: &TestCase<'_, W>) {
    let made = case.make();
    let answer = case.send(&made, &[]).expect(200);
    let tag = answer.header("etag").unwrap_or_else(|| panic!("{name} has no ETag")).to_owned();
    assert!(tag.starts_with('"') && tag.ends_with('"') && tag.len() > 20, "{name}: {tag}");
    for known in [tag.clone(), format!("W/{tag}"), format!("\"else\", {tag}"), "*".to_owned()] {
        let same = case.send(&made, &[("if-none-match", &known)]).expect(304);
        assert!(same.body.is_empty(), "{name}: {}", same.text());
        // The first part of a tag changes with every write, on PostgreSQL also with writes to other databases.
        assert_eq!(same.header("etag").map(content), Some(content(&tag)), "{name}");
        assert_eq!(same.header("cache-control"), answer.header("cache-control"), "{name}");
        assert_eq!(same.header("vary").is_some(), answer.header("vary").is_some(), "{name}");
    }
    let full = case.send(&made, &[("if-none-match", "\"else\"")]).expect(200);
    assert_eq!(full.body, answer.body, "{name}");
}

/// The part of a tag that depends on the content.
fn content(tag: &str) -> &str {
    tag.rsplit('.').next().unwrap()
}

fn check_pages<W>(name: &str, case: &TestCase<'_, W>) {
    let made = case.make();
    let all = case.send(&made, &[]).expect(200).json();
    let all = all.as_array().unwrap();
    for (parameter, value) in
        [("limit", "0"), ("limit", "1001"), ("limit", "x"), ("cursor", "x"), ("cursor", "AAAAAAAA")]
    {
        let problem = case.send(&made.clone().and_query(&format!("{parameter}={value}")), &[]).expect(400).json();
        assert_eq!(problem["violations"][0]["parameter"], parameter, "{name} {value}");
    }
    let (mut next, mut found) = (Some(made.and_query("limit=1")), Vec::new());
    while let Some(page) = next {
        let answer = case.send(&page, &[]).expect(200);
        let rows = answer.json();
        assert!(rows.as_array().unwrap().len() <= 1, "{name}");
        found.extend(rows.as_array().unwrap().clone());
        assert!(found.len() <= all.len(), "{name} has more pages than rows");
        next = answer.header("link").map(|link| {
            let target = link.strip_prefix('<').and_then(|link| link.strip_suffix(">; rel=\"next\"")).unwrap();
            page.at(target.split_once('?').unwrap().1)
        });
    }
    assert_eq!(&found, all, "{name}: the pages are the list");
}

fn check_replay<W>(name: &str, case: &TestCase<'_, W>, end_the_session: bool) {
    let made = case.make();
    for bad in ["", &"k".repeat(256)] {
        case.send(&made, &[("idempotency-key", bad)]).refused(400, "invalid-parameter");
    }
    let key = [("idempotency-key", name)];
    let first = case.send(&made, &key).expect(case.expected);
    assert_eq!(first.header("idempotency-replayed"), None, "{name}");
    let second = case.send(&made, &key);
    if end_the_session {
        second.expect(401);
        return;
    }
    let second = second.expect(case.expected);
    assert_eq!(second.header("idempotency-replayed"), Some("true"), "{name}");
    assert_eq!(second.body, first.body, "{name}");
    for header in ["location", "content-type", "cache-control"] {
        assert_eq!(second.header(header), first.header(header), "{name} {header}");
    }
    case.send(&made.and_query("other=true"), &key).refused(422, "idempotency-key-reused");
}

fn check_if_match<W>(name: &str, case: &TestCase<'_, W>) {
    let made = case.make();
    case.send(&made, &[("if-match", "no tag")]).expect(400);
    let stale = case.send(&made, &[("if-match", "\"0123456789012345678901\"")]);
    let tag = stale.header("etag").unwrap_or_else(|| panic!("{name}: {} {}", stale.status, stale.text())).to_owned();
    stale.refused(412, "precondition-failed");
    case.send(&made, &[("if-match", &format!("W/{tag}"))]).expect(412);
    case.send(&made, &[("if-match", &tag)]).expect(case.expected);
}
