//! The forms of accounts. The type is chosen before the form, so that it can say what an address of the type looks like.

use actix_web::web::Path;
use common::{
    input::Id,
    problem::{Problem, Violations},
};
use deserr::Deserr;
use maud::{Markup, html};
use serde_json::{Value, json};
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::{Error, Failure},
    guard::Target,
    http::{
        Form, Query, Reply,
        form::{change, request},
    },
    page::{FormPage, Input, PageContext, button, hidden, see_other},
    state::Now,
};

use super::fields::{actions, home, present_version};
use crate::{
    account_type::AccountType,
    accounts::{self, AddAccountRequest, EditUserAccountRequest},
    auth::{Caller, UserSelf},
    users::{self, Account},
};

/// The parameters of the form of a new account.
#[derive(Debug, Deserr)]
#[deserr(error = Violations, rename_all = camelCase)]
pub struct NewQuery {
    /// The number of the type.
    #[deserr(rename = "type", default)]
    type_: Option<String>,
}

/// The form of a new account.
pub async fn new(page: PageContext, who: UserSelf, user: Path<Id>, query: Query<NewQuery>) -> Result<Reply, Failure> {
    let values = Form::new([("type", query.0.type_.unwrap_or_default().as_str()), ("url", ""), ("displayName", "")]);
    who.read(move |conn, _| new_page(conn, &page, (*user).into(), &values, None)).await
}

/// Adds an account.
pub async fn create(
    page: PageContext,
    who: UserSelf,
    Now(now): Now,
    user: Path<Id>,
    form: Form,
) -> Result<Reply, Failure> {
    let (user, values, again) = (DbUuid::from(*user), form.clone(), who.clone());
    let result = who.update(Target::parent(format!("user {user}")), move |conn, me| {
        let request: AddAccountRequest = request(body(&form)).map_err(|failure| failure.0)?;
        let account = accounts::queries::add(conn, user, &request.into_new(), DbTimestamp(now))?;
        accounts::show_created(conn, user, account, me)?;
        Ok(see_other(home(me, user)))
    });
    let result = result.await;
    again.or_form_again(result, move |conn, _, problem| new_page(conn, &page, user, &values, Some(problem))).await
}

/// The form to change an account.
pub async fn edit(page: PageContext, who: UserSelf, path: Path<(Id, Id)>) -> Result<Reply, Failure> {
    let (user, id) = (path.0.into(), path.1.into());
    who.read(move |conn, me| edit_page(conn, me, &page, (user, id), None)).await
}

/// Changes an account.
pub async fn update(
    page: PageContext,
    who: UserSelf,
    Now(now): Now,
    path: Path<(Id, Id)>,
    form: Form,
) -> Result<Reply, Failure> {
    let (user, id) = (DbUuid::from(path.0), DbUuid::from(path.1));
    let (values, again) = (form.clone(), who.clone());
    let result = who.update(accounts::recorded(user, id), move |conn, me| {
        let present = accounts::fields(conn, user, id)?;
        let request: EditUserAccountRequest = change(body(&form), &present).map_err(|failure| failure.0)?;
        accounts::queries::edit(conn, user, id, &request.into_change(), DbTimestamp(now))?;
        Ok(see_other(home(me, user)))
    });
    let result = result.await;
    again
        .or_form_again(result, move |conn, me, problem| {
            edit_page(conn, me, &page, (user, id), Some((&values, problem)))
        })
        .await
}

/// Deletes an account.
pub async fn delete(who: UserSelf, path: Path<(Id, Id)>, _form: Form) -> Result<Reply, Failure> {
    let (user, id) = (DbUuid::from(path.0), DbUuid::from(path.1));
    who.update(accounts::target(user, id), move |conn, me| {
        accounts::remove(conn, user, id, me)?;
        Ok(see_other(home(me, user)))
    })
    .await
}

fn body(form: &Form) -> Value {
    let type_ = form.get("type").parse::<i64>().map_or_else(|_| json!(form.get("type")), Value::from);
    json!({ "type": type_, "url": form.get("url").trim(), "displayName": form.get("displayName") })
}

fn fields(form: &FormPage<'_>, type_: Option<AccountType>) -> Markup {
    let text = |key| form.page.text(key);
    let hint = type_.map(|type_| form.page.format("address-like", &[("form", type_.form().into())]));
    html! {
        (form.input(Input { name: "url", label: &text("address"), kind: Some("url"), is_required: true,
            hint: hint.as_deref(), ..Input::default() }))
        (form.input(Input { name: "displayName", label: &text("display-name"), max_length: Some(256), is_required: true,
            hint: Some(&text("display-name-hint")), ..Input::default() }))
    }
}

fn type_of(form: &Form) -> Option<AccountType> {
    AccountType::from_number(form.get("type").parse().ok()?)
}

/// The form of a new account of the type in its values.
fn new_page(
    conn: &mut AnyConnection,
    page: &PageContext,
    user: DbUuid,
    values: &Form,
    problem: Option<&Problem>,
) -> Result<Reply, Error> {
    users::queries::check_exists(conn, user)?;
    let form = FormPage { page, values, problem, aliases: &[] };
    let action = format!("/people/{user}/accounts/new");
    let type_ = type_of(values);
    let body = html! {
        (form.refusal())
        (form.form(&action, None, &html! {
            @match type_ {
                Some(_) => (hidden("type", values.get("type"))),
                None => (form.select("type", &page.text("kind"), None, &types(page))),
            }
            (fields(&form, type_))
            (actions(page, "/me"))
        }))
    };
    let title = type_.map_or_else(|| page.text("new-account"), |type_| type_.title(page));
    Ok(page.reply(&title, body))
}

/// All types, to choose from.
fn types(page: &PageContext) -> Vec<(String, String)> {
    AccountType::all().map(|type_| (type_.number().to_string(), type_.title(page))).collect()
}

/// The form to change an account. `refused` is what was typed, and why it was refused.
fn edit_page(
    conn: &mut AnyConnection,
    me: &Caller,
    page: &PageContext,
    (user, id): (DbUuid, DbUuid),
    refused: Option<(&Form, &Problem)>,
) -> Result<Reply, Error> {
    let account = Account::new(accounts::queries::get(conn, user, id)?)?;
    let tag = accounts::target(user, id).tag(conn, me)?;
    let number = account.type_().number().to_string();
    let present = Form::new([("type", &*number), ("url", account.url()), ("displayName", account.display_name())]);
    let (values, problem) = refused.map_or((&present, None), |(values, problem)| (values, Some(problem)));
    let form = FormPage { page, values, problem, aliases: &[] };
    let path = format!("/people/{user}/accounts/{id}");
    let theirs = html! { p { (account.type_title(page)) ": " (account.url()) " (" (account.display_name()) ")" } };
    let body = html! {
        (form.refusal())
        (present_version(&form, &path, &theirs))
        (form.form(&path, Some(&tag), &html! {
            (form.select("type", &page.text("kind"), None, &types(page)))
            (fields(&form, type_of(values)))
            (actions(page, "/me"))
        }))
        p { (button(&format!("{path}/delete"), &[], &page.text("delete-account"), None)) }
    };
    Ok(page.reply(&account.type_title(page), body))
}
