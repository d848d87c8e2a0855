//! The difference between two states of an object.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value, json};

use super::kind::Kind;

/// The fields that have changed: `[old, new]`, of a list `{"added": […], "removed": […]}`.
pub type Changes = Map<String, Value>;

/// The fields in which two states of an object differ. A state that does not exist has no fields.
pub fn difference(kind: &Kind, before: &Value, after: &Value) -> Changes {
    let names: BTreeSet<_> = [before, after].into_iter().filter_map(Value::as_object).flat_map(Map::keys).collect();
    let change = |name: &String| {
        let (old, new) = (&before[name.as_str()], &after[name.as_str()]);
        if old == new {
            return None;
        }
        let change = match (old, new) {
            (Value::Array(old), Value::Array(new)) => list_change(old, new)?,
            (Value::Array(old), Value::Null) => list_change(old, &[])?,
            (Value::Null, Value::Array(new)) => list_change(&[], new)?,
            _ => json!([old, new]),
        };
        Some((name.clone(), change))
    };
    names.into_iter().filter(|name| kind.shows(name)).filter_map(change).collect()
}

/// The elements that were added and removed; `None` if only their order differs.
fn list_change(old: &[Value], new: &[Value]) -> Option<Value> {
    let (removed, added) = (without(old, new), without(new, old));
    (!removed.is_empty() || !added.is_empty()).then(|| json!({"added": added, "removed": removed}))
}

/// The elements of a list without those of another one, each of which counts once.
fn without(list: &[Value], other: &[Value]) -> Vec<Value> {
    let mut others = HashMap::<&Value, usize>::new();
    for value in other {
        *others.entry(value).or_default() += 1;
    }
    let mut left = Vec::new();
    for value in list {
        match others.get_mut(value) {
            Some(number @ 1..) => *number -= 1,
            _ => left.push(value.clone()),
        }
    }
    left
}

/// Gives an object the fields that it had before a change.
pub fn undo(fields: &mut Value, changes: &Changes) {
    for (name, change) in changes {
        match (&change["added"], &change["removed"]) {
            (Value::Array(added), Value::Array(removed)) => {
                let present = fields[name.as_str()].as_array().cloned().unwrap_or_default();
                let before = without(&present, added).into_iter().chain(removed.iter().cloned());
                fields[name.as_str()] = before.collect();
            }
            _ => fields[name.as_str()] = change[0].clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    const KIND: Kind = Kind { name: "thing", hidden: &["thingId"] };

    #[test]
    fn changes_are_pairs_and_lists_what_was_added_and_removed() {
        let before =
            json!({"thingId": 1, "name": "a", "admins": ["x", "y"], "until": "2026", "same": 1, "updatedAt": 1});
        let after = json!({"thingId": 2, "name": "b", "admins": ["z", "y"], "note": "", "same": 1, "updatedAt": 2});
        let expected = json!({
            "name": ["a", "b"], "admins": {"added": ["z"], "removed": ["x"]}, "until": ["2026", null], "note": [null, ""],
        });
        assert_eq!(Value::Object(difference(&KIND, &before, &after)), expected);
        assert!(difference(&KIND, &json!({"admins": [1, 2]}), &json!({"admins": [2, 1]})).is_empty());
        let created = difference(&KIND, &Value::Null, &json!({"thingId": 1, "name": "a", "admins": ["x"], "tags": []}));
        assert_eq!(Value::Object(created), json!({"name": [null, "a"], "admins": {"added": ["x"], "removed": []}}));
    }

    fn fields() -> impl Strategy<Value = Value> {
        let element = prop_oneof![(0..4_u8).prop_map(|n| json!(n)), (0..3_u8).prop_map(|n| json!({ "id": n }))];
        (vec(element, 0..6), "[ab]{0,2}", any::<bool>(), 0..3_u8).prop_map(
            |(list, text, flag, number)| json!({"list": list, "text": text, "flag": flag, "span": {"since": number}}),
        )
    }

    /// Lists are compared without their order.
    fn sorted(mut fields: Value) -> Value {
        fields["list"].as_array_mut().unwrap().sort_by_key(Value::to_string);
        fields
    }

    proptest! {
        #[test]
        fn a_change_can_be_undone(before in fields(), after in fields()) {
            let changes = difference(&KIND, &before, &after);
            prop_assert_eq!(changes.is_empty(), sorted(before.clone()) == sorted(after.clone()));
            let mut restored = after;
            undo(&mut restored, &changes);
            prop_assert_eq!(sorted(restored), sorted(before));
        }

        #[test]
        fn only_fields_that_differ_are_listed(before in fields(), after in fields()) {
            for (name, change) in difference(&KIND, &before, &after) {
                prop_assert_ne!(&before[name.as_str()], &after[name.as_str()]);
                if name != "list" {
                    prop_assert_eq!(change, json!([before[name.as_str()], after[name.as_str()]]));
                }
            }
        }
    }
}
