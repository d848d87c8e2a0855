//! What there is to be changed: an operation at or below one of these paths changes what is shown there.

use service_kit::http::{Page, resources::Resources};

use crate::{events, groups, ical, rooms, sign_in, target::Show, users};

/// Every path at which something is shown that an operation changes.
pub const ALL: Resources<Show> = Resources(&[
    ("/api/events/{eventID}", |conn, _, club, id| events::show(conn, id, club.zone)),
    ("/api/groups/{groupID}", |conn, _, club, id| groups::show(conn, id, club.zone)),
    ("/api/rooms/{roomID}", |conn, _, club, id| rooms::show(conn, id, None, club.zone)),
    ("/api/users/{userID}", |conn, _, club, id| users::show(conn, id, &club.origin)),
    ("/api/users/me/ical", |conn, me, club, _| ical::show(conn, me.id, &club.keys)),
    ("/api/users/me/tokens", |conn, me, club, _| sign_in::show_tokens(conn, me.id, club.zone, &Page::whole())),
]);
