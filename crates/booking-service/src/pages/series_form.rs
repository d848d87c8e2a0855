//! The parts of an event's form that are about series: when it repeats, the dates that this gives, with what is in their
//! way, and a change of this and all later dates.

use std::collections::BTreeSet;

use actix_web::web::Path;
use chrono::{Datelike as _, NaiveDate};
use chrono_tz::Tz;
use common::{
    input::{Id, IdSet},
    problem::{Problem, Rule as BrokenRule, Violations},
    typed_time::{TypedDate, plain},
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
    http::{Form, Reply},
    page::{see_booked, see_deleted_from, see_other},
};

use super::{
    choices::{events_by_id, in_new_tab},
    event, event_form,
    queries::dates_of_series,
    repetition::{Dates, SHOW_DATES, address_of, repeats},
    series_dates::{Places, left_out, list, notice},
    venue::{at_chosen_time, at_place, place_of, rooms_of},
    visit::{Visit, or_form_again, span_of, typed},
};
use crate::{
    auth::{Caller, SignedIn},
    codes,
    events::{
        changes::{Draft, Venue},
        creation::check_references,
        queries::{EventDetail, find, get},
    },
    rooms,
    series::{
        SkippedDate,
        creation::{self, NewSeries},
        delete_occurrences, later_occurrences, record_new_series,
        refused::Refused,
        revision::{self, SeriesChange},
        rule::{DAYS, FirstTimes, Rule, Times, day_name, expand},
        series_conflict,
    },
};

/// The rule of a form whose first date this is.
fn rule(form: &Form, first: NaiveDate) -> Result<Rule, Problem> {
    let of_first = day_name(first.weekday());
    let how = match form.get("repeat") {
        "daily" => "FREQ=DAILY".to_owned(),
        "weekly" => {
            let chosen = DAYS.map(day_name).into_iter().filter(|day| *day == of_first || form.has("day", day));
            format!("FREQ=WEEKLY;BYDAY={}", chosen.collect::<Vec<_>>().join(","))
        }
        "monthly" => "FREQ=MONTHLY".to_owned(),
        _ => {
            let is_last = first.day() + 7 > u32::from(first.num_days_in_month());
            let number = if is_last { "-1".to_owned() } else { ((first.day() - 1) / 7 + 1).to_string() };
            format!("FREQ=MONTHLY;BYDAY={number}{of_first}")
        }
    };
    let (every, times) = (plain(form.get("every")), plain(form.get("times")));
    let every = Some(every).filter(|every| !every.is_empty()).unwrap_or_else(|| "1".to_owned());
    let end = if !is_blank(form.get("repeatUntil")) {
        let mut violations = Violations::default();
        let Some(TypedDate(until)) = typed(form, "repeatUntil", &mut violations) else { return Err(violations.into()) };
        format!("UNTIL={}", until.format("%Y%m%d"))
    } else if times.is_empty() {
        return Err(Problem::invalid("/times", BrokenRule::Required, "or the last day must be given"));
    } else {
        format!("COUNT={times}")
    };
    let text = format!("{how};INTERVAL={every};{end}");
    text.parse::<Rule>().map_err(|message| Problem::invalid("/repeat", BrokenRule::Invalid, message))
}

/// The rule of a form and its dates.
fn dates(form: &Form, zone: Tz) -> Result<(Rule, Vec<Times>), Problem> {
    let (start, end) = span_of(form, zone)?;
    let first = FirstTimes::of(start, end, zone);
    let first = first.ok_or_else(|| Problem::invalid("/until", BrokenRule::OutOfOrder, "must be after the start"))?;
    let rule = rule(form, first.date)?;
    let dates = expand(&rule, &first, zone);
    let dates = dates.map_err(|refusal| Problem::invalid("/repeat", BrokenRule::Range, refusal.to_string()))?;
    Ok((rule, dates))
}

