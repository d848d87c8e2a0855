//! The form of an event: its time first, then the rooms that are free then.

use actix_web::{HttpRequest, web::Path};
use chrono::{Days, TimeDelta, Timelike as _};
use common::{
    input::Id,
    kept::Kept,
    problem::{Problem, Rule, Violations},
    visible::is_blank,
};
use maud::{Markup, html};
use serde_json::{Value, json};
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::{Error, Failure},
    history::Action,
    http::{Form, Reply, form::request, query},
    page::{self, FormPage, Input, enter_button, hidden, see_booked, see_other},
};

use super::{
    choices::{conflict, group_choices},
    people::{self, People},
    queries::roster,
    repetition::{self, Dates},
    venue::{TAKE, at_chosen_time, in_room_of_place, rooms_of},
    visit::{EXACT_END, EXACT_START, Visit, or_form_again, span_of},
};
use crate::{
    auth::{Caller, SignedIn},
    events::{
        self, RequestEvent,
        changes::{self, Draft, Venue},
        queries::{EventDetail, check_admin_or_privileged, find, get},
    },
    series::queries::check_may_change,
};

/// The members of the request that fields of other names show.
const ALIASES: &[(&str, &str)] = &[("timeStart", "from"), ("timeEnd", "until"), ("roomId", "room")];

/// The button that shows the rooms which are free at another time. It saves nothing.
const SHOW_ROOMS: &str = "showRooms";

/// The address of the form for a new event at a time, and in a room.
pub fn address(visit: &Visit, start: DbTimestamp, end: DbTimestamp, room: Option<DbUuid>) -> String {
    let mut form = Form::default();
    set_times(&mut form, visit, start, end);
    if let Some(room) = room {
        form.push("room", room.to_string());
    }
    page::address("/events/new", &form.iter().collect::<Vec<_>>())
}

/// Sets the fields of a time.
pub fn set_times(form: &mut Form, visit: &Visit, start: DbTimestamp, end: DbTimestamp) {
    for (name, value) in ["date", "from", "until", "endDate"].into_iter().zip(visit.shown_times(start, end)) {
        form.set(name, value);
    }
}

/// The form for a new event. The parameter `copy` names an event to begin with.
pub async fn new(req: HttpRequest, visit: Visit, who: SignedIn) -> Result<Reply, Failure> {
    let typed = Form::new(query::pairs(&req));
    who.read(move |conn, me| {
        let mut values = match typed.get("copy").parse::<Id>() {
            Ok(id) => copied(conn, &visit, id.into())?,
            Err(_) => defaults(conn, me, &visit)?,
        };
        overwrite(&mut values, &typed);
        show(conn, me, &visit, None, &values, None, &Dates::default())
    })
    .await
}

/// Creates an event.
pub async fn create(visit: Visit, who: SignedIn, form: Form) -> Result<Reply, Failure> {
    let (form, again) = (at_chosen_time(form), (who.clone(), visit.clone()));
    let values = form.clone();
    if shows_rooms(&form) {
        return who.read(move |conn, me| show(conn, me, &visit, None, &values, None, &Dates::default())).await;
    }
    let result = who.queued_by(&venue(&form)).create(move |conn, me| {
        let draft = draft(conn, &form, visit.zone)?;
        let draft = in_room_of_place(conn, draft, None)?;
        let id = changes::create(conn, &draft, &me.author, visit.zone, visit.now)?;
        events::show_created(conn, id, &me.author, visit.zone)?;
        Ok(see_booked(&format!("/events/{id}")))
    });
    let (result, (who, visit)) = (result.await, again);
    or_form_again(result, who, move |conn, me, problem| {
        show(conn, me, &visit, None, &values, Some(problem), &Dates::default())
    })
    .await
}

/// The form to change an event.
pub async fn edit(req: HttpRequest, visit: Visit, who: SignedIn, id: Path<Id>) -> Result<Reply, Failure> {
    let (id, typed) = (DbUuid::from(*id), Form::new(query::pairs(&req)));
    who.read(move |conn, me| {
        let event = get(conn, id)?;
        let mut values = values_of(conn, &visit, &event)?;
        overwrite(&mut values, &typed);
        show(conn, me, &visit, Some(&event), &values, None, &Dates::default())
    })
    .await
}

