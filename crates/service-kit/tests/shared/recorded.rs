//! The history (contract, "History"): every operation of the OpenAPI document that changes something leaves a row. Both
//! services include this file in their tests, by its path.

use std::collections::{BTreeMap, BTreeSet};

use diesel::prelude::*;
use serde_json::{Value, json};
use service_kit::database::{schema::history, types::DbUuid};

use super::table::{Builder, Caller, Fixture, send, successes_of};
use crate::harness::Club;

/// The changes of each object by the request with this id.
fn changes_by(club: &Club, request: &str) -> BTreeMap<(String, DbUuid), Vec<Value>> {
    let rows = history::table.filter(history::request_id.eq(request));
    let rows = rows.select((history::object_type, history::object_id, history::changes));
    let mut found = BTreeMap::<_, Vec<_>>::new();
    for (kind, id, changes) in rows.load::<(String, DbUuid, String)>(&mut club.connect()).unwrap() {
        found.entry((kind, id)).or_default().push(serde_json::from_str(&changes).unwrap());
    }
    found
}

/// Sends every operation that is not a `GET`, as every kind of caller who may. For one of them at least, there is a row;
/// for none of them is there a row without a change, or two for an object. `without` lists the operations that leave
/// none, and each of them must be in use.
pub fn check_all<W>(
    service: &str,
    club: &Club,
    world: &W,
    builders: &[(&str, Builder<W>)],
    callers: &[Caller<'_>],
    without: &[&str],
) {
    let columns = ["privileged", "owner", "member"];
    let mut recorded = BTreeMap::<String, usize>::new();
    for (number, (name, operation, builder, caller, expected)) in
        columns.iter().flat_map(|column| successes_of(service, builders, callers, &[column])).enumerate()
    {
        if operation.method == "GET" {
            continue;
        }
        let made = builder.map_or_else(Fixture::default, |make| make(world, caller));
        let request = format!("recorded-{number}");
        send(&operation, &made, &caller.client.clone().header("x-request-id", &request)).expect(expected);
        let found = changes_by(club, &request);
        for (object, changes) in &found {
            let [change] = changes.as_slice() else { panic!("{name}: several rows for {object:?}: {changes:?}") };
            assert_ne!(*change, json!({}), "{name}: {object:?}");
        }
        *recorded.entry(format!("{} {}", operation.method, operation.path)).or_default() += found.len();
    }
    assert!(recorded.len() > 15, "{service}: {recorded:?}");
    let silent: BTreeSet<_> = recorded.iter().filter(|(_, rows)| **rows == 0).map(|(name, _)| name.as_str()).collect();
    assert_eq!(silent, without.iter().copied().collect(), "{service}: the operations without a row");
}
