//! The JSON of users.

use common::{
    input::{Flag, Text},
    problem::{Problem, Rule, Violations},
};
use deserr::Deserr;
use maud::{Markup, html};
use serde::Serialize;
use serde_json::Value;
use service_kit::{
    database::types::DbUuid,
    error::Error,
    page::{PageContext, avatar, photo},
};
use utoipa::{
    IntoParams, PartialSchema, ToSchema,
    openapi::{
        ObjectBuilder, RefOr,
        schema::{Schema, Type},
    },
};

use super::queries::{self, Change, Detail, Person, Selection};
use crate::{account_type::AccountType, identity::is_sign_in_name, metadata, picture};

/// A member of the club.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({"id": "f4626cad-abe0-5cf0-9f8a-af69cd254c29", "name": "alice", "realName": ""}))]
pub struct User {
    id: DbUuid,
    /// The sign-in name.
    #[schema(pattern = "^[a-zA-Z0-9_-]{1,32}$")]
    name: String,
    /// Empty unless its owner publishes it.
    real_name: String,
    /// The address of the picture; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "uri-reference")]
    picture: Option<String>,
}

impl From<Person> for User {
    fn from(person: Person) -> Self {
        let (picture, real_name) = (person.picture(), person.real_name().to_owned());
        Self { id: person.id, name: person.name, real_name, picture }
    }
}

/// A member of the club on a page: the names, linked to the member's own page if there is one.
pub fn on_page(person: &Person) -> Markup {
    let face = html! {
        (face(person, ""))
        span { (person.name) @if !person.real_name().is_empty() { " (" (person.real_name()) ")" } }
    };
    html! {
        @if person.is_active() { a.who href={ "/people/" (person.name) } { (face) } } @else { span.who { (face) } }
    }
}

/// A member of the club as schema.org describes a person: the names that visitors see, and the address of the member's
/// own page if there is one.
pub fn as_person(page: &PageContext, person: &Person) -> Value {
    let path = person.is_active().then(|| format!("/people/{}", person.name));
    let mut shown = metadata::object(page, "Person", person.shown_name(), path.as_deref());
    shown["alternateName"] = person.name.as_str().into();
    shown
}

/// The picture of a member of the club, else the first letters of the name. `size` is a further class, or nothing.
pub fn face(person: &Person, size: &str) -> Markup {
    match person.picture() {
        Some(address) => photo(&picture::small(&address), size),
        None => avatar(&person.name, person.shown_name(), size),
    }
}

/// A member of the club with all fields.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "id": "f4626cad-abe0-5cf0-9f8a-af69cd254c29", "name": "alice", "realName": "", "state": 1, "bio": "I draw.",
    "accounts": []
}))]
pub struct UserDetail {
    id: DbUuid,
    /// The sign-in name.
    #[schema(pattern = "^[a-zA-Z0-9_-]{1,32}$")]
    name: String,
    /// Empty unless its owner publishes it.
    real_name: String,
    state: UserAccountState,
    bio: String,
    /// Ordered by type.
    accounts: Vec<Account>,
    /// The address of the picture; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "uri-reference")]
    picture: Option<String>,
    /// Whether the real name is published; only at `GET /users/me`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    check: Option<bool>,
}

impl UserDetail {
    /// The answer to everybody.
    pub fn new(user: Detail) -> Result<Self, Error> {
        let state = UserAccountState(user.person.state());
        let User { id, name, real_name, picture } = user.person.into();
        let accounts = user.accounts.into_iter().map(Account::new).collect::<Result<_, _>>()?;
        Ok(Self { id, name, real_name, state, bio: user.bio, accounts, picture, check: None })
    }

    /// The answer to the user themself.
    pub fn own(user: Detail) -> Result<Self, Error> {
        let check = Some(user.publishes_real_name);
        Ok(Self { check, ..Self::new(user)? })
    }
}

/// Whether a user may sign in: 0 deactivated, 1 active, 2 suspended.
#[derive(Debug, Serialize)]
pub struct UserAccountState(i16);

impl PartialSchema for UserAccountState {
    fn schema() -> RefOr<Schema> {
        let description = "0 deactivated, 1 active, 2 suspended";
        let states = ObjectBuilder::new().schema_type(Type::Integer).enum_values(Some([0, 1, 2]));
        states.description(Some(description)).into()
    }
}

impl ToSchema for UserAccountState {}

/// An account on another site.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "id": "0198c0de-0000-7000-8000-000000000020", "displayName": "Alice", "type": 5, "url": "https://github.com/alice"
}))]
pub struct Account {
    id: DbUuid,
    display_name: String,
    #[serde(rename = "type")]
    type_: AccountType,
    url: String,
}

impl Account {
    /// Converts a row.
    ///
    /// # Errors
    /// 500 for an unknown type.
    pub fn new(account: queries::Account) -> Result<Self, Error> {
        let type_ = AccountType::from_number(account.type_.into())
            .ok_or_else(|| Problem::internal(format!("the account {} has an unknown type", account.id)))?;
        Ok(Self { id: account.id, display_name: account.display_name, type_, url: account.url })
    }
}

impl Account {
    /// The id.
    pub fn id(&self) -> DbUuid {
        self.id
    }

    /// The type.
    pub fn type_(&self) -> AccountType {
        self.type_
    }

    /// The name of its type.
    pub fn type_name(&self) -> &'static str {
        self.type_.name()
    }

    /// The name of its type on a page.
    pub fn type_title(&self, page: &PageContext) -> String {
        self.type_.title(page)
    }

    /// The name of the account.
    pub fn display_name(&self) -> &str {
        &self.display_name
    }

    /// The address.
    pub fn url(&self) -> &str {
        &self.url
    }
}

/// Changes of a user. A field that is left out stays.
#[derive(Debug, Clone, Deserr, ToSchema)]
#[deserr(error = Violations, rename_all = camelCase)]
#[schema(rename_all = "camelCase", example = json!({"bio": "I draw.", "check": true}))]
pub struct EditUserRequest {
    #[deserr(default)]
    #[schema(inline)]
    bio: Option<Text<0, 256>>,
    /// Whether to publish the real name.
    #[deserr(default)]
    check: Option<bool>,
}

impl EditUserRequest {
    /// Converts to the changes of a row.
    pub fn into_change(self) -> Change {
        Change { bio: self.bio.map(Text::into_inner), publishes_real_name: self.check }
    }
}

/// The users to list.
#[derive(Debug, Deserr, IntoParams)]
#[deserr(error = Violations, rename_all = camelCase)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub struct ListQuery {
    /// Whether to include suspended and deactivated users. Not together with `name`.
    #[deserr(default)]
    #[param(value_type = Option<bool>, nullable = false)]
    include_suspended: Option<Flag>,
    /// Only the user with exactly this sign-in name, in any state. Not together with `includeSuspended`.
    #[deserr(default)]
    #[param(nullable = false)]
    name: Option<String>,
}

impl ListQuery {
    /// Converts to a selection.
    ///
    /// # Errors
    /// 400 when both parameters are given.
    pub fn into_selection(self) -> Result<Selection, Error> {
        Ok(match (self.include_suspended, self.name) {
            (Some(_), Some(_)) => {
                let message = "must not be given together with includeSuspended";
                return Err(Problem::parameter("name", Rule::GivenTogether, message).into());
            }
            (None, Some(name)) if is_sign_in_name(&name) => Selection::ByName(name),
            (None, Some(_)) => Selection::Nobody,
            (Some(Flag(true)), None) => Selection::All,
            (Some(Flag(false)) | None, None) => Selection::Active,
        })
    }
}
