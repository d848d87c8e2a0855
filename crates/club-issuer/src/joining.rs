//! Who a person at a sign-in provider is here, and whether rules make them a member (contract, "Sign-in").

use ring::digest::{SHA256, digest};
use serde_json::Value;
use unicode_normalization::UnicodeNormalization;
use url::Host;
use uuid::{Uuid, uuid};

use crate::{claim::ClaimValue, verify::Claims};

/// The id of a person without another one is `Uuid::new_v5(&NAMESPACE, "{issuer}\n{subject}")`, in each service.
const NAMESPACE: Uuid = uuid!("5f1c3a1e-64d8-4f0c-9a57-2c0b8f6d5e11");

/// The most characters of a sign-in name.
const MAX_NAME: usize = 32;

/// The name of a person of whom the provider says nothing that could be one.
const NAMELESS: &str = "member";

/// The most octets of an e-mail address (RFC 5321, section 4.5.3.1.3, without the angle brackets).
const MAX_ADDRESS: usize = 254;

/// Whether this is a sign-in name (contract, "Sign-in names"). Other characters could imitate another user's name.
pub fn is_sign_in_name(name: &str) -> bool {
    let is_allowed = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'.' | b'@' | b'+' | b'-');
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_allowed)
}

/// A sign-in name for a person whose provider says none: from the part of the address before `@`, else from the name.
pub fn made_name(address: Option<&str>, name: &str) -> String {
    let before_at = |text: &str| text.rsplit_once('@').map_or(text, |(local, _)| local).to_owned();
    let candidates = [address.map(before_at), Some(before_at(name))];
    let mut names = candidates.into_iter().flatten().map(|text| {
        let characters = text.nfkc().flat_map(char::to_lowercase);
        let name: String = characters.map(|c| if matches!(c, 'a'..='z' | '0'..='9' | '_') { c } else { '-' }).collect();
        name.trim_matches('-').chars().take(MAX_NAME).collect::<String>().trim_end_matches('-').to_owned()
    });
    names.find(|name| !name.is_empty()).unwrap_or_else(|| NAMELESS.to_owned())
}

/// The name of a person whose name somebody else has already: with six digits of a hash of the identity.
pub fn other_name(name: &str, issuer: &str, subject: &str) -> String {
    let hash = digest(&SHA256, format!("{issuer}\n{subject}").as_bytes());
    let [a, b, c, ..] = hash.as_ref() else { return name.to_owned() };
    // A hyphen and six digits.
    let name: String = name.chars().take(MAX_NAME - 7).collect();
    format!("{name}-{a:02x}{b:02x}{c:02x}")
}

/// The id of a person, the same in each service.
pub fn id_of(issuer: &str, subject: &str) -> Uuid {
    Uuid::new_v5(&NAMESPACE, format!("{issuer}\n{subject}").as_bytes())
}

/// An e-mail address in a form that can be compared: in lower case, an international domain in its ASCII form. `None` for
/// what is none.
pub fn comparable_address(address: &str) -> Option<String> {
    let (local, domain) = address.rsplit_once('@')?;
    let is_local = |c: char| !c.is_control() && !c.is_whitespace() && c != '@';
    if address.len() > MAX_ADDRESS || local.is_empty() || !local.chars().all(is_local) {
        return None;
    }
    Some(format!("{}@{}", local.to_lowercase(), comparable_domain(domain)?))
}

/// A domain in a form that can be compared.
pub fn comparable_domain(domain: &str) -> Option<String> {
    match Host::parse(domain) {
        Ok(Host::Domain(domain)) if domain.contains('.') && !domain.ends_with('.') => Some(domain),
        _ => None,
    }
}

/// The address of a person in a comparable form, if the provider says that it is verified.
pub fn verified_address(claims: &Claims, verified_claim: &str) -> Option<String> {
    let is_verified = match claims.get(verified_claim)? {
        Value::Bool(flag) => *flag,
        Value::String(text) => text == "true",
        _ => false,
    };
    comparable_address(claims.get("email")?.as_str()?).filter(|_| is_verified)
}

/// Rules by which whoever fulfils one of them is a member.
#[derive(Debug, Clone, Default)]
pub struct JoinRules {
    /// What the provider says of a member.
    pub claims: Vec<ClaimValue>,
    /// The domains of the verified addresses of members, in the comparable form.
    pub domains: Vec<String>,
}

