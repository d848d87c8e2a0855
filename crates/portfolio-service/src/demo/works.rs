//! Projects and contests of the demo club, with fixed ids.

use chrono::TimeDelta;
use common::{semester::YearWithSemester, time::Timestamp};
use diesel::prelude::*;
use service_kit::{
    database::{
        AnyConnection, ROWS_PER_STATEMENT,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    with_connection,
};
use uuid::Uuid;

use super::club::{DemoClub, semester_before};
use crate::{
    pictures,
    schema::{contest_team_members, contest_teams, contests, project_members, projects},
    span::Half,
};

const PROJECTS: [(&str, &str); 40] = [
    ("夏合宿ゲーム", "合宿の三日間で作ったゲーム集。"),
    ("Rhythm Garden", "A rhythm game in which plants grow to the beat."),
    ("部室カメラ", "部室が開いているかどうかを教えてくれます。"),
    ("Paper Planes", "A flight game for phones. Folded in two semesters."),
    ("Club Radio", "Eight hours of our own music, day after day."),
    ("Tiny Renderer", "A ray tracer that fits on one screen."),
    ("迷路の図書館", "本を集めて出口を探す2Dアドベンチャー。"),
    ("Snow Fight", "Up to sixteen players, no winner."),
    ("Stamp Rally", "Finds the booths of the school festival by their stamps."),
    ("Game Jam Kit", "What every jam of ours begins with."),
    ("Night Train", "A visual novel on the last train home."),
    ("競プロ道場", "毎週の練習会と、その解説。"),
    ("Kernel Club", "An operating system that boots, mostly."),
    ("Dungeon Chef", "Cook what you meet."),
    ("Home Server", "Everything that runs in the club room, written down."),
    ("Cat Physics", "Cats are liquids. This proves it."),
    ("新歓サイト", "新入生のための、歴代の新歓サイト。"),
    ("Chiptune Vol. 1", "Twelve songs for four voices."),
    ("Chiptune Vol. 2", "Twelve more."),
    ("CTF Archive", "Our own problems with their solutions."),
    ("Shader Diary", "One shader a day for a semester."),
    ("Tetra", "A puzzle game in four dimensions."),
    ("絵本「星のポスト」", "星に手紙を出す話。絵と音楽つき。"),
    ("Bus Clock", "Shows when to leave the club room."),
    ("Compiler School", "A small language, made by ten people in ten weeks."),
    ("Festival Live", "Sound, light and stream of the school festival."),
    ("Ocean Floor", "A VR walk along the bottom of the sea."),
    ("ことば遊び", "Word games for the chat."),
    ("Sound Atlas", "Recordings of the campus on a map."),
    ("Poster Wall", "All posters of the club since it began."),
    ("Racing Line", "A racing game with one button."),
    ("Drum Machine", "Of wood and solenoids."),
    ("オンライン展示会", "部員の作品を展示する3D空間。"),
    ("Log Cabin", "Reads logs so that nobody else must."),
    ("Marble Run", "Build it, roll it, send it to friends."),
    ("Pixel Café", "Pixel art of every café around the campus."),
    ("Synth Box", "A synthesizer in the browser, with a keyboard of text."),
    ("Club Font", "A typeface drawn by everybody, a letter each."),
    ("講義ロボット", "Reads the timetable aloud, and tells when a lecture is cancelled."),
    ("Portfolio", "This very site."),
];

/// The pictures of some of them.
const PICTURES: [(&str, &[u8]); 5] = [
    ("Marble Run", include_bytes!("pictures/marble.webp")),
    ("Pixel Café", include_bytes!("pictures/pixel.webp")),
    ("Synth Box", include_bytes!("pictures/synth.webp")),
    ("Club Font", include_bytes!("pictures/font.webp")),
    ("講義ロボット", include_bytes!("pictures/robot.webp")),
];

const CONTESTS: [(&str, &str); 5] = [
    ("Programming Cup", "Three people, one computer, five hours."),
    ("CTF of the Clubs", "Two days of jeopardy."),
    ("Speed-up Contest", "One slow web service, eight hours to make it fast."),
    ("Spring Game Jam", "A game in a weekend on a theme announced at the start."),
    ("Security Camp Final", "Attack and defence between the best of each region."),
];

const RESULTS: [&str; 6] = ["1st", "3rd", "準優勝", "12th of 80", "Best newcomers", "予選敗退"];

fn id(name: &str) -> DbUuid {
    DbUuid(Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("made-up club: {name}").as_bytes()))
}

fn half(semester: YearWithSemester, earlier: usize) -> Half {
    semester_before(semester, earlier).into()
}

