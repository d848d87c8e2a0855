//! The pages of groups: list, page, form.

use actix_web::web::Path;
use common::{
    input::Id,
    kept::Kept,
    problem::{Problem, Violations},
};
use maud::{Markup, html};
use serde_json::{Value, json};
use service_kit::{
    database::{AnyConnection, PageBounds, types::DbUuid},
    error::{Error, Failure},
    http::{Form, Reply, form::request},
    page::{FormPage, Icon, Input, address, button, icon, see_deleted_from, see_other},
};

use super::{
    events::by_day,
    history::{self, Subject},
    people::People,
    queries::roster,
    visit::{Visit, or_form_again},
};
use crate::{
    auth::{Caller, SignedIn},
    events::{
        queries::{Order, load_rows},
        selection::{Criterion, Selection},
    },
    groups::{
        self, EVERYONE, RequestGroup,
        changes::{self, GroupFields},
        queries::{self, Group, MADE_HERE, check_may_change},
    },
    users,
};

/// The most events on the page of a group.
const MAX_EVENTS: i64 = 20;

/// All groups, those of the caller first.
pub async fn list(visit: Visit, who: SignedIn) -> Result<Reply, Failure> {
    who.read(move |conn, me| {
        let user = users::queries::get(conn, me.id)?;
        let mine = queries::of_user(conn, &user, true, true)?;
        let all = super::queries::groups(conn)?;
        let (mine, others): (Vec<_>, Vec<_>) =
            all.iter().partition(|(group, _)| mine.iter().any(|(.., own)| own == group));
        let body = html! {
            h2 { (visit.text("my-groups")) }
            (links(&mine))
            h2 { (visit.text("other-groups")) }
            (links(&others))
        };
        let actions = html! {
            a.button href="/members" { (visit.text("members-names")) }
            a.button.primary href="/groups/new" { (icon(Icon::Plus)) (visit.text("new-group")) }
        };
        Ok(visit.reply_with_actions(&visit.text("groups"), actions, body))
    })
    .await
}

fn links(groups: &[&(DbUuid, String)]) -> Markup {
    html! {
        @if !groups.is_empty() {
            div.card { ul.rows.named { @for (id, name) in groups { li { a href={ "/groups/" (id) } { (name) } } } } }
        }
    }
}

/// One group.
pub async fn show(visit: Visit, who: SignedIn, id: Path<Id>) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.read(move |conn, me| {
        let shown = page(conn, me, &visit, id);
        history::or_deleted(shown, conn, me, &visit, (Subject::Group, id))
    })
    .await
}

fn page(conn: &mut AnyConnection, me: &Caller, visit: &Visit, id: DbUuid) -> Result<Reply, Error> {
    let group = queries::get(conn, id)?;
    let people = People::load(conn, group.members.iter().chain(&group.admins).copied())?;
    let selection = Selection::new(Criterion::OfGroup(id)).between((Some(visit.now), None));
    let events = load_rows(conn, &selection, Order::Start, &PageBounds { after: None, rows: MAX_EVENTS })?;
    let may_change = check_may_change(conn, id, group.row.kind, me).is_ok();
    let is_member = group.members.binary_search(&me.id).is_ok();
    let events: Vec<_> = events.iter().map(|row| (row, html! { i {} })).collect();
    let body = html! {
        @if !group.row.description.is_empty() { p.text { (group.row.description) } }
        div.split {
            div {
                h2 { (visit.text("events")) }
                @if events.is_empty() { p.empty { (visit.text("no-events")) } } @else { (by_day(&events, visit)) }
                p { a href=(address("/events", &[("group", &id.to_string())])) { (visit.text("all-events")) } }
                (history::section(conn, me, visit, Subject::Group, id)?)
            }
            aside {
                section.card {
                    h2 { (visit.count("members", group.members.len())) }
                    @if id != EVERYONE { p { (people.list(&group.members, visit)) } }
                }
                @if !group.admins.is_empty() {
                    section.card { h2 { (visit.text("admins")) } p { (people.list(&group.admins, visit)) } }
                }
                @if !may_change && group.row.kind != MADE_HERE { p.mute { (visit.text("directory-group")) } }
            }
        }
    };
    let actions = html! {
        @if group.row.open {
            @if is_member { (button(&format!("/groups/{id}/leave"), &[], &visit.text("leave"), None)) }
            @else { (button(&format!("/groups/{id}/join"), &[], &visit.text("join"), None)) }
        }
        @if may_change {
            a.button href={ "/groups/" (id) "/edit" } { (visit.text("edit")) }
            a.button.danger href={ "/groups/" (id) "/delete" } { (visit.text("delete")) }
        }
    };
    Ok(visit.reply_with_actions(&group.row.name, actions, body))
}

