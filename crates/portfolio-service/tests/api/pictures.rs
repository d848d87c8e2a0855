//! Pictures of projects and users (contract, "Pictures").

use std::io::Cursor;

use chrono::TimeDelta;
use diesel::prelude::*;
use image::{DynamicImage, GenericImageView, ImageFormat, Rgb, RgbImage, Rgba, RgbaImage};
use portfolio_service::{deletion::REMOVALS, schema::pictures};
use rstest::rstest;
use serde_json::json;
use service_kit::{database::types::DbTimestamp, removal::first_place};

use crate::{
    backup::rules::done,
    builders::{NOBODY, member, project},
    front_page::{
        forms::{HTML, attribute, fields, open, send},
        page,
    },
    harness::{
        ALICE, Answer, BOB,
        Backend::{self, Postgres, Sqlite},
        CAROL, Club, DAVE, DORA, SUSAN, id, postgres_schema,
    },
    matrix::PICTURE,
};

/// Red on the left, blue on the right.
fn halves(width: u32, height: u32) -> DynamicImage {
    let colour = |x: u32| if x < width / 2 { Rgb([255, 0, 0]) } else { Rgb([0, 0, 255]) };
    RgbImage::from_fn(width, height, |x, _| colour(x)).into()
}

fn file(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

fn decoded(bytes: &[u8]) -> DynamicImage {
    image::load_from_memory(bytes).unwrap()
}

const CAMERA: &[u8] = b"Secret camera, N 35 36 18";

/// A JPEG with EXIF: an orientation, and the name of a camera.
fn photo(image: &DynamicImage, orientation: u8) -> Vec<u8> {
    let jpeg = file(image, ImageFormat::Jpeg);
    let count = u32::try_from(CAMERA.len()).unwrap().to_be_bytes();
    let mut exif = b"Exif\0\0MM\0*\0\0\0\x08\0\x02".to_vec();
    exif.extend(*b"\x01\x0f\0\x02");
    exif.extend(count);
    exif.extend(38_u32.to_be_bytes());
    exif.extend([&b"\x01\x12\0\x03\0\0\0\x01\0"[..], &[orientation], b"\0\0\0\0\0\0", CAMERA].concat());
    let length = u16::try_from(exif.len() + 2).unwrap().to_be_bytes();
    [&jpeg[..2], b"\xff\xe1", &length, &exif, &jpeg[2..]].concat()
}

fn put(club: &Club, by: &str, path: &str, kind: &str, bytes: &[u8]) -> Answer {
    club.by(by).header("content-type", kind).send_bytes("PUT", path, bytes.to_vec())
}

/// A PNG with a header for these sides and nothing behind it.
fn bomb(side: u32) -> Vec<u8> {
    let chunk = |kind: &[u8], data: &[u8]| {
        let length = u32::try_from(data.len()).unwrap().to_be_bytes();
        let checked = [kind, data].concat();
        [&length[..], &checked, &crc(&checked).to_be_bytes()].concat()
    };
    let header = [&side.to_be_bytes()[..], &side.to_be_bytes(), &[8, 6, 0, 0, 0]].concat();
    [b"\x89PNG\r\n\x1a\n".to_vec(), chunk(b"IHDR", &header), chunk(b"IDAT", &[0; 64]), chunk(b"IEND", b"")].concat()
}

fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 })
    })
}

