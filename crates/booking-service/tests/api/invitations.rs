//! Invitations follow the members of groups (contract, "Groups").

use booking_service::invitations;
use chrono::TimeDelta;
use rstest::rstest;
use serde_json::{Value, json};
use service_kit::database::types::{DbTimestamp, DbUuid};

use crate::{
    builders::{At, EVERYONE, answer_poll, event, event_body, group, merge, poll, poll_body, room_body, text},
    harness::{
        ALICE, Answer, BOB,
        Backend::{self, Postgres, Sqlite},
        CAROL, Club, DAVE, SUSAN, hours_from_now, id,
    },
    ical::{all, feed, feed_path},
    plans,
    sync::{start_with_file, with_members, write},
};

/// The answer of a user to an event, if they are listed.
fn schedule(club: &Club, event: &str, name: &str) -> Option<String> {
    let shown = club.by(ALICE).get(&format!("/api/events/{event}")).expect(200).json();
    let of_user = shown["attendees"].as_array().unwrap().iter().find(|one| one["userId"] == json!(id(name)));
    of_user.map(|one| text(&one["schedule"]))
}

fn schedules<const N: usize>(club: &Club, event: &str, names: [&str; N]) -> [Option<String>; N] {
    names.map(|name| schedule(club, event, name))
}

#[expect(clippy::unnecessary_wraps, reason = "compared with answers that may be missing")]
fn some(schedule: &str) -> Option<String> {
    Some(schedule.to_owned())
}

fn event_of(club: &Club, group: &str, hours: (i64, i64)) -> String {
    let body = merge([event_body(club, BOB, At::Place("x"), hours), json!({"groupId": group, "sharedRoom": true})]);
    text(&club.by(BOB).post("/api/events", body).expect(201).json()["eventId"])
}

fn answer(club: &Club, by: &str, event: &str, schedule: &str) -> u16 {
    club.by(by).put(&format!("/api/events/{event}/attendees/me"), json!({ "schedule": schedule })).status
}

fn group_body(group: &Value, more: Value) -> Value {
    let fields = ["name", "description", "open", "members", "admins"];
    merge([fields.iter().map(|field| ((*field).to_owned(), group[*field].clone())).collect(), more])
}

/// Makes these the members of a group, by `PUT`.
fn set_members(club: &Club, group: &str, members: &[&str]) {
    let path = format!("/api/groups/{group}");
    let members: Vec<_> = members.iter().map(|name| id(name)).collect();
    let body = group_body(&club.by(BOB).get(&path).expect(200).json(), json!({ "members": members }));
    club.by(BOB).put(&path, body).expect(200);
}

fn sync(club: &Club, replica: usize, directory: &Value) {
    write(club, directory);
    club.by(ALICE).at(replica).send("POST", "/api/users/sync?force=true", None).expect(201);
}

fn directory_group(members: &[&str]) -> Value {
    json!({"id": id("directory group"), "name": "graphics", "members": members})
}

/// The part of an entity tag that depends on the answer only.
fn hash_of_tag(answer: &Answer) -> String {
    answer.header("etag").unwrap().rsplit('.').next().unwrap().to_owned()
}

/// How members come and go.
#[derive(Debug, Clone, Copy)]
enum Way {
    Themselves,
    Administrator,
    Directory,
}

