//! The list of events by month.

use std::collections::HashMap;

use actix_web::{
    HttpRequest,
    http::{StatusCode, header},
};
use chrono::{Datelike as _, Months, NaiveDate};
use common::{
    input::{Id, Text},
    problem::Problem,
};
use maud::{Markup, html};
use service_kit::{
    database::{
        AnyConnection, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    error::{Error, Failure},
    http::{Form, HtmlPage, Reply, query},
    page::{FormPage, Icon, Input, address, hidden, icon},
};

use super::{
    choices::group_choices,
    month, queries,
    visit::{Visit, day_of},
};
use crate::{
    auth::{Caller, SignedIn},
    events::{
        latest::{Latest, load_latest},
        parse_filter,
        queries::{Order, Position, Row, Schedule, load_rows, searched_part},
        search,
        selection::{Criterion, Selection},
    },
    tags,
};

/// The most events on the page of a month.
const MAX_ROWS: i64 = 200;

/// The most events to come, and the most that are over, on the page of a search.
const MAX_FOUND: i64 = MAX_ROWS / 2;

/// The most tags that the field of the tag suggests.
const MAX_TAGS: i64 = 100;

/// The most characters of a search.
const MAX_SEARCH: usize = 64;

/// The parameters that choose among the events.
const FILTERS: [&str; 3] = ["search", "group", "tag"];

/// How many months before and after its month a search is about.
const SEARCHED_MONTHS: i32 = 12;

/// The events of a month, or those that a search finds around it.
pub async fn list(req: HttpRequest, visit: Visit, who: SignedIn) -> Result<Reply, Failure> {
    let typed = Form::new(query::pairs(&req));
    who.read(move |conn, me| {
        let month = day_of(&format!("{}-01", typed.get("month")), visit.today());
        let month = month.with_day(1).unwrap_or(month);
        let (words, problem) = words(typed.get("search"));
        let selection = Selection::new(criterion(conn, &typed)?).containing(search::find(conn, &words)?);
        let listing = Listing { visit: &visit, typed: &typed, user: me.id, month, selection };
        let (title, events) = if words.is_empty() {
            let title = visit.format("events-of", &[("month", visit.language.month(month).into())]);
            (title, listing.of_month(conn)?)
        } else {
            (visit.text("events"), listing.found(conn)?)
        };
        let body = html! {
            (search_form(conn, me, &visit, &typed, problem.as_ref())?)
            (events)
        };
        let actions = html! {
            a.button.primary href="/events/new" { (icon(Icon::Plus)) (visit.text("book-a-room")) }
        };
        let status = if problem.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
        let page = HtmlPage { actions, style: month::STYLE, ..visit.page().page(&title, body) };
        Ok(page.reply(status).with(header::VARY, "Accept-Language"))
    })
    .await
}

/// The page of a request.
struct Listing<'a> {
    visit: &'a Visit,
    typed: &'a Form,
    /// The reader.
    user: DbUuid,
    /// The first day of its month.
    month: NaiveDate,
    /// Its events, at any time.
    selection: Selection,
}

/// A part of a list.
#[derive(Default)]
struct Part {
    rows: Vec<Row>,
    /// The event after which the list goes on, if this is not all of it. A search may also end before its months do.
    end: Option<Position>,
}

impl Part {
    fn new(mut rows: Vec<Row>, limit: i64, end: Option<Position>) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let is_cut = rows.len() > limit;
        rows.truncate(limit);
        let last = rows.last().filter(|_| is_cut).map(|row| (row.starts_at, row.id));
        Self { rows, end: last.or(end) }
    }

    /// Events by start, of those after a position.
    fn forwards(
        conn: &mut AnyConnection,
        selection: &Selection,
        after: Option<Position>,
        limit: i64,
    ) -> Result<Self, Error> {
        let part = searched_part(conn, selection, after)?;
        let rows = load_rows(conn, &part, Order::Start, &PageBounds { after, rows: limit + 1 })?;
        Ok(Self::new(rows, limit, part.until))
    }

    /// Events, the last first, of those before a position.
    fn backwards(
        conn: &mut AnyConnection,
        selection: &Selection,
        before: Option<Position>,
        limit: i64,
    ) -> Result<Self, Error> {
        let Latest { rows, end } = load_latest(conn, selection, before, limit + 1)?;
        Ok(Self::new(rows, limit, end))
    }
}

