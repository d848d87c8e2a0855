//! The JSON of accounts in requests. Answers have [`users::Account`](crate::users::Account).

use common::{
    input::Text,
    problem::{Rule, Violations},
};
use deserr::{Deserr, ValuePointerRef};
use utoipa::ToSchema;

use super::queries::{Change, NewAccount};
use crate::account_type::AccountType;

/// A new account.
#[derive(Debug, Clone, Deserr, ToSchema)]
#[deserr(error = Violations, rename_all = camelCase, validate = check_address -> Violations)]
#[schema(rename_all = "camelCase", example = json!({
    "type": 11, "url": "https://ctftime.org/user/1001", "displayName": "Alice"
}))]
pub struct AddAccountRequest {
    #[deserr(rename = "type")]
    #[schema(rename = "type")]
    type_: AccountType,
    /// An address that the type accepts.
    #[schema(format = "uri")]
    url: String,
    #[schema(inline)]
    display_name: Text<1, 256>,
}

fn check_address(account: AddAccountRequest, at: ValuePointerRef<'_>) -> Result<AddAccountRequest, Violations> {
    match account.type_.check(&account.url) {
        Ok(()) => Ok(account),
        Err(message) => Err(Violations::one(at.push_key("url"), Rule::WrongAddress, message)),
    }
}

impl AddAccountRequest {
    /// Converts to a new row.
    pub fn into_new(self) -> NewAccount {
        NewAccount { type_: self.type_, url: self.url, display_name: self.display_name.into_inner() }
    }
}

/// Changes of an account. A field that is left out stays. The resulting type must accept the resulting address.
#[derive(Debug, Clone, Deserr, ToSchema)]
#[deserr(error = Violations, rename_all = camelCase)]
#[schema(rename_all = "camelCase", example = json!({"displayName": "Alice"}))]
pub struct EditUserAccountRequest {
    #[deserr(rename = "type", default)]
    #[schema(rename = "type")]
    type_: Option<AccountType>,
    #[deserr(default)]
    #[schema(format = "uri")]
    url: Option<String>,
    #[deserr(default)]
    #[schema(inline)]
    display_name: Option<Text<1, 256>>,
}

impl EditUserAccountRequest {
    /// Converts to the changes of a row.
    pub fn into_change(self) -> Change {
        Change { type_: self.type_, url: self.url, display_name: self.display_name.map(Text::into_inner) }
    }
}
