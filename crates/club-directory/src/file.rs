//! The directory as a TOML or JSON file.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::Path;

use club_issuer::joining::comparable_address;
use serde::Deserialize;
use url::Url;
use uuid::{Uuid, uuid};

use super::snapshot::{DirectoryError, DirectoryGroup, DirectoryUser, Snapshot, UserState};

/// The user `name` without an id has the id `Uuid::new_v5(&USER_NAMESPACE, name)`, at each read and in each service.
pub const USER_NAMESPACE: Uuid = uuid!("1166e7da-3e7e-47b0-9873-28244a001f68");

/// The same for groups; another namespace, as a user and a group may share a name.
pub const GROUP_NAMESPACE: Uuid = uuid!("28cc04ca-a53d-4938-ac66-699fc2fbd1db");

const MAX_BYTES: u64 = 16 << 20;

/// A mistyped name here would empty the directory, so it is refused.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entries {
    #[serde(default)]
    users: Vec<User>,
    #[serde(default)]
    groups: Vec<Group>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct User {
    id: Option<Uuid>,
    name: String,
    display_name: Option<String>,
    real_name: Option<String>,
    icon: Option<String>,
    email: Option<String>,
    state: Option<State>,
    #[serde(default)]
    bot: bool,
    #[serde(flatten)]
    unknown: UnknownFields,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "state must be a number or a word")]
enum State {
    Number(i64),
    Word(String),
}

#[derive(Deserialize)]
struct Group {
    id: Option<Uuid>,
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    admins: Vec<String>,
    #[serde(default)]
    members: Vec<String>,
    #[serde(flatten)]
    unknown: UnknownFields,
}

/// Fields that the format does not have. They are ignored with a warning, because a field name may be mistyped.
type UnknownFields = BTreeMap<String, serde_json::Value>;

fn warn(place: &str, unknown: &UnknownFields) {
    for field in unknown.keys() {
        log::warn!("club directory: unknown field {field:?} of {place}");
    }
}

impl User {
    fn id(&self) -> Uuid {
        self.id.unwrap_or_else(|| Uuid::new_v5(&USER_NAMESPACE, self.name.as_bytes()))
    }

    fn state(&self) -> Result<UserState, DirectoryError> {
        let state = match &self.state {
            None => Some(UserState::Active),
            Some(State::Number(number)) => UserState::from_number(*number),
            Some(State::Word(word)) => match word.as_str() {
                "deactivated" => Some(UserState::Deactivated),
                "active" => Some(UserState::Active),
                "suspended" => Some(UserState::Suspended),
                _ => None,
            },
        };
        let rule = "must be 0, 1, 2, \"deactivated\", \"active\" or \"suspended\"";
        state.ok_or_else(|| DirectoryError::Unfit(format!("the state of the user {:?} {rule}", self.name)))
    }

    fn checked(self) -> Result<DirectoryUser, DirectoryError> {
        if let Some(icon) = &self.icon
            && !Url::parse(icon).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
        {
            let fault = format!("the icon of the user {:?} must be an absolute http or https address", self.name);
            return Err(DirectoryError::Unfit(fault));
        }
        let email = self.email.as_deref().map(|address| {
            comparable_address(address).ok_or_else(|| {
                let fault = format!("the email of the user {:?} must be an e-mail address", self.name);
                DirectoryError::Unfit(fault)
            })
        });
        Ok(DirectoryUser {
            email: email.transpose()?,
            id: self.id(),
            state: self.state()?,
            display_name: self.display_name.unwrap_or_else(|| self.name.clone()),
            name: self.name,
            real_name: self.real_name,
            icon: self.icon,
        })
    }
}

/// All users of the file by name and by id, with bots: a group may list them, and they are left out of it.
#[derive(Default)]
struct People {
    by_name: HashMap<String, Uuid>,
    bots: HashMap<Uuid, bool>,
}

impl People {
    fn new(users: &[User]) -> Result<Self, DirectoryError> {
        let mut people = Self::default();
        for user in users {
            if people.by_name.insert(user.name.clone(), user.id()).is_some() {
                return Err(DirectoryError::Unfit(format!("two users have the name {:?}", user.name)));
            }
            if people.bots.insert(user.id(), user.bot).is_some() {
                return Err(DirectoryError::Unfit(format!("two users have the id {}", user.id())));
            }
        }
        Ok(people)
    }

