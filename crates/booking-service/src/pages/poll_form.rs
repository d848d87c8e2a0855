//! The form of a poll. That of a new one has days and times first, then the grid of both; that of an existing one can add
//! times.

use actix_web::web::Path;
use chrono::{Days, NaiveDate, NaiveDateTime};
use common::{
    input::Id,
    problem::{Problem, Rule, Violations},
};
use maud::{Markup, html};
use serde_json::{Value, json};
use service_kit::{
    database::{AnyConnection, types::DbUuid},
    error::{Error, Failure},
    http::{Form, Reply, form::request},
    page::{FormPage, Input, hidden, see_other},
};

use super::{
    choices::group_choices,
    people::{self, People},
    visit::{Visit, day_of, instant_in, instant_of, or_form_again},
};
use crate::{
    auth::{Caller, SignedIn},
    polls::{
        self, RequestDraftEvent, RequestDraftEventUpdate, changes,
        queries::{PollDetail, check_admin_or_privileged, get_detail},
    },
    wall_clock::ClockTime,
};

/// The button that shows the grid. It saves nothing.
const SHOW_GRID: &str = "showGrid";

/// The hidden field with the exact deadline.
const EXACT_DEADLINE: &str = "exactDeadline";

/// The members of the requests with the slots.
const SLOTS: [&str; 2] = ["candidateSlots", "additionalCandidateSlots"];

/// What the form of a new poll begins with: times of each day, and days until the deadline.
const TIMES: &str = "13:00-15:00 18:00-20:00";
const DEADLINE_DAYS: u64 = 5;

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
        values.push("times", TIMES);
        values.push("deadlineDay", day(DEADLINE_DAYS));
        values.push("deadline", "21:00");
        values.push("admins", People::load(conn, [me.id])?.sign_in_names(&[me.id]));
        let grid = grid(&values, &visit);
        for slot in grid.iter().flat_map(|(_, slots)| slots) {
            values.push("slot", slot.value());
        }
        show(conn, me, &visit, None, &values, None)
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
        return who.read(move |conn, me| show(conn, me, &visit, None, &form, None)).await;
    }
    let (values, again) = (form.clone(), (who.clone(), visit.clone()));
    let result = who.create(move |conn, me| {
        let request = poll(conn, &form, &visit)?;
        let id = changes::create(conn, &request.to_poll(visit.zone)?, &me.author, visit.now)?;
        polls::record_created(conn, id, &me.author, visit.now, visit.zone)?;
        Ok(see_other(format!("/polls/{id}")))
    });
    let (result, (who, visit)) = (result.await, again);
    or_form_again(result, who, move |conn, me, problem| show(conn, me, &visit, None, &values, Some(problem))).await
}

/// The form to change a poll.
pub async fn edit(visit: Visit, who: SignedIn, id: Path<Id>) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.read(move |conn, me| {
        check_admin_or_privileged(conn, id, me)?;
        let poll = get_detail(conn, id)?;
        let row = &poll.poll.row;
        let people = People::load(conn, poll.poll.admins.iter().chain(&poll.invitees).copied())?;
        let mut values = Form::new([("name", &row.name), ("description", &row.description)]);
        values.push("additionalCandidateSlots", "");
        values.push("open", row.open.to_string());
        values.push("admins", people.sign_in_names(&poll.poll.admins));
        values.push("invitees", people.sign_in_names(&poll.invitees));
        // A poll whose deadline has passed is opened again by a later one.
        let today = visit.today();
        let later = visit.midnight(today.checked_add_days(Days::new(DEADLINE_DAYS)).unwrap_or(today));
        let is_closed = row.deadline <= visit.now;
        let deadline = visit.local(if is_closed { later } else { row.deadline });
        values.push("deadlineDay", deadline.date().to_string());
        values.push("deadline", deadline.format("%H:%M").to_string());
        values.push(EXACT_DEADLINE, row.deadline.to_string());
        let last = poll.slots.last().map_or(today, |slot| visit.local(slot.starts_at).date());
        values.push("firstDay", last.succ_opt().unwrap_or(last).to_string());
        values.push("days", "1");
        values.push("times", TIMES);
        show(conn, me, &visit, Some(&poll), &values, None)
    })
    .await
}

