//! The claims of a provider about a user, as members of a JSON object.

use club_issuer::Claims;
use common::{input::Text, problem::Problem};
use serde_json::Value;
use service_kit::database::types::DbUuid;
use uuid::Uuid;

use crate::{
    codes,
    config::ProviderSettings,
    sign_in::{failure::unusable_account, identities::Identity},
    users::is_sign_in_name,
};

/// The identity that the claims describe.
///
/// # Errors
/// 400 `bad-login` when they contain no subject; 403 `unusable-name` when they contain no usable name.
pub fn identity(provider: &str, claims: &Claims, settings: &ProviderSettings) -> Result<Identity, Problem> {
    let subject = match claims.get(&settings.id_claim) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) if number.is_i64() || number.is_u64() => number.to_string(),
        _ => return Err(unusable_account(&format!("the provider does not say {:?} of the user", settings.id_claim))),
    };
    // 255 characters is what OpenID Connect allows.
    let subject = Text::<1, 255>::new(subject)
        .map_err(|(_, why)| unusable_account(&format!("the user's {:?} at the provider {why}", settings.id_claim)))?;
    let name = claims.get(&settings.name_claim).and_then(Value::as_str).unwrap_or_default().to_owned();
    if !is_sign_in_name(&name) {
        log::warn!("a sign-in was refused: the account {:?} of the provider has no usable name", &*subject);
        return Err(Problem::new(codes::UNUSABLE_NAME));
    }
    let display_name = ["displayName", "name"].into_iter().find_map(|claim| {
        let text = claims.get(claim)?.as_str()?.to_owned();
        Text::<1, 64>::new(text).ok().map(Text::into_inner)
    });
    let id = Uuid::try_parse(&subject).ok().filter(|id| !id.is_nil()).map(DbUuid);
    let display_name = display_name.unwrap_or_else(|| name.clone());
    let is_privileged = settings.privileged_claim.as_ref().map(|claim| claim.holds(claims));
    Ok(Identity { provider: provider.to_owned(), subject: subject.into_inner(), id, name, display_name, is_privileged })
}
