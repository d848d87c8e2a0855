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
    /// The claim's name without the path to a nested one, as in [`find`](Self::find).
    fn first_name(&self) -> &str {
        self.claim.split('.').next().unwrap_or_default()
    }

    /// Whether claims contain the claim, with whatever value.
    #[must_use]
    pub fn is_named_in(&self, claims: &Claims) -> bool {
        claims.contains_key(&self.claim) || claims.contains_key(self.first_name())
    }

    /// Whether the claim has the value: as text, number or boolean, in a list, or as a member's name in an object.
    #[must_use]
    pub fn holds(&self, claims: &Claims) -> bool {
        let is_value = |value: &Value| match value {
            Value::String(text) => *text == self.value,
            Value::Number(number) => number.to_string() == self.value,
            Value::Bool(flag) => flag.to_string() == self.value,
            _ => false,
        };
        match self.find(claims) {
            Some(Value::Array(values)) => values.iter().any(is_value),
            Some(Value::Object(members)) => members.contains_key(&self.value),
            Some(value) => is_value(value),
            None => false,
        }
    }

    /// The claim with this name, or the nested one: `realm_access.roles` is `roles` in the object `realm_access`.
    fn find<'a>(&self, claims: &'a Claims) -> Option<&'a Value> {
        claims.get(&self.claim).or_else(|| {
            let mut names = self.claim.split('.');
            let first = claims.get(names.next()?)?;
            names.try_fold(first, |value, name| value.get(name))
        })
    }
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
        ] {
            let claims: &Claims = claims.as_object().unwrap();
            assert_eq!(condition.parse::<ClaimValue>().unwrap().holds(claims), expected, "{condition} {claims:?}");
        }
        for bad in ["", "groups", "groups=", "=admin"] {
            assert!(bad.parse::<ClaimValue>().is_err(), "{bad}");
        }
    }
}