    /// The ids of human users whose names or ids these are, each once.
    fn find(&self, group: &str, people: &[String]) -> Result<Vec<Uuid>, DirectoryError> {
        let mut seen = HashSet::new();
        let mut ids = Vec::with_capacity(people.len());
        for person in people {
            let id = self.by_name.get(person).copied().or_else(|| Uuid::try_parse(person).ok());
            match id.and_then(|id| Some((id, *self.bots.get(&id)?))) {
                Some((id, bot)) if !bot && seen.insert(id) => ids.push(id),
                Some(_) => {}
                None => {
                    let fault = format!("{person:?} in the group {group:?} is the name or id of no user");
                    return Err(DirectoryError::Unfit(fault));
                }
            }
        }
        Ok(ids)
    }
}

pub(super) fn read(path: &Path) -> Result<Snapshot, DirectoryError> {
    let malformed = |detail: String| DirectoryError::Malformed(path.display().to_string(), detail);

    let bytes = common::file::read(path, MAX_BYTES).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => DirectoryError::TooLarge(path.display().to_string(), MAX_BYTES),
        _ => DirectoryError::File(path.into(), error),
    })?;
    let text = common::file::text(&bytes).ok_or_else(|| malformed("not UTF-8".into()))?;

    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    let entries = match extension.as_deref() {
        Some("json") => serde_json::from_str(text).map_err(|error| malformed(error.to_string()))?,
        Some("toml") => toml::from_str(text).map_err(|error| malformed(toml_detail(text, &error)))?,
        _ => return Err(malformed("its name must end in .toml or .json".into())),
    };
    snapshot(entries)
}

/// The directory that a TOML text describes.
pub(super) fn parse_toml(text: &str) -> Result<Snapshot, DirectoryError> {
    snapshot(toml::from_str(text).map_err(|error| DirectoryError::Malformed("the text".into(), error.to_string()))?)
}

/// The message and its line number. toml's own text has several lines.
fn toml_detail(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.map(|before| format!(" at line {}", before.matches('\n').count() + 1));
    format!("{}{}", error.message(), line.unwrap_or_default())
}