impl JoinRules {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.claims.is_empty() && self.domains.is_empty()
    }

    /// Whether a person with these claims and this verified address fulfils one.
    pub fn admit(&self, claims: &Claims, address: Option<&str>) -> bool {
        let domain = address.and_then(|address| address.rsplit_once('@')).map(|(_, domain)| domain);
        self.claims.iter().any(|claim| claim.holds(claims))
            || domain.is_some_and(|domain| self.domains.iter().any(|allowed| allowed == domain))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn any_name_becomes_a_sign_in_name() {
        for (address, name, expected) in [
            (Some("Alice.Liddell@club.example"), "whatever", "alice-liddell"),
            (None, "alice@club.example", "alice"),
            (None, "ＡＬＩＣＥ　Ｌ", "alice-l"),
            (None, "Zoé", "zo"),
            (None, "山田太郎", "member"),
            (Some("山田@club.example"), "Yamada", "yamada"),
            (None, "", "member"),
            (None, "--__--", "__"),
            (Some("@club.example"), "", "member"),
            (None, "a\u{0}b\u{202e}c", "a-b-c"),
        ] {
            assert_eq!(made_name(address, name), expected, "{address:?} {name:?}");
        }
        for name in ["x".repeat(100), "İ".repeat(40), format!("{}-{}", "a".repeat(31), "b".repeat(9)), "ﷺ".repeat(30)]
        {
            let made = made_name(None, &name);
            assert!(is_sign_in_name(&made), "{made}");
            let other = other_name(&made, "https://sso.example", "subject");
            assert!(is_sign_in_name(&other) && other != made && other.len() <= MAX_NAME, "{other}");
        }
        let of = |issuer, subject| other_name("alice", issuer, subject);
        assert_ne!(of("https://a.example", "1"), of("https://b.example", "1"));
        assert_ne!(of("https://a.example", "1"), of("https://a.example", "2"));
    }

    #[test]
    fn an_address_counts_in_its_own_domain_only_and_verified() {
        let rules = JoinRules { claims: Vec::new(), domains: vec![comparable_domain("Club.example").unwrap()] };
        let claims = |address: &str, verified: Value| match json!({"email": address, "email_verified": verified}) {
            Value::Object(claims) => claims,
            _ => unreachable!("an object"),
        };
        for (address, verified, expected) in [
            ("a@club.example", json!(true), true),
            ("A@CLUB.EXAMPLE", json!("true"), true),
            ("a@ｃｌｕｂ.example", json!(true), true),
            ("a@club.example", json!(false), false),
            ("a@club.example", json!("false"), false),
            ("a@club.example", json!(1), false),
            ("a@club.example", json!(null), false),
            ("a@club.example.evil", json!(true), false),
            ("a@evilclub.example", json!(true), false),
            ("a@sub.club.example", json!(true), false),
            ("a@club.example@evil.example", json!(true), false),
            ("a@evil.example@club.example", json!(true), false),
            ("\"a@evil.example\"@club.example", json!(true), false),
            ("a@clüb.example", json!(true), false),
            ("a@club.example.", json!(true), false),
            ("a b@club.example", json!(true), false),
            ("a@club.example\u{0}", json!(true), false),
            ("@club.example", json!(true), false),
            ("club.example", json!(true), false),
        ] {
            let claims = claims(address, verified.clone());
            let address_found = verified_address(&claims, "email_verified");
            assert_eq!(rules.admit(&claims, address_found.as_deref()), expected, "{address} {verified}");
        }
        assert!(verified_address(&claims("a@club.example", json!(true)), "other").is_none());
        assert_eq!(comparable_domain("bücher.example"), comparable_domain("xn--bcher-kva.example"));
    }

    #[test]
    fn the_ids_of_two_identities_differ_and_never_change() {
        assert_eq!(id_of("https://sso.example", "1"), id_of("https://sso.example", "1"));
        assert_ne!(id_of("https://sso.example", "1"), id_of("https://sso.example", "2"));
        assert_ne!(id_of("https://sso.example", "1"), id_of("https://sso.example/", "1"));
        assert_eq!(id_of("https://sso.example", "1").to_string(), "ed49c636-59dd-5960-a5f3-52a9983388f7");
    }
}
