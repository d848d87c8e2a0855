//! The rules of `docs/architecture.md` that a machine can hold the source to.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// The slices in the order of `lib.rs`: each may use those before it.
const SLICES: [&str; 7] = ["users", "groups", "tags", "rooms", "events", "ical", "sign_in"];

/// What every slice may use, and what may use no slice.
const BASE: [&str; 6] = ["auth", "club", "codes", "config", "overlapping", "schema"];

fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            // Unit tests may use what they like.
            let code = text.split("#[cfg(test)]").next().unwrap().to_owned();
            found.push((path, code));
        }
    }
    found
}

fn crate_sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let name = |path: &Path| path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
    sources(&root).into_iter().map(|(path, code)| (name(&path), code)).collect()
}

/// The first segment of each path that begins with `crate::`, also inside `use crate::{…}`.
fn modules_used(code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        // `$crate::` in a macro is another crate's.
        if code[..at].ends_with('$') {
            continue;
        }
        let rest = &code[at + "crate::".len()..];
        let Some(group) = rest.strip_prefix('{') else {
            found.insert(word(rest));
            continue;
        };
        let mut depth = 0;
        let mut start = true;
        for (n, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => start = true,
                c if start && c.is_alphabetic() => {
                    found.insert(word(&group[n..]));
                    start = false;
                }
                _ => {}
            }
        }
    }
    found
}

fn word(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

#[test]
fn slices_use_only_earlier_ones() {
    for (file, code) in crate_sources() {
        let own = file.split(['/', '.']).next().unwrap().to_owned();
        let place = SLICES.iter().position(|slice| *slice == own);
        if place.is_none() && !BASE.contains(&own.as_str()) {
            continue; // server, commands, demo, main: on top of everything
        }
        for used in modules_used(&code) {
            let allowed = BASE.contains(&used.as_str())
                || used == own
                || SLICES.iter().position(|slice| *slice == used).is_some_and(|other| place > Some(other));
            // The one helper that `overlapping` takes from rooms is named there.
            let known = file == "overlapping.rs" && used == "rooms";
            assert!(allowed || known, "{file} uses {used}");
        }
    }
    let lib = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap();
    let at = |slice: &&str| lib.find(&format!(". [`{slice}`]: ")).unwrap_or_else(|| panic!("lib.rs misses {slice}"));
    let places: Vec<_> = SLICES.iter().map(at).collect();
    assert!(places.is_sorted(), "lib.rs lists the slices in their order");
}

#[test]
fn handlers_know_no_sql_and_queries_no_http() {
    for (file, code) in crate_sources() {
        let forbidden: &[&str] = match file.rsplit('/').next().unwrap() {
            "handlers.rs" => &["diesel::", "use diesel"],
            "queries.rs" | "changes.rs" | "booking.rs" | "attendance.rs" | "selection.rs" => {
                &["actix_web", "utoipa", "serde::"]
            }
            _ => &[],
        };
        for word in forbidden {
            assert!(!code.contains(word), "{file} uses {word}");
        }
    }
}

#[test]
fn no_source_file_is_two() {
    for (file, code) in crate_sources() {
        let lines = code.lines().count();
        assert!(lines <= 450, "{file} has {lines} lines: what is the second thing in it?");
    }
}

#[test]
fn the_reader_of_paths_reads_them() {
    let code = "use crate::{\n    auth::{self, Caller},\n    rooms,\n};\nuse crate::schema::users; $crate::x; crate::tags::y();";
    let found: Vec<_> = modules_used(code).into_iter().collect();
    assert_eq!(found, ["auth", "rooms", "schema", "tags"]);
}
