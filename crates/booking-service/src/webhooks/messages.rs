//! Messages for people, in the markup of a chat.

use std::collections::BTreeSet;

use chrono::Datelike as _;
use diesel::{OptionalExtension, prelude::*};
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    history::Action,
    http::{
        language::Language,
        texts::{Argument, Texts},
    },
};

use super::{
    kinds::Mentions,
    markup::{Markup, length},
    queries::Webhook,
};
use crate::{
    auth::ACTIVE,
    club::Club,
    groups::EVERYONE,
    schedule::Schedule,
    schema::{attendees, draft_event_answers, draft_event_invitees, draft_events, event_series, events, groups, users},
    wall_clock,
};

/// The most people who are mentioned in a message.
const MOST_PEOPLE: i64 = 1000;

/// The room that the link after a message needs that is cut.
const MORE: usize = 250;

/// What writes the messages of a webhook.
pub struct Writer<'a> {
    /// The markup.
    pub markup: Markup,
    /// The webhook.
    pub webhook: &'a Webhook,
    /// Its language.
    pub language: Language,
    /// The texts.
    pub texts: &'a Texts,
    /// The club.
    pub club: &'a Club,
    /// The time.
    pub now: DbTimestamp,
}

/// A message whose later lines are left out when it gets too long.
pub struct Draft<'a> {
    writer: &'a Writer<'a>,
    text: String,
    is_cut: bool,
}

/// An event, or the first of the dates of a series that a message is about.
#[derive(Debug, Queryable, Selectable)]
#[diesel(table_name = events)]
struct EventFacts {
    id: DbUuid,
    name: String,
    description: String,
    starts_at: DbTimestamp,
    ends_at: DbTimestamp,
    place: String,
    group_id: DbUuid,
    #[diesel(select_expression = groups::name)]
    group: String,
    deleted_at: Option<DbTimestamp>,
}

/// What a message is about.
struct Subject {
    event: EventFacts,
    /// The dates of a series.
    series: Option<Dates>,
}

impl Subject {
    fn of_event(event: EventFacts) -> Self {
        Self { event, series: None }
    }

    /// The key of a text of an event or a series.
    fn key(&self, of_event: &str) -> String {
        if self.series.is_some() { of_event.replace("message-", "message-series-") } else { of_event.to_owned() }
    }
}

/// The dates of a series.
struct Dates {
    /// The rule that gave them (RFC 5545).
    rule: String,
    number: usize,
    /// From Monday, which is 0.
    weekdays: BTreeSet<u32>,
}

impl Dates {
    /// The frequency of the rule, in lower case, and its interval.
    fn rule(&self) -> Option<(String, u16)> {
        let part = |name: &str| {
            let mut parts = self.rule.split(';').filter_map(|part| part.split_once('='));
            parts.find(|(other, _)| *other == name).map(|(_, value)| value)
        };
        let interval = part("INTERVAL").map_or(Some(1), |interval| interval.parse().ok())?;
        Some((part("FREQ")?.to_ascii_lowercase(), interval))
    }
}

fn event_facts(conn: &mut AnyConnection, id: DbUuid) -> Result<Option<EventFacts>, Error> {
    let query = events::table.inner_join(groups::table).filter(events::id.eq(id)).select(EventFacts::as_select());
    Ok(query.first(conn).optional()?)
}

impl Draft<'_> {
    /// Adds a line, if there is room for it and for all before it.
    pub fn line(&mut self, line: &str) {
        if self.is_cut || length(&self.text) + 1 + length(line) > self.writer.markup.limit() - MORE {
            self.is_cut = true;
            return;
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(line);
    }

    /// Adds words, as many as there is room for, after an empty line and a line.
    fn words(&mut self, line: &str, words: &[String]) {
        self.line(&format!("\n{line}"));
        let left = (self.writer.markup.limit() - MORE).saturating_sub(length(&self.text) + 1);
        let mut all = String::new();
        for word in words {
            if length(&all) + length(word) + 1 > left {
                self.is_cut = true;
                break;
            }
            if !all.is_empty() {
                all.push(' ');
            }
            all.push_str(word);
        }
        if !all.is_empty() {
            self.text.push('\n');
            self.text.push_str(&all);
        }
    }

    /// Adds the beginning of a text of a member after an empty line.
    fn quotation(&mut self, text: &str) {
        if self.is_cut || text.trim().is_empty() {
            return;
        }
        let left = (self.writer.markup.limit() - MORE).saturating_sub(length(&self.text) + 2);
        let (quoted, is_all) = self.writer.markup.quote(text, left);
        self.text.push_str("\n\n");
        self.text.push_str(&quoted);
        self.is_cut = !is_all;
    }

    /// The message, with a link to the rest if it was cut.
    pub fn finish(self, address: &str) -> String {
        let mut text = self.text;
        if self.is_cut {
            text.push_str("\n\n");
            text.push_str(&self.writer.markup.link(&self.writer.text("message-more", &[]), address));
        }
        text
    }
}