#[rstest]
fn a_picture_has_two_sizes_and_can_be_replaced_and_removed(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let path = project(&club, CAROL, "robot");
    let picture = format!("{path}/picture");
    let shown = || club.anonymous().get(&path).expect(200).json()["picture"].clone();
    club.anonymous().get(&picture).refused(404, "not-found");
    assert!(shown().is_null());
    let sources =
        [("image/png", ImageFormat::Png), ("image/jpeg", ImageFormat::Jpeg), ("image/webp", ImageFormat::WebP)];
    for (kind, format) in sources {
        put(&club, CAROL, &picture, kind, &file(&halves(2000, 1000), format)).expect(204);
        let large = club.anonymous().get(&picture).expect(200);
        assert_eq!(large.header("content-type"), Some("image/jpeg"));
        assert_eq!(decoded(&large.body).dimensions(), (1200, 600));
        let Rgb(colour) = *decoded(&large.body).to_rgb8().get_pixel(100, 300);
        assert!(colour[0] > 240 && colour[2] < 15, "{colour:?}");
        let small = club.anonymous().get(&format!("{picture}?size=small")).expect(200);
        assert_eq!(decoded(&small.body).dimensions(), (320, 160));
    }
    // A small one keeps its size, and a transparent one its transparency.
    let faint = RgbaImage::from_pixel(30, 50, Rgba([0, 200, 0, 90])).into();
    let before = shown();
    put(&club, CAROL, &picture, "image/png", &file(&faint, ImageFormat::Png)).expect(204);
    assert_ne!(shown(), before);
    let answer = club.anonymous().get(&picture).expect(200);
    assert_eq!(answer.header("content-type"), Some("image/png"));
    assert_eq!(decoded(&answer.body), faint);
    let list = club.anonymous().get("/api/v1/projects").expect(200).json();
    assert_eq!(list[0]["picture"], shown());
    club.by(CAROL).delete(&picture).expect(204);
    club.by(CAROL).delete(&picture).refused(404, "not-found");
    club.anonymous().get(&picture).refused(404, "not-found");
    assert!(shown().is_null());
}

#[rstest]
fn answers_can_be_kept_as_long_as_the_picture(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let user = format!("/api/v1/users/{}", id(CAROL));
    let picture = format!("{user}/picture");
    put(&club, CAROL, &picture, "image/png", PICTURE).expect(204);
    let address = club.anonymous().get(&user).expect(200).json()["picture"].as_str().unwrap().to_owned();
    assert!(address.starts_with(&format!("{picture}?v=")), "{address}");
    for client in [club.anonymous(), club.by(BOB)] {
        let kept = client.get(&address).expect(200);
        assert_eq!(kept.header("cache-control"), Some("public, max-age=31536000, immutable"));
        assert_eq!(kept.header("content-security-policy"), Some("default-src 'none'; frame-ancestors 'none'"));
        assert_eq!(kept.header("content-encoding"), None);
        let current = client.get(&picture).expect(200);
        assert_eq!(current.header("cache-control"), Some("public, no-cache"));
        assert_eq!(client.get(&format!("{picture}?v=other")).header("cache-control"), Some("public, no-cache"));
        let tag = current.header("etag").unwrap();
        assert_eq!(client.clone().header("if-none-match", tag).get(&picture).expect(304).body, b"");
        let head = client.send_bytes("HEAD", &picture, Vec::new()).expect(200);
        assert_eq!((head.header("etag"), head.body.len()), (Some(tag), 0));
    }
    let stale = club.by(CAROL).header("content-type", "image/png").header("if-match", "\"0123456789012345678901\"");
    stale.send_bytes("PUT", &picture, PICTURE.to_vec()).refused(412, "precondition-failed");
    let resume = club.anonymous().get(&format!("{user}/resume.json")).expect(200).json();
    assert_eq!(resume["basics"]["image"], format!("{}{address}", club.config.server.public_origin()));
    // Only active users have one.
    let me = club.by(CAROL).get("/api/v1/users/me").expect(200).json();
    assert_eq!(me["picture"], address);
    let listed = club.anonymous().get("/api/v1/users?name=carol").expect(200).json();
    assert_eq!(listed[0]["picture"], address);
    for former in [SUSAN, DORA] {
        let user = format!("/api/v1/users/{}", id(former));
        put(&club, ALICE, &format!("{user}/picture"), "image/png", PICTURE).expect(204);
        club.anonymous().get(&format!("{user}/picture")).refused(404, "not-found");
        assert!(club.anonymous().get(&user).expect(200).json()["picture"].is_null());
    }
}

