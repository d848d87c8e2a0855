//! The page of a poll: the caller's answer, the results, and the confirmation.

use std::collections::HashMap;

use actix_web::{HttpRequest, web::Path};
use common::{input::Id, problem::Problem};
use maud::{Markup, html};
use serde_json::{Value, json};
use service_kit::{
    database::{AnyConnection, PageBounds, types::DbUuid},
    error::{Error, Failure},
    http::{Form, Reply, form::request, query},
    page::{FormPage, Input, enter_button, see_booked, see_deleted_from, see_other},
};

use super::{
    choices::{conflict, group_choices},
    event_form::set_times,
    history::{self, Subject},
    people::People,
    polls::answered,
    queries::group_of_invitees,
    venue::{room_at_place, rooms_of},
    visit::{Visit, or_form_again},
};
use crate::{
    auth::{Caller, SignedIn},
    events,
    polls::{
        self, RequestAvailability, RequestConfirmation,
        answers::{self, Answer},
        changes,
        confirmation::{self, Confirmation},
        queries::{self, DraftEventStatus, PollDetail, check_admin_or_privileged, get_detail},
        results::{Choice, SlotResult, by_user, tally},
    },
    rooms::overlap::Span,
};

/// The most people in the table of results.
const MAX_PEOPLE: usize = 100;

pub async fn show(visit: Visit, who: SignedIn, id: Path<Id>) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.read(move |conn, me| {
        let shown = page(conn, me, &visit, id, None, None);
        history::or_deleted(shown, conn, me, &visit, (Subject::Poll, id))
    })
    .await
}

fn page(
    conn: &mut AnyConnection,
    me: &Caller,
    visit: &Visit,
    id: DbUuid,
    typed: Option<&Form>,
    problem: Option<&Problem>,
) -> Result<Reply, Error> {
    let poll = get_detail(conn, id)?;
    let row = &poll.poll.row;
    let (answers, choices) = (queries::answers(conn, id, &PageBounds::all())?, queries::choices(conn, id, None)?);
    let results = tally(&poll.slots, &choices, answers.len());
    let mine: Vec<_> = choices.iter().filter(|choice| choice.user == me.id).copied().collect();
    let people = People::load(conn, answers.iter().map(|answer| answer.user).chain(poll.poll.admins.iter().copied()))?;
    let (status, is_admin) = (row.status(visit.now), check_admin_or_privileged(conn, id, me).is_ok());
    let is_asked = row.open || poll.invitees.binary_search(&me.id).is_ok() || poll.poll.admins.contains(&me.id);
    if problem.is_some() && !is_asked {
        return Err(Problem::forbidden("an open poll or an invitation").into());
    }
    let own_comment = answers.iter().find(|answer| answer.user == me.id).map(|answer| answer.comment.clone());
    let values = typed.cloned().unwrap_or_else(|| answer_values(&mine, own_comment.as_ref()));
    let form = FormPage { page: visit.page(), values: &values, problem, aliases: &[] };
    let comments: Vec<_> =
        answers.iter().filter_map(|answer| Some((answer.user, answer.comment.as_deref()?))).collect();
    let by_person = by_user(choices.clone());
    let respondents: Vec<_> = answers.iter().map(|answer| answer.user).collect();
    let body = html! {
        p.mute {
            (visit.format("deadline-at", &[("at", visit.moment(row.deadline).into())])) (visit.language.separator())
            (answered(&poll.poll, visit))
        }
        @if !row.description.is_empty() { p.text { (row.description) } }
        @if let Some(event) = row.event_id {
            p { a.button.primary href={ "/events/" (event) } { (visit.text("poll-event")) } }
        }
        @if status == DraftEventStatus::Open && is_asked {
            h2 { (visit.text("my-times")) }
            (form.refusal())
            (form.form(&format!("/polls/{id}/answer"), None, &answer_fields(&poll, &form, own_comment.is_some(), visit)))
        }
        h2 { (visit.text("results")) }
        (result_table(&poll, &results, &respondents, &by_person, &people, visit))
        @if !comments.is_empty() {
            div.card { ul.rows.named { @for (user, comment) in comments.iter().take(MAX_PEOPLE) {
                li { div { b { (people.display_name(*user)) } br; (comment) } }
            } } }
        }
        h2 { (visit.text("admins")) }
        p { (people.list(&poll.poll.admins, visit)) }
        (history::section(conn, me, visit, Subject::Poll, id)?)
    };
    let actions = html! {
        @if is_admin {
            @if status != DraftEventStatus::Confirmed {
                a.button.primary href={ "/polls/" (id) "/confirm" } { (visit.text("confirm-a-time")) }
                a.button href={ "/polls/" (id) "/edit" } { (visit.text("edit")) }
            }
            a.button.danger href={ "/polls/" (id) "/delete" } { (visit.text("delete")) }
        }
    };
    Ok(visit.reply_with_actions(&row.name, actions, body))
}

