//! The pages of privileged users: rooms, their import, and privileges.

use actix_web::web::Path;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use chrono::{Days, NaiveDate};
use common::{
    input::Id,
    problem::{Location, Problem, Rule, Violations, code},
};
use maud::{Markup, html};
use service_kit::{
    database::{AnyConnection, PageBounds, types::DbUuid},
    error::{Error, Failure},
    history::Action,
    http::{
        Form, Reply,
        form::{TABLE, Upload},
    },
    page::{FormPage, Input, address, button, hidden, see_deleted_from, see_other},
};

use super::{
    people::People,
    queries,
    visit::{Visit, day_of, or_form_again},
};
use crate::{
    auth::{Caller, Privileged, SignedIn},
    rooms::{
        self, changes,
        queries::{Room, Row, Selection, load_page_rows},
    },
    users,
};

/// The most rooms in a list.
const MAX_ROWS: usize = 80;

/// The rooms of a month from a day on, or fewer days if there are many. The link to later ones leads to the first that is
/// left out.
pub async fn list(req: actix_web::HttpRequest, visit: Visit, who: SignedIn) -> Result<Reply, Failure> {
    let typed = Form::new(service_kit::http::query::pairs(&req));
    who.read(move |conn, me| {
        let from = day_of(typed.get("from"), visit.today());
        let to = from.checked_add_days(Days::new(31)).unwrap_or(from);
        let selection =
            Selection { from: Some(visit.midnight(from)), to: Some(visit.midnight(to)), ..Selection::default() };
        let bounds = PageBounds { after: None, rows: i64::try_from(MAX_ROWS + 1).unwrap_or(i64::MAX) };
        let rooms = load_page_rows(conn, &selection, &bounds)?;
        let left_out = rooms.get(MAX_ROWS).map(|(row, _)| visit.local(row.starts_at).date());
        let later = left_out.map_or(to, |day| day.max(from.checked_add_days(Days::new(1)).unwrap_or(from)));
        let of = |day: NaiveDate| address("/rooms", &[("from", &day.to_string())]);
        let previous = from.checked_sub_days(Days::new(31)).unwrap_or(from);
        let body = html! {
            div.head {
                h2 { (visit.language.date(from)) }
                nav.seg.small aria-label=(visit.text("rooms")) {
                    a href=(of(previous)) rel="prev" { "← " (visit.text("earlier")) }
                    a href="/rooms" { (visit.text("today")) }
                    a href=(of(later)) rel="next" { (visit.text("later")) " →" }
                }
            }
            @if rooms.is_empty() { p.empty { (visit.text("no-rooms")) } } @else {
                div.card { ul.rows.named {
                    @for (row, admins) in rooms.iter().take(MAX_ROWS) { (room_row(row, admins, me, &visit)) }
                } }
            }
            @if rooms.len() > MAX_ROWS { p.mute { (visit.count("at-most", MAX_ROWS)) } }
        };
        let actions = html! {
            @if me.privileged {
                a.button href="/privileges" { (visit.text("privileges")) }
                a.button href="/invitations" { (visit.text("invitations")) }
                a.button href="/webhooks" { (visit.text("webhooks")) }
                a.button.primary href="/rooms/import" { (visit.text("import-rooms")) }
            }
        };
        Ok(visit.reply_with_actions(&visit.text("rooms"), actions, body))
    })
    .await
}

fn room_row(row: &Row, admins: &[DbUuid], me: &Caller, visit: &Visit) -> Markup {
    html! {
        li {
            div {
                a href={ "/rooms/" (row.id) } { (row.place) }
                @if !row.verified { " " span.badge.warn { (visit.text("not-confirmed")) } }
                small { (visit.span(row.starts_at, row.ends_at)) }
            }
            div.actions { (actions(row, admins, me, visit)) }
        }
    }
}

/// What the caller may do with a room.
pub fn actions(row: &Row, admins: &[DbUuid], me: &Caller, visit: &Visit) -> Markup {
    let here = format!("/rooms/{}", row.id);
    html! {
        @if me.privileged {
            @let (verified, key) = if row.verified { ("false", "withdraw") } else { ("true", "verify") };
            (button(&format!("{here}/verified"), &[("verified", verified)], &visit.text(key), None))
        }
        @if me.privileged || admins.contains(&me.id) {
            a.button.danger href={ (here) "/delete" } { (visit.text("delete")) }
        }
    }
}

