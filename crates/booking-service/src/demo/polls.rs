//! The polls of the example club, in every state.

use chrono::{Days, NaiveDate, NaiveTime, TimeDelta};
use common::{input::IdSet, problem::Problem, time::Timestamp};
use rand::{Rng, seq::IndexedRandom};
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
};

use super::{Builder, author, plan::ONLINE};
use crate::{
    events::changes::Venue,
    polls::{
        answers::{self, Answer},
        changes::{self, NewPoll, NewSlot},
        confirmation::{self, Confirmation},
        queries::{self, slots},
    },
    wall_clock::instant_or_next,
};

/// A poll to create. Days count from today.
struct PlannedPoll {
    name: &'static str,
    description: &'static str,
    /// The name of the group; empty for the everyone group.
    group: &'static str,
    open: bool,
    tags: &'static [&'static str],
    /// The number of days since the poll was created.
    age: u64,
    /// The day of the deadline, which is at noon.
    deadline: i64,
    /// The day, the hour of the start and the length in hours of each slot.
    slots: &'static [(i64, u32, i64)],
    /// The probability that an invitee has answered.
    answer_probability: f64,
    /// Whether the first slot was confirmed yesterday.
    is_confirmed: bool,
}

const POLLS: [PlannedPoll; 6] = [
    PlannedPoll {
        name: "Game jam kick-off",
        description: "Which evening suits you?",
        group: "game",
        open: false,
        tags: &["game"],
        age: 1,
        deadline: 5,
        slots: &[(8, 18, 2), (9, 18, 2), (10, 19, 2)],
        answer_probability: 0.0,
        is_confirmed: false,
    },
    PlannedPoll {
        name: "Contest review",
        description: "We go through the last contest together.",
        group: "algorithms",
        open: false,
        tags: &["contest"],
        age: 4,
        deadline: 3,
        slots: &[(5, 18, 2), (6, 13, 3), (7, 13, 3), (8, 20, 2)],
        answer_probability: 0.7,
        is_confirmed: false,
    },
    PlannedPoll {
        name: "Welcome picnic",
        description: "Everybody is welcome; say when you can come.",
        group: "Newcomers",
        open: true,
        tags: &["beginners"],
        age: 3,
        deadline: 7,
        slots: &[(10, 11, 4), (11, 11, 4)],
        answer_probability: 0.4,
        is_confirmed: false,
    },
    PlannedPoll {
        name: "Night of the servers",
        description: "An upgrade that needs everything switched off.",
        group: "sysadmin",
        open: false,
        tags: &["infra"],
        age: 9,
        deadline: -1,
        // Past midnight.
        slots: &[(4, 22, 6), (5, 22, 6)],
        answer_probability: 0.8,
        is_confirmed: false,
    },
    PlannedPoll {
        name: "ポスター会議",
        description: "",
        group: "pr",
        open: false,
        tags: &[],
        age: 12,
        deadline: -3,
        slots: &[(1, 19, 1), (2, 19, 1)],
        answer_probability: 0.0,
        is_confirmed: false,
    },
    PlannedPoll {
        name: "Rust book, last chapter",
        description: "And what to read next.",
        group: "Rust readers",
        open: false,
        tags: &["rust"],
        age: 10,
        deadline: -2,
        slots: &[(6, 20, 2), (7, 20, 2)],
        answer_probability: 0.9,
        is_confirmed: true,
    },
];

const COMMENTS: [&str; 4] = ["I may be late.", "Online only, please.", "途中から参加します。", "Any day but Monday."];

impl Builder {
    /// Makes the polls, and returns how many.
    pub(super) fn create_polls(&mut self, conn: &mut AnyConnection, now: Timestamp) -> Result<usize, Error> {
        let today = now.utc().with_timezone(&self.zone).date_naive();
        for planned in &POLLS {
            self.create_poll(conn, planned, today)?;
        }
        Ok(POLLS.len())
    }

    /// The instant of an hour on a day.
    pub(super) fn at(&self, today: NaiveDate, day: i64, hour: u32) -> Result<Timestamp, Error> {
        let date = today.checked_add_signed(TimeDelta::days(day)).zip(NaiveTime::from_hms_opt(hour, 0, 0));
        let at = date.and_then(|(date, time)| instant_or_next(date, time, self.zone));
        at.ok_or_else(|| Problem::internal("a day of the demo is out of range").into())
    }

    fn create_poll(&mut self, conn: &mut AnyConnection, planned: &PlannedPoll, today: NaiveDate) -> Result<(), Error> {
        let created_on = today.checked_sub_days(Days::new(planned.age)).unwrap_or(today);
        let created_at = DbTimestamp(self.at(created_on, 0, 9)?);
        let slot = |&(day, hour, length): &(i64, u32, i64)| {
            let start = self.at(today, day, hour)?;
            let end = start.plus(TimeDelta::hours(length));
            Ok(NewSlot { starts_at: DbTimestamp(start), ends_at: DbTimestamp(end) })
        };
        let new_slots = planned.slots.iter().map(slot).collect::<Result<Vec<_>, Error>>()?;
        let deadline = DbTimestamp(self.at(today, planned.deadline, 12)?);
        let group = self.group(planned.group);
        let organizer = group.organizers[0];
        let poll = NewPoll {
            name: planned.name.to_owned(),
            description: planned.description.to_owned(),
            open: planned.open,
            deadline,
            slots: new_slots,
            admins: IdSet::new([organizer.0]),
            invitees: IdSet::new([]),
            invite_groups: IdSet::new([group.id.0]),
            tags: planned.tags.iter().map(|name| ((*name).to_owned(), false)).collect(),
        };
        let id = changes::create(conn, &poll, &author(organizer, created_at), created_at)?;
        let ids: Vec<_> = slots(conn, id)?.into_iter().map(|slot| slot.id).collect();
        for member in &group.members {
            if self.rng.random_bool(planned.answer_probability) {
                let answer = self.answer(&ids);
                let at = created_at.plus(TimeDelta::minutes(self.rng.random_range(10..1200)));
                answers::create(conn, id, *member, &answer, DbTimestamp(at))?;
            }
        }
        if planned.is_confirmed {
            let confirmation = Confirmation {
                slot: ids[0],
                venue: Venue::Place(ONLINE.to_owned()),
                group: group.id,
                shared: false,
                open: planned.open,
            };
            let at = DbTimestamp(self.at(today, -1, 13)?);
            let poll = queries::find(conn, id)?;
            confirmation::confirm_locked(conn, poll, &confirmation, &author(organizer, at), self.zone, at)?;
        }
        Ok(())
    }

    fn answer(&mut self, slots: &[DbUuid]) -> Answer {
        let (mut yes, mut maybe) = (Vec::new(), Vec::new());
        for slot in slots {
            match self.rng.random_range(0..10) {
                0..5 => yes.push(slot.0),
                5..7 => maybe.push(slot.0),
                _ => {}
            }
        }
        let comment = self.rng.random_bool(0.2).then(|| COMMENTS.choose(&mut self.rng)).flatten();
        Answer { yes: IdSet::new(yes), maybe: IdSet::new(maybe), comment: comment.map(|text| (*text).to_owned()) }
    }
}