/// Creates an event, or a series, whose dates are listed first.
pub async fn create(visit: Visit, who: SignedIn, form: Form) -> Result<Reply, Failure> {
    if !repeats(&form) || event_form::shows_rooms(&form) {
        return event_form::create(visit, who, form).await;
    }
    let form = at_chosen_time(form);
    let (values, again) = (form.clone(), (who.clone(), visit.clone()));
    let venue = event_form::venue(&form);
    let result = match dates(&form, visit.zone) {
        Err(problem) => Err(Failure(problem)),
        Ok((rule, dates)) => {
            let listed: BTreeSet<_> = form.all("listed").map(str::to_owned).collect();
            let all: BTreeSet<_> = dates.iter().map(|times| times.date.to_string()).collect();
            let is_asked_for = form.has(SHOW_DATES, "true");
            let lists = is_asked_for || listed != all;
            // A dry run, because what is in the way of a booking is only known under its locks.
            let who = who.dry_run(lists).queued_by(&venue);
            who.create(move |conn, me| {
                if is_asked_for {
                    return preview(conn, me, &visit, &form, (&rule, &dates));
                }
                let draft = event_form::draft(conn, &form, visit.zone)?;
                if lists {
                    check_references(conn, &draft, None)?;
                    return preview(conn, me, &visit, &form, (&rule, &dates));
                }
                let draft = at_place(conn, draft)?;
                let place = place_of(conn, &form)?;
                let places = Places::load(conn, &form, place, &dates)?;
                let (rule, exdates, chosen) = (rule.clone(), left_out(&form), places.chosen.clone());
                let new = NewSeries { draft, rule, exdates, skips_conflicts: false, places: chosen };
                if places.must_be_shown(&form, &dates) {
                    let (_, refused) = creation::check(conn, &new, visit.zone)?;
                    return Err(series_conflict(&refused, visit.zone));
                }
                let (id, _) = creation::create(conn, &new, &me.author, visit.zone, visit.now)?;
                let series = record_new_series(conn, id, &me.author, visit.zone)?;
                let first = series.events.first().map(|event| event.row.id);
                Ok(see_booked(&first.map_or_else(|| "/events".to_owned(), |event| format!("/events/{event}"))))
            })
            .await
        }
    };
    let (who, visit) = again;
    or_form_again(result, who, move |conn, me, problem| {
        let refused = problem.extra("dates").and_then(Value::as_array).cloned().unwrap_or_default();
        let are_listed = problem.code() == codes::SERIES_CONFLICT || values.all("listed").next().is_some();
        let list = match dates(&values, visit.zone) {
            Ok((_, dates)) if are_listed => {
                let place = place_of(conn, &values)?;
                let places = Places::load(conn, &values, place, &dates)?;
                Dates { list: list(conn, &visit, &values, &dates, &places, &refused)?, ..Dates::default() }
            }
            _ => Dates::default(),
        };
        event_form::show(conn, me, &visit, None, &values, Some(problem), &list)
    })
    .await
}

/// The form with its dates, what is in their way, and the rooms that are free instead. Nothing else need be typed yet.
fn preview(
    conn: &mut AnyConnection,
    me: &Caller,
    visit: &Visit,
    form: &Form,
    (rule, dates): (&Rule, &[Times]),
) -> Result<Reply, Error> {
    // The room that the form will show as chosen.
    let has_room = !form.get("room").is_empty();
    let form = &if has_room { form.clone() } else { rooms_of(conn, form, visit, None)?.choose(form, None) };
    let place = place_of(conn, form)?;
    let places = Places::load(conn, form, place, dates)?;
    let refused = if let Some(place) = &places.place {
        let (start, end) = span_of(form, visit.zone)?;
        let (span, admins) = ((DbTimestamp(start), DbTimestamp(end)), IdSet::new([me.id.0]));
        let draft = Draft::new(String::new(), span, Venue::Place(place.clone()), DbUuid::nil(), admins);
        let draft = Draft { shared: form.has("sharedRoom", "true"), ..draft };
        let (rule, exdates, places) = (rule.clone(), BTreeSet::new(), places.chosen.clone());
        let new = NewSeries { draft, rule, exdates, skips_conflicts: false, places };
        creation::check_dates(conn, &new, visit.zone)?.1
    } else {
        let skipped = dates.iter().filter(|times| !times.exist);
        let span = |times: &Times| (DbTimestamp(times.starts_at), DbTimestamp(times.ends_at));
        skipped.map(|times| Refused::nonexistent(0, span(times))).collect()
    };
    let refused: Vec<_> = refused.iter().map(|date| json!(SkippedDate::refused(date, visit.zone))).collect();
    let list = list(conn, visit, form, dates, &places, &refused)?;
    let dates = Dates { notice: notice(visit, dates, &places, &refused), list };
    event_form::show(conn, me, visit, None, form, None, &dates)
}

/// Whether a form changes later events as well.
fn changes_later(form: &Form) -> Option<DbUuid> {
    form.get("series").parse::<Id>().ok().filter(|_| form.has("scope", "later")).map(DbUuid::from)
}

/// Changes an event, or also the later ones of its series.
pub async fn update(visit: Visit, who: SignedIn, id: Path<Id>, form: Form) -> Result<Reply, Failure> {
    match changes_later(&form).filter(|_| !event_form::shows_rooms(&form)) {
        Some(series) => update_later(visit, who, DbUuid::from(*id), series, at_chosen_time(form)).await,
        None => event_form::update(visit, who, id, form).await,
    }
}

