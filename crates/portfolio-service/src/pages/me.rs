//! The page of a member's own things: profile, accounts, projects and contests.

use actix_web::web::Path;
use common::{input::Id, problem::Problem};
use maud::{Markup, html};
use serde_json::json;
use service_kit::{
    database::{
        AnyConnection, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    error::{Error, Failure},
    http::{Form, Language, Reply, form::change},
    page::{FormPage, Input, PageContext, address, see_saved},
    state::Now,
};

use super::{
    fields::{home, present_version},
    pictures,
};
use crate::{
    account_type::AccountType,
    auth::{Caller, Member, UserSelf},
    club::Club,
    contests,
    page::{MAX_ROWS, days, limit_note, semesters},
    projects,
    users::{self, Account, EditUserRequest, queries::Detail},
};

pub async fn show(page: PageContext, club: Club, who: Member) -> Result<Reply, Failure> {
    who.read(move |conn, me| render(conn, me, me.id, &page, &club, None)).await
}

/// Changes the profile.
pub async fn update(
    page: PageContext,
    club: Club,
    who: UserSelf,
    Now(now): Now,
    id: Path<Id>,
    form: Form,
) -> Result<Reply, Failure> {
    let (id, values, again, shown) = (DbUuid::from(*id), form.clone(), who.clone(), page);
    let result = who.update(users::recorded(id), move |conn, me| {
        let body = json!({ "bio": form.text("bio"), "check": form.has("check", "true") });
        let present = users::fields(conn, id)?;
        let request: EditUserRequest = change(body, &present).map_err(|failure| failure.0)?;
        users::queries::edit(conn, id, &request.into_change(), DbTimestamp(now))?;
        Ok(see_saved(home(me, id)))
    });
    let result = result.await;
    again
        .or_form_again(result, move |conn, me, problem| render(conn, me, id, &shown, &club, Some((&values, problem))))
        .await
}

/// The page of a user. `refused` is a refused form of their profile.
fn render(
    conn: &mut AnyConnection,
    me: &Caller,
    id: DbUuid,
    page: &PageContext,
    club: &Club,
    refused: Option<(&Form, &Problem)>,
) -> Result<Reply, Error> {
    let user = users::queries::get(conn, id)?;
    let tag = users::recorded(id).tag(conn, me)?;
    let present = Form::new([("bio", user.bio.clone()), ("check", user.publishes_real_name.to_string())]);
    let (values, problem) = refused.map_or((&present, None), |(values, problem)| (values, Some(problem)));
    let form = FormPage { page, values, problem, aliases: &[] };
    let projects = projects::queries::of_user(conn, id, &first())?;
    let contests = contests::queries::of_user(conn, id, &first())?;
    let body = html! {
        p { a href={ "/people/" (user.person.name) } { (page.text("public-page")) } }
        h2 #profile { (page.text("profile")) }
        (profile(&form, &user, &tag))
        h2 { (page.text("picture")) }
        (pictures::section(page, &format!("/people/{id}"), user.person.picture().as_deref()))
        h2 #accounts { (page.text("accounts")) }
        (accounts(page, &user)?)
        h2 #projects { (page.text("projects")) }
        (own_projects(page, id, &projects)?)
        h2 #contests { (page.text("contests")) }
        (own_contests(page, club, &contests)?)
        p { a href="/deleted" { (page.text("deleted")) } }
    };
    Ok(page.reply(&user.person.name, body))
}

fn first<P>() -> PageBounds<P> {
    PageBounds { after: None, rows: MAX_ROWS }
}

fn profile(form: &FormPage<'_>, user: &Detail, tag: &str) -> Markup {
    let text = |key| form.page.text(key);
    let (bio, check) = (text("bio"), text("publish-real-name"));
    let present = html! {
        p.text { (user.bio) }
        p { (text(if user.publishes_real_name { "real-name-is-public" } else { "real-name-is-private" })) }
    };
    html! {
        (form.refusal())
        (present_version(form, "/me", &present))
        (form.form(&format!("/people/{}/profile", user.person.id), Some(tag), &html! {
            (form.text_area(Input { name: "bio", label: &bio, max_length: Some(256), ..Input::default() }))
            (form.check_box("check", &check, Some(&text("publish-real-name-hint"))))
            div.actions { button.primary { (text("save")) } }
        }))
    }
}

fn accounts(page: &PageContext, user: &Detail) -> Result<Markup, Error> {
    let id = user.person.id;
    let accounts = user.accounts.iter().cloned().map(Account::new).collect::<Result<Vec<_>, _>>()?;
    let has = |type_: AccountType| user.accounts.iter().any(|account| account.type_ == type_.number());
    let others: Vec<_> = AccountType::all().filter(|type_| !has(*type_)).collect();
    let new =
        |type_: AccountType| address(&format!("/people/{id}/accounts/new"), &[("type", &type_.number().to_string())]);
    Ok(html! {
        @if !accounts.is_empty() {
            div.card { ul.rows.named { @for account in &accounts {
                @let title = account.type_title(page);
                li {
                    div { b { (title) } small { a href=(account.url()) { (account.display_name()) } } }
                    a.button href={ "/people/" (id) "/accounts/" (account.id()) } aria-label={ (page.text("edit")) " " (title) } {
                        (page.text("edit"))
                    }
                }
            } } }
        }
        @if !others.is_empty() {
            p #new-accounts { (page.text("new-account")) }
            div.actions role="group" aria-labelledby="new-accounts" {
                @for type_ in others { a.button href=(new(type_)) { (type_.title(page)) } }
            }
        }
    })
}

fn own_projects(page: &PageContext, user: DbUuid, projects: &[projects::queries::OfUser]) -> Result<Markup, Error> {
    let text = |key| page.text(key);
    Ok(html! {
        @if projects.is_empty() { p { (text("none-yet")) } }
        @if !projects.is_empty() {
            div.card { ul.rows.named { @for (row, own) in projects {
                @let path = format!("/projects/{}", row.id);
                li {
                    div {
                        a href=(path) { (row.name) } " " (semesters(page, row.span()?))
                        small { (page.format("my-time", &[("span", semesters(page, *own).into())])) }
                    }
                    div.actions {
                        a.button href={ (path) "/members/" (user) } aria-label={ (text("edit-my-time")) ": " (row.name) } {
                            (text("edit-my-time"))
                        }
                        a.button href={ (path) "/edit" } aria-label={ (text("edit")) ": " (row.name) } { (text("edit")) }
                    }
                }
            } } }
        }
        (limit_note(page, projects.len()))
        p { a.button href="/projects/new" { (text("new-project")) } }
    })
}

fn own_contests(page: &PageContext, club: &Club, contests: &[contests::queries::OfUser]) -> Result<Markup, Error> {
    let text = |key| page.text(key);
    Ok(html! {
        @if contests.is_empty() { p { (text("none-yet")) } }
        @if !contests.is_empty() {
            div.card { ul.rows.named { @for (row, teams) in contests {
                @let path = format!("/contests/{}", row.id);
                li {
                    div { a href=(path) { (row.name) } small { (days(page, row.duration()?, club.zone, Language::date)) } }
                    div.actions { @for team in teams {
                        (text("team")) ": " (team.name)
                        a.button href={ (path) "/teams/" (team.id) } aria-label={ (text("edit")) ": " (team.name) } {
                            (text("edit"))
                        }
                    } }
                }
            } } }
        }
        (limit_note(page, contests.len()))
        p { a.button href="/contests/new" { (text("new-contest")) } }
    })
}
