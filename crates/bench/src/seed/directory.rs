//! The generated club directory, the same for both services.

use club_directory::{
    DirectoryGroup, DirectoryUser, GROUP_NAMESPACE, Snapshot, UserState,
    demo::{self, member_id},
};
use common::time::Timestamp;
use uuid::{Builder, Uuid};

use super::Size;

/// Members of a group.
pub const GROUP_SIZE: usize = 20;

/// The sign-in name of the user with this number. The first has the name of the demo's privileged user.
fn name(index: usize) -> String {
    match index {
        0 => demo::members().next().unwrap_or_default().to_owned(),
        _ => format!("u{index:04}"),
    }
}

/// The directory of a size, the same in every run. The last user is in no group.
pub fn snapshot(size: Size) -> Snapshot {
    let users = (0..size.users()).map(|index| DirectoryUser {
        id: member_id(&name(index)),
        name: name(index),
        display_name: format!("Member {index}"),
        real_name: Some(format!("Real Name {index}")),
        icon: None,
        email: None,
        state: UserState::Active,
    });
    let users: Vec<_> = users.collect();
    let group_users = users.len() - 1;
    let groups = (0..size.groups()).map(|index| {
        let name = format!("group-{index:03}");
        let members: Vec<_> = (0..GROUP_SIZE).map(|n| users[(index * GROUP_SIZE + n) % group_users].id).collect();
        DirectoryGroup {
            id: Uuid::new_v5(&GROUP_NAMESPACE, name.as_bytes()),
            description: format!("What {name} does, in a sentence of a usual length"),
            name,
            admins: members.iter().take(2).copied().collect(),
            members,
        }
    });
    Snapshot { groups: groups.collect(), users, privileged: None }
}

/// The identifier of a row: a UUID of version 7 with its creation time. Its kind and its number, which is below 2⁴⁸,
/// replace the random bits.
pub fn id(created_at: Timestamp, kind: u8, number: usize) -> Uuid {
    let mut bits = [0; 10];
    bits[1] = kind;
    bits[4..].copy_from_slice(&(number as u64).to_be_bytes()[2..]);
    // A UUID of version 7 cannot hold a time before 1970.
    let millis = u64::try_from(created_at.utc().timestamp_millis()).unwrap_or(0);
    Builder::from_unix_timestamp_millis(millis, &bits).into_uuid()
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn the_directory_of_every_size_is_valid() {
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