/// Deletes an event, also the later ones of its series, or all of them.
pub async fn delete(visit: Visit, who: SignedIn, id: Path<Id>, form: Form) -> Result<Reply, Failure> {
    let are_all = form.has("scope", "all");
    let series = form.get("series").parse::<Id>().ok().filter(|_| are_all || form.has("scope", "later"));
    let Some(series) = series.map(DbUuid::from) else { return event::delete(visit, who, id, form).await };
    let (id, again) = (DbUuid::from(*id), (who.clone(), visit.clone()));
    let target = later_occurrences(series, id, visit.zone);
    let result = who.queued_by(&series).update(target, move |conn, me| {
        let event = find(conn, id)?;
        if event.series_id != Some(series) {
            return Err(Problem::not_found("event in the series").into());
        }
        let first = dates_of_series(conn, &event)?.first().map(|(_, start, _)| *start);
        let from = first.filter(|_| are_all).unwrap_or(event.starts_at);
        delete_occurrences(conn, series, from, me, visit.zone, visit.now)?;
        Ok(see_deleted_from(&address_of(series), series))
    });
    let (result, (who, visit)) = (result.await, again);
    or_form_again(result, who, move |conn, me, problem| event::delete_page(conn, me, &visit, id, Some(problem))).await
}

async fn update_later(visit: Visit, who: SignedIn, id: DbUuid, series: DbUuid, form: Form) -> Result<Reply, Failure> {
    let (values, again) = (form.clone(), (who.clone(), visit.clone()));
    let target = later_occurrences(series, id, visit.zone);
    let result = who.queued_by(&series).update(target, move |conn, me| {
        let present = get(conn, id)?;
        if present.row.series_id != Some(series) {
            return Err(Problem::not_found("event in the series").into());
        }
        let draft = event_form::draft(conn, &form, visit.zone)?;
        let change = change(conn, &visit, &present, draft)?;
        revision::update(conn, series, &change, me, visit.zone, visit.now)?;
        Ok(see_other(format!("/events/{id}")))
    });
    let (result, (who, visit)) = (result.await, again);
    or_form_again(result, who, move |conn, me: &Caller, problem| {
        let event = get(conn, id)?;
        let refused = problem.extra("dates").and_then(Value::as_array).cloned().unwrap_or_default();
        let list = Dates { list: in_the_way(conn, &visit, &refused)?, ..Dates::default() };
        event_form::show(conn, me, &visit, Some(&event), &values, Some(problem), &list)
    })
    .await
}

/// What a form changes of an event, as a change of the series from it on.
fn change(conn: &mut AnyConnection, visit: &Visit, present: &EventDetail, draft: Draft) -> Result<SeriesChange, Error> {
    let row = &present.row;
    let mut of_draft = draft.admins();
    of_draft.sort_unstable();
    let Draft { name, description, shared, starts_at, ends_at, venue, group, open, admins, tags } = draft;
    let days = |at: [DbTimestamp; 2]| at.map(|at| visit.local(at).date());
    if days([starts_at, ends_at]) != days([row.starts_at, row.ends_at]) {
        let message = "can be another day only for one event";
        return Err(Problem::invalid("/date", BrokenRule::NotAllowed, message).into());
    }
    let time = |new: DbTimestamp, old: DbTimestamp| (new != old).then(|| visit.local(new).time());
    let place = match &venue {
        Venue::Room(room) if *room == row.room_id => None,
        Venue::Room(room) => rooms::queries::find(conn, *room)?.map(|room| room.place),
        Venue::Place(place) => Some(place.clone()).filter(|place| *place != row.place),
    };
    let present_tags: BTreeSet<_> = present.tags.iter().map(|tag| (tag.name.clone(), tag.locked)).collect();
    Ok(SeriesChange {
        from: row.starts_at,
        include_changed: false,
        start: time(starts_at, row.starts_at),
        end: time(ends_at, row.ends_at),
        place,
        shared: Some(shared).filter(|shared| *shared != row.shared),
        open: Some(open).filter(|open| *open != row.open),
        group: Some(group).filter(|group| *group != row.group_id),
        admins: (of_draft != present.admins).then_some(admins),
        tags: (tags.iter().cloned().collect::<BTreeSet<_>>() != present_tags).then_some(tags),
        name: Some(name).filter(|name| *name != row.name),
        description: Some(description).filter(|description| *description != row.description),
        until: None,
    })
}

/// The dates that are in the way of a change.
pub(super) fn in_the_way(conn: &mut AnyConnection, visit: &Visit, refused: &[Value]) -> Result<Markup, Error> {
    let time = |date: &Value, name: &str| Some(DbTimestamp(date[name].as_str()?.parse().ok()?));
    let ids = refused.iter().flat_map(|date| date["conflicts"].as_array().into_iter().flatten());
    let ids = ids.filter_map(|event| event["eventId"].as_str()?.parse::<Id>().ok()).map(DbUuid::from).collect();
    let taken = events_by_id(conn, ids)?;
    Ok(html! {
        @if !refused.is_empty() { div.refusal {
            ul { @for date in refused { @if let (Some(start), Some(end)) = (time(date, "timeStart"), time(date, "timeEnd")) {
                li { (visit.span(start, end)) ": " (visit.text(&format!("series-{}", date["code"].as_str().unwrap_or_default()))) }
            } } }
            ul { @for event in &taken {
                li { (in_new_tab(event)) ", " (visit.span(event.starts_at, event.ends_at)) }
            } }
        } }
    })
}