/// Changes the poll.
pub async fn update(visit: Visit, who: SignedIn, id: Path<Id>, mut form: Form) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    if form.has(SHOW_GRID, "true") {
        return who
            .read(move |conn, me| {
                let poll = get_detail(conn, id)?;
                let present: Vec<_> =
                    poll.slots.iter().map(|slot| (visit.local(slot.starts_at), visit.local(slot.ends_at))).collect();
                for cell in grid(&form, &visit).iter().flat_map(|(_, cells)| cells) {
                    if !present.iter().any(|(start, end)| cell.is_at(*start, *end)) {
                        form.push("slot", cell.value());
                    }
                }
                show(conn, me, &visit, Some(&poll), &form, None)
            })
            .await;
    }
    let (values, again) = (form.clone(), (who.clone(), visit.clone()));
    let result = who.update(polls::changed(id, visit.now, visit.zone), move |conn, me| {
        let request = change(conn, &form, &visit)?;
        changes::update(conn, id, &request.to_change(visit.zone)?, me, visit.now)?;
        Ok(see_other(format!("/polls/{id}")))
    });
    let (result, (who, visit)) = (result.await, again);
    or_form_again(result, who, move |conn, me, problem| {
        let poll = get_detail(conn, id)?;
        show(conn, me, &visit, Some(&poll), &values, Some(problem))
    })
    .await
}

/// What the forms of new and of existing polls have.
fn common_fields(conn: &mut AnyConnection, form: &Form, visit: &Visit) -> Result<Value, Error> {
    let mut violations = Violations::default();
    let admins = people::ids_of(conn, form.get("admins"), "/admins", &mut violations)?;
    let invitees = people::ids_of(conn, form.get("invitees"), "/invitees", &mut violations)?;
    let deadline = instant_in(form, ["deadlineDay", "deadline", EXACT_DEADLINE], visit.zone);
    if deadline.is_none() {
        violations.push("/deadline", Rule::Invalid, "must be a day and a time");
    }
    violations.into_result()?;
    Ok(json!({
        "name": form.get("name"),
        "description": form.text("description"),
        "open": form.has("open", "true"),
        "deadline": deadline.map(|at| at.to_string()),
        "admins": admins,
        "invitees": invitees,
    }))
}

fn slots(form: &Form, visit: &Visit) -> Vec<Value> {
    form.all("slot").filter_map(|slot| request_slot(slot, visit)).collect()
}

/// The request of the form of a new poll.
fn poll(conn: &mut AnyConnection, form: &Form, visit: &Visit) -> Result<RequestDraftEvent, Error> {
    let mut body = common_fields(conn, form, visit)?;
    let tags: Vec<_> =
        people::words(form.get("tags")).map(|name| json!({ "name": name.trim_start_matches('#') })).collect();
    let groups: Vec<_> = Some(form.get("groupId")).filter(|group| !group.is_empty()).into_iter().collect();
    body["candidateSlots"] = slots(form, visit).into();
    body["inviteGroups"] = json!(groups);
    body["tags"] = tags.into();
    Ok(request(body).map_err(|failure| failure.0)?)
}

