//! `copy-to`: all rows arrive in PostgreSQL unchanged, or none does.

use common::time::Timestamp;
use diesel::{connection::SimpleConnection, prelude::*, sql_query};
use diesel_migrations::embed_migrations;
use proptest::{collection::vec, option, prelude::*, test_runner::TestRunner};
use rstest::rstest;
use service_kit::{
    database::{
        migrate::{self, Migrations},
        types::{DbTimestamp, DbUuid},
    },
    maintenance::{
        cli::DatabaseCommand,
        tables::{Contents, TableInfo},
    },
    with_connection,
};
use uuid::Uuid;

use crate::database::{Backend, TestDatabase};

pub static MIGRATIONS: Migrations = Migrations {
    sqlite: embed_migrations!("tests/kit/migrations/sqlite"),
    postgres: embed_migrations!("tests/kit/migrations/postgres"),
    own_table: "odd",
    steps: &[],
};

diesel::table! {
    use diesel::sql_types::*;
    use service_kit::database::types::{DbTimestamp, DbUuid};
    odd (id) {
        id -> DbUuid, at -> Nullable<DbTimestamp>, words -> Nullable<Text>, bytes -> Nullable<Binary>,
        small -> Nullable<SmallInt>, whole -> Nullable<Integer>, big -> Nullable<BigInt>, yes -> Nullable<Bool>,
    }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::database::types::DbUuid;
    notes (words) { words -> Text, odd_id -> DbUuid, }
}

const TABLES: &[TableInfo] = service_kit::tables! { odd notes };

#[derive(Debug, Clone, PartialEq, Queryable, Insertable)]
#[diesel(table_name = odd, treat_none_as_default_value = false)]
struct Odd {
    id: DbUuid,
    at: Option<DbTimestamp>,
    words: Option<String>,
    bytes: Option<Vec<u8>>,
    small: Option<i16>,
    whole: Option<i32>,
    big: Option<i64>,
    yes: Option<bool>,
}

#[test]
fn a_postgresql_database_must_have_the_encoding_utf_8() {
    let administrator = TestDatabase::postgres();
    let name = format!("latin_{}", std::process::id());
    let create = format!("CREATE DATABASE {name} ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0");
    administrator.connect().batch_execute(&create).unwrap();
    let url = std::env::var("TEST_POSTGRES_URL").unwrap().replacen("/postgres?", &format!("/{name}?"), 1);
    let refused = migrate::run(&url.parse().unwrap(), &MIGRATIONS).unwrap_err().to_string();
    assert!(refused.contains("the encoding SQL_ASCII; create it with UTF-8"), "{refused}");
    administrator.connect().batch_execute(&format!("DROP DATABASE {name}")).unwrap();
}

/// Two databases. Only the source has the schema.
struct Pair {
    source: TestDatabase,
    target: TestDatabase,
}

impl Pair {
    fn new() -> Self {
        let pair = Self { source: TestDatabase::sqlite(), target: TestDatabase::postgres() };
        migrate::run(&pair.source.url, &MIGRATIONS).unwrap();
        pair
    }

    fn fill(&self, rows: &[Odd]) {
        let conn = &mut self.source.connect();
        conn.batch_execute("DELETE FROM notes; DELETE FROM odd").unwrap();
        for row in rows {
            with_connection!(conn, c => diesel::insert_into(odd::table).values(row.clone()).execute(c)).unwrap();
        }
    }

    /// The rows of the target.
    fn found(&self) -> Vec<Odd> {
        odd::table.order(odd::id).load(&mut self.target.connect()).unwrap()
    }

    fn copy(&self) -> Result<(), String> {
        let target = std::env::var("TEST_POSTGRES_URL").unwrap();
        let schema = sql_query("SELECT current_schema()::text AS name");
        let schema: Vec<Name> = schema.load(&mut self.target.connect()).unwrap();
        let url = format!("{target}&options=-csearch_path%3D{}", schema[0].name);
        let command = DatabaseCommand::CopyTo { url: Some(url.parse().unwrap()), url_file: None };
        let contents = Contents { migrations: &MIGRATIONS, tables: TABLES, silence: |_| Ok(Vec::new()) };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(command.run(self.source.url.clone(), contents, |_| {})).map_err(|refused| refused.to_string())
    }
}

#[derive(QueryableByName)]
struct Name {
    #[diesel(sql_type = diesel::sql_types::Text)]
    name: String,
}

/// Texts as people and programs write them, all but U+0000.
fn words() -> impl Strategy<Value = String> {
    const ODD: &[&str] = &[
        "",
        "'",
        "\"",
        "\\",
        "\\N",
        "\\.",
        "\t\r\n",
        "NULL",
        "\u{7f}\u{1}",
        "🦀👩‍👩‍👧",
        "e\u{301}",
        "\u{feff}",
        "\u{10ffff}",
    ];
    prop_oneof![proptest::sample::select(ODD).prop_map(str::to_owned), "\\PC{0,40}", "[^\0]{0,20}"]
}

/// The whole time that there is, to both ends.
fn moment() -> impl Strategy<Value = DbTimestamp> {
    let (first, last) = (-62_135_510_400_000_000, 253_402_214_399_999_999_i64);
    let some = prop_oneof![Just(first), Just(last), Just(0), Just(-1), Just(946_684_800_000_000), first..=last];
    some.prop_map(|micros| DbTimestamp(Timestamp::from_micros(micros).unwrap()))
}

