//! The content of a directory at one time.

use std::{collections::HashSet, error, fmt, io, path::PathBuf};

use uuid::Uuid;

/// The directory at one time. Ids and names of users are unique, and so are those of groups; names of users even
/// regardless of the case of ASCII letters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// All human users, in the order of the directory.
    pub users: Vec<DirectoryUser>,
    /// All groups, in the order of the directory.
    pub groups: Vec<DirectoryGroup>,
    /// The ids of the privileged users, if the directory says who is.
    pub privileged: Option<HashSet<Uuid>>,
}

impl Snapshot {
    /// The snapshot, if it is usable: ids and names are unique and not empty.
    pub fn checked(self) -> Result<Self, DirectoryError> {
        check("user", self.users.iter().map(|user| (user.id, user.name.as_str())))?;
        let mut lower_case = HashSet::new();
        if let Some(user) = self.users.iter().find(|user| !lower_case.insert(user.name.to_ascii_lowercase())) {
            return Err(DirectoryError::Unfit(format!(
                "two users have the name {:?}, in upper or lower case",
                user.name
            )));
        }
        let mut addresses = HashSet::new();
        if let Some(address) =
            self.users.iter().filter_map(|user| user.email.as_ref()).find(|address| !addresses.insert(*address))
        {
            return Err(DirectoryError::Unfit(format!("two users have the address {address:?}")));
        }
        check("group", self.groups.iter().map(|group| (group.id, group.name.as_str())))?;
        let of_users = self.users.iter().flat_map(|user| {
            let optional = [user.real_name.as_deref(), user.icon.as_deref()];
            [user.name.as_str(), &user.display_name].into_iter().chain(optional.into_iter().flatten())
        });
        let of_groups = self.groups.iter().flat_map(|group| [group.name.as_str(), &group.description]);
        // PostgreSQL cannot store it.
        if let Some(text) = of_users.chain(of_groups).find(|text| text.contains('\0')) {
            return Err(DirectoryError::Unfit(format!("there is a U+0000 in {text:?}")));
        }
        Ok(self)
    }
}

fn check<'a>(kind: &str, entries: impl Iterator<Item = (Uuid, &'a str)>) -> Result<(), DirectoryError> {
    let (mut ids, mut names) = (HashSet::new(), HashSet::new());
    for (id, name) in entries {
        let fault = if name.trim().is_empty() {
            format!("the {kind} {id} has no name")
        } else if id.is_nil() {
            format!("the {kind} {name:?} has the nil id")
        } else if !names.insert(name) {
            format!("two {kind}s have the name {name:?}")
        } else if !ids.insert(id) {
            format!("two {kind}s have the id {id}, one of them {name:?}")
        } else {
            continue;
        };
        return Err(DirectoryError::Unfit(fault));
    }
    Ok(())
}

/// A human user of the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryUser {
    /// Never changes, also when the name does.
    pub id: Uuid,
    /// The name to sign in with and to be mentioned by, of any length.
    pub name: String,
    /// The name to show.
    pub display_name: String,
    /// The real name, if the directory has it.
    pub real_name: Option<String>,
    /// Absolute address of a picture.
    pub icon: Option<String>,
    /// The e-mail address by which a sign-in provider knows the user, in lower case.
    pub email: Option<String>,
    /// Whether the account may be used.
    pub state: UserState,
}

/// Whether an account may be used. The numbers are those of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UserState {
    /// Left the club.
    Deactivated = 0,
    /// May do everything.
    Active = 1,
    /// Locked for a time.
    Suspended = 2,
}

impl UserState {
    /// The state with this number on the wire.
    pub const fn from_number(number: i64) -> Option<Self> {
        match number {
            0 => Some(Self::Deactivated),
            1 => Some(Self::Active),
            2 => Some(Self::Suspended),
            _ => None,
        }
    }

    /// The number on the wire: 0, 1 or 2.
    pub const fn number(self) -> u8 {
        self as u8
    }
}

/// A group of the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryGroup {
    /// Never changes, also when the name does.
    pub id: Uuid,
    /// The name, of any length.
    pub name: String,
    /// What the group is for, maybe empty.
    pub description: String,
    /// Ids of users of the same snapshot, each once. An admin need not be a member.
    pub admins: Vec<Uuid>,
    /// Ids of users of the same snapshot, each once.
    pub members: Vec<Uuid>,
}

/// Why the directory could not be read. The text is for the log: it names paths and users of the directory, but
/// never shows the token or what a server answered.
#[derive(Debug)]
pub enum DirectoryError {
    /// The file cannot be opened or read.
    File(PathBuf, io::Error),
    /// The server was not reached, broke off, or did not finish in time. Holds what was asked for, and the reason.
    Unreachable(&'static str, String),
    /// The server answered with another status than 200. Holds what was asked for, and the status.
    Status(&'static str, u16),
    /// More bytes than are accepted. Holds what was read, and the limit.
    TooLarge(String, u64),
    /// Not the expected format. Holds what was read, and where or why.
    Malformed(String, String),
    /// Readable, but not fit for use, such as a repeated name.
    Unfit(String),
}

impl fmt::Display for DirectoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, cause) => write!(f, "cannot read {}: {cause}", path.display()),
            Self::Unreachable(list, reason) => write!(f, "cannot fetch the {list}: {reason}"),
            Self::Status(list, status) => write!(f, "asked for the {list}, the server answered status {status}"),
            Self::TooLarge(what, limit) => write!(f, "{what} is larger than {limit} bytes"),
            Self::Malformed(what, detail) => write!(f, "{what} is not understood: {detail}"),
            Self::Unfit(fault) => f.write_str(fault),
        }
    }
}

impl error::Error for DirectoryError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::File(_, cause) => Some(cause),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_keep_their_numbers() {
        for number in 0..3 {
            assert_eq!(i64::from(UserState::from_number(number).unwrap().number()), number);
        }
        assert_eq!(UserState::from_number(3), None);
        assert_eq!(UserState::from_number(-1), None);
    }

    #[test]
    fn names_of_users_differ_not_only_in_case() {
        let user = |id, name: &str| DirectoryUser {
            id: Uuid::from_u128(id),
            name: name.to_owned(),
            display_name: name.to_owned(),
            real_name: None,
            icon: None,
            email: None,
            state: UserState::Active,
        };
        let of = |users: &[DirectoryUser]| Snapshot { users: users.to_vec(), ..Snapshot::default() }.checked();
        assert!(of(&[user(1, "anna"), user(2, "Anne")]).is_ok());
        let fault = of(&[user(1, "anna"), user(2, "Anna")]).unwrap_err().to_string();
        assert!(fault.contains("\"Anna\", in upper or lower case"), "{fault}");
    }

    #[test]
    fn what_is_there_twice_or_empty_is_refused() {
        let (one, two) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let fault = |entries: [(Uuid, &str); 2]| check("user", entries.into_iter()).unwrap_err().to_string();
        assert!(check("user", [(one, "anna"), (two, "Anna")].into_iter()).is_ok());
        assert!(fault([(one, "anna"), (two, "anna")]).contains("name \"anna\""));
        assert!(fault([(one, "anna"), (one, "ben")]).contains(&one.to_string()));
        assert!(fault([(one, "anna"), (two, " ")]).contains("no name"));
        assert!(fault([(one, "anna"), (Uuid::nil(), "ben")]).contains("nil"));
    }
}
