//! The operation that finds free times.

use actix_web::get;
use service_kit::{
    database::types::{DbTimestamp, DbUuid},
    error::Failure,
    http::{Page, Query, Reply},
};

use super::{
    hours::{busy_people, long_enough},
    queries::{busy_times, count_people, free_rooms},
    wire::{FindQuery, ResponseFreeTime},
};
use crate::{
    auth::SignedIn,
    club::Zone,
    rooms::{overlap::Span, queries::Selection},
};

/// The sort key of lists of free times.
type Position = (DbTimestamp, String, DbUuid);

/// Find free times
///
/// The free times of rooms, clipped to the span and the hours of the day, that have at least the required length. Any
/// part of them can be booked. Ordered by timeStart, place and roomId.
#[utoipa::path(
    tags = ["availability", "additions"],
    operation_id = "findFreeTimes",
    params(FindQuery),
    responses((status = 200, description = "Free times", body = [ResponseFreeTime]))
)]
#[get("")]
pub async fn find(who: SignedIn, Zone(zone): Zone, page: Page, query: Query<FindQuery>) -> Result<Reply, Failure> {
    let query = query.0;
    let ((from, to), people) = (query.span()?, query.people()?);
    let span = Span::between(from, to);
    let hours = query.between.map_or_else(|| vec![span], |between| between.intervals_in(span, zone));
    who.list(page, move |conn, _, page| {
        // A room whose period ends before the last free time of the previous page has no later free time.
        let bounds = page.bounds::<Position>()?;
        let resume_from = bounds.after.map_or(from, |(start, ..)| start.max(from));
        let selection = Selection {
            from: Some(resume_from),
            to: Some(to),
            only_verified: query.only_verified(),
            ..Selection::default()
        };
        let count = people.as_ref().map(|people| count_people(conn, people)).transpose()?;
        let busy = people.as_ref().map(|people| busy_times(conn, people, from, to)).transpose()?.unwrap_or_default();
        let mut free_times: Vec<(Position, Span)> = Vec::new();
        for room in free_rooms(conn, &selection, query.shared.0)? {
            for free in long_enough(&room.free, &hours, query.length()) {
                free_times.push(((DbTimestamp(free.start), room.place.clone(), room.id), free));
            }
        }
        free_times.sort_unstable();
        let show = |((start, place, room_id), free): (Position, Span)| {
            let busy_users = count.map(|_| busy_people(free, &busy));
            Ok(ResponseFreeTime {
                place,
                room_id,
                time_start: start.in_zone(zone),
                time_end: free.end.in_zone(zone),
                free_users: count.zip(busy_users).map(|(all, busy)| all - busy),
                busy_users,
            })
        };
        page.rows_of_all(free_times, |(position, _)| position.clone(), show)
    })
    .await
}