/// Joins.
pub async fn join(visit: Visit, who: SignedIn, id: Path<Id>, _form: Form) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.update(groups::recorded(id, visit.zone), move |conn, me| {
        changes::join(conn, id, me.id, visit.now)?;
        Ok(see_other(format!("/groups/{id}")))
    })
    .await
}

/// Leaves.
pub async fn leave(visit: Visit, who: SignedIn, id: Path<Id>, _form: Form) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.update(groups::recorded(id, visit.zone), move |conn, me| {
        changes::leave(conn, id, me.id, visit.now)?;
        Ok(see_other(format!("/groups/{id}")))
    })
    .await
}

/// The form of a new group.
pub async fn new(visit: Visit, who: SignedIn) -> Result<Reply, Failure> {
    who.read(move |conn, me| {
        let own = People::load(conn, [me.id])?.sign_in_names(&[me.id]);
        let values = Form::new([("name", ""), ("description", ""), ("members", &own), ("admins", &own)]);
        form_page(conn, me, &visit, None, &values, None)
    })
    .await
}

/// Creates a group.
pub async fn create(visit: Visit, who: SignedIn, form: Form) -> Result<Reply, Failure> {
    let (values, again) = (form.clone(), (who.clone(), visit.clone()));
    let result = who.create(move |conn, me| {
        let group = fields(conn, &form)?;
        let id = changes::create(conn, &group, me.id, visit.now)?;
        groups::show_created(conn, id, &me.author, visit.zone)?;
        Ok(see_other(format!("/groups/{id}")))
    });
    let (result, (who, visit)) = (result.await, again);
    or_form_again(result, who, move |conn, me, problem| form_page(conn, me, &visit, None, &values, Some(problem))).await
}

/// The form to change a group.
pub async fn edit(visit: Visit, who: SignedIn, id: Path<Id>) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.read(move |conn, me| {
        let group = queries::get(conn, id)?;
        let people = People::load(conn, group.members.iter().chain(&group.admins).copied())?;
        let mut values = Form::new([("name", &group.row.name), ("description", &group.row.description)]);
        values.push("members", people.sign_in_names(&group.members));
        values.push("admins", people.sign_in_names(&group.admins));
        values.push("open", group.row.open.to_string());
        form_page(conn, me, &visit, Some(&group), &values, None)
    })
    .await
}

/// Changes a group.
pub async fn update(visit: Visit, who: SignedIn, id: Path<Id>, form: Form) -> Result<Reply, Failure> {
    let (id, values, again) = (DbUuid::from(*id), form.clone(), (who.clone(), visit.clone()));
    let result = who.update(groups::recorded(id, visit.zone), move |conn, me| {
        let Kept { body, unchecked } =
            request::<Kept<RequestGroup>>(body(conn, &form)?).map_err(|failure| failure.0)?;
        changes::update(conn, id, (&body.into(), &unchecked), me, visit.now)?;
        Ok(see_other(format!("/groups/{id}")))
    });
    let (result, (who, visit)) = (result.await, again);
    or_form_again(result, who, move |conn, me, problem| {
        let group = queries::get(conn, id)?;
        form_page(conn, me, &visit, Some(&group), &values, Some(problem))
    })
    .await
}

fn fields(conn: &mut AnyConnection, form: &Form) -> Result<GroupFields, Error> {
    Ok(request::<RequestGroup>(body(conn, form)?).map_err(|failure| failure.0)?.into())
}

/// The body of the request of a form.
fn body(conn: &mut AnyConnection, form: &Form) -> Result<Value, Error> {
    let mut violations = Violations::default();
    let roster = roster(conn, form, &["members", "admins"])?;
    let members = roster.ids_of(form, "members", &mut violations);
    let admins = roster.ids_of(form, "admins", &mut violations);
    violations.into_result()?;
    Ok(json!({
        "name": form.get("name"),
        "description": form.text("description"),
        "open": form.has("open", "true"),
        "members": members,
        "admins": admins,
    }))
}

