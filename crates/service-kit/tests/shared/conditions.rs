//! Conditional requests, safe retries and pages (contract, "Conditional requests and retries" and "Lists"): every
//! operation of the OpenAPI document has them. Both services include this file in their tests, by its path.

use super::table::{Builder, Caller, Made, Operation, send, successes};
use crate::harness::Answer;

/// What a test sends to one operation.
struct Asked<'a, W> {
    operation: &'a Operation,
    world: &'a W,
    builder: Option<&'a Builder<W>>,
    caller: &'a Caller<'a>,
    expected: u16,
}

impl<W> Asked<'_, W> {
    fn make(&self) -> Made {
        self.builder.map_or_else(Made::default, |make| make(self.world, self.caller))
    }

    fn send(&self, made: &Made, headers: &[(&str, &str)]) -> Answer {
        let mut client = self.caller.client.clone();
        for (name, value) in headers {
            client = client.header(name, value);
        }
        send(self.operation, made, &client)
    }
}

/// Holds every operation that somebody may do. `ends_itself` are those after which the credential is no longer good.
pub fn hold<W>(
    service: &str,
    world: &W,
    builders: &[(&str, Builder<W>)],
    callers: &[Caller<'_>],
    ends_itself: &[&str],
) {
    let rows = successes(service, builders, callers);
    assert!(rows.len() > 40, "{service}: only {} operations can be done", rows.len());
    for (name, operation, builder, caller, expected) in rows {
        let asked = Asked { operation: &operation, world, builder, caller, expected };
        match operation.method.as_str() {
            "GET" if expected == 200 => {
                knows_what_the_caller_has(&name, &asked);
                if operation.lists() {
                    comes_in_pages(&name, &asked);
                }
            }
            "GET" => {}
            "POST" if operation.is_public() => {}
            "POST" => repeats_itself(&name, &asked, ends_itself.contains(&name.as_str())),
            _ => changes_only_the_version_that_is_meant(&name, &asked),
        }
    }
}

fn knows_what_the_caller_has<W>(name: &str, asked: &Asked<'_, W>) {
    let made = asked.make();
    let answer = asked.send(&made, &[]).expect(200);
    let tag = answer.header("etag").unwrap_or_else(|| panic!("{name} has no ETag")).to_owned();
    assert!(tag.starts_with('"') && tag.ends_with('"') && tag.len() > 20, "{name}: {tag}");
    for known in [tag.clone(), format!("W/{tag}"), format!("\"else\", {tag}"), "*".to_owned()] {
        let same = asked.send(&made, &[("if-none-match", &known)]).expect(304);
        assert!(same.body.is_empty(), "{name}: {}", same.text());
        // PostgreSQL numbers the transactions of all databases in one row, so that elsewhere may show in the mark.
        assert_eq!(same.header("etag").map(content), Some(content(&tag)), "{name}");
        assert_eq!(same.header("cache-control"), answer.header("cache-control"), "{name}");
        assert_eq!(same.header("vary").is_some(), answer.header("vary").is_some(), "{name}");
    }
    let full = asked.send(&made, &[("if-none-match", "\"else\"")]).expect(200);
    assert_eq!(full.body, answer.body, "{name}");
}

/// What of a tag stands for the content.
fn content(tag: &str) -> &str {
    tag.rsplit('.').next().unwrap()
}

fn comes_in_pages<W>(name: &str, asked: &Asked<'_, W>) {
    let made = asked.make();
    let all = asked.send(&made, &[]).expect(200).json();
    let all = all.as_array().unwrap();
    for (parameter, value) in
        [("limit", "0"), ("limit", "1001"), ("limit", "x"), ("cursor", "x"), ("cursor", "AAAAAAAA")]
    {
        let problem = asked.send(&made.clone().and_query(&format!("{parameter}={value}")), &[]).expect(400).json();
        assert_eq!(problem["violations"][0]["parameter"], parameter, "{name} {value}");
    }
    let (mut next, mut found) = (Some(made.and_query("limit=1")), Vec::new());
    while let Some(page) = next {
        let answer = asked.send(&page, &[]).expect(200);
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

fn repeats_itself<W>(name: &str, asked: &Asked<'_, W>, ends_itself: bool) {
    let made = asked.make();
    for bad in ["", &"k".repeat(256)] {
        asked.send(&made, &[("idempotency-key", bad)]).refused(400, "invalid-parameter");
    }
    let key = [("idempotency-key", name)];
    let first = asked.send(&made, &key).expect(asked.expected);
    assert_eq!(first.header("idempotency-replayed"), None, "{name}");
    let second = asked.send(&made, &key);
    if ends_itself {
        second.expect(401);
        return;
    }
    let second = second.expect(asked.expected);
    assert_eq!(second.header("idempotency-replayed"), Some("true"), "{name}");
    assert_eq!(second.body, first.body, "{name}");
    for header in ["location", "content-type", "cache-control"] {
        assert_eq!(second.header(header), first.header(header), "{name} {header}");
    }
    asked.send(&made.and_query("other=true"), &key).refused(422, "idempotency-key-reused");
}

fn changes_only_the_version_that_is_meant<W>(name: &str, asked: &Asked<'_, W>) {
    let made = asked.make();
    asked.send(&made, &[("if-match", "no tag")]).expect(400);
    let stale = asked.send(&made, &[("if-match", "\"0123456789012345678901\"")]);
    let tag = stale.header("etag").unwrap_or_else(|| panic!("{name}: {} {}", stale.status, stale.text())).to_owned();
    stale.refused(412, "precondition-failed");
    asked.send(&made, &[("if-match", &format!("W/{tag}"))]).expect(412);
    asked.send(&made, &[("if-match", &tag)]).expect(asked.expected);
}
