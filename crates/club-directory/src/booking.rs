//! Users and groups of a booking-service, as a directory for the portfolio-service (contract, "The club directory").

use std::collections::HashSet;

use serde::Deserialize;
use uuid::{Uuid, uuid};

use super::{
    snapshot::{DirectoryError, DirectoryGroup, DirectoryUser, Snapshot, UserState},
    traq::{Client, only},
};

/// The state of users who may use their privilege.
const ACTIVE: i64 = UserState::Active as i64;

/// The group of all active members, which is left out (contract, booking, "Groups").
const EVERYONE: Uuid = uuid!("11111111-1111-1111-1111-111111111111");

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct User {
    #[serde(rename = "userId")]
    id: Uuid,
    name: String,
    display_name: String,
    icon: String,
    state: i64,
    privileged: bool,
}

#[derive(Deserialize)]
struct Group {
    #[serde(rename = "groupId")]
    id: Uuid,
    name: String,
    description: String,
    members: Vec<Uuid>,
    admins: Vec<Uuid>,
}

/// Reads both lists. The name that a user shows there is the real name, which a profile shows only if its owner says so.
pub(super) fn read(client: &Client<'_>) -> Result<Snapshot, DirectoryError> {
    let users: Vec<User> = client.get("users", Some("include-suspended=true"))?;
    let mut groups: Vec<Group> = client.get("groups", None)?;
    let user_ids: HashSet<Uuid> = users.iter().map(|user| user.id).collect();
    let privileged = users.iter().filter(|user| user.privileged && user.state == ACTIVE).map(|user| user.id).collect();
    let users = users.into_iter().map(|user| {
        let state = UserState::from_number(user.state)
            .ok_or_else(|| DirectoryError::Unfit(format!("the user {:?} has an unknown state", user.name)))?;
        Ok(DirectoryUser {
            id: user.id,
            name: user.name,
            real_name: Some(user.display_name.clone()),
            display_name: user.display_name,
            icon: Some(user.icon).filter(|icon| !icon.is_empty()),
            email: None,
            state,
        })
    });
    let users = users.collect::<Result<Vec<_>, _>>()?;
    groups.retain(|group| group.id != EVERYONE);
    // Members make groups there, so two may have one name.
    groups.sort_by_key(|group| group.id);
    let mut names = HashSet::new();
    let groups = groups.into_iter().map(|group| DirectoryGroup {
        name: if names.insert(group.name.clone()) { group.name } else { other_name(&group.name, group.id) },
        id: group.id,
        description: group.description,
        members: only(&user_ids, group.members.into_iter()),
        admins: only(&user_ids, group.admins.into_iter()),
    });
    Ok(Snapshot { groups: groups.collect(), users, privileged: Some(privileged) })
}

fn other_name(name: &str, id: Uuid) -> String {
    format!("{name} ({})", &id.simple().to_string()[..8])
}