fn answer_values(mine: &[Choice], comment: Option<&Option<String>>) -> Form {
    let choice =
        |choice: &Choice| (format!("slot-{}", choice.slot), if choice.maybe { "maybe" } else { "yes" }.to_owned());
    let mut form = Form::new(mine.iter().map(choice));
    form.push("comment", comment.cloned().flatten().unwrap_or_default());
    form
}

fn answer_fields(poll: &PollDetail, form: &FormPage<'_>, has_answered: bool, visit: &Visit) -> Markup {
    let choices = [("yes", "slot-yes"), ("maybe", "slot-maybe"), ("no", "slot-no")];
    html! {
        ul.rows { @for slot in &poll.slots {
            @let name = format!("slot-{}", slot.id);
            @let chosen = match form.values.get(&name) { "" if has_answered => "no", chosen => chosen };
            @let span = visit.span(slot.starts_at, slot.ends_at);
            li {
                div { b.nowrap { (visit.time(visit.local(slot.starts_at).date())) } }
                time { (visit.hours(slot.starts_at, slot.ends_at)) }
                div.seg role="radiogroup" aria-label=(span) {
                    @for (value, key) in choices {
                        label class=(value) { input type="radio" name=(name) value=(value) checked[value == chosen]; (visit.text(key)) }
                    }
                }
            }
        } }
        (form.input(Input { name: "comment", label: &visit.text("comment"), max_length: Some(500), ..Input::default() }))
        p.hint { (visit.text("unmarked-is-no")) }
        div.actions { button.primary { (visit.text(if has_answered { "change-answer" } else { "answer" })) } }
    }
}

fn result_table(
    poll: &PollDetail,
    results: &[SlotResult],
    respondents: &[DbUuid],
    by_person: &HashMap<DbUuid, Vec<Choice>>,
    people: &People,
    visit: &Visit,
) -> Markup {
    let mark = |user: &DbUuid, slot: DbUuid| {
        let choice = by_person.get(user).and_then(|choices| choices.iter().find(|choice| choice.slot == slot));
        match choice {
            Some(Choice { maybe: false, .. }) => ("badge good", "slot-yes"),
            Some(_) => ("badge warn", "slot-maybe"),
            None => ("mute", "slot-no"),
        }
    };
    let percent = |n: usize| format!("{}%", n * 100 / respondents.len().max(1));
    html! {
        div.card { ul.rows { @for (slot, result) in poll.slots.iter().zip(results) {
            li {
                div {
                    b.nowrap { (visit.time(visit.local(slot.starts_at).date())) } br;
                    time { (visit.hours(slot.starts_at, slot.ends_at)) }
                }
                div {
                    svg.share aria-hidden="true" {
                        rect.y width=(percent(result.yes.len())) height="100%" {}
                        rect.m x=(percent(result.yes.len())) width=(percent(result.maybe.len())) height="100%" {}
                    }
                    small {
                        (visit.format("slot-answers", &[("yes", result.yes.len().into()), ("maybe", result.maybe.len().into())]))
                    }
                }
                @if result.is_top { span.badge.good { (visit.text("best")) } } @else { i {} }
            }
        } } }
        @if !respondents.is_empty() {
            h2 { (visit.text("answers")) }
            div.table.stick tabindex="0" role="region" aria-label=(visit.text("answers")) {
                table.results {
                    thead { tr {
                        th scope="col" { (visit.text("name")) }
                        @for slot in &poll.slots {
                            th scope="col" {
                                (visit.time(visit.local(slot.starts_at).date())) br; (visit.hours(slot.starts_at, slot.ends_at))
                            }
                        }
                    } }
                    tbody {
                        @for user in respondents.iter().take(MAX_PEOPLE) {
                            tr {
                                th scope="row" { (people.display_name(*user)) }
                                @for slot in &poll.slots {
                                    @let (class, key) = mark(user, slot.id);
                                    td { span class=(class) { (visit.text(key)) } }
                                }
                            }
                        }
                    }
                }
            }
            @if respondents.len() > MAX_PEOPLE { p.mute { (visit.count("and-more", respondents.len() - MAX_PEOPLE)) } }
        }
    }
}

