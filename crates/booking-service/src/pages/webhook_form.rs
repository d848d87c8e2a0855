//! The forms of webhooks: where messages go, and which.

use actix_web::{HttpRequest, http::StatusCode, web::Path};
use common::{input::Id, problem::Problem};
use maud::{Markup, html};
use serde_json::{Value, json};
use service_kit::{
    database::{AnyConnection, types::DbUuid},
    error::{Error, Failure},
    http::{Form, Reply, form::request, query},
    page::{FormPage, Input, address, button, hidden, see_deleted, see_saved},
};

use super::visit::{Visit, or_form_again};
use crate::{
    auth::{Caller, Privileged},
    club::Club,
    webhooks::{
        self, RequestWebhook, RequestWebhookChange, Wake,
        changes::{self, Context},
        kinds::{Format, Type},
        queries::{self, Webhook},
    },
};

/// What a webhook may be told of by its form: the key of the text, and the types.
type Choice = (&'static str, &'static [Type]);

const MESSAGES: &[Choice] = &[
    ("announcements", &[Type::Announcement]),
    ("cancellations", &[Type::Cancellation]),
    ("digests", &[Type::Digest]),
    ("reminders", &[Type::Reminder]),
];

const CHANGES: &[Choice] = &[
    ("events", &[Type::EventCreated, Type::EventChanged, Type::EventDeleted, Type::EventRestored]),
    ("series", &[Type::SeriesCreated, Type::SeriesChanged, Type::SeriesDeleted]),
    ("rooms", &[Type::RoomVerified, Type::RoomUnverified, Type::RoomDeleted]),
    ("polls", &[Type::PollCreated, Type::PollClosed, Type::PollConfirmed]),
    ("groups", &[Type::GroupCreated, Type::GroupChanged, Type::GroupDeleted, Type::GroupRestored]),
];

/// The member of the requests that the check boxes show.
const ALIASES: &[(&str, &str)] = &[("types", "on")];

fn choices(format: Format) -> &'static [Choice] {
    if format == Format::Standard { CHANGES } else { MESSAGES }
}

/// Links to the form of each format.
pub fn links(visit: &Visit) -> Markup {
    let formats = [Format::Slack, Format::Discord, Format::Traq, Format::Standard];
    html! {
        @for format in formats {
            a.button href=(address("/webhooks/new", &[("format", format.word())])) { (visit.text(name_key(format))) }
        }
    }
}

/// The key of the name of a format.
pub fn name_key(format: Format) -> &'static str {
    match format {
        Format::Standard => "webhook-of-program",
        Format::Traq => "webhook-of-traq",
        Format::Slack => "webhook-of-slack",
        Format::Discord => "webhook-of-discord",
    }
}

/// The format in a form or in the parameters of its page. Without one it is that of most chats.
fn format_of(form: &Form) -> Result<Format, Problem> {
    match form.get("format") {
        "" => Ok(Format::Slack),
        word => word.parse().map_err(|_| Problem::not_found("format")),
    }
}

/// The form of a new webhook. The parameter `format` says for what.
pub async fn new(req: HttpRequest, visit: Visit, who: Privileged) -> Result<Reply, Failure> {
    let format = format_of(&Form::new(query::pairs(&req)))?;
    let mut values = Form::new(["name", "url", "channelId", "secret"].map(|name| (name, "")));
    values.push("language", visit.language.code());
    for (key, _) in choices(format) {
        values.push("on", *key);
    }
    who.read(move |_, _| Ok(new_page(&visit, format, &values, None))).await
}

fn new_page(visit: &Visit, format: Format, values: &Form, problem: Option<&Problem>) -> Reply {
    let form = FormPage { page: visit.page(), values, problem, aliases: ALIASES };
    let text = |key: &str| visit.text(key);
    let about = text(&format!("{}-about", name_key(format)));
    let body = html! {
        (form.refusal())
        (form.form("/webhooks/new", None, &html! {
            (hidden("format", format.word()))
            (form.input(Input { name: "url", label: &text("address"), kind: Some("url"), is_required: true,
                hint: Some(&about), autocomplete: Some("off"), ..Input::default() }))
            @if format == Format::Traq {
                (form.input(Input { name: "secret", label: &text("secret"), autocomplete: Some("off"), ..Input::default() }))
                (form.input(Input { name: "channelId", label: &text("channel"), is_required: true, ..Input::default() }))
            }
            (fields(&form, format, visit))
            div.actions {
                button.primary name="test" value="true" { (text("save-and-test")) }
                button { (text("save")) }
                a href="/webhooks" { (text("cancel")) }
            }
        }))
    };
    visit.reply(&visit.format("new-webhook", &[("format", text(name_key(format)).into())]), body)
}

