//! The words of webhooks: formats, what they are told of, and the state of a delivery.

use service_kit::{history::Action, http::language::Language, text_enum};

text_enum! {
    /// The form of what is sent.
    pub enum Format {
        /// Standard Webhooks: a JSON object with a signature.
        Standard = "standard",
        /// A message on traQ.
        Traq = "traq",
        /// A message on Slack, Mattermost or Rocket.Chat.
        Slack = "slack",
        /// A message on Discord.
        Discord = "discord",
    }
}

text_enum! {
    /// What a webhook is told of.
    pub enum Type {
        /// An event was created.
        EventCreated = "event.created",
        /// An event has changed.
        EventChanged = "event.changed",
        /// An event was deleted.
        EventDeleted = "event.deleted",
        /// The deletion of an event was undone.
        EventRestored = "event.restored",
        /// A series was created with its events.
        SeriesCreated = "series.created",
        /// A series has changed with its events.
        SeriesChanged = "series.changed",
        /// A series was deleted with its events.
        SeriesDeleted = "series.deleted",
        /// A room was confirmed.
        RoomVerified = "room.verified",
        /// The confirmation of a room was withdrawn.
        RoomUnverified = "room.unverified",
        /// A room was deleted.
        RoomDeleted = "room.deleted",
        /// A poll was created.
        PollCreated = "poll.created",
        /// The deadline of a poll has passed.
        PollClosed = "poll.closed",
        /// A poll has become an event.
        PollConfirmed = "poll.confirmed",
        /// A group was created.
        GroupCreated = "group.created",
        /// A group has changed.
        GroupChanged = "group.changed",
        /// A group was deleted.
        GroupDeleted = "group.deleted",
        /// The deletion of a group was undone.
        GroupRestored = "group.restored",
        /// Message: an event was created, has changed or takes place after all.
        Announcement = "announcement",
        /// Message: an event is cancelled.
        Cancellation = "cancellation",
        /// Message: the rooms and events of the day.
        Digest = "digest",
        /// Message: an event begins or a poll ends soon, and some have not answered.
        Reminder = "reminder",
        /// Somebody tries the webhook.
        Test = "test",
    }
}

text_enum! {
    /// The language of messages.
    pub enum MessageLanguage {
        /// English.
        English = "en",
        /// Japanese.
        Japanese = "ja",
    }
}

text_enum! {
    /// Whether messages mention people.
    pub enum Mentions {
        /// They are notified.
        On = "on",
        /// They are named.
        Silent = "silent",
        /// They are not named.
        Off = "off",
    }
}

text_enum! {
    /// Why the service has switched a webhook off.
    pub enum WhyOff {
        /// The receiver answered that the address is no longer used (410).
        Gone = "gone",
        /// No attempt has succeeded for two weeks.
        Failing = "failing",
    }
}

text_enum! {
    /// The state of a delivery.
    pub enum Status {
        /// It has not been sent yet.
        Waiting = "waiting",
        /// The receiver has accepted it.
        Delivered = "delivered",
        /// It was sent together with an earlier one.
        Merged = "merged",
        /// It was not sent: it came too late, or there was nothing to say.
        Dropped = "dropped",
        /// No attempt succeeded.
        Failed = "failed",
    }
}

impl WhyOff {
    /// As a sentence.
    pub fn explanation(self) -> &'static str {
        match self {
            Self::Gone => "its receiver answers that the address is no longer used (410)",
            Self::Failing => "no attempt has succeeded for two weeks",
        }
    }
}

impl From<MessageLanguage> for Language {
    fn from(language: MessageLanguage) -> Self {
        match language {
            MessageLanguage::English => Self::English,
            MessageLanguage::Japanese => Self::Japanese,
        }
    }
}

impl Format {
    /// Whether a webhook of this format can be told of this.
    pub fn takes(self, kind: Type) -> bool {
        kind != Type::Test && (self == Self::Standard) != kind.is_message()
    }

    /// Whether what is sent is signed with a secret.
    pub fn is_signed(self) -> bool {
        matches!(self, Self::Standard | Self::Traq)
    }
}

impl Format {
    /// What is sent to a webhook of this format when this was done to an object.
    pub fn kind_of(self, object_type: &str, action: Action) -> Option<Type> {
        let kind = Type::of(object_type, action)?;
        if self == Self::Standard {
            return Some(kind);
        }
        match kind {
            Type::EventCreated
            | Type::EventRestored
            | Type::EventChanged
            | Type::SeriesCreated
            | Type::SeriesChanged => Some(Type::Announcement),
            Type::EventDeleted | Type::SeriesDeleted => Some(Type::Cancellation),
            _ => None,
        }
    }
}

impl Type {
    /// What was done to an object.
    fn of(object_type: &str, action: Action) -> Option<Self> {
        Some(match (object_type, action) {
            ("event", Action::Created) => Self::EventCreated,
            ("event", Action::Changed | Action::Reverted) => Self::EventChanged,
            ("event", Action::Deleted) => Self::EventDeleted,
            ("event", Action::Restored) => Self::EventRestored,
            ("series", Action::Created) => Self::SeriesCreated,
            ("series", Action::Changed) => Self::SeriesChanged,
            ("series", Action::Deleted) => Self::SeriesDeleted,
            ("room", Action::Verified) => Self::RoomVerified,
            ("room", Action::Unverified) => Self::RoomUnverified,
            ("room", Action::Deleted) => Self::RoomDeleted,
            ("poll", Action::Created) => Self::PollCreated,
            ("poll", Action::Confirmed) => Self::PollConfirmed,
            ("group", Action::Created) => Self::GroupCreated,
            ("group", Action::Changed) => Self::GroupChanged,
            ("group", Action::Deleted) => Self::GroupDeleted,
            ("group", Action::Restored) => Self::GroupRestored,
            _ => return None,
        })
    }

    /// Whether it is a message to people.
    pub fn is_message(self) -> bool {
        matches!(self, Self::Announcement | Self::Cancellation | Self::Digest | Self::Reminder)
    }

    /// The path of the object below `/api`.
    pub fn collection(self) -> &'static str {
        match self.word().split('.').next() {
            Some("event") => "events",
            Some("series") => "event-series",
            Some("room") => "rooms",
            Some("poll") => "draft-events",
            Some("group") => "groups",
            _ => "webhooks",
        }
    }
}
