//! The pages on which members act, if the service serves no front end.
//!
//! They are one slice, after all others: a page shows things of many slices, and the others stay free of HTML. A form is
//! parsed into the request of an operation and runs by the guard and the function of that operation, so no rule is
//! here. The layout, the fields and the texts in each language are in [`service_kit::page`] and `locales/`.

mod choices;
mod deleted;
mod event;
mod event_form;
mod events;
mod groups;
mod history;
mod invitations;
mod me;
mod members;
mod month;
mod people;
mod poll;
mod poll_form;
mod polls;
pub mod queries;
mod repetition;
mod room;
mod rooms;
mod series;
mod series_dates;
mod series_form;
mod start;
mod venue;
mod visit;
mod webhook_form;
mod webhooks;

use actix_web::web::{ServiceConfig, resource};
use club_sign_in::flow;
use service_kit::state::SIGN_OUT_PATH;

/// The pages that every page links to, and the keys of their texts.
pub const NAVIGATION: &[(&str, &str)] = &[
    ("/", "start"),
    ("/board", "board"),
    ("/events", "events"),
    ("/polls", "polls"),
    ("/groups", "groups"),
    ("/rooms", "rooms"),
    ("/me", "me"),
];

/// The parameters of these pages. None of them holds a secret.
pub const PARAMETERS: &[&str] = &[
    "month",
    "search",
    "group",
    "tag",
    "date",
    "from",
    "until",
    "endDate",
    "room",
    "place",
    "sharedRoom",
    "groupId",
    "copy",
    "slotId",
    "before",
    "after",
    "day",
    "view",
    "scope",
    "kind",
    "format",
];

/// The paths of all pages of an installation without a front end.
pub const PATHS: &[&str] = &[
    "/",
    "/callback",
    flow::PAGE,
    SIGN_OUT_PATH,
    "/events",
    "/events/new",
    "/events/{eventID}",
    "/events/{eventID}/edit",
    "/events/{eventID}/delete",
    "/events/{eventID}/history",
    "/events/{eventID}/calendar.ics",
    "/series/{seriesID}",
    "/series/{seriesID}/delete",
    "/polls",
    "/polls/new",
    "/polls/{draftEventID}",
    "/polls/{draftEventID}/edit",
    "/polls/{draftEventID}/confirm",
    "/polls/{draftEventID}/delete",
    "/polls/{draftEventID}/history",
    "/groups",
    "/groups/new",
    "/groups/{groupID}",
    "/groups/{groupID}/edit",
    "/groups/{groupID}/delete",
    "/groups/{groupID}/history",
    "/rooms",
    "/rooms/import",
    "/rooms/{roomID}",
    "/rooms/{roomID}/delete",
    "/rooms/{roomID}/history",
    "/deleted",
    "/privileges",
    "/invitations",
    "/webhooks",
    "/webhooks/new",
    "/webhooks/{webhookID}/edit",
    "/webhooks/{webhookID}/delete",
    "/members",
    "/me",
];

/// The paths to which they send forms.
pub const FORM_PATHS: &[&str] = &[
    SIGN_OUT_PATH,
    "/events/new",
    "/events/{eventID}/answer",
    "/events/{eventID}/edit",
    "/events/{eventID}/delete",
    "/events/{eventID}/tags",
    "/events/{eventID}/restore",
    "/events/{eventID}/revert",
    "/series/{seriesID}/dates",
    "/series/{seriesID}/until",
    "/series/{seriesID}/delete",
    "/series/{seriesID}/restore",
    "/polls/new",
    "/polls/{draftEventID}/answer",
    "/polls/{draftEventID}/edit",
    "/polls/{draftEventID}/confirm",
    "/polls/{draftEventID}/delete",
    "/polls/{draftEventID}/restore",
    "/groups/new",
    "/groups/{groupID}/edit",
    "/groups/{groupID}/delete",
    "/groups/{groupID}/join",
    "/groups/{groupID}/leave",
    "/groups/{groupID}/restore",
    "/rooms/import",
    "/rooms/{roomID}/verified",
    "/rooms/{roomID}/delete",
    "/rooms/{roomID}/restore",
    "/privileges",
    "/invitations",
    "/invitations/{invitationID}/delete",
    "/webhooks/new",
    "/webhooks/{webhookID}/edit",
    "/webhooks/{webhookID}/delete",
    "/webhooks/{webhookID}/secret",
    "/webhooks/{webhookID}/test",
    "/webhooks/{webhookID}/on",
    "/webhooks/{webhookID}/deliveries/{deliveryID}/retry",
    "/me/feed",
    "/me/tokens",
    "/me/tokens/{tokenID}/revoke",
    "/me/sessions/{sessionID}/end",
];

