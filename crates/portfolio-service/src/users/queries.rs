//! Users in the database.

use std::collections::{BTreeSet, HashMap};

use common::problem::Problem;
use diesel::{OptionalExtension, prelude::*};
use service_kit::{
    after,
    database::{
        AnyConnection, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    http::Form,
    page::{self, Roster, fold, name_words},
    with_connection,
};

use crate::{
    auth::ACTIVE,
    identity::is_sign_in_name,
    picture,
    schema::{accounts, users},
};

/// The fields of a user that lists show.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = users)]
pub struct Person {
    /// The id.
    pub id: DbUuid,
    /// The sign-in name.
    pub name: String,
    real_name: String,
    publishes_real_name: bool,
    state: i16,
    picture: Option<String>,
}

/// The columns that lists of users are ordered by.
pub type Position = (String, DbUuid);

impl Person {
    /// The values of the columns that lists are ordered by.
    pub fn position(&self) -> Position {
        (self.name.clone(), self.id)
    }

    /// 0 deactivated, 1 active, 2 suspended.
    pub fn state(&self) -> i16 {
        self.state
    }

    /// Whether the account is active. Other users have no public pages.
    pub fn is_active(&self) -> bool {
        self.state == ACTIVE
    }

    /// The address of the picture, if there is one. Like the page, only active users have it.
    pub fn picture(&self) -> Option<String> {
        let hash = self.picture.as_deref().filter(|_| self.is_active());
        hash.map(|hash| picture::address("users", self.id, hash))
    }

    /// The real name if its owner publishes it, otherwise empty.
    pub fn real_name(&self) -> &str {
        if self.publishes_real_name { &self.real_name } else { "" }
    }

    /// The name that visitors see: the real name if its owner publishes it, else the sign-in name.
    pub fn shown_name(&self) -> &str {
        Some(self.real_name()).filter(|name| !name.is_empty()).unwrap_or(&self.name)
    }
}

/// The users to list.
#[derive(Debug, Clone)]
pub enum Selection {
    /// The active users.
    Active,
    /// All users.
    All,
    /// The user with this sign-in name, in any state.
    ByName(String),
    /// No user: the requested name is not a sign-in name. PostgreSQL would reject one with U+0000.
    Nobody,
}

/// The selected users, ordered by name.
pub fn list(
    conn: &mut AnyConnection,
    selection: &Selection,
    bounds: &PageBounds<Position>,
) -> Result<Vec<Person>, Error> {
    Ok(with_connection!(conn, c => {
        let query = users::table.order((users::name, users::id)).limit(bounds.rows).into_boxed();
        let mut query = match selection {
            Selection::Active => query.filter(users::state.eq(ACTIVE)),
            Selection::All => query,
            Selection::ByName(name) => query.filter(users::name.eq(name)),
            Selection::Nobody => return Ok(Vec::new()),
        };
        if let Some((name, id)) = &bounds.after {
            query = after!(query, users::name; > name, users::id; > *id);
        }
        query.select(Person::as_select()).load(c)
    })?)
}

/// The number of users that a search reads at once.
const SEARCHED_AT_ONCE: i64 = 1000;

/// The active users whose sign-in name or published real name contains a text, ordered by name, at most so many. Case
/// and width of letters do not matter.
pub fn search(conn: &mut AnyConnection, text: &str, at_most: i64) -> Result<Vec<Person>, Error> {
    let at_most = usize::try_from(at_most).unwrap_or(0);
    let wanted = fold(text);
    let mut found = Vec::new();
    let mut bounds = PageBounds { after: None, rows: SEARCHED_AT_ONCE };
    loop {
        let people = list(conn, &Selection::Active, &bounds)?;
        let is_last = i64::try_from(people.len()) != Ok(SEARCHED_AT_ONCE);
        bounds.after = people.last().map(Person::position);
        let names = |person: &Person| [fold(&person.name), fold(person.real_name())];
        found.extend(people.into_iter().filter(|person| names(person).iter().any(|name| name.contains(&wanted))));
        if is_last || found.len() >= at_most {
            found.truncate(at_most);
            return Ok(found);
        }
    }
}

/// All fields of a user.
#[derive(Debug, Clone)]
pub struct Detail {
    pub person: Person,
    pub bio: String,
    pub publishes_real_name: bool,
    /// Ordered by type.
    pub accounts: Vec<Account>,
}

/// An account on another site.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = accounts)]
pub struct Account {
    pub id: DbUuid,
    pub display_name: String,
    pub type_: i16,
    pub url: String,
}

/// One user.
pub fn get(conn: &mut AnyConnection, id: DbUuid) -> Result<Detail, Error> {
    let user = users::table.find(id).left_join(accounts::table).order((accounts::type_, accounts::id));
    let rows: Vec<(Person, String, Option<Account>)> = with_connection!(conn, c => user
        .select((Person::as_select(), users::bio, Option::<Account>::as_select()))
        .load(c)?);
    let (mut user, mut accounts) = (None, Vec::new());
    for (person, bio, account) in rows {
        user = Some((person, bio));
        accounts.extend(account);
    }
    let (person, bio) = user.ok_or_else(not_found)?;
    Ok(Detail { bio, publishes_real_name: person.publishes_real_name, accounts, person })
}

/// The id of the user of this sign-in name.
pub fn id_by_name(conn: &mut AnyConnection, name: &str) -> Result<DbUuid, Error> {
    if !is_sign_in_name(name) {
        return Err(not_found());
    }
    users::table.filter(users::name.eq(name)).select(users::id).first(conn).optional()?.ok_or_else(not_found)
}

/// The active users, and those whom a field of a form names by their sign-in names.
pub fn roster(conn: &mut AnyConnection, form: &Form, field: &str) -> Result<Roster, Error> {
    let mut people = list(conn, &Selection::Active, &PageBounds::all())?;
    let words = form.all(field).flat_map(name_words).flat_map(|word| [word.to_owned(), word.to_ascii_lowercase()]);
    let words: BTreeSet<_> = words.filter(|word| is_sign_in_name(word)).collect();
    for words in Vec::from_iter(words).chunks(1000) {
        let others = users::table.filter(users::state.ne(ACTIVE)).filter(users::name.eq_any(words));
        people.extend(others.select(Person::as_select()).load::<Person>(conn)?);
    }
    let named = |person: Person| page::Person {
        id: person.id,
        shown: person.shown_name().to_owned(),
        is_active: person.is_active(),
        name: person.name,
    };
    Ok(Roster::new(people.into_iter().map(named).collect()))
}

/// The sign-in names of users.
pub fn names(conn: &mut AnyConnection, ids: &[DbUuid]) -> Result<HashMap<DbUuid, String>, Error> {
    let named = users::table.filter(users::id.eq_any(ids)).select((users::id, users::name));
    Ok(named.load(conn)?.into_iter().collect())
}

/// The accounts of a user, ordered by type. The list is empty when there is no such user.
pub fn accounts_of(conn: &mut AnyConnection, user: DbUuid) -> Result<Vec<Account>, Error> {
    // An import may have added several accounts of one type.
    let accounts = accounts::table.filter(accounts::user_id.eq(user)).order((accounts::type_, accounts::id));
    Ok(with_connection!(conn, c => accounts.select(Account::as_select()).load(c))?)
}

/// Checks that there is a user with this id.
pub fn check_exists(conn: &mut AnyConnection, id: DbUuid) -> Result<(), Error> {
    let user = users::table.find(id).select(users::id).first::<DbUuid>(conn).optional()?;
    user.map(|_| ()).ok_or_else(not_found)
}

/// 404: there is no user, or no public one.
pub fn not_found() -> Error {
    Problem::not_found("user").into()
}

/// Changes of a user. A field that is `None` stays.
#[derive(Debug, Clone, Default, AsChangeset)]
#[diesel(table_name = users)]
pub struct Change {
    pub bio: Option<String>,
    pub publishes_real_name: Option<bool>,
}

/// Changes a user.
pub fn edit(conn: &mut AnyConnection, id: DbUuid, change: &Change, now: DbTimestamp) -> Result<(), Error> {
    let present: Option<(String, bool)> =
        users::table.find(id).select((users::bio, users::publishes_real_name)).first(conn).optional()?;
    let is_same = |(bio, publishes): (String, bool)| {
        change.bio.as_ref().is_none_or(|new| *new == bio)
            && change.publishes_real_name.is_none_or(|new| new == publishes)
    };
    if !present.is_none_or(is_same) {
        diesel::update(users::table.find(id)).set((change, users::updated_at.eq(now))).execute(conn)?;
    }
    Ok(())
}
