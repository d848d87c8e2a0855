//! Checks that both sets of migrations agree with `schema.rs`, and that SQLite's triggers record every change. Both
//! services include this file in their tests, by its path.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use diesel::{
    QueryableByName,
    prelude::*,
    sql_query,
    sql_types::{Bool, Text},
};
use service_kit::{database::AnyConnection, maintenance::tables::TableInfo};

use crate::harness::{Backend, Club};

/// Table → its columns in order: name, type in the words of `schema.rs`, whether it may be NULL.
pub type Tables = BTreeMap<String, Vec<(String, &'static str, bool)>>;

#[derive(QueryableByName)]
struct Column {
    #[diesel(sql_type = Text)]
    owner: String,
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Text)]
    kind: String,
    #[diesel(sql_type = Bool)]
    nullable: bool,
}

/// The tables of a database. SQLite stores several of the types as one; the types on PostgreSQL distinguish them.
fn tables(conn: &mut AnyConnection) -> Tables {
    let query = match conn {
        AnyConnection::Postgresql(_) => {
            "SELECT table_name::text AS owner, column_name::text AS name, data_type::text AS kind, \
             is_nullable = 'YES' AS nullable FROM information_schema.columns \
             WHERE table_schema = current_schema() AND table_name <> 'last_change' AND table_name NOT LIKE '\\_\\_%' \
             ORDER BY table_name, ordinal_position"
        }
        AnyConnection::Sqlite(_) => {
            "SELECT t.name AS owner, c.name AS name, c.type AS kind, c.\"notnull\" = 0 AS nullable \
             FROM sqlite_schema t JOIN pragma_table_info(t.name) c \
             WHERE t.type = 'table' AND t.name <> 'last_change' AND t.name NOT LIKE '\\_\\_%' ESCAPE '\\' \
             AND t.name NOT LIKE 'sqlite%' ORDER BY t.name, c.cid"
        }
    };
    let mut tables = Tables::new();
    for column in sql_query(query).load::<Column>(conn).unwrap() {
        let kind = match column.kind.as_str() {
            "uuid" => "DbUuid",
            "timestamp with time zone" => "DbTimestamp",
            "text" | "TEXT" => "Text",
            "bytea" => "Binary",
            "smallint" => "SmallInt",
            "integer" => "Integer",
            "bigint" => "BigInt",
            "boolean" => "Bool",
            "BLOB" => "bytes",
            "INTEGER" => "number",
            other => panic!("{}.{} is {other}", column.owner, column.name),
        };
        tables.entry(column.owner).or_default().push((column.name, kind, column.nullable));
    }
    tables
}

/// The tables of `schema.rs`, read from its text, because the names of Diesel's types are not available.
pub fn declared() -> Tables {
    // The tables of the service that includes this file, and those that every service has.
    let source = [
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../club-sign-in/src/schema.rs")),
        // After the one before, which has a part of its tables.
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/schema.rs")),
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../service-kit/src/database/schema.rs")),
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../import/src/schema.rs")),
    ]
    .concat();
    let mut tables = Tables::new();
    for table in source.split("diesel::table! {").skip(1) {
        let lines = table.lines().filter(|line| !line.trim().starts_with("use "));
        // A column whose name is a Rust keyword has an underscore at its end here.
        let lines = lines.filter(|line| !line.trim().starts_with("#[sql_name"));
        let body = lines.collect::<String>().replace("type_", "type");
        let (name, columns) = body.split_once('{').unwrap();
        let name = name.split_once('(').unwrap().0.trim().to_owned();
        let columns = columns.split_once('}').unwrap().0.split(',').filter_map(|column| {
            let (name, kind) = column.split_once("->")?;
            let inner = kind.trim().strip_prefix("Nullable<").and_then(|kind| kind.strip_suffix('>'));
            let kinds = ["DbUuid", "DbTimestamp", "Text", "Binary", "SmallInt", "Integer", "BigInt", "Bool"];
            let kind = kinds.into_iter().find(|known| *known == inner.unwrap_or(kind.trim())).unwrap();
            Some((name.trim().to_owned(), kind, inner.is_some()))
        });
        tables.insert(name, columns.collect());
    }
    tables
}

fn as_sqlite_keeps_it(mut tables: Tables) -> Tables {
    for column in tables.values_mut().flatten() {
        column.1 = match column.1 {
            "DbUuid" | "Binary" => "bytes",
            "Text" => "Text",
            _ => "number",
        };
    }
    tables
}

/// Names the tables that differ: a developer has changed the migrations or `schema.rs`, not both.
#[track_caller]
fn assert_tables(database: &str, by_migrations: &Tables, in_code: &Tables) {
    for table in by_migrations.keys().chain(in_code.keys()) {
        let (left, right) = (by_migrations.get(table), in_code.get(table));
        assert_eq!(left, right, "{table}: left by migrations/{database}, right in schema.rs");
    }
}

#[test]
fn both_databases_have_the_same_migrations() {
    let migrations = |database: &str| -> BTreeSet<_> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations").join(database);
        let folders: Vec<_> = fs::read_dir(folder).unwrap().map(|folder| folder.unwrap().path()).collect();
        for file in folders.iter().flat_map(|folder| ["up.sql", "down.sql"].map(|name| folder.join(name))) {
            assert!(file.is_file(), "{} is missing", file.display());
        }
        folders.iter().map(|folder| folder.file_name().unwrap().to_owned()).collect()
    };
    assert_eq!(migrations("sqlite"), migrations("postgres"));
}