#[rstest]
fn members_are_invited_when_they_come_and_withdrawn_when_they_go(
    #[values(Sqlite, Postgres)] backend: Backend,
    #[values(Way::Themselves, Way::Administrator, Way::Directory)] way: Way,
) {
    let mut club = Club::start(backend);
    let group = match way {
        Way::Directory => id("directory group").to_string(),
        _ => group(&club, BOB, "rust", &[CAROL, DAVE]),
    };
    let replica = start_with_file(&mut club, &with_members(&[], &[directory_group(&[CAROL, DAVE])]));
    if let Way::Themselves = way {
        let body = group_body(&club.by(BOB).get(&format!("/api/groups/{group}")).json(), json!({"open": true}));
        club.by(BOB).put(&format!("/api/groups/{group}"), body).expect(200);
    }
    let change = |name: &str, comes: bool, all: &[&str]| {
        let me = format!("/api/groups/{group}/members/me");
        match way {
            Way::Themselves if comes => drop(club.by(name).put(&me, json!({})).expect(204)),
            Way::Themselves => drop(club.by(name).delete(&me).expect(204)),
            Way::Administrator => set_members(&club, &group, all),
            Way::Directory => sync(&club, replica, &with_members(&[], &[directory_group(all)])),
        }
    };
    let ended = event_of(&club, &group, (1, 2));
    let (present, coming) = (event_of(&club, &group, (1, 40)), event_of(&club, &group, (30, 31)));
    let (elsewhere, deleted) = (event_of(&club, EVERYONE, (30, 31)), event_of(&club, &group, (30, 31)));
    club.by(BOB).delete(&format!("/api/events/{deleted}")).expect(204);
    assert_eq!(answer(&club, DAVE, &coming, "attendance"), 204);
    club.clock.advance(TimeDelta::hours(3));
    let updated = |event: &str| club.by(ALICE).get(&format!("/api/events/{event}")).json()["updatedAt"].clone();
    let before = [&present, &coming].map(|event| updated(event));

    change(BOB, true, &[BOB, CAROL, DAVE]);
    let names = [BOB, CAROL, DAVE];
    assert_eq!(schedules(&club, &present, names), ["pending", "pending", "pending"].map(some));
    assert_eq!(schedules(&club, &coming, names), ["pending", "pending", "attendance"].map(some));
    assert_eq!(schedules(&club, &ended, names), [None, some("pending"), some("pending")]);

    change(CAROL, false, &[BOB, DAVE]);
    change(DAVE, false, &[BOB]);
    assert_eq!(schedules(&club, &present, names), [some("pending"), None, None]);
    assert_eq!(schedules(&club, &coming, names), [some("pending"), None, some("attendance")]);
    assert_eq!(schedules(&club, &ended, names), [None, some("pending"), some("pending")]);
    assert_eq!(schedules(&club, &elsewhere, names), ["pending", "pending", "pending"].map(some));
    assert_eq!([&present, &coming].map(|event| updated(event)), before);

    // Who is listed may answer, until the end; `absent` always. Who is not listed may not.
    assert_eq!(answer(&club, CAROL, &coming, "absent"), 403);
    assert_eq!(answer(&club, DAVE, &coming, "pending"), 204);
    assert_eq!(answer(&club, DAVE, &coming, "attendance"), 204);
    assert_eq!(answer(&club, DAVE, &ended, "attendance"), 403);
    assert_eq!(answer(&club, DAVE, &ended, "absent"), 204);

    // An answer survives.
    change(DAVE, true, &[BOB, DAVE]);
    change(CAROL, true, &[BOB, CAROL, DAVE]);
    assert_eq!(schedules(&club, &coming, names), [some("pending"), some("pending"), some("attendance")]);
    // An event that is moved to the future invites who came after its end.
    let move_to = |hours| {
        let body =
            merge([event_body(&club, BOB, At::Place("x"), hours), json!({"groupId": group, "sharedRoom": true})]);
        club.by(BOB).put(&format!("/api/events/{ended}"), merge([body, json!({"name": "moved"})])).expect(200);
    };
    move_to((-3, -2));
    assert_eq!(schedules(&club, &ended, names), [None, some("pending"), some("absent")]);
    move_to((30, 31));
    assert_eq!(schedules(&club, &ended, names), [some("pending"), some("pending"), some("absent")]);
}

#[rstest]
fn invitations_follow_the_states_of_users(#[values(Sqlite, Postgres)] backend: Backend) {
    let mut club = Club::start(backend);
    let replica = start_with_file(&mut club, &with_members(&[], &[]));
    let own = group(&club, BOB, "rust", &[CAROL, SUSAN]);
    let (everyone, of_group) = (event_of(&club, EVERYONE, (30, 31)), event_of(&club, &own, (30, 31)));
    let ended = event_of(&club, &own, (1, 2));
    assert_eq!(schedules(&club, &of_group, [CAROL, SUSAN]), [some("pending"), None]);
    let answered = event_of(&club, EVERYONE, (40, 41));
    assert_eq!(answer(&club, CAROL, &answered, "attendance"), 204);
    club.clock.advance(TimeDelta::hours(3));

    let erin = json!({"id": id("erin"), "name": "erin"});
    let mut directory = with_members(&[erin], &[]);
    for (index, state) in [(2, 2), (4, 1)] {
        directory["users"][index]["state"] = json!(state);
    }
    directory["users"].as_array_mut().unwrap().remove(3);
    sync(&club, replica, &directory);
    let names = [CAROL, DAVE, SUSAN, "erin"];
    assert_eq!(schedules(&club, &everyone, names), [None, None, some("pending"), some("pending")]);
    assert_eq!(schedules(&club, &of_group, names), [None, None, some("pending"), None]);
    assert_eq!(schedules(&club, &ended, names), [some("pending"), None, None, None]);
    assert_eq!(schedule(&club, &answered, CAROL), some("attendance"));

    sync(&club, replica, &with_members(&[], &[]));
    assert_eq!(schedules(&club, &everyone, names), [some("pending"), some("pending"), None, None]);
    assert_eq!(schedules(&club, &of_group, names), [some("pending"), None, None, None]);
    assert_eq!(schedule(&club, &answered, CAROL), some("attendance"));
}

