//! What there is to be changed: an operation at or below one of these paths changes what is shown there.

use service_kit::http::{Page, resources::Resources};

use crate::{accounts, contests, events, projects, target::Show, teams, users};

/// Every path at which something is shown that an operation changes.
pub const ALL: Resources<Show> = Resources(&[
    ("/api/v1/users/{userId}", |conn, _, ids| users::show(conn, ids.get("userId")?)),
    ("/api/v1/users/{userId}/accounts/{accountId}", |conn, _, ids| {
        accounts::show(conn, ids.get("userId")?, ids.get("accountId")?)
    }),
    ("/api/v1/events/{eventId}", |conn, me, ids| events::show(conn, ids.get("eventId")?, Some(me))),
    ("/api/v1/projects/{projectId}", |conn, _, ids| projects::show(conn, ids.get("projectId")?)),
    ("/api/v1/projects/{projectId}/members", |conn, _, ids| {
        projects::show_members(conn, ids.get("projectId")?, &Page::whole())
    }),
    ("/api/v1/contests/{contestId}", |conn, _, ids| contests::show(conn, ids.get("contestId")?)),
    ("/api/v1/contests/{contestId}/teams/{teamId}", |conn, _, ids| {
        teams::show(conn, ids.get("contestId")?, ids.get("teamId")?)
    }),
    ("/api/v1/contests/{contestId}/teams/{teamId}/members", |conn, _, ids| {
        teams::show_members(conn, ids.get("contestId")?, ids.get("teamId")?, &Page::whole())
    }),
]);
