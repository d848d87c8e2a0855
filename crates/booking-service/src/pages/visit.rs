//! What a page takes from its request, and how it shows times.

use std::{
    future::{Ready, ready},
    ops::Deref,
};

use actix_web::{FromRequest, HttpRequest, dev::Payload};
use chrono::{Datelike as _, Days, NaiveDate, NaiveDateTime, NaiveTime, Timelike as _};
use chrono_tz::Tz;
use common::{
    problem::{Problem, Rule, Violations},
    time::Timestamp,
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
    wall_clock::{self, CalendarDate, ClockTime, YEARS, instant, instant_or_next},
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

    /// A span with its day: `Sat 4 Apr, 18:00–20:00`, in another year than the present one with the year.
    pub fn span(&self, start: DbTimestamp, end: DbTimestamp) -> String {
        let year = |at: DbTimestamp| at.0.utc().with_timezone(&self.zone).year();
        if year(start) == year(self.now) {
            return wall_clock::span(self.language, self.zone, start.0, end.0);
        }
        let day = self.language.day(start.0.utc().with_timezone(&self.zone).date_naive());
        format!("{day}, {}", self.hours(start, end))
    }

    /// A time with its day: `Sat 4 Apr, 18:00`.
    pub fn moment(&self, at: DbTimestamp) -> String {
        wall_clock::moment(self.language, self.zone, at.0)
    }

    /// The page that asks before something is deleted; after a refusal because of its events, whether to delete those as
    /// well. `key` is that of its texts, `tag` that of what the form deletes, `back` the page before.
    pub fn ask_to_delete(
        &self,
        key: &str,
        what: &Markup,
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
                @if has_events { (form.check_box("force", &self.text("delete-events-too"), None)) }
                div.actions {
                    button.main { (self.text("delete")) }
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
    text.parse::<CalendarDate>().ok().map(|day| day.0).filter(|day| in_range(*day)).unwrap_or(default)
}

/// The instant of a day and a time of day in fields, if both can be read and the clocks do not skip it.
pub fn instant_of(day: &str, time: &str, zone: Tz) -> Option<Timestamp> {
    let day = day.parse::<CalendarDate>().ok().map(|day| day.0).filter(|day| in_range(*day))?;
    instant(day, time.parse::<ClockTime>().ok()?.0, zone)
}

fn in_range(day: NaiveDate) -> bool {
    YEARS.contains(&day.year())
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
pub fn instant_in(form: &Form, [day, time, exact]: [&str; 3], zone: Tz) -> Option<Timestamp> {
    let at = instant_of(form.get(day), form.get(time), zone)?;
    Some(untouched(form, exact, at.utc().with_timezone(&zone).naive_local(), zone).unwrap_or(at))
}

/// The hidden field with the exact start of a span.
pub const EXACT_START: &str = "exactStart";

/// The hidden field with the exact end of a span.
pub const EXACT_END: &str = "exactEnd";

/// The span in the fields `date`, `from`, `endDate` and `until` of a form. Without `endDate`, an end that is not after
/// the start is on the next day.
///
/// # Errors
/// 400 with the fields that cannot be read.
pub fn span_of(form: &Form, zone: Tz) -> Result<(Timestamp, Timestamp), Problem> {
    let mut violations = Violations::default();
    let mut refuse = |field: &str, rule, message: &str| violations.push(format!("/{field}"), rule, message);
    let day = |field| match form.get(field).parse::<CalendarDate>() {
        Ok(day) if in_range(day.0) => Ok(day.0),
        Ok(_) => Err((field, Rule::Range, "must be in the years 2 to 9998")),
        Err(message) => Err((field, Rule::Invalid, message)),
    };
    let clock = |field| match form.get(field).parse::<ClockTime>() {
        Ok(time) => Ok(time.0),
        Err(message) => Err((field, Rule::Invalid, message)),
    };
    let mut read = |date: Result<NaiveDate, _>, time: Result<NaiveTime, _>, field| match (date, time) {
        (Ok(date), Ok(time)) => {
            let exact = if field == "from" { EXACT_START } else { EXACT_END };
            let at = untouched(form, exact, date.and_time(time), zone).or_else(|| instant(date, time, zone));
            if at.is_none() {
                refuse(field, Rule::NonexistentTime, "is skipped by the clocks");
            }
            at
        }
        (date, time) => {
            for (field, rule, message) in [date.err(), time.err()].into_iter().flatten() {
                refuse(field, rule, message);
            }
            None
        }
    };
    let (first, from, until) = (day("date"), clock("from"), clock("until"));
    let last = match (form.get("endDate"), &first, &from, &until) {
        ("", Ok(day), Ok(from), Ok(until)) if until <= from => Ok(*day + Days::new(1)),
        ("", Ok(day), ..) => Ok(*day),
        ("", Err(_), ..) => Ok(NaiveDate::MIN),
        _ => day("endDate"),
    };
    let start = read(first, from, "from");
    let end = if start.is_none() && last == Ok(NaiveDate::MIN) { None } else { read(last, until, "until") };
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