#[rstest]
fn whom_a_poll_asked_stays_invited(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let own = group(&club, BOB, "rust", &[CAROL, DAVE, ALICE]);
    let (path, slots) = poll(&club, BOB, json!({"invitees": [id(CAROL)], "open": true}));
    let maybe = json!({"slotIds": [], "maybeSlotIds": [slots[0]]});
    club.by(DAVE).post(&format!("{path}/availability"), maybe).expect(201);
    let body = json!({"slotId": slots[0], "place": "x", "groupId": own});
    let event = text(&club.by(BOB).post(&format!("{path}/confirm"), body).expect(201).json()["eventId"]);
    let names = [CAROL, DAVE, ALICE];
    assert_eq!(schedules(&club, &event, names), ["pending", "pending", "pending"].map(some));
    set_members(&club, &own, &[]);
    assert_eq!(schedules(&club, &event, names), [some("pending"), some("pending"), None]);
    assert_eq!(answer(&club, CAROL, &event, "attendance"), 204);
}

#[rstest]
fn a_withdrawn_invitation_changes_the_entries_that_showed_it(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let own = group(&club, BOB, "rust", &[BOB, CAROL]);
    let event = event_of(&club, &own, (30, 31));
    let paths = |name| {
        let path = feed_path(&club, name);
        [format!("{path}?q=event%3D%3D{event}"), format!("{path}?q=event%3D%3D{event}&attendees=true"), path]
    };
    let (of_bob, of_carol) = (paths(BOB), paths(CAROL));
    let show = |paths: &[String]| paths.iter().map(|path| feed(&club, path)).collect::<Vec<_>>();
    for members in [&[BOB][..], &[BOB, CAROL]] {
        let before = [show(&of_bob), show(&of_carol)].concat();
        club.clock.advance(TimeDelta::seconds(2));
        set_members(&club, &own, members);
        let after = [show(&of_bob), show(&of_carol)].concat();
        for (number, (before, after)) in before.iter().zip(&after).enumerate() {
            // Bob's own entry does not show carol; hers without a filter is there while she belongs.
            let shows_carol = !matches!(number, 0 | 2);
            assert_eq!(before.body != after.body, shows_carol, "{number}");
            let stamps = [before, after].map(|feed| all(feed, "DTSTAMP"));
            if stamps.iter().all(|stamps| !stamps.is_empty()) {
                assert_eq!(stamps[0] < stamps[1], shows_carol, "{number}: {stamps:?}");
            }
        }
    }
}

/// Takes seconds: six rounds of nine clients at once.
#[rstest]
fn an_event_and_its_group_may_change_while_members_come_and_go(#[values(Sqlite, Postgres)] backend: Backend) {
    let mut club = Club::start(backend);
    let directory = |state: i64, members: &[&str]| {
        let mut directory = with_members(&[], &[directory_group(members)]);
        directory["users"][3]["state"] = json!(state);
        directory
    };
    let replica = start_with_file(&mut club, &directory(1, &[DAVE]));
    let own = group(&club, BOB, "rust", &[DAVE]);
    let copied = id("directory group").to_string();
    for round in 0..6 {
        // Dave is suspended and carol comes in the even rounds; in the odd ones it is the other way.
        let (state, members, body) = if round % 2 == 0 {
            (2, &[CAROL][..], json!({"members": [id(CAROL), id(DAVE)]}))
        } else {
            (1, &[DAVE][..], json!({"members": [id(DAVE)]}))
        };
        let moved = event_of(&club, EVERYONE, (30, 31));
        write(&club, &directory(state, members));
        let path = format!("/api/groups/{own}");
        let body = group_body(&club.by(BOB).get(&path).json(), body);
        let made: Vec<String> = std::thread::scope(|scope| {
            let (club, own, copied, moved) = (&club, own.as_str(), copied.as_str(), moved.as_str());
            scope.spawn(|| club.by(ALICE).at(replica).send("POST", "/api/users/sync", None).expect(201));
            scope.spawn(|| club.by(BOB).put(&path, body.clone()).expect(200));
            scope.spawn(move || {
                for group in [own, copied, own] {
                    let draft = event_body(club, BOB, At::Place("x"), (30, 31));
                    let draft = merge([draft, json!({"groupId": group, "sharedRoom": true})]);
                    club.by(BOB).put(&format!("/api/events/{moved}"), draft).expect(200);
                }
            });
            let making = [EVERYONE, own, copied, EVERYONE, own, copied]
                .map(|group| scope.spawn(move || (group, event_of(club, group, (30, 31)))));
            making.map(|thread| thread.join().unwrap()).map(|(group, event)| format!("{group} {event}")).into()
        });
        for made in made.iter().chain([&format!("{own} {moved}")]) {
            let (group, event) = made.split_once(' ').unwrap();
            let members = &club.by(BOB).get(&format!("/api/groups/{group}")).json()["members"];
            let is_active = |name: &str| name != DAVE || state == 1;
            for name in [CAROL, DAVE] {
                let is_member = members.as_array().unwrap().contains(&json!(id(name)));
                let expected = (is_member && is_active(name)).then(|| "pending".to_owned());
                assert_eq!(schedule(&club, event, name), expected, "{name} in round {round}, {made}");
            }
        }
    }
}