/// Answers, or changes the answer.
pub async fn answer(visit: Visit, who: SignedIn, id: Path<Id>, form: Form) -> Result<Reply, Failure> {
    let (id, again) = (DbUuid::from(*id), (who.clone(), visit.clone()));
    let slots = |chosen: &str| -> Vec<&str> {
        let names = form.iter().filter(|(_, value)| *value == chosen);
        names.filter_map(|(name, _)| name.strip_prefix("slot-")).collect()
    };
    let comment = Some(form.get("comment")).filter(|comment| !comment.is_empty());
    let body = json!({ "slotIds": slots("yes"), "maybeSlotIds": slots("maybe"), "comment": comment });
    let result = match request::<RequestAvailability>(body).map(Answer::from) {
        Err(failure) => Err(failure),
        Ok(answer) => {
            who.update(polls::parent(id), move |conn, me| {
                if queries::answer_of(conn, id, me.id).is_ok() {
                    answers::update(conn, id, me.id, &answer, visit.now)?;
                } else {
                    answers::create(conn, id, me.id, &answer, visit.now)?;
                }
                Ok(see_other(format!("/polls/{id}")))
            })
            .await
        }
    };
    let (who, visit) = again;
    or_form_again(result, who, move |conn, me, problem| page(conn, me, &visit, id, Some(&form), Some(problem))).await
}

/// The form that makes a slot an event: the slot first, then the rooms that are free then.
pub async fn ask_to_confirm(req: HttpRequest, visit: Visit, who: SignedIn, id: Path<Id>) -> Result<Reply, Failure> {
    let (id, typed) = (DbUuid::from(*id), Form::new(query::pairs(&req)));
    who.read(move |conn, me| confirm_page(conn, me, &visit, id, &typed, None)).await
}

/// The form, for whoever may send it.
fn confirm_page(
    conn: &mut AnyConnection,
    me: &Caller,
    visit: &Visit,
    id: DbUuid,
    typed: &Form,
    problem: Option<&Problem>,
) -> Result<Reply, Error> {
    let poll = get_detail(conn, id)?;
    check_admin_or_privileged(conn, id, me)?;
    let (answers, choices) = (queries::answers(conn, id, &PageBounds::all())?, queries::choices(conn, id, None)?);
    let results = tally(&poll.slots, &choices, answers.len());
    let best = results.iter().find(|result| result.is_top).or(results.first()).map(|result| result.slot);
    let chosen = typed.get("slotId").parse::<Id>().ok().map(DbUuid::from).or(best);
    let mut values = typed.clone();
    values.set("slotId", chosen.map(|slot| slot.to_string()).unwrap_or_default());
    for name in ["room", "place"] {
        values.set(name, typed.get(name).to_owned());
    }
    if let Some(slot) = poll.slots.iter().find(|slot| Some(slot.id) == chosen) {
        set_times(&mut values, visit, slot.starts_at, slot.ends_at);
    }
    let slots: Vec<_> = poll
        .slots
        .iter()
        .zip(&results)
        .map(|(slot, result)| {
            let best = if result.is_top { visit.text("best") } else { String::new() };
            (slot.id.to_string(), format!("{} ({}) {best}", visit.span(slot.starts_at, slot.ends_at), result.yes.len()))
        })
        .collect();
    let rooms = rooms_of(conn, &values, visit, None)?;
    let mut values = rooms.choose(&values, problem);
    if values.get("groupId").is_empty() {
        values.set("groupId", group_of_invitees(conn, &poll.invitees)?.to_string());
    }
    let form = FormPage { page: visit.page(), values: &values, problem, aliases: &[("roomId", "room")] };
    let groups = group_choices(conn, me)?;
    let here = format!("/polls/{id}/confirm");
    let body = html! {
        (rooms.refusal(&form, visit))
        (form.form(&here, None, &html! {
            (enter_button(&visit.text("confirm")))
            (form.select("slotId", &visit.text("time"), None, &slots))
            button formmethod="get" formaction=(here) formnovalidate { (visit.text("show-free-rooms")) }
            (conflict(conn, &values, visit, problem)?)
            (rooms.fields(&form, visit))
            (form.select("groupId", &visit.text("group"), Some(&visit.text("group-hint")), &groups))
            (form.check_box("open", &visit.text("open"), Some(&visit.text("open-hint"))))
            (form.check_box("sharedRoom", &visit.text("shared"), Some(&visit.text("shared-hint"))))
            div.actions {
                button.primary { (visit.text("confirm")) }
                a href={ "/polls/" (id) } { (visit.text("cancel")) }
            }
        }))
    };
    Ok(visit.reply(&visit.format("confirm-poll", &[("name", poll.poll.row.name.as_str().into())]), body))
}