/// The request of the form of an existing poll.
fn change(conn: &mut AnyConnection, form: &Form, visit: &Visit) -> Result<RequestDraftEventUpdate, Error> {
    let mut body = common_fields(conn, form, visit)?;
    body["additionalCandidateSlots"] = slots(form, visit).into();
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

    /// Whether it is this span.
    fn is_at(&self, start: NaiveDateTime, end: NaiveDateTime) -> bool {
        let clock = |at: NaiveDateTime| at.format("%H:%M").to_string();
        start.date() == self.day && clock(start) == self.start && clock(end) == self.end
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
    poll: Option<&PollDetail>,
    values: &Form,
    problem: Option<&Problem>,
) -> Result<Reply, Error> {
    let form = FormPage { page: visit.page(), values, problem, aliases: &[("inviteGroups", "groupId")] };
    let id = poll.map(|poll| poll.poll.row.id);
    let action = id.map_or_else(|| "/polls/new".to_owned(), |id| format!("/polls/{id}/edit"));
    let tag = id.map(|id| polls::target(id, visit.now, visit.zone).tag(conn, me)).transpose()?;
    let mut groups = vec![(String::new(), visit.text("no-group"))];
    groups.extend(group_choices(conn, me)?);
    let is_stale = problem.is_some_and(|problem| problem.status() == 412);
    let is_closed = poll.is_some_and(|poll| poll.poll.row.deadline <= visit.now);
    let text = |key| visit.text(key);
    let field = |name: &'static str, key: &str, kind: &'static str| {
        form.input(Input { name, label: &visit.text(key), kind: Some(kind), is_required: true, ..Input::default() })
    };
    let body = html! {
        (form.refusal())
        @if let Some(poll) = poll.filter(|_| is_stale) { (present_version(conn, poll, visit)?) }
        (form.form(&action, tag.as_deref(), &html! {
            (form.input(Input { name: "name", label: &text("name"), max_length: Some(32), is_required: true, ..Input::default() }))
            (form.text_area(Input { name: "description", label: &text("description"), max_length: Some(10_000), ..Input::default() }))
            h2 { (text(if poll.is_some() { "more-times" } else { "days-and-times" })) }
            @if let Some(poll) = poll {
                ul { @for slot in &poll.slots { li { (visit.span(slot.starts_at, slot.ends_at)) } } }
            }
            div.row { (field("firstDay", "first-day", "date")) (field("days", "number-of-days", "number")) }
            (form.input(Input { name: "times", label: &text("times"), hint: Some(&text("times-hint")), ..Input::default() }))
            button name=(SHOW_GRID) value="true" formnovalidate { (text("show-grid")) }
            // The form of an existing poll begins without times to add.
            @if poll.is_none() || values.has(SHOW_GRID, "true") || values.all("slot").next().is_some() {
                (grid_table(values, visit))
            }
            @for message in SLOTS.iter().flat_map(|member| form.errors_of(member)) { p.error { (message) } }
            h2 { (text("who-is-asked")) }
            @if poll.is_none() { (form.select("groupId", &text("group"), None, &groups)) }
            (form.text_area(Input { name: "invitees", label: &text(if poll.is_some() { "members-names" } else { "more-members" }),
                hint: Some(&text("names-hint")), ..Input::default() }))
            (form.check_box("open", &text("poll-open-to-all"), None))
            h2 { (text("until-when")) }
            @if is_closed { p { (text("poll-reopens")) } }
            div.row { (field("deadlineDay", "date", "date")) (field("deadline", "time", "time")) }
            @for exact in values.all(EXACT_DEADLINE) { (hidden(EXACT_DEADLINE, exact)) }
            @if poll.is_none() {
                (form.input(Input { name: "tags", label: &text("tags"), hint: Some(&text("tags-hint")), ..Input::default() }))
            }
            (form.input(Input { name: "admins", label: &text("admins"), hint: Some(&text("names-hint")), is_required: true, ..Input::default() }))
            div.actions {
                button.main { (text(if poll.is_some() { "save" } else { "ask" })) }
                a href={ @if let Some(id) = id { "/polls/" (id) } @else { "/polls" } } { (text("cancel")) }
            }
        }))
    };
    Ok(visit.reply(&text(if poll.is_some() { "edit-poll" } else { "new-poll" }), body))
}

/// The poll as somebody else has saved it meanwhile.
fn present_version(conn: &mut AnyConnection, poll: &PollDetail, visit: &Visit) -> Result<Markup, Error> {
    let (row, people) = (&poll.poll.row, People::load(conn, poll.invitees.iter().copied())?);
    Ok(html! {
        div.refusal {
            b { (visit.text("present-version")) }
            p { (row.name) br; (visit.format("deadline-at", &[("at", visit.moment(row.deadline).into())])) }
            @if !row.description.is_empty() { p.text { (row.description) } }
            p { (people.list(&poll.invitees, visit)) }
            p { a href={ "/polls/" (row.id) "/edit" } { (visit.text("discard-mine")) } }
        }
    })
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