#[rstest]
fn who_is_not_active_neither_counts_nor_administers_alone(#[values(Sqlite, Postgres)] backend: Backend) {
    let mut club = Club::start(backend);
    let own = group(&club, BOB, "rust", &[CAROL, DAVE]);
    let invitees = json!({"invitees": [id(BOB), id(SUSAN)], "inviteGroups": [own], "admins": [id(DAVE)]});
    let (path, slots) = poll(&club, BOB, invitees);
    answer_poll(&club, CAROL, &path, &[&slots[0]]).expect(201);
    answer_poll(&club, BOB, &path, &[]).expect(201);
    let stock = event(&club, DAVE, At::Place("x"), (1, 2));
    let numbers = || {
        let (shown, results) =
            (club.by(ALICE).get(&path).json(), club.by(ALICE).get(&format!("{path}/results")).json());
        let invitees = shown["invitees"].as_array().unwrap().len();
        let (slot, waiting) = (&results["results"][0], results["nonRespondents"].as_array().unwrap().len());
        let answers = results["respondents"].as_array().unwrap().len();
        let counts = json!([shown["totalInvitees"], shown["respondedCount"], slot["availableCount"]]);
        (counts, invitees, waiting, answers, slot["availabilityRate"].clone())
    };
    assert_eq!(numbers(), (json!([3, 2, 1]), 3, 1, 2, json!(0.5)));
    let free = format!(
        "/api/availability?groupId={own}&minutes=60&onlyVerified=false&dateBegin={}&dateEnd={}",
        hours_from_now(&club, 40),
        hours_from_now(&club, 60)
    );
    club.by(BOB).post("/api/rooms", room_body(&club, BOB, "y", (48, 50))).expect(201);
    let people = || club.by(BOB).get(&free).expect(200).json()[0]["freeUsers"].clone();
    assert_eq!(people(), 2);

    let mut directory = with_members(&[], &[]);
    directory["users"][2]["state"] = json!("suspended");
    directory["users"][3]["state"] = json!("deactivated");
    let expected = (json!([1, 1, 0]), 1, 0, 1, json!(0.0));
    let replica = start_with_file(&mut club, &directory);
    let club = &club;
    let shown = club.by(ALICE).at(replica).get(&path).json();
    assert_eq!((&shown["totalInvitees"], &shown["respondedCount"]), (&expected.0[0], &expected.0[1]));
    let results = club.by(ALICE).get(&format!("{path}/results")).json();
    assert_eq!((&results["results"][0]["availableCount"], &results["nonRespondents"]), (&expected.0[2], &json!([])));
    assert_eq!(results["respondents"].as_array().unwrap().len(), expected.3);
    assert_eq!(club.by(BOB).get(&free).expect(200).json()[0]["freeUsers"], 0);

    // Nobody else administers.
    let inactive = json!([id(CAROL), id(SUSAN)]);
    let refusals = [
        ("/api/events", event_body(club, BOB, At::Place("x"), (1, 2))),
        ("/api/rooms", room_body(club, BOB, "x", (1, 2))),
        ("/api/groups", json!({"name": "g", "description": "", "open": false, "members": [], "admins": []})),
        ("/api/draft-events", poll_body(club, BOB)),
    ];
    for (list, body) in refusals {
        let refused = club.by(BOB).post(list, merge([body.clone(), json!({ "admins": inactive })])).expect(400);
        assert_eq!(refused.json()["violations"][0]["code"], "inactive-user", "{list}");
        assert_eq!(refused.pointers(), ["/admins"], "{list}");
        club.by(BOB).post(list, merge([body, json!({"admins": [id(SUSAN), id(BOB)]})])).expect(201);
    }
    // The administrators that an event has may have left; it is changed by somebody privileged.
    let body = |admins: Value| {
        merge([event_body(club, DAVE, At::Place("x"), (1, 2)), json!({"name": "other", "admins": admins})])
    };
    let stock = format!("/api/events/{stock}");
    club.by(ALICE).put(&stock, body(json!([id(DAVE)]))).expect(200);
    assert_eq!(club.by(ALICE).put(&stock, body(inactive.clone())).expect(400).pointers(), ["/admins"]);
    let group = format!("/api/groups/{own}");
    let body = group_body(&club.by(BOB).get(&group).json(), json!({ "admins": inactive }));
    assert_eq!(club.by(BOB).put(&group, body).expect(400).pointers(), ["/admins"]);
}