#[rstest]
fn what_is_no_picture_is_refused(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let path = format!("{}/picture", project(&club, CAROL, "robot"));
    let good = file(&halves(200, 100), ImageFormat::Jpeg);
    for kind in ["image/gif", "image/svg+xml", "application/json", "text/html"] {
        put(&club, CAROL, &path, kind, &good).refused(415, "unsupported-media-type");
    }
    put(&club, CAROL, &path, "image/png", &vec![0; (1 << 20) + 1]).refused(413, "payload-too-large");
    let svg = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>";
    let many_pixels = file(&halves(4001, 2), ImageFormat::Png);
    let cut = &file(&halves(200, 100), ImageFormat::Png)[..100];
    for bytes in
        [&b""[..], svg, b"GIF89a\x01\0\x01\0\0\0\0;", cut, &good[..50], &many_pixels, &bomb(20_000), &bomb(4000)]
    {
        put(&club, CAROL, &path, "image/png", bytes).refused(400, "invalid-picture");
    }
    let wide = file(&halves(4000, 2), ImageFormat::Png);
    put(&club, CAROL, &path, "image/png", &wide).expect(204);
    assert_eq!(decoded(&club.anonymous().get(&path).expect(200).body).dimensions(), (1200, 1));
    // The name of another type does no harm.
    put(&club, CAROL, &path, "image/webp", &good).expect(204);
    club.anonymous().get(&format!("{path}?size=huge")).refused(400, "invalid-parameter");
}

#[rstest]
fn nothing_of_the_metadata_is_left_but_the_orientation(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let path = format!("/api/v1/users/{}/picture", id(CAROL));
    let sent = photo(&halves(200, 100), 6);
    assert!(sent.windows(CAMERA.len()).any(|bytes| bytes == CAMERA));
    put(&club, CAROL, &path, "image/jpeg", &sent).expect(204);
    let shown = club.anonymous().get(&path).expect(200);
    let small = club.anonymous().get(&format!("{path}?size=small")).expect(200);
    let stored: Vec<(Vec<u8>, Vec<u8>)> =
        pictures::table.select((pictures::large, pictures::small)).load(&mut club.connect()).unwrap();
    for bytes in [&shown.body, &small.body, &stored[0].0, &stored[0].1] {
        for left in [CAMERA, &CAMERA[..6], b"Exif"] {
            assert!(!bytes.windows(left.len()).any(|part| part == left));
        }
    }
    // Turned to the right: what was on the left is above.
    let turned = decoded(&shown.body).to_rgb8();
    assert_eq!(turned.dimensions(), (100, 200));
    assert!(turned.get_pixel(50, 20).0[0] > 240 && turned.get_pixel(50, 180).0[2] > 240);
}

#[rstest]
fn whoever_may_change_something_may_change_its_picture(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let of_project = project(&club, CAROL, "robot");
    club.by(CAROL)
        .put(&format!("{of_project}/members"), json!({"members": [member(BOB, (2024, 0), None)]}))
        .expect(204);
    let other = project(&club, DAVE, "rover");
    let of_user = format!("/api/v1/users/{}", id(CAROL));
    let cases = [
        (&of_project, [CAROL, BOB, ALICE].as_slice(), [DAVE, SUSAN].as_slice()),
        (&other, [DAVE, ALICE].as_slice(), [CAROL, BOB].as_slice()),
        (&of_user, [CAROL, ALICE].as_slice(), [BOB, DAVE, SUSAN].as_slice()),
    ];
    for (path, may, may_not) in cases {
        let picture = format!("{path}/picture");
        for name in may_not {
            put(&club, name, &picture, "image/png", PICTURE).expect(403);
            club.by(name).delete(&picture).expect(403);
        }
        let nobody = club.anonymous().header("content-type", "image/png");
        nobody.send_bytes("PUT", &picture, PICTURE.to_vec()).refused(401, "not-signed-in");
        nobody.delete(&picture).refused(401, "not-signed-in");
        for name in may {
            put(&club, name, &picture, "image/png", PICTURE).expect(204);
            club.by(name).delete(&picture).expect(204);
        }
    }
    for kind in ["projects", "users"] {
        put(&club, ALICE, &format!("/api/v1/{kind}/{NOBODY}/picture"), "image/png", PICTURE).refused(404, "not-found");
    }
    // Rights come before the content.
    put(&club, DAVE, &format!("{of_project}/picture"), "image/png", b"nothing").refused(403, "forbidden");
    // A project is no user.
    put(&club, CAROL, &format!("{of_project}/picture"), "image/png", PICTURE).expect(204);
    let project = of_project.rsplit('/').next().unwrap();
    club.anonymous().get(&format!("/api/v1/users/{project}/picture")).refused(404, "not-found");
}

