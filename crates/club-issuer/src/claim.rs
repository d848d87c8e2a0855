//! A condition on the claims about a person: `groups=rooms-admin`.

use std::{fmt, str::FromStr};

use serde_json::Value;

use crate::verify::Claims;

/// A claim and the value that it must have, or contain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimValue {
    claim: String,
    value: String,
}

impl ClaimValue {
    /// The condition that a claim has, or contains, a value.
    pub fn new(claim: &str, value: &str) -> Self {
        Self { claim: claim.to_owned(), value: value.to_owned() }
    }

    /// Whether claims contain the claim, or the object that should have it, with whatever value.
    pub fn is_named_in(&self, claims: &Claims) -> bool {
        let paths = self.claim.match_indices('.').map(|(dot, _)| &self.claim[..dot]);
        paths.chain([self.claim.as_str()]).any(|name| claims.contains_key(name))
    }

    /// Whether the claim has the value: as text, number or boolean, in a list, or as a member's name in an object. The
    /// member must not say "no": it is `true`, a text or an object, and not empty.
    pub fn holds(&self, claims: &Claims) -> bool {
        let is_value = |value: &Value| match value {
            Value::String(text) => *text == self.value,
            Value::Number(number) => number.to_string() == self.value,
            Value::Bool(flag) => flag.to_string() == self.value,
            _ => false,
        };
        match find(claims, &self.claim) {
            Some(Value::Array(values)) => values.iter().any(is_value),
            Some(Value::Object(members)) => members.get(&self.value).is_some_and(|member| match member {
                Value::Bool(flag) => *flag,
                Value::String(text) => !text.is_empty(),
                Value::Object(details) => !details.is_empty(),
                _ => false,
            }),
            Some(value) => is_value(value),
            None => false,
        }
    }
}

/// The claim of this name, or the nested one: `realm_access.roles` is `roles` in the object `realm_access`. Names may
/// contain dots themselves, the longest one counts.
fn find<'a>(claims: &'a Claims, path: &str) -> Option<&'a Value> {
    claims.get(path).or_else(|| {
        let mut dots = path.rmatch_indices('.');
        dots.find_map(|(dot, _)| find(claims.get(&path[..dot])?.as_object()?, &path[dot + 1..]))
    })
}

impl FromStr for ClaimValue {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('=') {
            Some((claim, value)) if !claim.is_empty() && !value.is_empty() => {
                Ok(Self { claim: claim.to_owned(), value: value.to_owned() })
            }
            _ => Err("must be CLAIM=VALUE, such as groups=rooms-admin"),
        }
    }
}

impl fmt::Display for ClaimValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.claim, self.value)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_claim_has_a_value_in_every_form_that_providers_use() {
        for (condition, claims, expected) in [
            ("groups=admin", json!({"groups": ["a", "admin"]}), true),
            ("groups=admin", json!({"groups": ["a", "admins", 5, null, ["admin"]]}), false),
            ("groups=admin", json!({"groups": "admin"}), true),
            ("groups=admin", json!({"groups": "a admin"}), false),
            ("groups=admin", json!({}), false),
            ("groups=admin", json!({"groups": null}), false),
            ("groups=a=b", json!({"groups": ["a=b"]}), true),
            ("is_admin=true", json!({"is_admin": true}), true),
            ("is_admin=true", json!({"is_admin": false}), false),
            ("level=5", json!({"level": 5}), true),
            ("realm_access.roles=admin", json!({"realm_access": {"roles": ["admin"]}}), true),
            ("realm_access.roles=admin", json!({"realm_access": ["roles"]}), false),
            ("https://club.example/roles=admin", json!({"https://club.example/roles": ["admin"]}), true),
            ("urn:roles=admin", json!({"urn:roles": {"admin": {"1": "club"}}}), true),
            ("groups=admin", json!({"groups": {"admin": true, "other": false}}), true),
            ("groups=admin", json!({"groups": {"admin": "since 2026"}}), true),
            ("groups=admin", json!({"groups": {"admin": false}}), false),
            ("groups=admin", json!({"groups": {"admin": null}}), false),
            ("groups=admin", json!({"groups": {"admin": 0}}), false),
            ("groups=admin", json!({"groups": {"admin": 1}}), false),
            ("groups=admin", json!({"groups": {"admin": ""}}), false),
            ("groups=admin", json!({"groups": {"admin": {}}}), false),
            ("groups=admin", json!({"groups": {"admin": []}}), false),
            ("access.my.club.roles=admin", json!({"access": {"my.club": {"roles": ["admin"]}}}), true),
            ("access.my.club.roles=admin", json!({"access.my": {"club.roles": "admin"}}), true),
            ("access.my.roles=admin", json!({"access": {"my": {"roles": "x"}, "my.roles": "admin"}}), true),
            ("access.my.roles=admin", json!({"access": {"my": {"roles": "admin"}, "my.roles": "x"}}), false),
            ("access.my.roles=admin", json!({"access": {"my": {"roles": "admin"}}, "access.my": {}}), true),
        ] {
            let claims: &Claims = claims.as_object().unwrap();
            assert_eq!(condition.parse::<ClaimValue>().unwrap().holds(claims), expected, "{condition} {claims:?}");
        }
        let condition: ClaimValue = "access.my.club.roles=admin".parse().unwrap();
        for (claims, expected) in [
            (json!({"access": {}}), true),
            (json!({"access.my": {}}), true),
            (json!({"access.my.club.roles": []}), true),
            (json!({"roles": ["admin"]}), false),
        ] {
            assert_eq!(condition.is_named_in(claims.as_object().unwrap()), expected, "{claims}");
        }
        for bad in ["", "groups", "groups=", "=admin"] {
            assert!(bad.parse::<ClaimValue>().is_err(), "{bad}");
        }
    }
}