fn snapshot(entries: Entries) -> Result<Snapshot, DirectoryError> {
    entries.users.iter().for_each(|user| warn(&format!("the user {:?}", user.name), &user.unknown));
    entries.groups.iter().for_each(|group| warn(&format!("the group {:?}", group.name), &group.unknown));

    let people = People::new(&entries.users)?;
    let groups = entries.groups.into_iter().map(|group| {
        Ok(DirectoryGroup {
            id: group.id.unwrap_or_else(|| Uuid::new_v5(&GROUP_NAMESPACE, group.name.as_bytes())),
            admins: people.find(&group.name, &group.admins)?,
            members: people.find(&group.name, &group.members)?,
            name: group.name,
            description: group.description,
        })
    });
    Ok(Snapshot {
        groups: groups.collect::<Result<_, DirectoryError>>()?,
        users: entries.users.into_iter().filter(|user| !user.bot).map(User::checked).collect::<Result<_, _>>()?,
        privileged: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Source;

    fn read_as(name: &str, text: &[u8]) -> Result<Snapshot, DirectoryError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        Source::File(path).read()
    }

    fn fault(toml: &str) -> String {
        read_as("club.toml", toml.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn a_mistyped_name_at_the_top_is_no_empty_directory() {
        let fault = fault("[[user]]\nname = \"anna\"\n");
        assert!(fault.contains("unknown field `user`"), "{fault}");
        assert!(read_as("club.json", br#"{"user": []}"#).is_err());
    }

    const TOML: &str = r#"
        [[users]]
        id = "0190A000-0000-7000-8000-000000000001"
        name = "anna"
        displayName = "Anna A."
        realName = "Anna Arai"
        icon = "https://club.example/anna.png"
        state = 2

        [[users]]
        name = "ben"
        state = "deactivated"
        shoeSize = 43

        [[users]]
        name = "robot"
        bot = true

        [[groups]]
        name = "ben"
        description = "Graphics"
        admins = ["ben"]
        members = ["ben", "0190a000-0000-7000-8000-000000000001", "robot", "anna"]
    "#;

    #[test]
    fn toml_in_full() {
        let (anna, ben) = (uuid!("0190a000-0000-7000-8000-000000000001"), Uuid::new_v5(&USER_NAMESPACE, b"ben"));
        let expected = Snapshot {
            users: vec![
                DirectoryUser {
                    id: anna,
                    name: "anna".into(),
                    display_name: "Anna A.".into(),
                    real_name: Some("Anna Arai".into()),
                    icon: Some("https://club.example/anna.png".into()),
                    email: None,
                    state: UserState::Suspended,
                },
                DirectoryUser {
                    id: ben,
                    name: "ben".into(),
                    display_name: "ben".into(),
                    real_name: None,
                    icon: None,
                    email: None,
                    state: UserState::Deactivated,
                },
            ],
            groups: vec![DirectoryGroup {
                id: Uuid::new_v5(&GROUP_NAMESPACE, b"ben"),
                name: "ben".into(),
                description: "Graphics".into(),
                admins: vec![ben],
                members: vec![ben, anna],
            }],
            privileged: None,
        };
        assert_eq!(read_as("club.toml", TOML.as_bytes()).unwrap(), expected);
        assert_ne!(expected.groups[0].id, ben);
    }

    #[test]
    fn json_with_byte_order_mark_and_defaults() {
        let text =
            "\u{feff}{\"users\": [{\"name\": \"安奈\"}], \"groups\": [{\"name\": \"g\", \"members\": [\"安奈\"]}]}";
        let read = read_as("CLUB.JSON", text.as_bytes()).unwrap();
        assert_eq!(read.users[0].display_name, "安奈");
        assert_eq!(read.users[0].state, UserState::Active);
        assert_eq!(read.groups[0].members, [read.users[0].id]);
        assert_eq!(read_as("empty.toml", b"").unwrap(), Snapshot::default());
    }

    #[test]
    fn derived_ids_never_change() {
        let id = Uuid::new_v5(&USER_NAMESPACE, b"anna");
        assert_eq!(read_as("club.toml", b"users = [{ name = 'anna' }]").unwrap().users[0].id, id);
        assert_eq!(id, uuid!("f7710a2a-5eb9-5c7b-91a7-7f0caf7ba543"));
    }

    #[test]
    fn faults_are_named() {
        assert!(fault("users = [{ name = 'anna' }, { name = 'anna', bot = true }]").contains("name \"anna\""));
        let id = "0190a000-0000-7000-8000-000000000001";
        assert!(fault(&format!("users = [{{ name = 'a', id = '{id}' }}, {{ name = 'b', id = '{id}' }}]")).contains(id));
        assert!(fault("groups = [{ name = 'g' }, { name = 'g' }]").contains("name \"g\""));
        assert!(fault("groups = [{ name = 'g', admins = ['nobody'] }]").contains("\"nobody\" in the group \"g\""));
        assert!(fault("users = [{ name = 'anna', state = 3 }]").contains("state of the user \"anna\""));
        assert!(fault("users = [{ name = 'anna', state = 'Active' }]").contains("state of the user \"anna\""));
        assert!(fault("users = [{ name = 'anna', state = true }]").contains("state must be a number or a word"));
        assert!(fault("users = [{ name = 'anna', icon = '/a.png' }]").contains("icon of the user \"anna\""));
        assert!(fault("users = [{ name = '' }]").contains("no name"));
        assert!(fault("\nusers = [{ displayName = 'Anna' }]").contains("missing field `name` at line 2"));
        assert!(fault("\n\nusers = ").contains("at line 3"));
    }

    #[test]
    fn unreadable_files() {
        let failed = |name, text: &[u8]| read_as(name, text).unwrap_err();
        assert!(failed("club.json", b"{").to_string().contains("at line 1"));
        assert!(failed("club.yaml", b"").to_string().contains(".toml or .json"));
        assert!(failed("club.toml", b"\xff").to_string().contains("UTF-8"));
        let large = vec![b' '; usize::try_from(MAX_BYTES).unwrap() + 1];
        assert!(matches!(failed("club.toml", &large), DirectoryError::TooLarge(_, MAX_BYTES)));
        let folder = tempfile::tempdir().unwrap();
        let (pipe, device) = (folder.path().join("pipe.toml"), folder.path().join("device.toml"));
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        std::os::unix::fs::symlink("/dev/zero", &device).unwrap();
        for path in [pipe, device, folder.path().into()] {
            let refusal = Source::File(path).read().unwrap_err().to_string();
            assert!(refusal.contains("not a regular file"), "{refusal}");
        }
        let missing = Source::File("no/such/club.toml".into()).read().unwrap_err();
        assert!(matches!(&missing, DirectoryError::File(..)) && missing.to_string().contains("no/such/club.toml"));
    }
}
