//! What some providers say of a user at other addresses: in which groups somebody is, and which addresses are verified.

use club_issuer::Claims;
use common::problem::Problem;
use serde_json::Value;
use url::Url;

use super::http::Http;
use crate::{config::GroupAtProvider, failure::unavailable};

/// Whether the owner of a token is in a group.
///
/// # Errors
/// 503 when the provider does not say it.
pub fn is_in(group: &GroupAtProvider, http: &Http, user: &Url, token: &str) -> Result<bool, Problem> {
    let path = match group {
        GroupAtProvider::DiscordServer(server, _) => format!("guilds/{server}/member"),
        GroupAtProvider::GithubOrganization(name) => format!("memberships/orgs/{name}"),
    };
    let Some(membership) = http.json_if_found(&below(user, &path)?, token)? else { return Ok(false) };
    Ok(match group {
        GroupAtProvider::DiscordServer(_, roles) => match membership.get("roles") {
            Some(Value::Array(of_user)) => {
                roles.is_empty() || of_user.iter().filter_map(Value::as_str).any(|role| roles.iter().any(|r| r == role))
            }
            _ => return Err(unavailable("the provider does not say the roles of the member")),
        },
        // `pending` is an invitation that was not accepted.
        GroupAtProvider::GithubOrganization(_) => membership.get("state").is_some_and(|state| state == "active"),
    })
}

/// Replaces the address, which may be private or unverified, by the verified primary one.
///
/// # Errors
/// 503 when the provider does not answer.
pub fn add_address(
    claims: &mut Claims,
    http: &Http,
    user: &Url,
    token: &str,
    verified_claim: &str,
) -> Result<(), Problem> {
    claims.remove("email");
    claims.remove(verified_claim);
    // Who has refused the scope has no addresses here.
    let Some(addresses) = http.json_if_found(&below(user, "emails")?, token)? else { return Ok(()) };
    let is_primary = |entry: &&Value| entry["primary"] == true && entry["verified"] == true;
    if let Some(entry) = addresses.as_array().and_then(|entries| entries.iter().find(is_primary)) {
        claims.insert("email".to_owned(), entry["email"].clone());
        claims.insert(verified_claim.to_owned(), Value::Bool(true));
    }
    Ok(())
}

fn below(user: &Url, path: &str) -> Result<Url, Problem> {
    Url::parse(&format!("{}/{path}", user.as_str().trim_end_matches('/'))).map_err(Problem::internal)
}
