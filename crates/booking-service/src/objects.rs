//! The objects that have a history.

use service_kit::history::Kind;

/// An event. Its room and group have histories of their own, and answers have none.
pub static EVENT: Kind =
    Kind { name: "event", hidden: &["eventId", "attendees", "deletedAt", "seriesId", "occurrence"] };

/// A series of events, with the fields of its last event.
pub static SERIES: Kind = Kind { name: "series", hidden: &["seriesId"] };

/// A room, but not one that was made for an event: that changes with the event, and nobody else changes it.
pub static ROOM: Kind = Kind { name: "room", hidden: &["roomId", "freeTimes", "sharedTimes"] };

/// A group.
pub static GROUP: Kind = Kind { name: "group", hidden: &["groupId", "isTraQGroup"] };

/// A poll. Its status and numbers also change with time and with the people who are invited.
pub static POLL: Kind = Kind { name: "poll", hidden: &["draftEventId", "status", "respondedCount", "totalInvitees"] };

/// A tag.
pub static TAG: Kind = Kind { name: "tag", hidden: &["tagId"] };

/// A user, of whom only the privilege changes here.
pub static USER: Kind = Kind { name: "user", hidden: &["userId", "name", "displayName", "icon", "state"] };

/// A link by which people become members.
pub static INVITATION: Kind = Kind { name: "invitation", hidden: &["invitationId"] };

/// A webhook. Its address is left out, which may be secret, and what the service itself notes about its deliveries.
pub static WEBHOOK: Kind = Kind { name: "webhook", hidden: &["webhookId", "url", "failingSince"] };
