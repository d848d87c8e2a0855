//! The problem codes of this service besides the common ones.

common::codes! {
    /// 400: an event that is not inside its room's period.
    OUTSIDE_ROOM_PERIOD = 400 "outside-room-window", "The event is not inside the room's period",
        "An event must begin and end within the time for which the club holds its room.";
    /// 400: a filter that cannot be read.
    BAD_FILTER = 400 "bad-filter", "The filter cannot be read",
        "The parameter `q` does not follow the grammar; `position` counts characters from 0.";
    /// 400: a filter with too many characters, levels or comparisons.
    FILTER_TOO_LONG = 400 "filter-too-long", "The filter is too long",
        "The parameter `q` may have at most 4096 characters, 32 levels of parentheses and 32 comparisons.";
    /// 400: an imported table with bad rows.
    BAD_IMPORT = 400 "bad-import", "The table cannot be imported",
        "Nothing was imported. Each entry of `violations` names a row, as a spreadsheet counts (the header is 1), and a \
        column. Row 0 is the whole table.";
    /// 403: a poll that no longer takes answers and changes.
    POLL_CLOSED = 403 "poll-closed", "The poll no longer takes answers and changes",
        "Its deadline has passed, or it has been confirmed.";
    /// 409: the restoration of an event whose room is deleted.
    ROOM_DELETED = 409 "room-deleted", "The event's room is deleted",
        "An administrator of the room, or a privileged user, must restore it first.";
    /// 409: the restoration of an event whose group is deleted.
    GROUP_DELETED = 409 "group-deleted", "The event's group is deleted",
        "Restore the group first, or name another one by `groupId`.";
    /// 409: a second answer to a poll.
    ALREADY_ANSWERED = 409 "already-answered", "The caller has answered already",
        "Change the answer with `PUT`.";
    /// 409: a poll that has been confirmed.
    POLL_CONFIRMED = 409 "poll-confirmed", "The poll has been confirmed already",
        "`eventId` is the event that it became.";
    /// 409: a double booking.
    ROOM_CONFLICT = 409 "room-conflict", "The room is taken",
        "`conflicts` lists the conflicting events, `freeTimes` the times when the room is free.";
    /// 409: dates of a series that cannot be booked.
    SERIES_CONFLICT = 409 "series-conflict", "Dates of the series cannot be booked",
        "`dates` lists them, each with its `code` and, if the room is taken, with the conflicting events.";
    /// 409: a verified room that would overlap another.
    ROOM_OVERLAP = 409 "room-overlap", "Another verified room overlaps this one",
        "Two verified rooms on one place never overlap. `rooms` lists the overlapping rooms.";
    /// 409: a room or group with events that have not ended.
    EVENTS_TO_COME = 409 "events-to-come", "There are events that have not ended",
        "`events` lists them. Repeat the request with `force=true` to delete them as well.";
    /// 409: more API tokens than a user may have.
    TOO_MANY_TOKENS = 409 "too-many-tokens", "The user has too many API tokens",
        "A user has at most 50 tokens that have neither expired nor been revoked. Revoke one that is not needed.";
    /// 409: the last privileged user.
    LAST_PRIVILEGED = 409 "last-privileged-user", "One user must stay privileged",
        "Grant the privilege to another user first.";
    /// 409: more webhooks than the club may have.
    TOO_MANY_WEBHOOKS = 409 "too-many-webhooks", "There are too many webhooks",
        "A club has at most 100 webhooks. Delete one that is not needed.";
    /// 409: more invitations than the club may have.
    TOO_MANY_INVITATIONS = 409 "too-many-invitations", "There are too many invitations",
        "A club has at most 100 invitations by which somebody can still join. Delete one that is not needed.";
    /// 409: more tags than an event may have.
    TOO_MANY_TAGS = 409 "too-many-tags", "There are too many tags",
        "An event has at most 100 tags. Remove one that is not needed.";
    /// 409: a delivery of a webhook that is off.
    WEBHOOK_OFF = 409 "webhook-off", "The webhook is off",
        "Switch it on first (`isOn`).";
    /// 409: a new secret for a webhook that needs none.
    NO_SECRET = 409 "no-secret", "The webhook has no secret",
        "Messages to Slack and Discord are not signed: the address itself is the secret.";
}