/// The fields that a new webhook and a present one have.
fn fields(form: &FormPage<'_>, format: Format, visit: &Visit) -> Markup {
    let text = |key: &str| visit.text(key);
    let languages = [("ja", "日本語"), ("en", "English")].map(|(value, name)| (value.to_owned(), name.to_owned()));
    html! {
        (form.input(Input { name: "name", label: &text("webhook-name"), max_length: Some(64), is_required: true,
            ..Input::default() }))
        @if format != Format::Standard {
            (form.select("language", &text("webhook-language"), None, &languages))
        }
        fieldset #f-on tabindex="-1" {
            legend { (text("webhook-types")) }
            @for message in form.errors_of("types") { p.error { (message) } }
            @for (key, _) in choices(format) {
                label.check {
                    input type="checkbox" name="on" value=(key) checked[form.values.has("on", key)];
                    (text(&format!("webhook-{key}")))
                }
            }
        }
    }
}

/// The chosen types. Of a choice that the webhook has in part, it keeps that part.
fn types_of(form: &Form, format: Format, present: &[Type]) -> Vec<&'static str> {
    let chosen = choices(format).iter().filter(|(key, _)| form.has("on", key));
    let types = chosen.flat_map(|(_, types)| {
        let is_partial = types.iter().any(|kind| present.contains(kind));
        types.iter().filter(move |kind| !is_partial || present.contains(kind))
    });
    types.map(|kind| kind.word()).collect()
}

/// Creates a webhook. Its secret is shown once, if the service has made it.
pub async fn create(visit: Visit, club: Club, who: Privileged, wake: Wake, form: Form) -> Result<Reply, Failure> {
    let (format, values, again) = (format_of(&form)?, form.clone(), (who.clone(), visit.clone()));
    let given = |name: &str| Some(form.get(name).trim()).filter(|value| !value.is_empty()).map(str::to_owned);
    let body = json!({
        "name": form.get("name"),
        "url": form.get("url").trim(),
        "format": format.word(),
        "types": types_of(&form, format, &[]),
        "language": given("language").unwrap_or_else(|| "en".to_owned()),
        "channelId": given("channelId"),
        "secret": given("secret"),
    });
    let result = match request::<RequestWebhook>(body) {
        Err(failure) => Err(failure),
        Ok(new) => {
            let (context, has_test) = (Context::of(&club), form.has("test", "true"));
            who.create(move |conn, me| {
                let by = (me.id, &me.author);
                let (id, made) = webhooks::create_recorded(conn, &context, &new, by, visit.now, visit.zone)?;
                if has_test {
                    changes::test(conn, id, visit.now)?;
                }
                match made.secret.filter(|_| new.secret.is_none()) {
                    Some(secret) => Ok(show_secret(&visit, &secret)),
                    None => Ok(see_saved("/webhooks")),
                }
            })
            .await
        }
    };
    wake.up();
    let (who, visit) = again;
    or_form_again(result, who, move |_, _, problem| Ok(new_page(&visit, format, &values, Some(problem)).secret())).await
}

fn show_secret(visit: &Visit, secret: &str) -> Reply {
    let body = html! {
        p { (visit.text("secret-once")) }
        div.field { label for="secret" { (visit.text("secret")) } input #secret readonly value=(secret); }
        p { a.button.primary href="/webhooks" { (visit.text("done")) } }
    };
    visit.reply_with(StatusCode::CREATED, &visit.text("secret"), body).secret()
}

/// The form to change a webhook.
pub async fn edit(visit: Visit, who: Privileged, id: Path<Id>) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.read(move |conn, me| {
        let webhook = queries::get(conn, id)?;
        let mut values = Form::new([("name", &webhook.name), ("url", &webhook.shown_url)]);
        values.push("language", webhook.language.word());
        for key in chosen(&webhook) {
            values.push("on", key);
        }
        edit_page(conn, me, &visit, &webhook, &values, None)
    })
    .await
}

/// The choices of which a webhook gets messages.
fn chosen(webhook: &Webhook) -> impl Iterator<Item = &'static str> {
    let types = webhook.types();
    let has_part = move |kinds: &[Type]| kinds.iter().any(|kind| types.contains(kind));
    choices(webhook.format).iter().filter(move |(_, kinds)| has_part(kinds)).map(|(key, _)| *key)
}

/// The webhook as somebody else has saved it meanwhile.
fn present_version(webhook: &Webhook, visit: &Visit) -> Markup {
    html! {
        div.refusal {
            b { (visit.text("present-version")) }
            p { (webhook.name) br; (webhook.shown_url) }
            ul { @for key in chosen(webhook) { li { (visit.text(&format!("webhook-{key}"))) } } }
            p { a href={ "/webhooks/" (webhook.id) "/edit" } { (visit.text("discard-mine")) } }
        }
    }
}