/// Changes an event.
pub async fn update(visit: Visit, who: SignedIn, id: Path<Id>, form: Form) -> Result<Reply, Failure> {
    let (id, form, again) = (DbUuid::from(*id), at_chosen_time(form), (who.clone(), visit.clone()));
    let values = form.clone();
    if shows_rooms(&form) {
        let show = move |conn: &mut AnyConnection, me: &Caller| {
            let event = get(conn, id)?;
            show(conn, me, &visit, Some(&event), &values, None, &Dates::default())
        };
        return who.read(show).await;
    }
    let target = events::recorded(id, Action::Changed, visit.zone);
    let result = who.queued_by(&venue(&form)).update(target, move |conn, me| {
        let Kept { body, unchecked } =
            request::<Kept<RequestEvent>>(body(conn, &form, visit.zone)?).map_err(|failure| failure.0)?;
        let present = find(conn, id)?;
        let draft = in_room_of_place(conn, body.into_draft(), Some(&present))?;
        changes::update(conn, id, (&draft, &unchecked), me, visit.zone, visit.now)?;
        Ok(see_other(format!("/events/{id}")))
    });
    let (result, (who, visit)) = (result.await, again);
    or_form_again(result, who, move |conn, me, problem| {
        let event = get(conn, id)?;
        show(conn, me, &visit, Some(&event), &values, Some(problem), &Dates::default())
    })
    .await
}

/// Whether a button was pressed that only shows rooms.
pub(super) fn shows_rooms(form: &Form) -> bool {
    form.has(SHOW_ROOMS, "true") || !form.get(TAKE).is_empty()
}

/// Where the event of a form takes place, for the order of bookings.
pub(super) fn venue(form: &Form) -> Venue {
    match form.get("room").parse::<Id>() {
        Ok(room) => Venue::Room(room.into()),
        Err(_) => Venue::Place(form.get("place").to_owned()),
    }
}

/// The request of a form. Names are looked up in the transaction of the change.
pub(super) fn draft(conn: &mut AnyConnection, form: &Form, zone: chrono_tz::Tz) -> Result<Draft, Error> {
    Ok(request::<RequestEvent>(body(conn, form, zone)?).map_err(|failure| failure.0)?.into_draft())
}

/// The body of the request of a form.
fn body(conn: &mut AnyConnection, form: &Form, zone: chrono_tz::Tz) -> Result<Value, Error> {
    let mut violations = Violations::default();
    let admins = roster(conn, form, &["admins"])?.ids_of(form, "admins", &mut violations);
    violations.into_result()?;
    let (start, end) = span_of(form, zone)?;
    let tags: Vec<Value> = people::words(form.get("tags"))
        .map(|name| {
            let name = name.trim_start_matches('#');
            json!({ "name": name, "locked": form.has("locked", name) })
        })
        .collect();
    let room = form.get("room");
    if !room.is_empty() && !is_blank(form.get("place")) {
        return Err(Problem::invalid("/place", Rule::PlaceOrRoom, "must be empty, or no room chosen").into());
    }
    Ok(json!({
        "name": form.get("name"),
        "description": form.text("description"),
        "timeStart": start.to_string(),
        "timeEnd": end.to_string(),
        "roomId": if room.is_empty() { Value::Null } else { json!(room) },
        "place": if room.is_empty() { json!(form.get("place")) } else { Value::Null },
        "groupId": form.get("groupId"),
        "sharedRoom": form.has("sharedRoom", "true"),
        "open": form.has("open", "true"),
        "admins": admins,
        "tags": tags,
    }))
}

/// The next full hour, and the caller as administrator. No group is chosen, as all its members would be invited.
fn defaults(conn: &mut AnyConnection, me: &Caller, visit: &Visit) -> Result<Form, Error> {
    let mut form = empty(conn, &[me.id])?;
    let start = DbTimestamp(visit.now.plus(TimeDelta::hours(1)));
    let minutes = visit.local(start).minute() * 60 + visit.local(start).second();
    let start = DbTimestamp(start.plus(-TimeDelta::seconds(minutes.into())));
    set_times(&mut form, visit, start, DbTimestamp(start.plus(TimeDelta::hours(2))));
    Ok(form)
}