/// Confirms that the club may use a room, or withdraws that.
pub async fn verify(visit: Visit, who: Privileged, id: Path<Id>, form: Form) -> Result<Reply, Failure> {
    let (id, verified) = (DbUuid::from(*id), form.has("verified", "true"));
    let action = if verified { Action::Verified } else { Action::Unverified };
    who.update(rooms::recorded(id, action, visit.zone), move |conn, _| {
        changes::verify(conn, id, verified, visit.zone, visit.now)?;
        Ok(see_other("/rooms"))
    })
    .await
}

/// Asks whether to delete a room.
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
    let row = rooms::queries::get(conn, id, None)?.row;
    rooms::queries::check_admin_or_privileged(conn, id, me)?;
    let tag = rooms::target(id, visit.zone).tag(conn, me)?;
    let what = html! { b { (row.place) } " " (visit.span(row.starts_at, row.ends_at)) };
    Ok(visit.ask_to_delete(
        "delete-room",
        (&what, &html! {}),
        (&format!("/rooms/{id}/delete"), &tag),
        "/rooms",
        problem,
    ))
}

/// Deletes a room.
pub async fn delete(visit: Visit, who: SignedIn, id: Path<Id>, form: Form) -> Result<Reply, Failure> {
    let (id, again) = (DbUuid::from(*id), (who.clone(), visit.clone()));
    let result = who.update(rooms::target(id, visit.zone), move |conn, me| {
        changes::delete(conn, id, me, form.has("force", "true"), None, visit.now)?;
        Ok(see_deleted_from("/rooms", id))
    });
    let (result, (who, visit)) = (result.await, again);
    or_form_again(result, who, move |conn, me, problem| delete_page(conn, me, &visit, id, Some(problem))).await
}

/// The form for a table of rooms.
pub async fn import_form(visit: Visit, who: Privileged) -> Result<Reply, Failure> {
    who.read(move |_, _| Ok(import_page(&visit, b"", None))).await
}

fn import_page(visit: &Visit, table: &[u8], problem: Option<&Problem>) -> Reply {
    let form = FormPage { page: visit.page(), values: &Form::default(), problem, aliases: &[] };
    let body = html! {
        p { (visit.text("import-about")) }
        pre tabindex="0" { code { "Subject,Start date,End date,Start time,End time,Location\nclub,2026/04/04,2026/04/04,18:00,21:00,S516" } }
        @if let Some(problem) = problem { (bad_rows(visit, table, problem)) }
        (form.upload("/rooms/import", &html! {
            div.field {
                label for="table" { (visit.text("table")) }
                input #table type="file" name=(TABLE) accept=".csv,text/csv" required;
            }
            button.primary { (visit.text("preview")) }
        }))
    };
    visit.reply(&visit.text("import-rooms"), body)
}

/// What is wrong with a table, row by row.
fn bad_rows(visit: &Visit, table: &[u8], problem: &Problem) -> Markup {
    let text = rooms::decode(table).unwrap_or_default();
    let lines: Vec<_> = text.lines().collect();
    html! {
        div.refusal role="alert" {
            b { (visit.problem_title(problem)) }
            @if problem.broken_rules().is_empty() { (visit.explain(problem)) }
            ul { @for violation in problem.broken_rules().iter().take(MAX_ROWS) {
                @if let Location::Cell { row, column } = &violation.location {
                    li {
                        (visit.count("row", *row)) @if let Some(column) = column { ", " (column) } ": "
                        (visit.broken_rule(violation))
                        @if let Some(line) = row.checked_sub(1).and_then(|index| lines.get(index)) { br; code { (line) } }
                    }
                }
            } }
        }
    }
}

/// Shows what a table would import, or imports it.
pub async fn import(visit: Visit, who: Privileged, upload: Upload) -> Result<Reply, Failure> {
    let again = (who.clone(), visit.clone());
    let encoded = upload.form.get("encoded").to_owned();
    let is_confirmed = !encoded.is_empty();
    let table = if is_confirmed {
        BASE64_STANDARD.decode(&encoded).map_err(|_| Problem::new(code::BAD_REQUEST))?
    } else {
        upload.table
    };
    let bytes = table.clone();
    let result = who.dry_run(!is_confirmed).create(move |conn, me| {
        let rooms = rooms::import_recorded(conn, &table, visit.zone, me, visit.now)?;
        if is_confirmed { Ok(see_other("/rooms")) } else { Ok(preview(&visit, &rooms, &table)) }
    });
    let (result, (who, visit)) = (result.await, again);
    or_form_again(result, who, move |_, _, problem| Ok(import_page(&visit, &bytes, Some(problem)))).await
}

