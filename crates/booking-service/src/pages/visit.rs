//! What a page takes from its request, and how it shows times.

use std::{
    future::{Ready, ready},
    ops::Deref,
    str::FromStr,
};

use actix_web::{FromRequest, HttpRequest, dev::Payload};
use chrono::{Datelike as _, NaiveDate, NaiveDateTime, NaiveTime, Timelike as _};
use chrono_tz::Tz;
use common::{
    problem::{Problem, Rule, Violations},
    time::Timestamp,
    typed_time::{TypedDate, TypedTime},
    visible::is_blank,
};
use maud::{Markup, html};
use service_kit::{
    database::{AnyConnection, types::DbTimestamp},
    error::{Error, Failure},
    guard::{Authenticator, Guard},
    http::{Form, Reply},
    page::{FormPage, PageContext},
    state::AppState,
};

use crate::{
    auth::Caller,
    club::Club,
    wall_clock::{self, instant, instant_or_next},
};

/// The request of a page: its language and layout, and the time in the zone of the club.
#[derive(Clone)]
pub struct Visit {
    page: PageContext,
    /// The zone of the club.
    pub zone: Tz,
    /// The present time.
    pub now: DbTimestamp,
}

impl Deref for Visit {
    type Target = PageContext;

    fn deref(&self) -> &PageContext {
        &self.page
    }
}

impl FromRequest for Visit {
    type Error = Failure;
    type Future = Ready<Result<Self, Failure>>;

    fn from_request(req: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let visit = || {
            let page = PageContext::from_request(req, payload).into_inner()?;
            let now = DbTimestamp(AppState::from_request(req)?.clock.now());
            Ok(Self { page, zone: Club::extract(req)?.zone, now })
        };
        ready({ visit }())
    }
}

impl Visit {
    /// The page as a form takes it.
    pub fn page(&self) -> &PageContext {
        &self.page
    }

    /// A time on the clocks of the club.
    pub fn local(&self, at: DbTimestamp) -> NaiveDateTime {
        at.utc().with_timezone(&self.zone).naive_local()
    }

    /// The present day.
    pub fn today(&self) -> NaiveDate {
        self.local(self.now).date()
    }

    /// The instant at which a day begins; the present for a day out of range.
    pub fn midnight(&self, day: NaiveDate) -> DbTimestamp {
        instant_or_next(day, NaiveTime::MIN, self.zone).map_or(self.now, DbTimestamp)
    }

    /// A day, in another year than the present one with the year.
    pub fn day(&self, day: NaiveDate) -> String {
        self.language.day_of_year(day, self.today().year())
    }

    /// The same in an element that programs read.
    pub fn time(&self, day: NaiveDate) -> Markup {
        html! { time datetime=(day) { (self.day(day)) } }
    }

    /// A span with its day: `Sat 4 Apr, 18:00–20:00`.
    pub fn span(&self, start: DbTimestamp, end: DbTimestamp) -> String {
        format!("{}, {}", self.day(self.local(start).date()), self.hours(start, end))
    }

    /// A time with its day: `Sat 4 Apr, 18:00`.
    pub fn moment(&self, at: DbTimestamp) -> String {
        let local = self.local(at);
        format!("{}, {}", self.day(local.date()), local.format("%H:%M"))
    }

    /// The values of the fields `date`, `from`, `until` and `endDate` of a span. The last is empty if the time of the end
    /// alone leads to its day.
    pub fn shown_times(&self, start: DbTimestamp, end: DbTimestamp) -> [String; 4] {
        // Fields show no seconds.
        let [start, end] = [start, end].map(|at| self.local(at)).map(|at| at.with_second(0).unwrap_or(at));
        let [start, end] = [start, end].map(|at| at.with_nanosecond(0).unwrap_or(at));
        let [from, until] = [start, end].map(|at| at.format("%H:%M").to_string());
        let is_implied = until.parse::<TypedTime>().is_ok_and(|until| until.after(start) == Some(end));
        let end_date = if is_implied { String::new() } else { end.date().to_string() };
        [start.date().to_string(), from, until, end_date]
    }

    /// The page that asks before something is deleted; after a refusal because of its events, whether to delete those as
    /// well. `key` is that of its texts, `choices` are fields, `tag` is that of what the form deletes, `back` the page
    /// before.
    pub fn ask_to_delete(
        &self,
        key: &str,
        (what, choices): (&Markup, &Markup),
        (action, tag): (&str, &str),
        back: &str,
        problem: Option<&Problem>,
    ) -> Reply {
        let form = FormPage { page: self, values: &Form::default(), problem, aliases: &[] };
        let has_events = problem.is_some_and(|problem| problem.status() == 409);
        let body = html! {
            p { (what) }
            @if has_events { p.refusal role="alert" { (self.text(&format!("{key}-has-events"))) } }
            @else { (form.refusal()) }
            @if let Some(about) = self.find(&format!("{key}-about")) { p { (about) } }
            (form.form(action, Some(tag), &html! {
                (choices)
                @if has_events { (form.check_box("force", &self.text("delete-events-too"), None)) }
                div.actions {
                    button.danger { (self.text("delete")) }
                    a href=(back) { (self.text("cancel")) }
                }
            }))
        };
        self.reply(&self.text(key), body)
    }

