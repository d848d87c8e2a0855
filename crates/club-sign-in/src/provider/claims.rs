//! The claims of a provider about a user, as members of a JSON object.

use club_issuer::{Claims, joining};
use common::{input::Text, problem::Problem};
use serde_json::Value;
use service_kit::database::types::DbUuid;
use uuid::Uuid;

use crate::{config::ProviderSettings, failure::unusable_account, identities::Identity};

/// The identity that the claims describe. `is_in_group` says whether the user is in the group at the provider whose
/// people are members here.
///
/// # Errors
/// 400 `bad-login` when they contain no subject.
pub fn identity(
    provider: &str,
    claims: &Claims,
    is_in_group: bool,
    settings: &ProviderSettings,
) -> Result<Identity, Problem> {
    let subject = match claims.get(&settings.id_claim) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) if number.is_i64() || number.is_u64() => number.to_string(),
        _ => return Err(unusable_account(&format!("the provider does not say {:?} of the user", settings.id_claim))),
    };
    // 255 characters is what OpenID Connect allows.
    let subject = Text::<1, 255>::new(subject)
        .map_err(|(_, why)| unusable_account(&format!("the user's {:?} at the provider {why}", settings.id_claim)))?;
    let display_name = ["displayName", "global_name", "name"].into_iter().find_map(|claim| {
        let text = claims.get(claim)?.as_str()?.to_owned();
        Text::<1, 64>::new(text).ok().map(Text::into_inner)
    });
    let address = joining::verified_address(claims, &settings.verified_claim);
    let given_name = claims.get(&settings.name_claim).and_then(Value::as_str).unwrap_or_default();
    let is_given = settings.trusts_names && joining::is_sign_in_name(given_name);
    let name = if is_given {
        given_name.to_owned()
    } else {
        // An address that is not verified may still say what somebody wants to be called.
        let said = claims.get("email").and_then(Value::as_str).filter(|address| address.contains('@'));
        let name = if given_name.is_empty() { display_name.as_deref().unwrap_or_default() } else { given_name };
        joining::made_name(said, name)
    };
    let id = Uuid::try_parse(&subject).ok().filter(|id| !id.is_nil());
    let is_admitted = is_in_group || settings.rules.admit(claims, address.as_deref());
    Ok(Identity {
        id: DbUuid(id.unwrap_or_else(|| joining::id_of(provider, &subject))),
        display_name: display_name.unwrap_or_else(|| name.clone()),
        is_privileged: settings.privileged_claim.as_ref().map(|claim| claim.holds(claims)),
        provider: provider.to_owned(),
        subject: subject.into_inner(),
        name,
        is_given,
        address,
        is_admitted,
        is_invited: false,
    })
}