#[test]
fn both_databases_have_the_tables_of_the_code() {
    let declared = declared();
    assert!(declared.len() >= 15 && declared.values().all(|columns| !columns.is_empty()));
    assert_tables("postgres", &tables(&mut Club::start(Backend::Postgres).connect()), &declared);
    assert_tables("sqlite", &tables(&mut Club::start(Backend::Sqlite).connect()), &as_sqlite_keeps_it(declared));
}

#[derive(QueryableByName)]
struct Index {
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Text)]
    definition: String,
}

/// Named indexes that stand for no constraint: name, columns, and whether only some rows are in it.
fn indexes(conn: &mut AnyConnection) -> BTreeSet<(String, String, bool)> {
    let query = match conn {
        AnyConnection::Postgresql(_) => {
            "SELECT indexname::text AS name, indexdef AS definition FROM pg_indexes WHERE schemaname = current_schema() \
             AND indexname NOT LIKE '%\\_pkey' AND indexname NOT LIKE '%\\_key'"
        }
        AnyConnection::Sqlite(_) => {
            "SELECT name, sql AS definition FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL \
             AND name NOT LIKE '%\\_key' ESCAPE '\\'"
        }
    };
    let found = sql_query(query).load::<Index>(conn).unwrap();
    let shape = |index: Index| {
        let columns = index.definition.split_once('(').unwrap().1.split_once(')').unwrap().0.to_owned();
        (index.name, columns, index.definition.contains(" WHERE "))
    };
    found.into_iter().map(shape).collect()
}

#[test]
fn both_databases_have_the_same_indexes() {
    let sqlite = indexes(&mut Club::start(Backend::Sqlite).connect());
    assert!(!sqlite.is_empty());
    assert_eq!(indexes(&mut Club::start(Backend::Postgres).connect()), sqlite);
}

/// On SQLite, triggers record every change of all tables except those whose rows no answer shows, and except changes of
/// these columns of other tables, such as `users.updated_at`.
pub fn every_change_of_what_is_shown_is_noted(never_shown: &[&str], hidden_columns: &[&str]) {
    let query = "SELECT tbl_name AS name, sql AS definition FROM sqlite_schema WHERE type = 'trigger'";
    let triggers = sql_query(query).load::<Index>(&mut Club::start(Backend::Sqlite).connect()).unwrap();
    let lists_shown_columns = |table: &str, listed: &str| {
        let listed: BTreeSet<_> = listed.trim_start_matches("OF ").split(", ").collect();
        let all = declared().remove(table).unwrap();
        let is_missing =
            |column: &str| !listed.contains(column) && !hidden_columns.contains(&&*format!("{table}.{column}"));
        !all.iter().any(|(column, ..)| is_missing(column))
    };
    let noted: BTreeSet<_> = triggers
        .iter()
        .filter(|trigger| trigger.definition.contains("UPDATE last_change SET mark = hex(randomblob(16))"))
        .flat_map(|trigger| {
            let when = ["INSERT", "UPDATE", "DELETE"].into_iter();
            let ends = [format!(" ON {} ", trigger.name), format!(" ON \"{}\" ", trigger.name)];
            let of = |when: &str| trigger.definition.split_once(&format!(" AFTER {when}")).map(|(_, of)| of.to_owned());
            let when = when.filter(|when| {
                let of = of(when).unwrap_or_default();
                let columns =
                    ends.iter().find_map(|end| of.split_once(end.as_str())).map(|(columns, _)| columns.trim());
                columns.is_some_and(|columns| columns.is_empty() || lists_shown_columns(&trigger.name, columns))
            });
            when.map(|when| (trigger.name.clone(), when)).collect::<Vec<_>>()
        })
        .collect();
    for table in declared().keys() {
        for when in ["INSERT", "UPDATE", "DELETE"] {
            let is_noted = noted.contains(&(table.clone(), when));
            assert_eq!(is_noted, !never_shown.contains(&table.as_str()), "{when} {table}");
        }
    }
}

/// Checks that `copied` has all tables, each after those that it refers to.
pub fn all_are_copied(copied: &[TableInfo]) {
    let columns = |table: &TableInfo| {
        let columns = (table.columns)().into_iter().map(|(name, kind)| (name.to_owned(), format!("{kind:?}")));
        (table.name.to_owned(), columns.collect::<Vec<_>>())
    };
    let declared = declared().into_iter().map(|(table, columns)| {
        (table, columns.into_iter().map(|(name, kind, _)| (name, kind.to_owned())).collect::<Vec<_>>())
    });
    assert_eq!(copied.iter().map(columns).collect::<BTreeMap<_, _>>(), declared.collect());
    let query = "SELECT t.name, f.\"table\" AS definition FROM sqlite_schema t JOIN pragma_foreign_key_list(t.name) f";
    let references = sql_query(query).load::<Index>(&mut Club::start(Backend::Sqlite).connect()).unwrap();
    assert!(references.len() > 5);
    let place = |name: &str| copied.iter().position(|table| table.name == name).unwrap();
    for reference in references {
        assert!(place(&reference.definition) < place(&reference.name), "{} comes too early", reference.name);
    }
}