impl Listing<'_> {
    /// The address of the page of another month, or of another part of this one.
    fn address(&self, month: NaiveDate, position: Option<(&str, Position)>) -> String {
        let month = month.format("%Y-%m").to_string();
        let position = position.map(|(name, (at, id))| (name, format!("{} {id}", at.0)));
        let mut parameters = vec![("month", month.as_str())];
        parameters.extend(FILTERS.map(|name| (name, self.typed.get(name))));
        parameters.extend(position.iter().map(|(name, at)| (*name, at.as_str())));
        parameters.retain(|(_, value)| !value.is_empty());
        address("/events", &parameters)
    }

    fn selection(&self, from: DbTimestamp, to: DbTimestamp) -> Selection {
        self.selection.clone().between((Some(from), Some(to)))
    }

    fn answers(&self, conn: &mut AnyConnection, rows: &[&Row]) -> Result<HashMap<DbUuid, Schedule>, Error> {
        queries::answers_of(conn, self.user, &rows.iter().map(|row| row.id).collect::<Vec<_>>())
    }

    /// The link to the rest of a list.
    fn rest(&self, name: &str, end: Option<Position>) -> Markup {
        html! {
            @if let Some(end) = end { p { a href=(self.address(self.month, Some((name, end)))) { (self.visit.text("next-rows")) } } }
        }
    }

    /// The events of the month: the days from the first event that has not ended, and below them the others.
    fn of_month(&self, conn: &mut AnyConnection) -> Result<Markup, Error> {
        let (visit, month) = (self.visit, self.month);
        let [previous, next] = [-1, 1].map(|number| later_month(month, number));
        let after = position_of(self.typed.get("after"));
        let span = self.selection(visit.midnight(month), visit.midnight(next));
        let Part { rows, end } = Part::forwards(conn, &span, after, MAX_ROWS)?;
        let day_of = |row: &Row| visit.local(row.starts_at).date();
        let first_coming = rows.iter().find(|row| row.ends_at > visit.now).map(day_of);
        let first_day = first_coming.and_then(|day| rows.iter().position(|row| day_of(row) == day));
        let answers = self.answers(conn, &rows.iter().collect::<Vec<_>>())?;
        let answer_to = |row: &Row| answers.get(&row.id).copied();
        let listed: Vec<_> = rows.iter().map(|row| (row, answer_badge(answer_to(row), visit))).collect();
        let (earlier, coming) = listed.split_at(first_day.unwrap_or(listed.len()));
        let shown = |month: NaiveDate| visit.language.month(month);
        // A part of a month would look like all of it.
        let is_whole = after.is_none() && end.is_none();
        Ok(html! {
            div.head {
                h2 { (shown(month)) }
                nav.seg.small aria-label=(visit.text("month")) {
                    a href=(self.address(previous, None)) rel="prev" { "← " (shown(previous)) }
                    a href="/events#today" { (visit.text("today")) }
                    a href=(self.address(next, None)) rel="next" { (shown(next)) " →" }
                }
            }
            @if is_whole { (month::table(month, &rows, answer_to, visit)) }
            @if rows.is_empty() { p.empty #today tabindex="-1" { (visit.text("no-events")) } }
            @else {
                @if first_day.is_some() { div #today tabindex="-1" { (days(coming, true, visit)) } }
                @if !earlier.is_empty() {
                    details open[first_day.is_none()] {
                        summary { (visit.text("already-over")) }
                        (days(earlier, true, visit))
                    }
                }
                @if first_day.is_none() { div #today tabindex="-1" {} }
            }
            (self.rest("after", end))
        })
    }

    /// What a search finds in the months around this one, the nearest first: what is to come, and below it what is over,
    /// the last first. The rest of either has a page of its own.
    fn found(&self, conn: &mut AnyConnection) -> Result<Markup, Error> {
        let (visit, now) = (self.visit, self.visit.now);
        let [first, next] = [-SEARCHED_MONTHS, SEARCHED_MONTHS].map(|number| later_month(self.month, number));
        let [begin, end] = [first, next].map(|day| visit.midnight(day));
        let [after, before] = ["after", "before"].map(|name| position_of(self.typed.get(name)));
        let coming = match before {
            None if now < end => Part::forwards(conn, &self.selection(begin.max(now), end), after, MAX_FOUND)?,
            _ => Part::default(),
        };
        let mut over = match after {
            None if begin < now => Part::backwards(conn, &self.selection(begin, end.min(now)), before, MAX_FOUND)?,
            _ => Part::default(),
        };
        // What is going on belongs to what is to come.
        over.rows.retain(|row| row.ends_at <= now || end <= now);
        let answers = self.answers(conn, &coming.rows.iter().chain(&over.rows).collect::<Vec<_>>())?;
        let listed = |rows: &[Row]| {
            let badge = |row: &Row| answer_badge(answers.get(&row.id).copied(), visit);
            by_day(&rows.iter().map(|row| (row, badge(row))).collect::<Vec<_>>(), visit)
        };
        let date = |(at, _): Position| visit.language.date(visit.local(at).date());
        let month = |day: NaiveDate| visit.language.month(day);
        let from = over.end.or(after).map_or_else(|| month(first), date);
        let to = coming.end.or(before).map_or_else(|| month(later_month(next, -1)), date);
        let [earlier, later] = [-2 * SEARCHED_MONTHS, 2 * SEARCHED_MONTHS]
            .map(|number| self.address(later_month(self.month, number), None));
        Ok(html! {
            p { (visit.format("searched-months", &[("from", from.as_str().into()), ("to", to.as_str().into())])) }
            p.actions {
                @if over.end.or(after).is_none() { a href=(earlier) rel="prev" { "← " (visit.text("search-earlier")) } }
                @if coming.end.or(before).is_none() { a href=(later) rel="next" { (visit.text("search-later")) " →" } }
            }
            @if coming.rows.is_empty() && over.rows.is_empty() { p.empty { (visit.text("no-events")) } }
            @if !coming.rows.is_empty() { (listed(&coming.rows)) }
            (self.rest("after", coming.end))
            @if !over.rows.is_empty() {
                h2 { (visit.text("already-over")) }
                (listed(&over.rows))
            }
            (self.rest("before", over.end))
        })
    }
}

/// The first day of a month some months later; earlier for a negative number.
fn later_month(first: NaiveDate, number: i32) -> NaiveDate {
    let months = Months::new(number.unsigned_abs());
    let other = if number < 0 { first.checked_sub_months(months) } else { first.checked_add_months(months) };
    other.unwrap_or(first)
}

/// The event after which a list goes on: its start and its id.
pub fn position_of(text: &str) -> Option<Position> {
    let (start, id) = text.split_once(' ')?;
    Some((DbTimestamp(start.parse().ok()?), DbUuid::from(id.parse::<Id>().ok()?)))
}

/// The words of a search, or what is wrong with them.
fn words(text: &str) -> (Vec<String>, Option<Problem>) {
    let words = Text::<0, MAX_SEARCH>::new(text.to_owned())
        .map_err(|(rule, message)| Problem::parameter("search", rule, message).into())
        .and_then(|text| search::words(&text));
    match words {
        Ok(words) => (words, None),
        Err(Error::Problem(problem)) => (Vec::new(), Some(problem)),
        Err(_) => (Vec::new(), None),
    }
}

/// The field of the search, and the filters by group and tag.
fn search_form(
    conn: &mut AnyConnection,
    me: &Caller,
    visit: &Visit,
    typed: &Form,
    problem: Option<&Problem>,
) -> Result<Markup, Error> {
    let mut values = typed.clone();
    for name in FILTERS {
        values.set(name, typed.get(name));
    }
    let form = FormPage { page: visit.page(), values: &values, problem, aliases: &[] };
    let mut groups = vec![(String::new(), visit.text("all-groups"))];
    groups.extend(group_choices(conn, me)?);
    let tags: Vec<_> = tags::load(conn, &PageBounds { after: None, rows: MAX_TAGS })?;
    let tags: Vec<_> = tags.into_iter().map(|tag| tag.name).collect();
    let text = |key| visit.text(key);
    let is_filtered = !(typed.get("group").is_empty() && typed.get("tag").is_empty());
    Ok(html! {
        form role="search" action="/events" {
            @if !typed.get("month").is_empty() { (hidden("month", typed.get("month"))) }
            @for message in form.errors_of("search") { p.error #f-search-error { (message) } }
            div.actions {
                label.vh for="f-search" { (text("search")) }
                input #f-search type="search" name="search" value=(typed.get("search")) maxlength=(MAX_SEARCH)
                    placeholder=(text("search-hint")) aria-invalid=[problem.map(|_| "true")]
                    aria-describedby=[problem.map(|_| "f-search-error")];
                button { (text("search")) }
                @if is_filtered || !typed.get("search").is_empty() { a href="/events" { (text("all-events")) } }
            }
            details open[is_filtered] {
                summary { (text("filters")) }
                div.line {
                    (form.select("group", &text("group"), None, &groups))
                    (form.input(Input { name: "tag", label: &text("tag"), max_length: Some(16), suggestions: &tags, ..Input::default() }))
                }
            }
        }
    })
}

/// The events with the group and the tag of the parameters.
fn criterion(conn: &mut AnyConnection, typed: &Form) -> Result<Criterion, Error> {
    let mut filter = Vec::new();
    if !typed.get("group").is_empty() {
        let id: Id = typed.get("group").parse().map_err(|_| Problem::not_found("group"))?;
        filter.push(format!("group=={id}"));
    }
    if !typed.get("tag").is_empty() {
        let Some(tag) = queries::tag_called(conn, typed.get("tag").trim_start_matches('#'))? else {
            return Ok(Criterion::These(Vec::new()));
        };
        filter.push(format!("tag=={tag}"));
    }
    if filter.is_empty() { Ok(Criterion::All) } else { Ok(Criterion::Matching(parse_filter(&filter.join(" && "))?)) }
}

/// Events in the order of their starts, below the day of each. The markup stands at the end of a row.
pub fn by_day(events: &[(&Row, Markup)], visit: &Visit) -> Markup {
    days(events, false, visit)
}

/// The same; links can lead to its days if each of them is only once on the page.
fn days(events: &[(&Row, Markup)], are_targets: bool, visit: &Visit) -> Markup {
    let day = |(row, _): &(&Row, Markup)| visit.local(row.starts_at).date();
    html! {
        div.card {
            @for events in events.chunk_by(|one, other| day(one) == day(other)) {
                @let date = day(&events[0]);
                h3 id=[are_targets.then(|| format!("d-{date}"))] { (heading(date, visit)) }
                ul.rows { @for (row, state) in events {
                    li { time { (visit.hours(row.starts_at, row.ends_at)) } (what(row)) (state) }
                } }
            }
        }
    }
}

/// A day, and whether it is the present one.
fn heading(day: NaiveDate, visit: &Visit) -> Markup {
    html! {
        @if day == visit.today() { (visit.text("today")) (visit.language.separator()) }
        (visit.time(day))
    }
}

/// The name and the place of an event in a row.
pub fn what(row: &Row) -> Markup {
    html! { div { a href={ "/events/" (row.id) } { (row.name) } small { (row.place) } } }
}

/// The caller's answer to an event.
pub fn answer_badge(answer: Option<Schedule>, visit: &Visit) -> Markup {
    let (class, key) = match answer {
        None => return html! { i {} },
        Some(Schedule::Attendance) => ("badge good", "answer-attendance"),
        Some(Schedule::Absent) => ("badge", "answer-absent"),
        Some(Schedule::Pending) => ("badge", "not-answered-yet"),
    };
    html! { span class=(class) { (visit.text(key)) } }
}