fn preview(visit: &Visit, rooms: &[Room], table: &[u8]) -> Reply {
    let form = FormPage { page: visit.page(), values: &Form::default(), problem: None, aliases: &[] };
    let body = html! {
        p { (visit.count("rooms-found", rooms.len())) }
        div.table tabindex="0" role="region" aria-label=(visit.text("preview")) { table {
            thead { tr { th scope="col" { (visit.text("where")) } th scope="col" { (visit.text("when")) } } }
            tbody { @for room in rooms.iter().take(MAX_ROWS) {
                tr { th scope="row" { (room.row.place) } td { (visit.span(room.row.starts_at, room.row.ends_at)) } }
            } }
        } }
        @if rooms.len() > MAX_ROWS { p.mute { (visit.count("and-more", rooms.len() - MAX_ROWS)) } }
        (form.upload("/rooms/import", &html! {
            (hidden("encoded", BASE64_STANDARD.encode(table)))
            div.actions {
                button.primary { (visit.text("import-now")) }
                a href="/rooms/import" { (visit.text("cancel")) }
            }
        }))
    };
    visit.reply(&visit.text("preview"), body)
}

/// The privileged users, and the form to add one.
pub async fn privileges(visit: Visit, who: Privileged) -> Result<Reply, Failure> {
    who.read(move |conn, _| privileges_page(conn, &visit, &Form::new([("name", "")]), None)).await
}

fn privileges_page(
    conn: &mut AnyConnection,
    visit: &Visit,
    values: &Form,
    problem: Option<&Problem>,
) -> Result<Reply, Error> {
    let ids = queries::privileged(conn)?;
    let people = People::load(conn, ids.iter().copied())?;
    let roster = queries::roster(conn, values, &["name"])?;
    let form = FormPage { page: visit.page(), values, problem, aliases: &[] };
    let body = html! {
        p { (visit.text("privileges-about")) }
        (form.refusal())
        div.card { ul.rows.named { @for id in &ids {
            li {
                div { (people.display_name(*id)) small { "@" (people.sign_in_names(&[*id])) } }
                (button("/privileges", &[("userId", &id.to_string())], &visit.text("revoke"), None))
            }
        } } }
        (form.form("/privileges", None, &html! {
            (roster.field(&form, Input { name: "name", label: &visit.text("name"), is_required: true, ..Input::default() }, false))
            (roster.suggestions())
            div.actions { button { (visit.text("grant")) } }
        }))
    };
    Ok(visit.reply(&visit.text("privileges"), body))
}

/// Grants the privilege by name, or revokes it by id.
pub async fn set_privilege(visit: Visit, who: Privileged, form: Form) -> Result<Reply, Failure> {
    let (values, again) = (form.clone(), (who.clone(), visit.clone()));
    let result = who.create(move |conn, me| {
        let (id, privileged) = match form.get("userId").parse::<Id>() {
            Ok(id) => (id.into(), false),
            Err(_) => (user_called(conn, &form)?, true),
        };
        if users::queries::set_privileged(conn, id, privileged)? {
            users::queries::record_privilege(conn, id, privileged, &me.author)?;
        }
        // Without the privilege, nobody sees that page.
        Ok(see_other(if id == me.id { "/" } else { "/privileges" }))
    });
    let (result, (who, visit)) = (result.await, again);
    or_form_again(result, who, move |conn, _, problem| privileges_page(conn, &visit, &values, Some(problem))).await
}

fn user_called(conn: &mut AnyConnection, form: &Form) -> Result<DbUuid, Error> {
    let mut violations = Violations::default();
    let ids = queries::roster(conn, form, &["name"])?.ids_of(form, "name", &mut violations);
    violations.into_result()?;
    let id = ids.first().copied();
    Ok(id.ok_or_else(|| Problem::invalid("/name", Rule::Blank, "must name somebody"))?)
}