#[rstest]
fn the_history_has_each_change_and_a_deletion_can_be_undone(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start_with(backend, &["--daily-limit", "5"]);
    let path = project(&club, CAROL, "robot");
    let picture = format!("{path}/picture");
    let rows = || club.by(ALICE).get(&format!("{path}/history")).expect(200).json().as_array().unwrap().clone();
    put(&club, CAROL, &picture, "image/png", PICTURE).expect(204);
    put(&club, CAROL, &picture, "image/png", PICTURE).expect(204);
    let shown = club.by(CAROL).get(&path).expect(200).json();
    assert_eq!(rows().len(), 2);
    assert_eq!(rows()[0]["changes"], json!({"picture": [null, shown["picture"]]}));
    let bytes = club.by(CAROL).get(&picture).expect(200).body;
    club.by(CAROL).delete(&path).expect(204);
    club.by(CAROL).get(&picture).refused(404, "not-found");
    put(&club, CAROL, &picture, "image/png", PICTURE).refused(404, "not-found");
    assert_eq!(club.by(CAROL).post(&format!("{path}/restore"), json!({})).expect(200).json(), shown);
    assert_eq!(club.by(CAROL).get(&picture).expect(200).body, bytes);
    club.by(CAROL).delete(&picture).expect(204);
    assert_eq!(rows()[0]["changes"], json!({"picture": [shown["picture"], null]}));
    // Created, given a picture, restored, without a picture: that is four.
    let user = format!("/api/v1/users/{}", id(CAROL));
    put(&club, CAROL, &format!("{user}/picture"), "image/png", PICTURE).expect(204);
    put(&club, CAROL, &picture, "image/png", PICTURE).refused(429, "daily-limit");
    let all = club.by(ALICE).get("/api/v1/audit").expect(200).json();
    assert_eq!((&all[0]["objectType"], &all[0]["objectId"]), (&json!("profile"), &json!(id(CAROL))));
    let page = open(&club, CAROL, &format!("{}/history", path.replace("/api/v1", "")));
    assert!(page.contains("the picture") && !page.contains("?v="), "{page}");
}

#[rstest]
fn a_picture_is_removed_with_its_project(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let path = project(&club, CAROL, "robot");
    put(&club, CAROL, &format!("{path}/picture"), "image/png", PICTURE).expect(204);
    let of_user = format!("/api/v1/users/{}/picture", id(CAROL));
    put(&club, CAROL, &of_user, "image/png", PICTURE).expect(204);
    club.by(CAROL).delete(&path).expect(204);
    let stored = || pictures::table.count().get_result::<i64>(&mut club.connect()).unwrap();
    assert_eq!(stored(), 2);
    club.clock.advance(TimeDelta::days(31));
    let (now, conn) = (DbTimestamp(club.clock.now()), &mut club.connect());
    let (_, ids) = REMOVALS[0].page(conn, now, first_place()).unwrap().unwrap();
    REMOVALS[0].remove_some(conn, &ids).unwrap();
    assert_eq!(stored(), 1);
    club.anonymous().get(&of_user).expect(200);
}

#[test]
fn backup_and_copy_to_have_the_pictures() {
    let mut club = Club::start(Sqlite);
    let path = format!("{}/picture", project(&club, CAROL, "robot"));
    let colour = |x: u32, y: u32| x.wrapping_mul(2_654_435_761).wrapping_add(y.wrapping_mul(40_503)).to_be_bytes();
    let noisy = RgbaImage::from_fn(400, 400, |x, y| Rgba(colour(x, y))).into();
    put(&club, CAROL, &path, "image/webp", &file(&noisy, ImageFormat::WebP)).expect(204);
    let shown = club.anonymous().get(&path).expect(200).body;
    let (url, target) = (club.url().to_owned(), postgres_schema());
    let backup = club.folder().join("backup.sqlite3");
    done(&url, &["backup", backup.to_str().unwrap()]);
    let said = done(&url, &["copy-to", &target]);
    assert!(said.contains("\npictures: 1 rows, checksum "), "{said}");
    club.move_to(&target);
    assert_eq!(club.anonymous().get(&path).expect(200).body, shown);
    club.move_to(&format!("sqlite://{}", backup.display()));
    assert_eq!(club.anonymous().get(&path).expect(200).body, shown);
}

