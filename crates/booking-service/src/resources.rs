//! What there is to be changed: an operation at or below one of these paths changes what is shown there.

use service_kit::http::{Page, resources::Resources};

use crate::{events, groups, ical, rooms, sign_in, target::Show, users};

/// Every path at which something is shown that an operation changes.
pub const ALL: Resources<Show> = Resources(&[
    ("/api/events/{eventID}", |conn, asked| events::show(conn, asked.id, asked.club.zone)),
    ("/api/groups/{groupID}", |conn, asked| groups::show(conn, asked.id, asked.club.zone)),
    ("/api/rooms/{roomID}", |conn, asked| rooms::show(conn, asked.id, None, asked.club.zone)),
    ("/api/users/{userID}", |conn, asked| users::show(conn, asked.id, &asked.club.origin)),
    ("/api/users/me/ical", |conn, asked| ical::show(conn, asked.me.id, &asked.club.keys)),
    ("/api/users/me/sessions", |conn, asked| {
        sign_in::show_sessions(conn, asked.me, asked.club.zone, asked.now, &Page::whole())
    }),
    ("/api/users/me/tokens", |conn, asked| sign_in::show_tokens(conn, asked.me.id, asked.club.zone, &Page::whole())),
]);
