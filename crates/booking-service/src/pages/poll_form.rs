//! The form of a new poll: days and times first, then the grid of both.

use chrono::{Days, NaiveDate};
use common::problem::{Problem, Rule, Violations};
use maud::{Markup, html};
use serde_json::{Value, json};
use service_kit::{
    database::AnyConnection,
    error::{Error, Failure},
    http::{Form, Reply, form::request},
    page::{FormPage, Input, see_other},
};

use super::{
    choices::group_choices,
    people::{self, People},
    visit::{Visit, day_of, instant_of, or_form_again},
};
use crate::{
    auth::{Caller, SignedIn},
    polls::{self, RequestDraftEvent, changes},
    wall_clock::ClockTime,
};

/// The button that shows the grid. It saves nothing.
const SHOW_GRID: &str = "showGrid";

/// The most days and times of the grid.
const MAX_DAYS: u64 = 21;
const MAX_TIMES: usize = 10;

/// The form.
pub async fn new(visit: Visit, who: SignedIn) -> Result<Reply, Failure> {
    who.read(move |conn, me| {
        let today = visit.today();
        let day = |days| today.checked_add_days(Days::new(days)).unwrap_or(today).to_string();
        let mut values =
            Form::new(["name", "description", "tags", "invitees", "groupId", "candidateSlots"].map(|name| (name, "")));
        values.push("firstDay", day(7));
        values.push("days", "5");
        values.push("times", "13:00-15:00 18:00-20:00");
        values.push("deadlineDay", day(5));
        values.push("deadline", "21:00");
        values.push("admins", People::load(conn, [me.id])?.sign_in_names(&[me.id]));
        let grid = grid(&values, &visit);
        for slot in grid.iter().flat_map(|(_, slots)| slots) {
            values.push("slot", slot.value());
        }
        show(conn, me, &visit, &values, None)
    })
    .await
}

/// Creates the poll.
pub async fn create(visit: Visit, who: SignedIn, mut form: Form) -> Result<Reply, Failure> {
    if form.has(SHOW_GRID, "true") {
        // All slots of a new grid are chosen.
        for slot in grid(&form, &visit).iter().flat_map(|(_, slots)| slots) {
            form.push("slot", slot.value());
        }
        return who.read(move |conn, me| show(conn, me, &visit, &form, None)).await;
    }
    let (values, again) = (form.clone(), (who.clone(), visit.clone()));
    let result = who.creates(1).create(move |conn, me| {
        let request = poll(conn, &form, &visit)?;
        let id = changes::create(conn, &request.to_poll(visit.zone)?, &me.author, visit.now)?;
        polls::record_created(conn, id, &me.author, visit.now, visit.zone)?;
        Ok(see_other(format!("/polls/{id}")))
    });
    let (result, (who, visit)) = (result.await, again);
    or_form_again(result, who, move |conn, me, problem| show(conn, me, &visit, &values, Some(problem))).await
}

/// The request of a form.
fn poll(conn: &mut AnyConnection, form: &Form, visit: &Visit) -> Result<RequestDraftEvent, Error> {
    let mut violations = Violations::default();
    let admins = people::ids_of(conn, form.get("admins"), "/admins", &mut violations)?;
    let invitees = people::ids_of(conn, form.get("invitees"), "/invitees", &mut violations)?;
    let deadline = instant_of(form.get("deadlineDay"), form.get("deadline"), visit.zone);
    if deadline.is_none() {
        violations.push("/deadline", Rule::Invalid, "must be a day and a time");
    }
    violations.into_result()?;
    let slots: Vec<_> = form.all("slot").filter_map(|slot| request_slot(slot, visit)).collect();
    let tags: Vec<_> =
        people::words(form.get("tags")).map(|name| json!({ "name": name.trim_start_matches('#') })).collect();
    let groups: Vec<_> = Some(form.get("groupId")).filter(|group| !group.is_empty()).into_iter().collect();
    let body = json!({
        "name": form.get("name"),
        "description": form.text("description"),
        "open": form.has("open", "true"),
        "deadline": deadline.map(|at| at.to_string()),
        "candidateSlots": slots,
        "admins": admins,
        "invitees": invitees,
        "inviteGroups": groups,
        "tags": tags,
    });
    Ok(request(body).map_err(|failure| failure.0)?)
}