/// The form, for whoever may send it.
fn form_page(
    conn: &mut AnyConnection,
    me: &Caller,
    visit: &Visit,
    group: Option<&Group>,
    values: &Form,
    problem: Option<&Problem>,
) -> Result<Reply, Error> {
    if let Some(group) = group {
        check_may_change(conn, group.row.id, group.row.kind, me)?;
    }
    let form = FormPage { page: visit.page(), values, problem, aliases: &[] };
    let action = group.map_or_else(|| "/groups/new".to_owned(), |group| format!("/groups/{}/edit", group.row.id));
    let tag = group.map(|group| groups::target(group.row.id, visit.zone).tag(conn, me)).transpose()?;
    let is_stale = problem.is_some_and(|problem| problem.status() == 412);
    let roster = roster(conn, values, &["members", "admins"])?;
    let text = |key| visit.text(key);
    let body = html! {
        (form.refusal())
        @if let Some(group) = group.filter(|_| is_stale) { (present_version(conn, group, visit)?) }
        (form.form(&action, tag.as_deref(), &html! {
            (form.input(Input { name: "name", label: &text("name"), max_length: Some(32), is_required: true, ..Input::default() }))
            (form.text_area(Input { name: "description", label: &text("description"), max_length: Some(10_000), ..Input::default() }))
            (form.check_box("open", &text("group-open"), None))
            (roster.field(&form, Input { name: "members", label: &text("members-names"), hint: Some(&text("names-hint")), ..Input::default() }, true))
            (roster.field(&form, Input { name: "admins", label: &text("admins"), hint: Some(&text("names-hint")), is_required: true, ..Input::default() }, false))
            (roster.suggestions())
            div.actions {
                button.primary { (text("save")) }
                a href={ @if let Some(group) = group { "/groups/" (group.row.id) } @else { "/groups" } } { (text("cancel")) }
            }
        }))
    };
    Ok(visit.reply(&text(if group.is_some() { "edit-group" } else { "new-group" }), body))
}

fn present_version(conn: &mut AnyConnection, group: &Group, visit: &Visit) -> Result<Markup, Error> {
    let people = People::load(conn, group.members.iter().chain(&group.admins).copied())?;
    Ok(html! {
        div.refusal {
            b { (visit.text("present-version")) }
            p { (group.row.name) }
            @if !group.row.description.is_empty() { p.text { (group.row.description) } }
            @if group.row.open { p { (visit.text("group-open")) } }
            p { (visit.text("members-names")) ": " (people.list(&group.members, visit)) }
            p { (visit.text("admins")) ": " (people.list(&group.admins, visit)) }
            p { a href={ "/groups/" (group.row.id) "/edit" } { (visit.text("discard-mine")) } }
        }
    })
}

/// Asks whether to delete it.
pub async fn ask_to_delete(visit: Visit, who: SignedIn, id: Path<Id>) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.read(move |conn, me| delete_page(conn, me, &visit, id, None)).await
}

/// Asks; after a refusal because of its events, whether to delete those as well.
fn delete_page(
    conn: &mut AnyConnection,
    me: &Caller,
    visit: &Visit,
    id: DbUuid,
    problem: Option<&Problem>,
) -> Result<Reply, Error> {
    let group = queries::get(conn, id)?;
    check_may_change(conn, id, group.row.kind, me)?;
    let tag = groups::target(id, visit.zone).tag(conn, me)?;
    let (what, page) = (html! { b { (group.row.name) } }, format!("/groups/{id}"));
    Ok(visit.ask_to_delete("delete-group", (&what, &html! {}), (&format!("{page}/delete"), &tag), &page, problem))
}

/// Deletes it.
pub async fn delete(visit: Visit, who: SignedIn, id: Path<Id>, form: Form) -> Result<Reply, Failure> {
    let (id, again) = (DbUuid::from(*id), (who.clone(), visit.clone()));
    let result = who.update(groups::target(id, visit.zone), move |conn, me| {
        changes::delete(conn, id, form.has("force", "true"), me, visit.now)?;
        Ok(see_deleted_from("/groups", id))
    });
    let (result, (who, visit)) = (result.await, again);
    or_form_again(result, who, move |conn, me, problem| delete_page(conn, me, &visit, id, Some(problem))).await
}