#[rstest]
fn what_is_saved_as_it_is_does_not_change(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let own = group(&club, BOB, "rust", &[BOB, CAROL]);
    let (path, slots) = poll(&club, BOB, json!({"invitees": [id(CAROL), id(DAVE)]}));
    answer_poll(&club, CAROL, &path, &[&slots[0]]).expect(201);
    let tags = json!({"tags": [{"name": "b", "locked": true}, {"name": "が"}], "admins": [id(BOB), id(CAROL)]});
    let draft = merge([event_body(&club, BOB, At::Place("x"), (30, 31)), json!({"groupId": own}), tags]);
    let made = club.by(BOB).post("/api/events", draft.clone()).expect(201).json();
    let event = format!("/api/events/{}", text(&made["eventId"]));
    let again = json!({"tags": [{"name": "か\u{3099}"}, {"name": "b", "locked": true}],
        "admins": [id(CAROL), id(BOB)]});
    let with_room = json!({"place": null, "roomId": made["room"]["roomId"]});
    let shown_group = club.by(BOB).get(&format!("/api/groups/{own}")).json();
    let invitees = json!({"invitees": [id(DAVE), id(CAROL)], "name": "Kick-off", "open": false, "admins": [id(BOB)]});
    let saves = [
        (BOB, event.clone(), draft.clone()),
        (BOB, event.clone(), merge([draft.clone(), again])),
        (BOB, event.clone(), merge([draft.clone(), with_room])),
        (BOB, format!("/api/groups/{own}"), group_body(&shown_group, json!({"members": [id(CAROL), id(BOB)]}))),
        (BOB, format!("/api/groups/{own}"), group_body(&shown_group, json!({ "members": null }))),
        (BOB, path.clone(), json!({})),
        (BOB, path.clone(), invitees),
        (CAROL, format!("{path}/availability"), json!({"slotIds": [slots[0]], "maybeSlotIds": []})),
    ];
    let feed_of_bob = feed_path(&club, BOB);
    for (by, path, body) in &saves {
        let look = || {
            let (shown, feed) = (club.by(by).get(path).expect(200), feed(&club, &feed_of_bob));
            let activity = club.by(BOB).get("/api/activity/events").expect(200).json();
            (shown.json(), hash_of_tag(&shown), feed.body, activity)
        };
        let before = look();
        club.clock.advance(TimeDelta::seconds(2));
        club.by(by).put(path, body.clone()).expect(200);
        assert_eq!(look(), before, "{path} {body}");
    }
    let times = |path: &str| club.by(BOB).get(path).json()["updatedAt"].clone();
    let changes = [
        (event.clone(), merge([draft.clone(), json!({"open": true})])),
        (event.clone(), merge([draft.clone(), json!({"open": true, "tags": [{"name": "b"}, {"name": "が"}]})])),
        (event.clone(), merge([draft, json!({"open": true, "tags": [{"name": "b"}], "admins": [id(BOB)]})])),
        (format!("/api/groups/{own}"), group_body(&shown_group, json!({"members": [id(BOB)]}))),
        (path.clone(), json!({"invitees": [id(DAVE)]})),
    ];
    for (path, body) in changes {
        let before = times(&path);
        club.clock.advance(TimeDelta::seconds(2));
        club.by(BOB).put(&path, body.clone()).expect(200);
        assert_ne!(times(&path), before, "{path} {body}");
    }
}

#[rstest]
fn queries_use_indexes(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let own = group(&club, BOB, "rust", &[BOB, CAROL]);
    event_of(&club, &own, (30, 31));
    let (own, now) = (DbUuid(own.parse().unwrap()), DbTimestamp(club.clock.now()));
    for group in [Some(own), Some(invitations::EVERYONE), None] {
        plans::check(&club, |conn| invitations::leave(conn, &[id(CAROL)], group, now).unwrap());
        plans::check(&club, |conn| invitations::join(conn, &[id(CAROL)], group, now).unwrap());
    }
}
