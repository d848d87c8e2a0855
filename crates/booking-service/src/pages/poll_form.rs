//! The form of a poll. That of a new one has days and times first, then the grid of both; that of an existing one can add
//! times.

use actix_web::web::Path;
use chrono::{Days, NaiveDate, NaiveDateTime, Timelike as _};
use common::{
    input::Id,
    problem::{Problem, Rule, Violations},
    typed_time::{TypedDate, TypedTime, typed_number, typed_spans},
};
use maud::{Markup, html};
use serde_json::{Value, json};
use service_kit::{
    database::{AnyConnection, types::DbUuid},
    error::{Error, Failure},
    http::{Form, Reply, form::request},
    page::{FormPage, Input, enter_button, hidden, see_other},
};

use super::{
    choices::group_choices,
    people::{self, People},
    queries::roster,
    visit::{Visit, instant_at, instant_in, or_form_again, typed},
};
use crate::{
    auth::{Caller, SignedIn},
    polls::{
        self, RequestDraftEvent, RequestDraftEventUpdate, changes,
        queries::{PollDetail, check_admin_or_privileged, get_detail},
        results::Slot,
    },
};

/// The button that shows the grid. It saves nothing.
const SHOW_GRID: &str = "showGrid";

/// The hidden field with the days and times of the grid that the form shows.
const SHOWN_GRID: &str = "shownGrid";

/// The hidden field with the exact deadline.
const EXACT_DEADLINE: &str = "exactDeadline";

/// The fields that name people.
const PEOPLE: [&str; 2] = ["admins", "invitees"];

/// The members of the requests with the slots.
const SLOTS: [&str; 2] = ["candidateSlots", "additionalCandidateSlots"];

/// What the form of a new poll begins with: times of each day, and days until the deadline.
const TIMES: &str = "13:00-15:00 18:00-20:00";
const DEADLINE_DAYS: u64 = 5;

/// The most days and times of the grid.
const MAX_DAYS: u32 = 21;
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
        show(conn, me, &visit, None, &values, None)
    })
    .await
}

/// Creates the poll.
pub async fn create(visit: Visit, who: SignedIn, form: Form) -> Result<Reply, Failure> {
    let (values, again) = (form.clone(), (who.clone(), visit.clone()));
    let result = if form.has(SHOW_GRID, "true") {
        who.read(move |conn, me| {
            grid(&form)?;
            show(conn, me, &visit, None, &form, None)
        })
        .await
    } else {
        who.create(move |conn, me| {
            let request = poll(conn, &form, &visit)?;
            let id = changes::create(conn, &request.to_poll(visit.zone)?, &me.author, visit.now)?;
            polls::record_created(conn, id, &me.author, visit.now, visit.zone)?;
            Ok(see_other(format!("/polls/{id}")))
        })
        .await
    };
    let (who, visit) = again;
    or_form_again(result, who, move |conn, me, problem| show(conn, me, &visit, None, &values, Some(problem))).await
}

/// The form to change a poll.
pub async fn edit(visit: Visit, who: SignedIn, id: Path<Id>) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.read(move |conn, me| {
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
        // None is added until somebody writes when.
        values.push("times", "");
        values.push(SHOWN_GRID, typed_grid(&values));
        show(conn, me, &visit, Some(&poll), &values, None)
    })
    .await
}

/// Changes the poll.
pub async fn update(visit: Visit, who: SignedIn, id: Path<Id>, form: Form) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    let (values, again) = (form.clone(), (who.clone(), visit.clone()));
    let result = if form.has(SHOW_GRID, "true") {
        who.read(move |conn, me| {
            grid(&form)?;
            let poll = get_detail(conn, id)?;
            show(conn, me, &visit, Some(&poll), &form, None)
        })
        .await
    } else {
        who.update(polls::changed(id, visit.now, visit.zone), move |conn, me| {
            let slots = get_detail(conn, id)?.slots;
            let request = change(conn, &form, &slots, &visit)?;
            changes::update(conn, id, &request.to_change(visit.zone)?, me, visit.now)?;
            Ok(see_other(format!("/polls/{id}")))
        })
        .await
    };
    let (who, visit) = again;
    or_form_again(result, who, move |conn, me, problem| {
        let poll = get_detail(conn, id)?;
        show(conn, me, &visit, Some(&poll), &values, Some(problem))
    })
    .await
}

