//! Checks the source of a service against rules of `docs/architecture.md`. Both services include this file in their
//! tests, by its path, with their layout.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use service_kit::maintenance::tables::TableInfo;

/// Tables that crates write which both services use.
const TABLES_OF_CRATES: &[&str] =
    &["creations", "history", "idempotency_keys", "identities", "imported_rows", "leases", "spent_logins"];

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
    /// The tables that each module writes. Modules that are neither slices nor in the base may write all.
    pub tables: &'static [(&'static str, &'static [&'static str])],
    /// Files that write tables of another module.
    pub foreign_writes: &'static [ForeignWrites],
    /// Columns that only one file sets.
    pub only_written_by: &'static [(&'static str, &'static str)],
}

/// Writes of a file to tables that its module does not own.
pub struct ForeignWrites {
    pub file: &'static str,
    pub tables: &'static [&'static str],
    pub reason: &'static str,
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

/// The tables that some code inserts into, updates or deletes from.
///
/// Diesel's types require that all columns that a statement sets are of its table, so the first table that the
/// statement names is the one that it writes. A statement without one has its rows from a variable.
fn tables_written(code: &str, tables: &[&str]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for verb in ["insert_into", "update", "delete"] {
        for (at, call) in code.match_indices(&format!("diesel::{verb}(")) {
            let statement = |start: usize| code[start..].split(';').next().unwrap();
            let table = first_table(statement(at), tables).or_else(|| {
                let variable = format!("let {} = ", word(&code[at + call.len()..]));
                first_table(statement(code[..at].rfind(&variable)?), tables)
            });
            match table {
                None => panic!("cannot tell the table: {}", statement(at)),
                Some("$table") => found.extend(arguments(code, &macro_around(&code[..at]), tables)),
                Some(table) => _ = found.insert(table.to_owned()),
            }
        }
    }
    found
}

/// The first table whose items some code names, or `$table` for a macro's argument.
fn first_table<'a>(code: &str, tables: &[&'a str]) -> Option<&'a str> {
    let paths = code.match_indices("::").map(|(at, _)| &code[..at]);
    let mut names =
        paths.map(|path| path.rsplit(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).next().unwrap());
    names.find_map(|name| tables.iter().chain(&["$table"]).find(|table| **table == name)).copied()
}

/// The name of the macro whose definition begins last in some code.
fn macro_around(code: &str) -> String {
    let (_, definition) = code.rsplit_once("macro_rules! ").expect("a macro takes `$table`");
    word(definition)
}

/// The tables among the arguments of all calls of a macro.
fn arguments(code: &str, name: &str, tables: &[&str]) -> Vec<String> {
    let call = format!("{name}!(");
    let calls = code.split(&call).skip(1);
    let words = calls.flat_map(|call| call.split(')').next().unwrap().split(',').map(str::trim));
    words.filter(|word| tables.contains(word)).map(str::to_owned).collect()
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

    /// Each slice, and each module of the base, writes its own tables only. `all` are the tables of the service.
    pub fn slices_write_only_their_tables(&self, all: &[TableInfo]) {
        let names: Vec<_> =
            all.iter().map(|table| table.name).filter(|name| !TABLES_OF_CRATES.contains(name)).collect();
        let mut listed: Vec<_> = self.tables.iter().flat_map(|(_, tables)| tables.iter().copied()).collect();
        listed.sort_unstable();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        assert_eq!(listed, sorted, "each table belongs to one module");
        for (file, code) in crate_sources() {
            let module = file.split(['/', '.']).next().unwrap();
            if !self.slices.contains(&module) && !self.base.contains(&module) {
                continue;
            }
            for import in code.match_indices("use diesel").map(|(at, _)| code[at..].split(';').next().unwrap()) {
                let words = import.split(|c: char| !(c.is_alphanumeric() || c == '_'));
                let verb = words.into_iter().find(|word| ["insert_into", "update", "delete"].contains(word));
                assert_eq!(verb, None, "{file}: write `diesel::` before it, so that this test finds it");
            }
            let own = self.tables.iter().find(|(owner, _)| *owner == module).map_or(&[][..], |(_, tables)| *tables);
            let foreign: BTreeSet<_> =
                tables_written(&code, &names).into_iter().filter(|table| !own.contains(&table.as_str())).collect();
            let exceptions = self.foreign_writes.iter().filter(|exception| exception.file == file);
            let allowed: BTreeSet<_> =
                exceptions.flat_map(|exception| exception.tables).map(|table| (*table).to_owned()).collect();
            assert_eq!(foreign, allowed, "{file} writes tables of other modules");
            for (column, writer) in self.only_written_by {
                let written = format!("{column}.eq(");
                let mut found = code.match_indices(&written).map(|(at, _)| &code[..at]);
                // `draft_events` is not `events`.
                let is_written = found.any(|before| !before.ends_with('_'));
                assert_eq!(is_written, file == *writer, "{file} writes {column}");
            }
        }
        assert!(self.foreign_writes.iter().all(|exception| !exception.reason.is_empty()));
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
fn the_reader_of_statements_reads_them() {
    let code = "
        macro_rules! replace { ($conn:expr, $table:ident) => { diesel::delete($table::table).execute($conn)?; }; }
        replace!(conn, event_tags);
        diesel::update(\n    rooms::table.filter(exists(events::table))).execute(conn)?;
        let user = users::table.find(id);
        diesel::update(user).set(users::name.eq(name)).execute(conn)?;
        let old = crate::schema::places::table.filter(x);
        diesel::delete(old).execute(c)?;
        rooms::changes::update(conn, events::table);
        diesel::insert_into(schema::tags::table).values(groups::id.eq(id)).execute(c)?;";
    let tables = ["event_tags", "events", "rooms", "users", "places", "tags", "groups"];
    let found: Vec<_> = tables_written(code, &tables).into_iter().collect();
    assert_eq!(found, ["event_tags", "places", "rooms", "tags", "users"]);
}

#[test]
fn the_reader_of_paths_reads_them() {
    let code = "use crate::{\n    auth::{self, Caller},\n    rooms,\n};\nuse crate::schema::users; $crate::x; crate::tags::y();";
    let found: Vec<_> = modules_used(code).into_iter().collect();
    assert_eq!(found, ["auth", "rooms", "schema", "tags"]);
}