fn empty(conn: &mut AnyConnection, admins: &[DbUuid]) -> Result<Form, Error> {
    let admins = People::load(conn, admins.iter().copied())?.sign_in_names(admins);
    let fields =
        ["name", "description", "room", "place", "groupId", "tags", "endDate", "repeat", "times", "repeatUntil"];
    let mut form = Form::new(fields.into_iter().map(|name| (name, "")));
    form.push("every", "1");
    form.push("admins", admins);
    Ok(form)
}

fn values_of(conn: &mut AnyConnection, visit: &Visit, event: &EventDetail) -> Result<Form, Error> {
    let (row, mut form) = (&event.row, empty(conn, &event.admins)?);
    set_times(&mut form, visit, row.starts_at, row.ends_at);
    form.set(EXACT_START, row.starts_at.to_string());
    form.set(EXACT_END, row.ends_at.to_string());
    let tags: Vec<_> = event.tags.iter().map(|tag| tag.name.as_str()).collect();
    form.set("tags", tags.join(", "));
    for tag in event.tags.iter().filter(|tag| tag.locked) {
        form.push("locked", &tag.name);
    }
    form.set("name", &row.name);
    form.set("description", &row.description);
    form.set("groupId", row.group_id.to_string());
    form.set("room", if row.owns_room { String::new() } else { row.room_id.to_string() });
    form.set("place", if row.owns_room { row.place.as_str() } else { "" });
    form.set("sharedRoom", row.shared.to_string());
    form.set("open", row.open.to_string());
    Ok(form)
}

/// The values of another event, a week later or this week.
fn copied(conn: &mut AnyConnection, visit: &Visit, id: DbUuid) -> Result<Form, Error> {
    let event = get(conn, id)?;
    let mut form = values_of(conn, visit, &event)?;
    if event.row.created_by.is_none() && event.admins.is_empty() {
        form.set("admins", "");
    }
    let start = visit.local(event.row.starts_at).date();
    let weeks = (visit.today() - start).num_weeks().max(0).unsigned_abs() + 1;
    let later = |day: chrono::NaiveDate| day.checked_add_days(Days::new(7 * weeks)).unwrap_or(day).to_string();
    form.set("date", later(start));
    if !form.get("endDate").is_empty() {
        form.set("endDate", later(visit.local(event.row.ends_at).date()));
    }
    form.set("room", "");
    form.set("place", &event.row.place);
    Ok(form)
}

fn overwrite(values: &mut Form, typed: &Form) {
    for name in ["date", "from", "until", "endDate", "room", "place", "sharedRoom", "groupId", "scope"] {
        if typed.iter().any(|(other, _)| other == name) {
            values.set(name, typed.get(name));
        }
    }
    // A check box that is off is not sent.
    if typed.iter().any(|(name, _)| name == "date") {
        values.set("sharedRoom", typed.get("sharedRoom"));
    }
}