/// What the forms of new and of existing polls have.
fn common_fields(conn: &mut AnyConnection, form: &Form, visit: &Visit) -> Result<Value, Error> {
    let mut violations = Violations::default();
    let roster = roster(conn, form, &PEOPLE)?;
    let [admins, invitees] = PEOPLE.map(|field| roster.ids_of(form, field, &mut violations));
    let deadline = instant_in(form, ["deadlineDay", "deadline", EXACT_DEADLINE], visit.zone, &mut violations);
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

/// The slots of a form that are not there yet.
fn slots(form: &Form, member: &str, present: &[Slot], visit: &Visit) -> Result<Vec<Value>, Problem> {
    grid(form)?;
    let form = with_grid(form, present, visit);
    let slots = form.all("slot").filter_map(Cell::read).map(|cell| {
        let (start, end) = instant_at(cell.start, visit.zone).zip(instant_at(cell.end, visit.zone))?;
        Some(json!({ "timeStart": start.to_string(), "timeEnd": end.to_string() }))
    });
    let slots: Option<Vec<_>> = slots.collect();
    let skipped = || Problem::invalid(format!("/{member}"), Rule::NonexistentTime, "are skipped by the clocks");
    slots.ok_or_else(skipped)
}

/// The request of the form of a new poll.
fn poll(conn: &mut AnyConnection, form: &Form, visit: &Visit) -> Result<RequestDraftEvent, Error> {
    let mut body = common_fields(conn, form, visit)?;
    let tags: Vec<_> =
        people::words(form.get("tags")).map(|name| json!({ "name": name.trim_start_matches('#') })).collect();
    let groups: Vec<_> = Some(form.get("groupId")).filter(|group| !group.is_empty()).into_iter().collect();
    body["candidateSlots"] = slots(form, SLOTS[0], &[], visit)?.into();
    check_somebody_can_answer(&body, !groups.is_empty())?;
    body["inviteGroups"] = json!(groups);
    body["tags"] = tags.into();
    Ok(request(body).map_err(|failure| failure.0)?)
}

/// Refuses a poll that is neither open nor asks anybody.
fn check_somebody_can_answer(body: &Value, has_group: bool) -> Result<(), Problem> {
    let has_invitees = body["invitees"].as_array().is_some_and(|invitees| !invitees.is_empty());
    if has_group || has_invitees || body["open"] == true {
        return Ok(());
    }
    Err(Problem::invalid("/invitees", Rule::Required, "or a group, or open"))
}

/// The request of the form of an existing poll.
fn change(
    conn: &mut AnyConnection,
    form: &Form,
    present: &[Slot],
    visit: &Visit,
) -> Result<RequestDraftEventUpdate, Error> {
    let mut body = common_fields(conn, form, visit)?;
    body["additionalCandidateSlots"] = slots(form, SLOTS[1], present, visit)?.into();
    check_somebody_can_answer(&body, false)?;
    Ok(request(body).map_err(|failure| failure.0)?)
}

/// A cell of the grid: a slot on the clocks of the club.
struct Cell {
    start: NaiveDateTime,
    end: NaiveDateTime,
}

impl Cell {
    const FORMAT: &'static str = "%Y-%m-%dT%H:%M";

    fn value(&self) -> String {
        format!("{} {}", self.start.format(Self::FORMAT), self.end.format(Self::FORMAT))
    }

    fn read(value: &str) -> Option<Self> {
        let (start, end) = value.split_once(' ')?;
        let read = |text| NaiveDateTime::parse_from_str(text, Self::FORMAT).ok();
        Some(Self { start: read(start)?, end: read(end)? })
    }

    /// Whether it is one of these slots.
    fn is_in(&self, slots: &[Slot], visit: &Visit) -> bool {
        let minute = |at| visit.local(at).with_second(0).and_then(|at| at.with_nanosecond(0));
        slots.iter().any(|slot| minute(slot.starts_at) == Some(self.start) && minute(slot.ends_at) == Some(self.end))
    }
}

/// The days and times of a form: each day with its slots.
///
/// # Errors
/// 400 with the fields that cannot be read.
fn grid(form: &Form) -> Result<Vec<(NaiveDate, Vec<Cell>)>, Problem> {
    let mut violations = Violations::default();
    let first = typed::<TypedDate>(form, "firstDay", &mut violations);
    let days = typed_number(form.get("days")).filter(|days| (1..=MAX_DAYS).contains(days));
    if days.is_none() {
        violations.push("/days", Rule::Range, format!("must be a number from 1 to {MAX_DAYS}"));
    }
    let times = typed_spans(form.get("times")).unwrap_or_else(|word| {
        violations.push("/times", Rule::BadTime, format!("must be times of day, such as {TIMES}: {word}"));
        Vec::new()
    });
    if times.len() > MAX_TIMES {
        violations.push("/times", Rule::Length, format!("must be {MAX_TIMES} at most"));
    }
    let (first, days) = (first.map_or_else(NaiveDate::default, |day| day.0), days.unwrap_or_default());
    let slot = |day, (start, end): &(TypedTime, TypedTime)| {
        let start = start.on(day);
        Some(Cell { start, end: end.after(start)? })
    };
    if times.iter().any(|times| slot(first, times).is_none()) {
        violations.push("/times", Rule::OutOfOrder, "must end after they start, or up to 6:00 on the next day");
    }
    violations.into_result()?;
    let days = (0..days).filter_map(|n| first.checked_add_days(Days::new(n.into())));
    Ok(days.map(|day| (day, times.iter().filter_map(|times| slot(day, times)).collect())).collect())
}

/// What the fields of the grid say.
fn typed_grid(form: &Form) -> String {
    ["firstDay", "days", "times"].map(|name| form.get(name)).join("\n")
}

/// The form with the grid that is typed: if it shows another one, all slots of the typed one are chosen that are not there
/// yet.
fn with_grid(form: &Form, present: &[Slot], visit: &Visit) -> Form {
    let (mut form, typed) = (form.clone(), typed_grid(form));
    if form.get(SHOWN_GRID) != typed
        && let Ok(grid) = grid(&form)
    {
        form.set(SHOWN_GRID, typed);
        let slots = grid.iter().flat_map(|(_, cells)| cells).filter(|cell| !cell.is_in(present, visit));
        form.replace("slot", slots.map(Cell::value));
    }
    form
}

/// The form, for whoever may send it.
fn show(
    conn: &mut AnyConnection,
    me: &Caller,
    visit: &Visit,
    poll: Option<&PollDetail>,
    values: &Form,
    problem: Option<&Problem>,
) -> Result<Reply, Error> {
    if let Some(poll) = poll {
        check_admin_or_privileged(conn, poll.poll.row.id, me)?;
    }
    let values = &with_grid(values, poll.map_or(&[], |poll| &poll.slots), visit);
    let form = FormPage { page: visit.page(), values, problem, aliases: &[("inviteGroups", "groupId")] };
    let id = poll.map(|poll| poll.poll.row.id);
    let action = id.map_or_else(|| "/polls/new".to_owned(), |id| format!("/polls/{id}/edit"));
    let tag = id.map(|id| polls::target(id, visit.now, visit.zone).tag(conn, me)).transpose()?;
    let mut groups = vec![(String::new(), visit.text("no-group"))];
    groups.extend(group_choices(conn, me)?);
    let roster = roster(conn, values, &PEOPLE)?;
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
            (enter_button(&text(if poll.is_some() { "save" } else { "ask" })))
            (form.input(Input { name: "name", label: &text("name"), max_length: Some(32), is_required: true, ..Input::default() }))
            (form.text_area(Input { name: "description", label: &text("description"), max_length: Some(10_000), ..Input::default() }))
            h2 { (text(if poll.is_some() { "more-times" } else { "days-and-times" })) }
            @if let Some(poll) = poll {
                ul { @for slot in &poll.slots { li { (visit.span(slot.starts_at, slot.ends_at)) } } }
            }
            div.line { (field("firstDay", "first-day", "date")) (field("days", "number-of-days", "number")) }
            (form.input(Input { name: "times", label: &text("times"), hint: Some(&text("times-hint")), ..Input::default() }))
            button name=(SHOW_GRID) value="true" formnovalidate { (text("show-grid")) }
            (hidden(SHOWN_GRID, values.get(SHOWN_GRID)))
            (grid_table(values, visit))
            @for message in SLOTS.iter().flat_map(|member| form.errors_of(member)) { p.error { (message) } }
            h2 { (text("who-is-asked")) }
            @if poll.is_none() { (form.select("groupId", &text("group"), None, &groups)) }
            (roster.field(&form, Input { name: "invitees", label: &text(if poll.is_some() { "members-names" } else { "more-members" }),
                hint: Some(&text("names-hint")), ..Input::default() }, false))
            (form.check_box("open", &text("poll-open-to-all"), None))
            h2 { (text("until-when")) }
            @if is_closed { p { (text("poll-reopens")) } }
            div.line { (field("deadlineDay", "date", "date")) (field("deadline", "time", "time")) }
            @for exact in values.all(EXACT_DEADLINE) { (hidden(EXACT_DEADLINE, exact)) }
            @if poll.is_none() {
                (form.input(Input { name: "tags", label: &text("tags"), hint: Some(&text("tags-hint")), ..Input::default() }))
            }
            (roster.field(&form, Input { name: "admins", label: &text("admins"), hint: Some(&text("names-hint")), is_required: true, ..Input::default() }, false))
            (roster.suggestions())
            div.actions {
                button.primary { (text(if poll.is_some() { "save" } else { "ask" })) }
                a href={ @if let Some(id) = id { "/polls/" (id) } @else { "/polls" } } { (text("cancel")) }
            }
        }))
    };
    Ok(visit.reply(&text(if poll.is_some() { "edit-poll" } else { "new-poll" }), body))
}