fn row() -> impl Strategy<Value = Odd> {
    let numbers =
        (option::of(any::<i16>()), option::of(any::<i32>()), option::of(any::<i64>()), option::of(any::<bool>()));
    let others = (any::<u128>(), option::of(moment()), option::of(words()), option::of(vec(any::<u8>(), 0..40)));
    (others, numbers).prop_map(|((id, at, words, bytes), (small, whole, big, yes))| {
        let id = DbUuid(Uuid::from_u128(id));
        Odd { id, at, words, bytes, small, whole, big, yes }
    })
}

#[rstest]
fn the_database_of_another_service_is_refused(#[values(Backend::Sqlite, Backend::Postgres)] backend: Backend) {
    let database = TestDatabase::new(backend);
    let other = "CREATE TABLE __diesel_schema_migrations (version VARCHAR(50) PRIMARY KEY NOT NULL, run_on TIMESTAMP); \
                 INSERT INTO __diesel_schema_migrations (version) VALUES ('20261120000000'); CREATE TABLE other (a INT)";
    database.connect().batch_execute(other).unwrap();
    let refused = migrate::run(&database.url, &MIGRATIONS).unwrap_err().to_string();
    assert!(refused.contains("the database of another service"), "{refused}");
    assert!(database.connect().batch_execute("SELECT * FROM odd").is_err(), "nothing was made");
}

#[test]
fn unusual_values_are_copied_unchanged() {
    let pair = Pair::new();
    migrate::run(&pair.target.url, &MIGRATIONS).unwrap();
    let mut runner = TestRunner::new(ProptestConfig::with_cases(24));
    let rows = vec(row(), 0..30).prop_map(|mut rows| {
        rows.sort_by_key(|row| row.id);
        rows.dedup_by_key(|row| row.id);
        rows
    });
    let arrive = |rows: Vec<Odd>| {
        pair.target.connect().batch_execute("TRUNCATE odd, notes").unwrap();
        pair.fill(&rows);
        pair.copy().unwrap();
        prop_assert_eq!(pair.found(), rows);
        Ok(())
    };
    runner.run(&rows, arrive).unwrap();
}

/// More than fit into one statement.
fn many() -> Vec<Odd> {
    let row = |n: u16| Odd {
        id: DbUuid(Uuid::from_u128(n.into())),
        at: None,
        words: Some("x".repeat(1000)),
        bytes: None,
        small: None,
        whole: None,
        big: Some(n.into()),
        yes: Some(true),
    };
    (0..2500).map(row).collect()
}

#[test]
fn rows_that_exceed_one_statement_take_several() {
    let pair = Pair::new();
    let rows = many();
    let conn = &mut pair.source.connect();
    with_connection!(conn, c => diesel::insert_into(odd::table).values(&rows).execute(c)).unwrap();
    pair.copy().unwrap();
    assert_eq!(pair.found(), rows);
}

#[test]
fn a_row_that_differs_in_the_target_is_an_error_and_nothing_is_copied() {
    for change in ["NEW.big := NEW.big + 1", "NEW.words := NULL", "NEW.yes := NOT NEW.yes", "RETURN NULL"] {
        let pair = Pair::new();
        migrate::run(&pair.target.url, &MIGRATIONS).unwrap();
        let mut conn = pair.target.connect();
        conn.batch_execute(&format!(
            "CREATE FUNCTION meddle() RETURNS trigger AS $$ BEGIN IF NEW.big = 1 THEN {change}; END IF; RETURN NEW; END $$ \
             LANGUAGE plpgsql; CREATE TRIGGER meddle BEFORE INSERT ON odd FOR EACH ROW EXECUTE FUNCTION meddle()"
        ))
        .unwrap();
        pair.fill(&many()[..3]);
        let refused = pair.copy().unwrap_err();
        assert!(refused.starts_with("odd: 3 rows, checksum ") && refused.ends_with(" are in the target"), "{refused}");
        assert_eq!(pair.found(), []);
        conn.batch_execute("DROP TRIGGER meddle ON odd").unwrap();
        pair.copy().unwrap();
        assert_eq!(pair.found(), many()[..3]);
    }
}

#[test]
fn a_value_that_postgres_cannot_store_is_named_and_nothing_is_copied() {
    let pair = Pair::new();
    let mut conn = pair.source.connect();
    for (bad, word) in [
        ("words = 'a' || char(0)", "odd: words of the row"),
        ("small = 40000", "odd: small of the row"),
        ("id = x'00'", "odd: id of the row"),
    ] {
        pair.fill(&many()[..3]);
        conn.batch_execute(&format!("UPDATE odd SET {bad} WHERE big = 1")).unwrap();
        let refused = pair.copy().unwrap_err();
        assert!(refused.starts_with(word), "{refused}");
        assert_eq!(pair.found(), []);
    }
    // A broken reference, as a program that does not enforce foreign keys would leave it.
    pair.fill(&[]);
    conn.batch_execute("PRAGMA foreign_keys = OFF; INSERT INTO notes VALUES ('lost', zeroblob(16))").unwrap();
    let refused = pair.copy().unwrap_err();
    assert!(refused.starts_with("notes: ") && refused.contains("foreign key"), "{refused}");
    assert_eq!(pair.found(), []);
}