/// A slot in a form: `2026-04-04 18:00 20:00`. It ends on the next day if the end is not after the start.
fn request_slot(slot: &str, visit: &Visit) -> Option<Value> {
    let [date, start, end] = slot.split(' ').collect::<Vec<_>>().try_into().ok()?;
    if start < end {
        return Some(json!({ "date": date, "startTime": start, "endTime": end }));
    }
    let next = day_of(date, NaiveDate::MIN).succ_opt()?.to_string();
    let (start, end) = (instant_of(date, start, visit.zone)?, instant_of(&next, end, visit.zone)?);
    Some(json!({ "timeStart": start.to_string(), "timeEnd": end.to_string() }))
}

/// A cell of the grid.
struct Cell {
    day: NaiveDate,
    start: String,
    end: String,
}

impl Cell {
    fn value(&self) -> String {
        format!("{} {} {}", self.day, self.start, self.end)
    }
}

/// The days and times of a form: each day with its slots.
fn grid(form: &Form, visit: &Visit) -> Vec<(NaiveDate, Vec<Cell>)> {
    let first = day_of(form.get("firstDay"), visit.today());
    let days = form.get("days").parse().unwrap_or(1).clamp(1, MAX_DAYS);
    let clock = |text: &str| text.parse::<ClockTime>().ok().map(|time| time.0.format("%H:%M").to_string());
    let times: Vec<_> = people::words(form.get("times"))
        .filter_map(|span| span.split_once(['-', '–', '~', '〜', '～']))
        .filter_map(|(start, end)| Some((clock(start)?, clock(end)?)))
        .take(MAX_TIMES)
        .collect();
    let day = |n| first.checked_add_days(Days::new(n));
    let cells = |day| times.iter().map(|(start, end)| Cell { day, start: start.clone(), end: end.clone() }).collect();
    (0..days).filter_map(day).map(|day| (day, cells(day))).collect()
}

fn show(
    conn: &mut AnyConnection,
    me: &Caller,
    visit: &Visit,
    values: &Form,
    problem: Option<&Problem>,
) -> Result<Reply, Error> {
    let aliases = [("candidateSlots", "candidateSlots"), ("inviteGroups", "groupId")];
    let form = FormPage { page: visit.page(), values, problem, aliases: &aliases };
    let mut groups = vec![(String::new(), visit.text("no-group"))];
    groups.extend(group_choices(conn, me)?);
    let text = |key| visit.text(key);
    let field = |name: &'static str, key: &str, kind: &'static str| {
        form.input(Input { name, label: &visit.text(key), kind: Some(kind), is_required: true, ..Input::default() })
    };
    let body = html! {
        (form.refusal())
        (form.form("/polls/new", None, &html! {
            (form.input(Input { name: "name", label: &text("name"), max_length: Some(32), is_required: true, ..Input::default() }))
            (form.text_area(Input { name: "description", label: &text("description"), max_length: Some(10_000), ..Input::default() }))
            h2 { (text("days-and-times")) }
            div.row { (field("firstDay", "first-day", "date")) (field("days", "number-of-days", "number")) }
            (form.input(Input { name: "times", label: &text("times"), hint: Some(&text("times-hint")), ..Input::default() }))
            button name=(SHOW_GRID) value="true" formnovalidate { (text("show-grid")) }
            (grid_table(values, visit))
            @for message in form.errors_of("candidateSlots") { p.error { (message) } }
            h2 { (text("who-is-asked")) }
            (form.select("groupId", &text("group"), None, &groups))
            (form.input(Input { name: "invitees", label: &text("more-members"), hint: Some(&text("names-hint")), ..Input::default() }))
            (form.check_box("open", &text("poll-open-to-all"), None))
            h2 { (text("until-when")) }
            div.row { (field("deadlineDay", "date", "date")) (field("deadline", "time", "time")) }
            (form.input(Input { name: "tags", label: &text("tags"), hint: Some(&text("tags-hint")), ..Input::default() }))
            (form.input(Input { name: "admins", label: &text("admins"), hint: Some(&text("names-hint")), is_required: true, ..Input::default() }))
            div.actions { button.main { (text("ask")) } a href="/polls" { (text("cancel")) } }
        }))
    };
    Ok(visit.reply(&text("new-poll"), body))
}

fn grid_table(values: &Form, visit: &Visit) -> Markup {
    html! {
        div.table tabindex="0" role="region" aria-label=(visit.text("days-and-times")) {
            table {
                tbody {
                    @for (day, cells) in grid(values, visit) {
                        tr {
                            th scope="row" { (visit.time(day)) }
                            @for cell in cells {
                                td { label {
                                    input type="checkbox" name="slot" value=(cell.value()) checked[values.has("slot", &cell.value())];
                                    " " (cell.start) "–" (cell.end)
                                } }
                            }
                        }
                    }
                }
            }
        }
    }
}