/// Adds forty projects. The oldest began eight semesters ago, the newest one semester ago; almost half of them are
/// over.
pub(super) fn create_projects(conn: &mut AnyConnection, demo: &DemoClub) -> Result<(), Error> {
    let (mut rows, mut members) = (Vec::new(), Vec::new());
    for (index, (name, description)) in PROJECTS.iter().enumerate() {
        // The number of semesters since its start and its end.
        let (began, ended) = (8 - index / 5, (index % 2 == 0 && index < 35).then_some((8 - index / 5) / 2));
        let project = id(&format!("project {name}"));
        let people: Vec<_> =
            (0..2 + index % 5).map(|n| demo.members[(index * 7 + n * 11) % demo.members.len()].1).collect();
        rows.push((
            (projects::id.eq(project), projects::name.eq(*name), projects::description.eq(*description)),
            projects::link.eq(if index % 3 == 0 { format!("https://works.example/{index}") } else { String::new() }),
            (projects::since.eq(half(demo.present, began)), projects::until.eq(ended.map(|e| half(demo.present, e)))),
            (projects::created_by.eq(people[0]), projects::created_at.eq(demo.now), projects::updated_at.eq(demo.now)),
        ));
        for (n, user) in people.into_iter().enumerate() {
            // Some members join later, and some leave earlier.
            let since = began.saturating_sub(n % 2).max(ended.unwrap_or(0));
            let until = if n % 3 == 2 { Some(since) } else { ended };
            members.push((
                (project_members::project_id.eq(project), project_members::user_id.eq(user)),
                project_members::since.eq(half(demo.present, since)),
                project_members::until.eq(until.map(|until| half(demo.present, until))),
            ));
        }
    }
    with_connection!(conn, c => diesel::insert_into(projects::table).values(rows).execute(c))?;
    for members in members.chunks(ROWS_PER_STATEMENT) {
        with_connection!(conn, c => diesel::insert_into(project_members::table).values(members).execute(c))?;
    }
    for (name, bytes) in PICTURES {
        let project = pictures::Subject::Project(id(&format!("project {name}")));
        pictures::queries::put(conn, project, &pictures::Encoded::new(bytes)?, demo.now)?;
    }
    Ok(())
}

/// Adds fifteen contests with one to three teams each, five in each of the last three years. The latest is still going
/// on.
pub(super) fn create_contests(conn: &mut AnyConnection, demo: &DemoClub) -> Result<(), Error> {
    let (mut rows, mut teams, mut members) = (Vec::new(), Vec::new(), Vec::new());
    let days = TimeDelta::days(20);
    for number in 0..3 * CONTESTS.len() {
        let (name, description) = CONTESTS[number % CONTESTS.len()];
        let is_latest = number == 0;
        // The other contests are over, so they are not in the present semester.
        let semester = semester_before(demo.present, 2 * (number / CONTESTS.len()) + usize::from(!is_latest));
        let name = format!("{name} {}", semester.year());
        let contest = id(&format!("contest {name}"));
        let begins = semester.starts_at() + TimeDelta::hours(1) + days * [0, 1, 2, 3, 4][number % CONTESTS.len()];
        let timestamp = |at| Timestamp::new(at).map_or(demo.now, DbTimestamp);
        let until = (!is_latest).then(|| timestamp(begins + TimeDelta::hours([5, 48, 8, 60, 12][number % 5])));
        let creator = demo.members[number].1;
        rows.push((
            (contests::id.eq(contest), contests::name.eq(name.clone()), contests::description.eq(description)),
            contests::link.eq(format!("https://contest.example/{}/{}", semester.year(), number % CONTESTS.len())),
            (contests::since.eq(timestamp(begins)), contests::until.eq(until)),
            (contests::created_by.eq(creator), contests::created_at.eq(demo.now), contests::updated_at.eq(demo.now)),
        ));
        for n in 0..=number % 3 {
            let team = id(&format!("team {n} of contest {name}"));
            let letter = ["A", "B", "C"][n];
            teams.push((
                (contest_teams::id.eq(team), contest_teams::contest_id.eq(contest)),
                (contest_teams::name.eq(format!("Club {letter}")), contest_teams::link.eq("")),
                contest_teams::description.eq(format!("Team {letter} of the club.")),
                contest_teams::result.eq(if is_latest { "" } else { RESULTS[(number + n) % RESULTS.len()] }),
                contest_teams::created_by.eq(creator),
                (contest_teams::created_at.eq(demo.now), contest_teams::updated_at.eq(demo.now)),
            ));
            let people = (0..3).map(|m| demo.members[(number * 13 + n * 17 + m * 5) % demo.members.len()].1);
            members.extend(
                people.map(|user| (contest_team_members::team_id.eq(team), contest_team_members::user_id.eq(user))),
            );
        }
    }
    with_connection!(conn, c => diesel::insert_into(contests::table).values(rows).execute(c))?;
    with_connection!(conn, c => diesel::insert_into(contest_teams::table).values(teams).execute(c))?;
    with_connection!(conn, c => diesel::insert_into(contest_team_members::table).values(members).execute(c))?;
    Ok(())
}