    /// A span without its day: `18:00–20:00`, or with the day of its end if that is another one.
    pub fn hours(&self, start: DbTimestamp, end: DbTimestamp) -> String {
        wall_clock::hours(self.language, self.zone, start.0, end.0)
    }
}

/// The day in a field; `default` if there is none that can be read.
pub fn day_of(text: &str, default: NaiveDate) -> NaiveDate {
    text.parse::<TypedDate>().map_or(default, |day| day.0)
}

/// The instant of a day and a time of day in fields, if both can be read and the clocks do not skip it.
pub fn instant_of(day: &str, time: &str, zone: Tz) -> Option<Timestamp> {
    instant_at(time.parse::<TypedTime>().ok()?.on(day.parse::<TypedDate>().ok()?.0), zone)
}

/// The instant of a local time, if the clocks do not skip it.
pub fn instant_at(local: NaiveDateTime, zone: Tz) -> Option<Timestamp> {
    instant(local.date(), local.time(), zone)
}

/// The day or the time of day in a field of a form.
pub fn typed<T: FromStr<Err = (Rule, &'static str)>>(
    form: &Form,
    field: &str,
    violations: &mut Violations,
) -> Option<T> {
    let value = form.get(field).parse::<T>();
    value.inspect_err(|(rule, message)| violations.push(format!("/{field}"), *rule, *message)).ok()
}

/// The instant in the hidden field `name`, if a field of a day and one of a time still show it. They show no seconds, and
/// not which of the two times it is to which the clocks are set back.
fn untouched(form: &Form, name: &str, shown: NaiveDateTime, zone: Tz) -> Option<Timestamp> {
    let at: Timestamp = form.get(name).parse().ok()?;
    let local = at.utc().with_timezone(&zone).naive_local();
    let is_same = local.date() == shown.date() && (local.hour(), local.minute()) == (shown.hour(), shown.minute());
    is_same.then_some(at)
}

/// The instant in the fields `day` and `time` of a form, exactly that of the hidden field `exact` if they still show it.
pub fn instant_in(
    form: &Form,
    [day, time, exact]: [&str; 3],
    zone: Tz,
    violations: &mut Violations,
) -> Option<Timestamp> {
    let (day, clock) = (typed::<TypedDate>(form, day, violations), typed::<TypedTime>(form, time, violations));
    let local = clock?.on(day?.0);
    exactly(form, local, exact, time, zone, violations)
}

/// The instant of a local time; that of the hidden field `exact` if the form still shows it. The clocks may skip that of
/// `field`.
fn exactly(
    form: &Form,
    local: NaiveDateTime,
    exact: &str,
    field: &str,
    zone: Tz,
    violations: &mut Violations,
) -> Option<Timestamp> {
    let at = untouched(form, exact, local, zone).or_else(|| instant_at(local, zone));
    if at.is_none() {
        violations.push(format!("/{field}"), Rule::NonexistentTime, "is skipped by the clocks");
    }
    at
}

/// The hidden field with the exact start of a span.
pub const EXACT_START: &str = "exactStart";

/// The hidden field with the exact end of a span.
pub const EXACT_END: &str = "exactEnd";

/// The span in the fields `date`, `from`, `endDate` and `until` of a form. Without `endDate`, an early end may be on the
/// next day ([`TypedTime::after`]).
///
/// # Errors
/// 400 with the fields that cannot be read, or with `until` before the start.
pub fn span_of(form: &Form, zone: Tz) -> Result<(Timestamp, Timestamp), Problem> {
    let mut violations = Violations::default();
    let end_date = Some("endDate").filter(|field| !is_blank(form.get(field)));
    let end_date = end_date.map(|field| typed::<TypedDate>(form, field, &mut violations));
    let date = typed::<TypedDate>(form, "date", &mut violations);
    let from = typed::<TypedTime>(form, "from", &mut violations);
    let until = typed::<TypedTime>(form, "until", &mut violations);
    let start = date.zip(from).map(|(day, time)| time.on(day.0));
    let end = match (end_date, start, until) {
        (None, Some(start), Some(until)) => {
            let end = until.after(start);
            if end.is_none() {
                violations.push("/until", Rule::OutOfOrder, "must be after the start, or up to 6:00 on the next day");
            }
            end
        }
        (Some(day), _, Some(until)) => day.map(|day| until.on(day.0)),
        _ => None,
    };
    let start = start.and_then(|local| exactly(form, local, EXACT_START, "from", zone, &mut violations));
    let end = end.and_then(|local| exactly(form, local, EXACT_END, "until", zone, &mut violations));
    match (start, end) {
        (Some(start), Some(end)) => Ok((start, end)),
        _ => Err(violations.into()),
    }
}

/// The result of a form. After a refusal the form is shown again, with what was typed.
///
/// # Errors
/// Those that the form cannot mend.
pub async fn or_form_again<A, F>(result: Result<Reply, Failure>, who: Guard<A>, show: F) -> Result<Reply, Failure>
where
    A: Authenticator<Caller = Caller>,
    F: FnMut(&mut AnyConnection, &Caller, &Problem) -> Result<Reply, Error> + Send + 'static,
{
    who.or_form_again(result, show).await
}
