//! The made-up directory of the command `seed`, the same in both services: a club of a size that somebody measures
//! with.

use clap::ValueEnum;
use common::time::Timestamp;
use uuid::{Builder, Uuid};

use super::{
    DirectoryGroup, DirectoryUser, GROUP_NAMESPACE, Snapshot, UserState,
    demo::{self, member_id},
};

/// How much there is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Size {
    /// To try things out: ten weeks as full as those of `large`
    Small,
    /// What a club of 100 has
    Club,
    /// 1,000 users, 200 groups, 20,000 events in two years, 2,000 projects, 500 contests
    Large,
    /// The same with 50 times the events and contests
    Huge,
}

/// Members of a group.
pub const GROUP_SIZE: usize = 20;

impl Size {
    /// Users, all of them active.
    #[must_use]
    pub const fn users(self) -> usize {
        match self {
            Self::Small | Self::Club => 100,
            Self::Large | Self::Huge => 1000,
        }
    }

    /// Groups of [`GROUP_SIZE`].
    #[must_use]
    pub const fn groups(self) -> usize {
        match self {
            Self::Small => 20,
            Self::Club => 12,
            Self::Large | Self::Huge => 200,
        }
    }
}

/// The sign-in name of a user, counted from 0. The first is the demo's, who may do everything.
#[must_use]
pub fn name(index: usize) -> String {
    match index {
        0 => demo::members().next().unwrap_or_default().to_owned(),
        _ => format!("u{index:04}"),
    }
}

/// The directory of this size, always the same. The last user is in no group.
#[must_use]
pub fn snapshot(size: Size) -> Snapshot {
    let users = (0..size.users()).map(|index| DirectoryUser {
        id: member_id(&name(index)),
        name: name(index),
        display_name: format!("Member {index}"),
        real_name: Some(format!("Real Name {index}")),
        icon: None,
        state: UserState::Active,
    });
    let users: Vec<_> = users.collect();
    let joiners = users.len() - 1;
    let groups = (0..size.groups()).map(|index| {
        let name = format!("group-{index:03}");
        let members: Vec<_> = (0..GROUP_SIZE).map(|n| users[(index * GROUP_SIZE + n) % joiners].id).collect();
        DirectoryGroup {
            id: Uuid::new_v5(&GROUP_NAMESPACE, name.as_bytes()),
            description: format!("What {name} does, in a sentence of a usual length"),
            name,
            admins: members.iter().take(2).copied().collect(),
            members,
        }
    });
    Snapshot { groups: groups.collect(), users }
}

/// The identifier of something made at a time: ordered by time as all are (UUID version 7), with its kind and number
/// where others have random bits. Numbers are below 2⁴⁸.
#[must_use]
pub fn id(made_at: Timestamp, kind: u8, number: usize) -> Uuid {
    let mut bits = [0; 10];
    bits[1] = kind;
    bits[4..].copy_from_slice(&(number as u64).to_be_bytes()[2..]);
    // What was made before 1970 has no other time that such an identifier could show.
    let millis = u64::try_from(made_at.utc().timestamp_millis()).unwrap_or(0);
    Builder::from_unix_timestamp_millis(millis, &bits).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_is_a_good_directory() {
        for size in Size::value_variants() {
            let club = snapshot(*size).checked().unwrap();
            assert_eq!((club.users.len(), club.groups.len()), (size.users(), size.groups()));
            let last = club.users.last().unwrap().id;
            for group in &club.groups {
                let members: std::collections::HashSet<_> = group.members.iter().collect();
                assert!(members.len() == GROUP_SIZE && !members.contains(&last), "{group:?}");
            }
        }
    }
}
