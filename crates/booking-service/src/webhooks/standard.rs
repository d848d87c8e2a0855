//! The format `standard`: [Standard Webhooks](https://github.com/standard-webhooks/standard-webhooks).
//!
//! The crate `standardwebhooks` would sign as well, but it brings older versions of `base64` and `http`, another
//! implementation of SHA-256 and `time`, for the lines of [`signature`]. Tests verify the signatures by the reference
//! libraries.

use base64::{Engine, prelude::BASE64_STANDARD};
use chrono_tz::Tz;
use ring::hmac;
use serde_json::{Map, Value, json};
use service_kit::database::types::{DbTimestamp, DbUuid};

use super::{changes::SECRET_PREFIX, kinds::Type};

/// The body of a delivery.
pub fn body(
    kind: Type,
    at: DbTimestamp,
    zone: Tz,
    object: DbUuid,
    origin: &str,
    changes: Option<&Map<String, Value>>,
) -> String {
    let mut data = Map::new();
    data.insert("id".to_owned(), json!(object));
    data.insert("url".to_owned(), json!(format!("{origin}/api/{}/{object}", kind.collection())));
    if let Some(changes) = changes {
        data.insert("changes".to_owned(), json!(changes));
    }
    json!({ "type": kind.word(), "timestamp": at.in_zone(zone), "data": data }).to_string()
}

/// Adds later changes of an object to earlier ones.
pub fn add_changes(all: &mut Map<String, Value>, later: Map<String, Value>) {
    for (field, change) in later {
        let Some(before) = all.get_mut(&field) else {
            all.insert(field, change);
            continue;
        };
        match (before, change) {
            (Value::Array(before), Value::Array(mut after)) if before.len() == 2 && after.len() == 2 => {
                before[1] = after.swap_remove(1);
            }
            (Value::Object(before), Value::Object(after)) => add_elements(before, &after),
            (before, after) => *before = after,
        }
    }
}

/// Adds later changes of a list to earlier ones: what was added and removed again is neither. The lists of a directory
/// sync are numbers.
fn add_elements(before: &mut Map<String, Value>, after: &Map<String, Value>) {
    for (name, opposite) in [("added", "removed"), ("removed", "added")] {
        if let (Some(one), Some(other)) =
            (before.get(name).and_then(Value::as_u64), after.get(name).and_then(Value::as_u64))
        {
            before.insert(name.to_owned(), json!(one + other));
        }
        for element in after.get(name).and_then(Value::as_array).into_iter().flatten() {
            let undone = before.get_mut(opposite).and_then(Value::as_array_mut);
            let index = undone.as_ref().and_then(|list| list.iter().position(|other| other == element));
            match (undone, index) {
                (Some(list), Some(index)) => drop(list.remove(index)),
                _ => {
                    if let Some(list) = before.get_mut(name).and_then(Value::as_array_mut) {
                        list.push(element.clone());
                    }
                }
            }
        }
    }
}

/// Whether a field is not what it was.
pub fn is_change(change: &Value) -> bool {
    match change {
        Value::Array(values) => values.first() != values.get(1),
        Value::Object(lists) => lists.values().any(|list| list.as_array().is_none_or(|list| !list.is_empty())),
        _ => true,
    }
}

/// The value of `webhook-signature` with each of the secrets.
pub fn signature(secrets: &[String], id: &str, timestamp: i64, body: &str) -> String {
    let sign = |secret: &String| {
        let key = BASE64_STANDARD.decode(secret.strip_prefix(SECRET_PREFIX).unwrap_or(secret)).unwrap_or_default();
        let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
        let tag = hmac::sign(&key, format!("{id}.{timestamp}.{body}").as_bytes());
        format!("v1,{}", BASE64_STANDARD.encode(tag))
    };
    secrets.iter().map(sign).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification.
    #[test]
    fn the_example_of_the_specification_has_its_signature() {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned();
        let body = r#"{"test": 2432232314}"#;
        let one = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(signature(std::slice::from_ref(&secret), "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body), one);
        let both = signature(&[secret.clone(), secret], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
        assert_eq!(both, format!("{one} {one}"));
    }

    #[test]
    fn several_changes_become_one() {
        let changes = |value: Value| serde_json::from_value::<Map<_, _>>(value).unwrap();
        let mut all =
            changes(json!({"name": ["a", "b"], "admins": {"added": [1], "removed": [2]}, "members": {"added": 3}}));
        let later = json!({"name": ["b", "c"], "place": ["x", "y"], "admins": {"added": [2, 3], "removed": [1, 4]}});
        add_changes(&mut all, changes(later));
        add_changes(&mut all, changes(json!({"members": {"added": 1}})));
        let lists = json!({"added": [3], "removed": [4]});
        let expected = json!({"name": ["a", "c"], "place": ["x", "y"], "admins": lists, "members": {"added": 4}});
        assert_eq!(json!(all), expected);
        assert!(all.values().all(is_change));
        let back = json!({"name": ["c", "a"], "admins": {"added": [4], "removed": [3]}});
        add_changes(&mut all, changes(back));
        assert!(!is_change(&all["name"]) && !is_change(&all["admins"]), "moved there and back: {all:?}");
    }
}
