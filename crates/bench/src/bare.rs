//! Bare work: the statements and the serialization of a scene in a loop, without HTTP, on one thread per processor,
//! each with a connection of its own, in the same kind of transaction.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use booking_service::{
    auth::authenticate,
    events::{
        self, ResponseEvent,
        queries::{Order, load_slice},
        selection::{Relation, Selection, Which},
    },
    groups::{self, ResponseGroup},
    ical,
    rooms::{self, ResponseRoom},
    users::{self, ResponseUser},
};
use chrono::TimeDelta;
use common::time::{Clock, Timestamp};
use diesel::{RunQueryDsl, connection::SimpleConnection};
use service_kit::{
    database::{
        AnyConnection, PageBounds, State, Url,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    http::{Reply, credential::Credential, page::CHUNK},
    with_connection,
};

use crate::{Result, scenes::Facts};

/// The zone in which the services show times when nothing is said.
const ZONE: chrono_tz::Tz = chrono_tz::Tz::UTC;

/// What an operation does, from the credential to the bytes.
pub type Work = Arc<dyn Fn(&mut AnyConnection) -> std::result::Result<Reply, Error> + Send + Sync>;

/// How often it is done in a second.
pub fn run(url: &str, time: Duration, work: &Work) -> Result<f64> {
    let url: Url = url.parse()?;
    let threads = thread::available_parallelism()?.get();
    let runs: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(|| again_and_again(&url, time, work))).collect();
        threads.into_iter().map(|thread| thread.join().map_err(|_| "bare work panicked")).collect()
    });
    let mut all = 0.0;
    for run in runs {
        all += run??;
    }
    Ok(all)
}

fn again_and_again(url: &Url, time: Duration, work: &Work) -> Result<f64> {
    let mut conn = url.connect()?;
    let transaction =
        if url.is_postgres() { "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" } else { "BEGIN DEFERRED" };
    let (begun, mut done) = (Instant::now(), 0_u32);
    while begun.elapsed() < time {
        conn.batch_execute(transaction)?;
        let reply = work(&mut conn).map_err(|error| format!("bare work: {error:?}"))?;
        conn.batch_execute("COMMIT")?;
        std::hint::black_box(reply);
        done += 1;
    }
    Ok(f64::from(done) / begun.elapsed().as_secs_f64())
}

/// Work for somebody who is signed in to the booking-service.
fn signed_in(
    facts: &Facts,
    work: impl Fn(&mut AnyConnection, DbUuid) -> std::result::Result<Reply, Error> + Send + Sync + 'static,
) -> Work {
    let (credential, clock) = (Credential::Bearer(facts.token.clone()), Clock::default());
    Arc::new(move |conn| {
        let (caller, ..) = authenticate(conn, &credential, clock.now())?;
        work(conn, caller.id)
    })
}

fn uid(text: &str) -> DbUuid {
    DbUuid(text.parse().unwrap_or_default())
}

fn span(from: Timestamp, days: i64) -> (Option<DbTimestamp>, Option<DbTimestamp>) {
    (Some(DbTimestamp(from)), Some(DbTimestamp(from.plus(TimeDelta::days(days)))))
}

/// The part of a list that is read first, as an answer does; and one row more, to see whether it goes on.
fn first<P>() -> PageBounds<P> {
    PageBounds { after: None, rows: i64::try_from(CHUNK + 1).unwrap_or(i64::MAX) }
}

fn list(conn: &mut AnyConnection, selection: &Selection) -> std::result::Result<Reply, Error> {
    let events = load_slice(conn, selection, Order::Start, &first())?.into_iter();
    Reply::json(&events.map(|event| ResponseEvent::new(event, ZONE)).collect::<Vec<_>>())
}

pub fn events(facts: &Facts, days: i64) -> Work {
    let selection = Selection::of(Which::All).between(span(facts.today, days));
    signed_in(facts, move |conn, _| list(conn, &selection))
}

pub fn my_events(facts: &Facts) -> Work {
    signed_in(facts, |conn, user| {
        users::queries::get(conn, user)?;
        let which = Which::OfUser { user, relation: Relation::Belongs, is_active: true };
        list(conn, &Selection::of(which))
    })
}

pub fn rooms(facts: &Facts) -> Work {
    let (from, to) = span(facts.today, 7);
    let selection = rooms::queries::Selection { from, to, ..Default::default() };
    signed_in(facts, move |conn, _| {
        let rooms = rooms::queries::load_slice(conn, &selection, None, &first())?.into_iter();
        Reply::json(&rooms.map(|room| ResponseRoom::new(room, ZONE)).collect::<Vec<_>>())
    })
}

pub fn event(facts: &Facts) -> Work {
    let id = uid(&facts.event);
    signed_in(facts, move |conn, _| events::show(conn, id, ZONE))
}

pub fn groups(facts: &Facts) -> Work {
    signed_in(facts, |conn, _| {
        let groups = groups::queries::list(conn, &first())?.into_iter();
        Reply::json(&groups.map(|group| ResponseGroup::new(group, ZONE)).collect::<Vec<_>>())
    })
}

pub fn users(facts: &Facts) -> Work {
    signed_in(facts, |conn, _| {
        let users = users::queries::list(conn, false, &first())?.into_iter();
        Reply::json(&users.map(|user| ResponseUser::new(user, "http://127.0.0.1:3000")).collect::<Vec<_>>())
    })
}

pub fn feed(facts: &Facts) -> Work {
    let (user, clock) = (uid(&facts.feed_user), Clock::default());
    Arc::new(move |conn| {
        ical::queries::nonce_of_active(conn, user)?;
        let mut feed = ical::feed::Feed::new("traP events", "http://127.0.0.1:3000");
        ical::queries::each(conn, Which::ForFeed(user), clock.now(), |event| feed.add(event))?;
        Ok(Reply::of(actix_web::http::StatusCode::OK, "text/calendar", feed.end().into_bytes()))
    })
}

/// Work for anybody who visits the portfolio.
fn visiting(work: impl Fn(&mut AnyConnection) -> std::result::Result<Reply, Error> + Send + Sync + 'static) -> Work {
    Arc::new(move |conn| {
        let _: String = with_connection!(conn, c => diesel::select(State).get_result(c))?;
        work(conn)
    })
}

pub fn p_users() -> Work {
    visiting(|conn| {
        let active = portfolio_service::users::queries::Selection::Active;
        let users = portfolio_service::users::queries::list(conn, &active, &first())?.into_iter();
        Reply::json(&users.map(portfolio_service::users::User::from).collect::<Vec<_>>())
    })
}

pub fn p_user(facts: &Facts) -> Work {
    let id = uid(&facts.me);
    visiting(move |conn| portfolio_service::users::show(conn, id))
}

pub fn p_project(facts: &Facts) -> Work {
    let id = uid(&facts.project);
    visiting(move |conn| portfolio_service::projects::show(conn, id))
}

pub fn p_contest(facts: &Facts) -> Work {
    let id = uid(&facts.contest);
    visiting(move |conn| portfolio_service::contests::show(conn, id))
}
