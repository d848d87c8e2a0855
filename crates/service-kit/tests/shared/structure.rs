//! Checks the source of a service against rules of `docs/architecture.md`. Both services include this file in their
//! tests, by its path, with their layout.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// The layout of a service.
pub struct Layout {
    /// The slices in the order of `lib.rs`: each may use those before it.
    pub slices: &'static [&'static str],
    /// Modules that every slice may use and that use no slice.
    pub base: &'static [&'static str],
    /// Exceptions: files, and the modules that they use against these rules.
    pub exceptions: &'static [(&'static str, &'static str)],
    /// Names of files with queries, which use neither HTTP nor JSON.
    pub queries: &'static [&'static str],
}

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

/// The source files of the crate that includes this file, and the code of each.
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

impl Layout {
    /// Each slice uses those before it and the base only, and `lib.rs` lists them in their order.
    pub fn slices_use_only_earlier_ones(&self) {
        let place_of = |module: &str| self.slices.iter().position(|slice| *slice == module);
        for (file, code) in crate_sources() {
            let own = file.split(['/', '.']).next().unwrap().to_owned();
            let place = place_of(&own);
            if place.is_none() && !self.base.contains(&own.as_str()) {
                continue; // server, commands, demo, main: they may use everything
            }
            for used in modules_used(&code) {
                let allowed = self.base.contains(&used.as_str())
                    || used == own
                    || place_of(&used).is_some_and(|other| place > Some(other))
                    || self.exceptions.contains(&(file.as_str(), used.as_str()));
                assert!(
                    allowed,
                    "{file} uses the slice `{used}`, which is not before its own in lib.rs; `schema` has its tables"
                );
            }
        }
        let lib = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap();
        let at =
            |slice: &&str| lib.find(&format!(". [`{slice}`]: ")).unwrap_or_else(|| panic!("lib.rs misses {slice}"));
        let places: Vec<_> = self.slices.iter().map(at).collect();
        assert!(places.is_sorted(), "lib.rs lists the slices in their order");
    }

    /// Handlers do not use diesel; queries do not use actix, utoipa and serde.
    pub fn handlers_know_no_sql_and_queries_no_http(&self) {
        for (file, code) in crate_sources() {
            let forbidden: &[&str] = match file.rsplit('/').next().unwrap() {
                "handlers.rs" => &["diesel::", "use diesel"],
                name if self.queries.contains(&name) => &["actix_web", "utoipa", "serde::"],
                _ => &[],
            };
            for word in forbidden {
                assert!(!code.contains(word), "{file} uses {word}");
            }
        }
    }
}

#[test]
fn the_reader_of_paths_reads_them() {
    let code = "use crate::{\n    auth::{self, Caller},\n    rooms,\n};\nuse crate::schema::users; $crate::x; crate::tags::y();";
    let found: Vec<_> = modules_used(code).into_iter().collect();
    assert_eq!(found, ["auth", "rooms", "schema", "tags"]);
}