impl Writer<'_> {
    /// A text in the webhook's language.
    pub fn text(&self, key: &str, arguments: &[Argument<'_>]) -> String {
        self.texts.get(self.language, key, arguments)
    }

    /// An empty message.
    pub fn draft(&self) -> Draft<'_> {
        Draft { writer: self, text: String::new(), is_cut: false }
    }

    /// The address of a page.
    pub fn address(&self, collection: &str, id: DbUuid) -> String {
        format!("{}/{collection}/{id}", self.club.origin)
    }

    /// A day, with its year if that is not the present one.
    fn day(&self, at: DbTimestamp) -> String {
        let day = |at: DbTimestamp| at.utc().with_timezone(&self.club.zone).date_naive();
        self.language.day_of_year(day(at), day(self.now).year())
    }

    /// A span in the zone of the club.
    pub fn span(&self, start: DbTimestamp, end: DbTimestamp) -> String {
        format!("{}, {}", self.day(start), wall_clock::hours(self.language, self.club.zone, start.0, end.0))
    }

    fn item(&self, key: &str, name: &'static str, value: String) -> String {
        self.markup.item(&self.text(key, &[(name, value.into())]))
    }

    fn facts(&self, draft: &mut Draft<'_>, subject: &Subject) {
        let event = &subject.event;
        let group = self.markup.link(&self.markup.text(&event.group), &self.address("groups", event.group_id));
        draft.line(&self.item("message-group", "group", group));
        let span = self.span(event.starts_at, event.ends_at);
        let time = subject.series.as_ref().map_or(span.clone(), |dates| {
            let text = self.text("message-dates", &[("n", dates.number.into()), ("first", span.into())]);
            let rule = self.rule(dates).into_iter();
            rule.chain([text]).collect::<Vec<_>>().join(self.language.separator())
        });
        draft.line(&self.item("message-time", "time", time));
        draft.line(&self.item("message-place", "place", self.markup.text(&event.place)));
    }

    /// How often the dates of a series are: `every Tuesday`.
    fn rule(&self, dates: &Dates) -> Option<String> {
        let (frequency, n) = dates.rule()?;
        let names = self.text("message-weekdays", &[]);
        let names: Vec<_> = names.split(' ').collect();
        let days = dates.weekdays.iter().filter_map(|day| names.get(*day as usize).copied());
        let days = days.collect::<Vec<_>>().join(self.language.separator());
        Some(self.text(&format!("message-{frequency}"), &[("n", n.into()), ("days", days.into())]))
    }

    /// The event, or the series by its coming dates; of a deletion, those that it has `removed`.
    fn subject(
        &self,
        conn: &mut AnyConnection,
        id: DbUuid,
        removed: Option<&[DbUuid]>,
    ) -> Result<Option<Subject>, Error> {
        let subject = match event_facts(conn, id)? {
            Some(event) => Some(Subject::of_event(event)),
            None => self.series(conn, id, removed)?,
        };
        let is_meant = |event: &EventFacts| event.deleted_at.is_some() == removed.is_some() && event.ends_at > self.now;
        Ok(subject.filter(|subject| is_meant(&subject.event)))
    }

    fn series(
        &self,
        conn: &mut AnyConnection,
        id: DbUuid,
        removed: Option<&[DbUuid]>,
    ) -> Result<Option<Subject>, Error> {
        let rule = event_series::table.find(id).select(event_series::rrule).first(conn).optional()?;
        let Some(rule): Option<String> = rule else { return Ok(None) };
        let of_series = events::table.inner_join(groups::table).filter(events::series_id.eq(id));
        let mut query = of_series.filter(events::ends_at.gt(self.now)).into_boxed();
        query = match removed {
            Some(removed) => query.filter(events::id.eq_any(removed)).filter(events::deleted_at.is_not_null()),
            None => query.filter(events::deleted_at.is_null()),
        };
        let events: Vec<EventFacts> =
            query.order((events::starts_at, events::id)).select(EventFacts::as_select()).load(conn)?;
        let day = |event: &EventFacts| event.starts_at.utc().with_timezone(&self.club.zone).weekday();
        let weekdays = events.iter().map(|event| day(event).num_days_from_monday()).collect();
        let dates = Dates { rule, number: events.len(), weekdays };
        Ok(events.into_iter().next().map(|event| Subject { event, series: Some(dates) }))
    }

    /// Says that an event or a series was created, has changed or takes place after all. Nothing if it has ended or is
    /// deleted.
    pub fn announcement(&self, conn: &mut AnyConnection, id: DbUuid, action: Action) -> Result<Option<String>, Error> {
        let Some(subject) = self.subject(conn, id, None)? else { return Ok(None) };
        let key = match action {
            Action::Created => "message-created",
            Action::Restored => "message-restored",
            _ => "message-changed",
        };
        let (mut draft, address) = (self.draft(), self.address("events", subject.event.id));
        draft.line(&self.markup.heading(&self.text(&subject.key(key), &[])));
        draft.line(&self.markup.link(&self.markup.text(&subject.event.name), &address));
        self.facts(&mut draft, &subject);
        if subject.event.starts_at > self.now {
            let mentioned = self.pending(conn, subject.event.id, subject.event.group_id)?;
            if !mentioned.is_empty() {
                draft.words(&self.text("message-please-answer", &[]), &mentioned);
            }
        }
        draft.quotation(&subject.event.description);
        Ok(Some(draft.finish(&address)))
    }

    /// Says that an event or a series is cancelled. Nothing if it would have ended, or takes place after all.
    pub fn cancellation(
        &self,
        conn: &mut AnyConnection,
        id: DbUuid,
        removed: &[DbUuid],
    ) -> Result<Option<String>, Error> {
        let Some(subject) = self.subject(conn, id, Some(removed))? else { return Ok(None) };
        let mut draft = self.draft();
        draft.line(&self.markup.heading(&self.text(&subject.key("message-cancelled"), &[])));
        draft.line(&self.markup.line(&subject.event.name));
        self.facts(&mut draft, &subject);
        Ok(Some(draft.finish(&self.club.origin)))
    }

    /// Reminds those who have not answered that an event begins or a poll ends. Nothing if there is nobody, or it is too
    /// late.
    pub fn reminder(&self, conn: &mut AnyConnection, id: DbUuid) -> Result<Option<String>, Error> {
        let Some(event) = event_facts(conn, id)? else { return self.reminder_of_poll(conn, id) };
        if event.deleted_at.is_some() || event.starts_at <= self.now {
            return Ok(None);
        }
        let mentioned = self.pending(conn, id, event.group_id)?;
        if mentioned.is_empty() {
            return Ok(None);
        }
        let (mut draft, address) = (self.draft(), self.address("events", id));
        draft.line(&self.markup.heading(&self.text("message-reminder", &[])));
        draft.line(&self.markup.link(&self.markup.text(&event.name), &address));
        self.facts(&mut draft, &Subject::of_event(event));
        draft.words(&self.text("message-please-answer", &[]), &mentioned);
        Ok(Some(draft.finish(&address)))
    }

    fn reminder_of_poll(&self, conn: &mut AnyConnection, id: DbUuid) -> Result<Option<String>, Error> {
        let query = draft_events::table.find(id).filter(draft_events::deleted_at.is_null());
        let poll = query.select((draft_events::name, draft_events::deadline)).first(conn).optional()?;
        let Some((name, deadline)): Option<(String, DbTimestamp)> = poll else { return Ok(None) };
        if deadline <= self.now {
            return Ok(None);
        }
        let answered = draft_event_answers::table
            .filter(draft_event_answers::draft_event_id.eq(id))
            .select(draft_event_answers::user_id);
        let query = draft_event_invitees::table
            .inner_join(users::table.on(users::id.eq(draft_event_invitees::user_id)))
            .filter(draft_event_invitees::draft_event_id.eq(id))
            .filter(draft_event_invitees::user_id.ne_all(answered))
            .filter(users::state.eq(ACTIVE))
            .order(users::name);
        let names: Vec<String> = query.limit(MOST_PEOPLE).select(users::name).load(conn)?;
        let mentioned = self.members(&names);
        if mentioned.is_empty() {
            return Ok(None);
        }
        let (mut draft, address) = (self.draft(), self.address("polls", id));
        draft.line(&self.markup.heading(&self.text("message-poll-reminder", &[])));
        draft.line(&self.markup.link(&self.markup.text(&name), &address));
        let clock = deadline.utc().with_timezone(&self.club.zone).format("%H:%M");
        draft.line(&self.item("message-deadline", "time", format!("{}, {clock}", self.day(deadline))));
        draft.words(&self.text("message-please-answer-poll", &[]), &mentioned);
        Ok(Some(draft.finish(&address)))
    }

    /// The mentions of those who have not answered; for the everyone group those of the groups of the webhook.
    fn pending(&self, conn: &mut AnyConnection, event: DbUuid, group: DbUuid) -> Result<Vec<String>, Error> {
        if self.webhook.mentions == Mentions::Off {
            return Ok(Vec::new());
        }
        if group == EVERYONE {
            let groups = self.webhook.mention_groups();
            return Ok(groups.iter().map(|name| self.markup.group(name, self.webhook.mentions)).collect());
        }
        let query = attendees::table
            .inner_join(users::table.on(users::id.eq(attendees::user_id)))
            .filter(attendees::event_id.eq(event))
            .filter(attendees::schedule.eq(Schedule::Pending))
            .filter(users::state.eq(ACTIVE))
            .order(users::name);
        let names: Vec<String> = query.limit(MOST_PEOPLE).select(users::name).load(conn)?;
        Ok(self.members(&names))
    }

    fn members(&self, names: &[String]) -> Vec<String> {
        match self.webhook.mentions {
            Mentions::Off => Vec::new(),
            mentions => names.iter().map(|name| self.markup.member(name, mentions)).collect(),
        }
    }
}
