//! A made-up club for `--demo`, the same in both services: 60 members and 8 groups.

use std::sync::LazyLock;

use uuid::Uuid;

use super::{
    file::{self, USER_NAMESPACE},
    snapshot::Snapshot,
};

/// The made-up club's directory. The first member is the one to sign in as: the demo makes them privileged.
#[expect(clippy::expect_used, reason = "a test reads it")]
pub(super) static CLUB: LazyLock<Snapshot> =
    LazyLock::new(|| file::parse_toml(include_str!("demo.toml")).expect("demo.toml is a directory"));

/// The id of a member of the made-up club.
pub fn member_id(name: &str) -> Uuid {
    Uuid::new_v5(&USER_NAMESPACE, name.as_bytes())
}

/// Sign-in names, in the order in which the members joined.
pub fn members() -> impl Iterator<Item = &'static str> {
    CLUB.users.iter().map(|user| user.name.as_str())
}

#[cfg(test)]
mod tests {
    use crate::Source;

    #[test]
    fn the_made_up_club_is_a_good_directory() {
        let club = Source::Demo.read().unwrap();
        assert_eq!((club.users.len(), club.groups.len()), (60, 8));
        assert_eq!(club, Source::Demo.read().unwrap());
        let ids: Vec<_> = club.users.iter().map(|user| user.id).collect();
        assert!(club.groups.iter().all(|group| group.members.iter().all(|id| ids.contains(id))));
    }
}