pub fn routes(config: &mut ServiceConfig) {
    config
        .service(resource("/").get(start::show))
        .service(resource("/events").get(events::list))
        .service(resource("/events/new").get(event_form::new).post(series_form::create))
        .service(resource("/events/{eventID}").get(event::show))
        .service(resource("/events/{eventID}/calendar.ics").get(event::calendar))
        .service(resource("/events/{eventID}/answer").post(event::answer))
        .service(resource("/events/{eventID}/tags").post(event::add_tag))
        .service(resource("/events/{eventID}/edit").get(event_form::edit).post(series_form::update))
        .service(resource("/events/{eventID}/delete").get(event::ask_to_delete).post(series_form::delete))
        .service(resource("/polls").get(polls::list))
        .service(resource("/polls/new").get(poll_form::new).post(poll_form::create))
        .service(resource("/polls/{draftEventID}").get(poll::show))
        .service(resource("/polls/{draftEventID}/answer").post(poll::answer))
        .service(resource("/polls/{draftEventID}/edit").get(poll_form::edit).post(poll_form::update))
        .service(resource("/polls/{draftEventID}/confirm").get(poll::ask_to_confirm).post(poll::confirm))
        .service(resource("/polls/{draftEventID}/delete").get(poll::ask_to_delete).post(poll::delete))
        .configure(routes_of_series)
        .configure(routes_of_people)
        .configure(routes_of_rooms)
        .configure(routes_of_history);
}

fn routes_of_series(config: &mut ServiceConfig) {
    config
        .service(resource("/series/{seriesID}").get(series::show))
        .service(resource("/series/{seriesID}/dates").post(series::add))
        .service(resource("/series/{seriesID}/until").post(series::set_end))
        .service(resource("/series/{seriesID}/delete").get(series::ask_to_delete).post(series::delete))
        .service(resource("/series/{seriesID}/restore").post(series::restore));
}

fn routes_of_people(config: &mut ServiceConfig) {
    config
        .service(resource("/groups").get(groups::list))
        .service(resource("/groups/new").get(groups::new).post(groups::create))
        .service(resource("/groups/{groupID}").get(groups::show))
        .service(resource("/groups/{groupID}/edit").get(groups::edit).post(groups::update))
        .service(resource("/groups/{groupID}/delete").get(groups::ask_to_delete).post(groups::delete))
        .service(resource("/groups/{groupID}/join").post(groups::join))
        .service(resource("/groups/{groupID}/leave").post(groups::leave))
        .service(resource("/members").get(members::list))
        .service(resource("/me").get(me::show))
        .service(resource("/me/feed").post(me::renew_feed))
        .service(resource("/me/tokens").post(me::create_token))
        .service(resource("/me/tokens/{tokenID}/revoke").post(me::revoke_token))
        .service(resource("/me/sessions/{sessionID}/end").post(me::end_session));
}

fn routes_of_rooms(config: &mut ServiceConfig) {
    config
        .service(resource("/rooms").get(rooms::list))
        .service(resource("/rooms/import").get(rooms::import_form).post(rooms::import))
        .service(resource("/rooms/{roomID}").get(room::show))
        .service(resource("/rooms/{roomID}/verified").post(rooms::verify))
        .service(resource("/rooms/{roomID}/delete").get(rooms::ask_to_delete).post(rooms::delete))
        .service(resource("/privileges").get(rooms::privileges).post(rooms::set_privilege))
        .service(resource("/invitations").get(invitations::show).post(invitations::create))
        .service(resource("/invitations/{invitationID}/delete").post(invitations::delete))
        .configure(routes_of_webhooks);
}

fn routes_of_webhooks(config: &mut ServiceConfig) {
    config
        .service(resource("/webhooks").get(webhooks::show))
        .service(resource("/webhooks/new").get(webhook_form::new).post(webhook_form::create))
        .service(resource("/webhooks/{webhookID}/edit").get(webhook_form::edit).post(webhook_form::update))
        .service(resource("/webhooks/{webhookID}/delete").get(webhook_form::ask_to_delete).post(webhook_form::delete))
        .service(resource("/webhooks/{webhookID}/secret").post(webhook_form::rotate))
        .service(resource("/webhooks/{webhookID}/test").post(webhooks::test))
        .service(resource("/webhooks/{webhookID}/on").post(webhooks::switch_on))
        .service(resource("/webhooks/{webhookID}/deliveries/{deliveryID}/retry").post(webhooks::retry));
}

fn routes_of_history(config: &mut ServiceConfig) {
    for object in ["/events/{eventID}", "/polls/{draftEventID}", "/groups/{groupID}", "/rooms/{roomID}"] {
        config
            .service(resource(format!("{object}/history")).get(history::show))
            .service(resource(format!("{object}/restore")).post(history::restore));
    }
    config
        .service(resource("/events/{eventID}/revert").post(history::revert))
        .service(resource("/deleted").get(deleted::list));
}