/// The poll as somebody else has saved it meanwhile.
fn present_version(conn: &mut AnyConnection, poll: &PollDetail, visit: &Visit) -> Result<Markup, Error> {
    let (row, admins) = (&poll.poll.row, &poll.poll.admins);
    let people = People::load(conn, poll.invitees.iter().chain(admins).copied())?;
    Ok(html! {
        div.refusal {
            b { (visit.text("present-version")) }
            p { (row.name) br; (visit.format("deadline-at", &[("at", visit.moment(row.deadline).into())])) }
            @if !row.description.is_empty() { p.text { (row.description) } }
            @if row.open { p { (visit.text("poll-open-to-all")) } }
            p { (visit.text("members-names")) ": " (people.list(&poll.invitees, visit)) }
            p { (visit.text("admins")) ": " (people.list(admins, visit)) }
            p { a href={ "/polls/" (row.id) "/edit" } { (visit.text("discard-mine")) } }
        }
    })
}

/// The grid, if there is one.
fn grid_table(values: &Form, visit: &Visit) -> Markup {
    let rows = grid(values).unwrap_or_default();
    let hours = |cell: &Cell| format!("{}–{}", cell.start.format("%H:%M"), cell.end.format("%H:%M"));
    html! {
        @if rows.iter().any(|(_, cells)| !cells.is_empty()) {
            div.table tabindex="0" role="region" aria-label=(visit.text("days-and-times")) {
                table { tbody { @for (day, cells) in &rows { tr {
                    th scope="row" { (visit.time(*day)) }
                    @for cell in cells {
                        td { label {
                            input type="checkbox" name="slot" value=(cell.value()) checked[values.has("slot", &cell.value())];
                            " " (hours(cell))
                        } }
                    }
                } } } }
            }
        }
    }
}