/// The confirmation with the room of the chosen place that contains the slot.
fn at_place_of_room(conn: &mut AnyConnection, id: DbUuid, chosen: Confirmation) -> Result<Confirmation, Error> {
    let slots = get_detail(conn, id)?.slots;
    let Some(slot) = slots.iter().find(|slot| slot.id == chosen.slot) else { return Ok(chosen) };
    let wanted = (Span::between(slot.starts_at, slot.ends_at), chosen.shared);
    Ok(Confirmation { venue: room_at_place(conn, chosen.venue.clone(), wanted, None)?, ..chosen })
}

/// Makes a slot an event.
pub async fn confirm(visit: Visit, who: SignedIn, id: Path<Id>, form: Form) -> Result<Reply, Failure> {
    let (id, again) = (DbUuid::from(*id), (who.clone(), visit.clone()));
    let room = form.get("room");
    let body = json!({
        "slotId": form.get("slotId"),
        "roomId": if room.is_empty() { Value::Null } else { json!(room) },
        "place": if room.is_empty() { json!(form.get("place")) } else { Value::Null },
        "groupId": form.get("groupId"),
        "open": form.has("open", "true"),
        "sharedRoom": form.has("sharedRoom", "true"),
    });
    let result = match request::<RequestConfirmation>(body).map(Confirmation::from) {
        Err(failure) => Err(failure),
        Ok(confirmation) => {
            who.queued_by(&confirmation.venue.clone())
                .update(polls::confirmed(id, visit.now, visit.zone), move |conn, me| {
                    let confirmation = at_place_of_room(conn, id, confirmation.clone())?;
                    let event = confirmation::confirm(conn, id, &confirmation, me, visit.zone, visit.now)?;
                    events::show_created(conn, event, &me.author, visit.zone)?;
                    Ok(see_booked(&format!("/events/{event}")))
                })
                .await
        }
    };
    let (who, visit) = again;
    or_form_again(result, who, move |conn, me, problem| confirm_page(conn, me, &visit, id, &form, Some(problem))).await
}

/// Asks whether to delete it.
pub async fn ask_to_delete(visit: Visit, who: SignedIn, id: Path<Id>) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.read(move |conn, me| delete_page(conn, me, &visit, id, None)).await
}

fn delete_page(
    conn: &mut AnyConnection,
    me: &Caller,
    visit: &Visit,
    id: DbUuid,
    problem: Option<&Problem>,
) -> Result<Reply, Error> {
    let name = queries::find(conn, id)?.name;
    check_admin_or_privileged(conn, id, me)?;
    let tag = polls::target(id, visit.now, visit.zone).tag(conn, me)?;
    let (form, back) = (format!("/polls/{id}/delete"), format!("/polls/{id}"));
    Ok(visit.ask_to_delete("delete-poll", (&html! { b { (name) } }, &html! {}), (&form, &tag), &back, problem))
}

/// Deletes it.
pub async fn delete(visit: Visit, who: SignedIn, id: Path<Id>, _form: Form) -> Result<Reply, Failure> {
    let (id, again) = (DbUuid::from(*id), (who.clone(), visit.clone()));
    let result = who.update(polls::target(id, visit.now, visit.zone), move |conn, me| {
        changes::delete(conn, id, me, visit.now)?;
        Ok(see_deleted_from("/polls", id))
    });
    let (result, (who, visit)) = (result.await, again);
    or_form_again(result, who, move |conn, me, problem| delete_page(conn, me, &visit, id, Some(problem))).await
}
