//! A made-up club for `--demo`, the same in both services: 60 members and 8 groups.

use uuid::Uuid;

use super::{
    file::{GROUP_NAMESPACE, USER_NAMESPACE},
    snapshot::{DirectoryGroup, DirectoryUser, Snapshot, UserState},
};

/// Sign-in name and name of each member. The first is the one to sign in as: the demo makes them privileged.
const MEMBERS: [(&str, &str); 60] = [
    ("alice", "Alice Andersson"),
    ("bob", "Bob Brennan"),
    ("carol", "Carol Castillo"),
    ("dave", "Dave Dubois"),
    ("erika", "江里香"),
    ("fumi", "ふみ"),
    ("goro", "ごろう"),
    ("haruka", "はるか"),
    ("itsuki", "樹"),
    ("junko", "じゅんこ"),
    ("kenta", "健太"),
    ("lena", "Lena Lindqvist"),
    ("minami", "みなみ"),
    ("naoki", "直樹"),
    ("olga", "Olga Orlova"),
    ("pedro", "Pedro Pereira"),
    ("quynh", "Quỳnh"),
    ("ren", "蓮"),
    ("sakura", "さくら"),
    ("takumi", "匠"),
    ("umi", "海"),
    ("victor", "Victor Vance"),
    ("wakana", "若菜"),
    ("xiao", "小明"),
    ("yuki", "ゆき"),
    ("zoe", "Zoé"),
    ("akira", "あきら"),
    ("botan", "ぼたん"),
    ("chiaki", "千秋"),
    ("daichi", "大地"),
    ("eiji", "英二"),
    ("fuyuko", "冬子"),
    ("genta", "元太"),
    ("hinata", "ひなた"),
    ("izumi", "泉"),
    ("jiro", "次郎"),
    ("kaede", "楓"),
    ("luca", "Luca Lombardi"),
    ("mei", "芽衣"),
    ("nana", "なな"),
    ("osamu", "修"),
    ("priya", "Priya Patel"),
    ("rika", "りか"),
    ("riku", "陸"),
    ("satoshi", "さとし"),
    ("tomoko", "智子"),
    ("uta", "歌"),
    ("vera", "Vera Volkova"),
    ("wataru", "亘"),
    ("yoshi", "よし"),
    ("yumi", "弓"),
    ("aoi", "葵"),
    ("asahi", "旭"),
    ("emil", "Emil Eriksen"),
    ("hana", "花"),
    ("kohei", "康平"),
    ("mio", "澪"),
    ("nozomi", "望"),
    ("shiori", "栞"),
    ("tsubasa", "翼"),
];

/// Members who have left or are suspended.
const NOT_ACTIVE: [(&str, UserState); 3] =
    [("asahi", UserState::Deactivated), ("emil", UserState::Suspended), ("tsubasa", UserState::Deactivated)];

/// Name, description, and every how many-th member from which on belongs to it.
const GROUPS: [(&str, &str, usize, usize); 8] = [
    ("algorithms", "Contests every week", 3, 0),
    ("game", "Games from idea to release", 2, 1),
    ("graphics", "Drawing, modelling, shaders", 4, 2),
    ("sound", "音楽制作", 5, 3),
    ("ctf", "Capture the flag", 6, 4),
    ("sysadmin", "Keeps the servers running", 7, 5),
    ("kaggle", "Machine learning", 6, 1),
    ("pr", "広報", 10, 0),
];

/// The id of a member of the made-up club.
#[must_use]
pub fn member_id(name: &str) -> Uuid {
    Uuid::new_v5(&USER_NAMESPACE, name.as_bytes())
}

/// Sign-in names, in the order in which the members joined.
pub fn members() -> impl Iterator<Item = &'static str> {
    MEMBERS.iter().map(|(name, _)| *name)
}

/// The made-up club's directory, always the same.
#[must_use]
pub(super) fn snapshot() -> Snapshot {
    let state =
        |name| NOT_ACTIVE.iter().find(|(other, _)| *other == name).map_or(UserState::Active, |(_, state)| *state);
    let users = MEMBERS.iter().map(|&(name, display_name)| DirectoryUser {
        id: member_id(name),
        name: name.to_owned(),
        display_name: display_name.to_owned(),
        real_name: Some(format!("{display_name} (real name)")),
        icon: None,
        state: state(name),
    });
    let groups = GROUPS.iter().map(|&(name, description, every, from)| {
        let members: Vec<_> = members().skip(from).step_by(every).map(member_id).collect();
        DirectoryGroup {
            id: Uuid::new_v5(&GROUP_NAMESPACE, name.as_bytes()),
            name: name.to_owned(),
            description: description.to_owned(),
            admins: members.iter().take(2).copied().collect(),
            members,
        }
    });
    Snapshot { users: users.collect(), groups: groups.collect() }
}

#[cfg(test)]
mod tests {
    use super::super::Source;

    #[test]
    fn the_made_up_club_is_a_good_directory() {
        let club = Source::Demo.read().unwrap();
        assert_eq!((club.users.len(), club.groups.len()), (60, 8));
        assert_eq!(club, Source::Demo.read().unwrap());
        let ids: Vec<_> = club.users.iter().map(|user| user.id).collect();
        assert!(club.groups.iter().all(|group| group.members.iter().all(|id| ids.contains(id))));
    }
}