/// Sends a file as a browser does.
fn upload(club: &Club, by: &str, path: &str, page: &str, bytes: &[u8]) -> Answer {
    let form = page.split("<form").find(|form| form.contains(&format!(" action=\"{path}\""))).unwrap();
    assert_eq!(attribute(form, "enctype"), Some("multipart/form-data"));
    let mut body = Vec::new();
    for (name, value) in fields(page, path) {
        let part = |more: &str| format!("--frontier\r\nContent-Disposition: form-data; name=\"{name}\"{more}\r\n\r\n");
        match name.as_str() {
            "picture" => {
                body.extend(part("; filename=\"a.png\"\r\nContent-Type: image/png").into_bytes());
                body.extend(bytes);
            }
            _ => body.extend(format!("{}{value}", part("")).into_bytes()),
        }
        body.extend(b"\r\n");
    }
    body.extend(b"--frontier--\r\n");
    let client = club.by(by).header("accept", HTML);
    client.header("content-type", "multipart/form-data; boundary=frontier").send_bytes("POST", path, body)
}

#[rstest]
fn pages_show_pictures_and_have_their_forms(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let api = project(&club, CAROL, "robot");
    club.by(CAROL).put(&format!("{api}/members"), json!({"members": [member(CAROL, (2024, 0), None)]})).expect(204);
    let path = api.replace("/api/v1", "");
    let edit = open(&club, CAROL, &format!("{path}/edit"));
    assert!(!edit.contains("<img"), "{edit}");
    let action = format!("{path}/picture");
    let image = file(&halves(400, 200), ImageFormat::Png);
    let refused = upload(&club, CAROL, &action, &edit, b"no picture").expect(400);
    let refused = page::check(&refused);
    assert!(refused.contains("This picture cannot be used") && refused.contains("role=\"alert\""), "{refused}");
    upload(&club, DAVE, &action, &edit, &image).expect(403);
    upload(&club, CAROL, &action, &edit, &vec![0; (1 << 20) + 1]).expect(400);
    let done = upload(&club, CAROL, &action, &refused, &image).expect(303);
    assert_eq!(done.header("location"), Some(&*format!("{path}?notice=saved")));
    let me = open(&club, CAROL, "/me");
    let of_me = format!("/people/{}/picture", id(CAROL));
    let done = upload(&club, CAROL, &of_me, &me, &image).expect(303);
    assert_eq!(done.header("location"), Some("/me?notice=saved"));
    let (project, user) =
        (format!("src=\"{api}/picture?v="), format!("src=\"/api/v1{}?v=", of_me.replace("people", "users")));
    for (page, expected) in [
        ("/", vec![&project, &user]),
        ("/projects", vec![&project]),
        (path.as_str(), vec![&project, &user]),
        ("/people", vec![&user]),
        ("/people/carol", vec![&user]),
        ("/me", vec![&user]),
        (format!("{path}/edit").as_str(), vec![&project]),
    ] {
        let shown = open(&club, CAROL, page);
        assert!(expected.iter().all(|source| shown.contains(source.as_str())), "{page}: {shown}");
        for address in shown.split(" src=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
            club.anonymous().get(&address.replace("&amp;", "&")).expect(200);
        }
    }
    // Others keep their letters.
    assert!(open(&club, BOB, "/people").contains("aria-hidden=\"true\">BO</span>"));
    for (page, action) in [(format!("{path}/edit"), action), ("/me".to_owned(), of_me)] {
        let action = format!("{action}/delete");
        send(&club, CAROL, &action, &fields(&open(&club, CAROL, &page), &action)).expect(303);
        assert!(!open(&club, CAROL, &page).contains("<img"));
    }
    let japanese = club.by(CAROL).header("accept-language", "ja").get("/me").expect(200).text();
    assert!(japanese.contains("画像") && japanese.contains("アップロード"), "{japanese}");
}