/// The form, for whoever may send it. `dates` is what it says about the dates of a series.
pub(super) fn show(
    conn: &mut AnyConnection,
    me: &Caller,
    visit: &Visit,
    event: Option<&EventDetail>,
    values: &Form,
    problem: Option<&Problem>,
    dates: &Dates,
) -> Result<Reply, Error> {
    if let Some(event) = event {
        check_admin_or_privileged(conn, event.row.id, me)?;
    }
    let rooms = rooms_of(conn, values, visit, event.map(|event| &event.row))?;
    let values = &rooms.choose(values, problem);
    let form = FormPage { page: visit.page(), values, problem, aliases: ALIASES };
    let action = event.map_or_else(|| "/events/new".to_owned(), |event| format!("/events/{}/edit", event.row.id));
    let tag = event.map(|event| events::target(event.row.id, visit.zone).tag(conn, me)).transpose()?;
    let mut groups = vec![(String::new(), visit.text("please-choose"))];
    groups.extend(group_choices(conn, me)?);
    let roster = roster(conn, values, &["admins"])?;
    let series = event.and_then(|event| event.row.series_id);
    let may_change_series = series.is_some_and(|id| check_may_change(conn, id, me).is_ok());
    let is_stale = problem.is_some_and(|problem| problem.status() == 412);
    let text = |key| visit.text(key);
    let body = html! {
        (rooms.refusal(&form, visit))
        (dates.notice)
        @if let Some(event) = event.filter(|_| is_stale) { (present_version(conn, event, visit)?) }
        (form.form(&action, tag.as_deref(), &html! {
            (enter_button(&text(if event.is_some() { "save" } else { "book" })))
            (rooms.notice(values, shows_rooms(values), visit))
            h2 { (text("when")) }
            (time_fields(&form, visit))
            (form.check_box("sharedRoom", &text("shared"), Some(&text("shared-hint"))))
            button name=(SHOW_ROOMS) value="true" formnovalidate { (text("show-free-rooms")) }
            @for name in ["locked", EXACT_START, EXACT_END] {
                @for value in values.all(name) { (hidden(name, value)) }
            }
            (conflict(conn, values, visit, problem)?)
            @match event {
                Some(event) => { @if may_change_series { (repetition::scope(&form, event, visit)) } },
                None => (repetition::fields(&form, visit)),
            }
            (dates.list)
            h2 { (text("where")) }
            p.mute { (summary(values, visit)) }
            (rooms.fields(&form, visit))
            h2 { (text("what")) }
            (form.input(Input { name: "name", label: &text("name"), max_length: Some(32), is_required: true, ..Input::default() }))
            (form.text_area(Input { name: "description", label: &text("description"), max_length: Some(10_000), ..Input::default() }))
            (form.choice(Input { name: "groupId", label: &text("group"), hint: Some(&text("group-hint")), is_required: true, ..Input::default() }, &groups))
            (form.check_box("open", &text("open"), Some(&text("open-hint"))))
            (form.input(Input { name: "tags", label: &text("tags"), hint: Some(&text("tags-hint")), ..Input::default() }))
            (roster.field(&form, Input { name: "admins", label: &text("admins"), hint: Some(&text("names-hint")), is_required: true, ..Input::default() }, false))
            (roster.suggestions())
            div.actions {
                button.primary { (text(if event.is_some() { "save" } else { "book" })) }
                a href={ @if let Some(event) = event { "/events/" (event.row.id) } @else { "/" } } { (text("cancel")) }
            }
        }))
    };
    Ok(visit.reply(&text(if event.is_some() { "edit-event" } else { "book-a-room" }), body))
}

/// The fields of a time.
pub fn time_fields(form: &FormPage<'_>, visit: &Visit) -> Markup {
    let field = |name: &'static str, key: &str, kind: &'static str, is_required, hint: Option<&str>| {
        form.input(Input { name, label: &visit.text(key), kind: Some(kind), is_required, hint, ..Input::default() })
    };
    html! {
        div.line {
            (field("date", "date", "date", true, None))
            (field("from", "from", "time", true, None))
            (field("until", "until", "time", true, Some(&visit.text("until-hint"))))
            (field("endDate", "end-date", "date", false, None))
        }
    }
}

fn summary(values: &Form, visit: &Visit) -> String {
    let span = span_of(values, visit.zone).ok();
    span.map_or_else(String::new, |(start, end)| visit.span(DbTimestamp(start), DbTimestamp(end)))
}

/// The event as somebody else has saved it meanwhile.
fn present_version(conn: &mut AnyConnection, event: &EventDetail, visit: &Visit) -> Result<Markup, Error> {
    let (row, people) = (&event.row, People::load(conn, event.admins.iter().copied())?);
    Ok(html! {
        div.refusal {
            b { (visit.text("present-version")) }
            p {
                (row.name) br;
                (visit.span(row.starts_at, row.ends_at)) ", " (row.place) br;
                (event.group.row.name)
                @for tag in &event.tags { " #" (tag.name) }
                @for (key, _) in [("shared", row.shared), ("open", row.open)].iter().filter(|(_, is_so)| *is_so) {
                    br; (visit.text(key))
                }
            }
            @if !row.description.is_empty() { p.text { (row.description) } }
            p { (visit.text("admins")) ": " (people.list(&event.admins, visit)) }
            p { a href={ "/events/" (row.id) "/edit" } { (visit.text("discard-mine")) } }
        }
    })
}