fn edit_page(
    conn: &mut AnyConnection,
    me: &Caller,
    visit: &Visit,
    webhook: &Webhook,
    values: &Form,
    problem: Option<&Problem>,
) -> Result<Reply, Error> {
    let form = FormPage { page: visit.page(), values, problem, aliases: ALIASES };
    let (here, text) = (format!("/webhooks/{}", webhook.id), |key: &str| visit.text(key));
    let tag = webhooks::target(webhook.id, visit.zone).tag(conn, me)?;
    let is_stale = problem.is_some_and(|problem| problem.status() == 412);
    let body = html! {
        (form.refusal())
        @if is_stale { (present_version(webhook, visit)) }
        (form.form(&format!("{here}/edit"), Some(&tag), &html! {
            (form.input(Input { name: "url", label: &text("address"), is_required: true, hint: Some(&text("address-hint")),
                autocomplete: Some("off"), ..Input::default() }))
            (fields(&form, webhook.format, visit))
            div.actions {
                button.primary { (text("save")) }
                a href="/webhooks" { (text("cancel")) }
            }
        }))
        @if webhook.format.is_signed() {
            h2 { (text("new-secret")) }
            p { (text("new-secret-about")) }
            (button(&format!("{here}/secret"), &[], &text("new-secret"), None))
        }
    };
    let actions = html! { a.button.danger href={ (here) "/delete" } { (text("delete")) } };
    Ok(visit.reply_with_actions(&webhook.name, actions, body))
}

/// Changes a webhook.
pub async fn update(
    visit: Visit,
    club: Club,
    who: Privileged,
    wake: Wake,
    id: Path<Id>,
    form: Form,
) -> Result<Reply, Failure> {
    let (id, values, again) = (DbUuid::from(*id), form.clone(), (who.clone(), visit.clone()));
    let context = Context::of(&club);
    let result = who.update(webhooks::recorded(id, visit.zone), move |conn, _| {
        let webhook = queries::get(conn, id)?;
        let mut body = json!({
            "name": form.get("name"),
            "url": form.get("url").trim(),
            "types": types_of(&form, webhook.format, &webhook.types()),
        });
        if !form.get("language").is_empty() {
            body["language"] = Value::from(form.get("language"));
        }
        let change = request::<RequestWebhookChange>(body).map_err(|failure| failure.0)?;
        changes::update(conn, &context, id, &change, visit.now)?;
        Ok(see_saved("/webhooks"))
    });
    let (result, (who, visit)) = (result.await, again);
    wake.up();
    or_form_again(result, who, move |conn, me, problem| {
        let webhook = queries::get(conn, id)?;
        Ok(edit_page(conn, me, &visit, &webhook, &values, Some(problem))?.secret())
    })
    .await
}

/// Makes another secret, and shows it once.
pub async fn rotate(
    visit: Visit,
    club: Club,
    who: Privileged,
    wake: Wake,
    id: Path<Id>,
    _form: Form,
) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    let reply = who.update(webhooks::recorded(id, visit.zone), move |conn, _| {
        let secret = changes::rotate(conn, &club.keys, id, None, visit.now)?;
        Ok(show_secret(&visit, &secret))
    });
    let reply = reply.await?;
    wake.up();
    Ok(reply)
}

/// Asks whether to delete a webhook.
pub async fn ask_to_delete(visit: Visit, who: Privileged, id: Path<Id>) -> Result<Reply, Failure> {
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
    let webhook = queries::get(conn, id)?;
    let tag = webhooks::target(id, visit.zone).tag(conn, me)?;
    let (what, form) = (html! { b { (webhook.name) } }, format!("/webhooks/{id}/delete"));
    Ok(visit.ask_to_delete("delete-webhook", (&what, &html! {}), (&form, &tag), "/webhooks", problem))
}

/// Deletes a webhook.
pub async fn delete(visit: Visit, who: Privileged, id: Path<Id>, _form: Form) -> Result<Reply, Failure> {
    let (id, again) = (DbUuid::from(*id), (who.clone(), visit.clone()));
    let result = who.update(webhooks::target(id, visit.zone), move |conn, me| {
        webhooks::delete_recorded(conn, id, &me.author)?;
        Ok(see_deleted("/webhooks"))
    });
    let (result, (who, visit)) = (result.await, again);
    or_form_again(result, who, move |conn, me, problem| delete_page(conn, me, &visit, id, Some(problem))).await
}
