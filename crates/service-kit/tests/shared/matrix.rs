//! Compares the access tables of `docs/access.md` with the running services: every operation of the OpenAPI document,
//! called by every kind of caller. Both services include this file in their tests, by its path, with their callers and
//! with functions that create the objects of an operation.

#![expect(clippy::disallowed_types, reason = "no worker is involved")]

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    ptr,
    sync::{Mutex, PoisonError},
};

use serde_json::{Value, json};

use crate::harness::{Answer, Client, DOCUMENT};

/// The columns of a table before `operations`.
const COLUMNS: [&str; 8] =
    ["anonymous", "bad token", "read-only token", "member", "stranger", "owner", "privileged", "suspended"];

/// The cell of a kind of credential that the service does not have.
const NONE: &str = "–";

/// A picture of one pixel, for a body that has no text as an example.
pub const PICTURE: &[u8] =
    b"\x89PNG\x0d\x0a\x1a\x0a\x00\x00\x00\x0dIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00:~\x9bU\x00\x00\x00\x0aIDATx\xdach\x00\x00\x00\x82\x00\x81\xdaE\x08;\x00\x00\x00\x00IEND\xaeB`\x82";

/// An operation of the document.
pub struct Operation {
    pub method: String,
    /// With parameters in braces.
    pub path: String,
    described: &'static Value,
}

impl Operation {
    /// Its method and path, as in a row of a table.
    fn key(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    pub fn all() -> Vec<Self> {
        let paths = DOCUMENT["paths"].as_object().unwrap().iter();
        paths
            .flat_map(|(path, item)| {
                let operations = item.as_object().unwrap().iter().filter(|(_, operation)| operation.is_object());
                operations.map(|(method, described)| Self {
                    method: method.to_uppercase(),
                    path: path.clone(),
                    described,
                })
            })
            .collect()
    }

    /// Whether it needs no sign-in, according to the document.
    pub fn is_public(&self) -> bool {
        self.described["security"].as_array().is_some_and(|any_of| any_of.contains(&json!({})))
    }

    /// Whether it answers a list.
    pub fn lists(&self) -> bool {
        self.described["responses"]["200"]["content"]["application/json"]["schema"]["type"] == "array"
    }

    /// The path with values for its parameters.
    pub fn path_with(&self, value: impl Fn(&str) -> String) -> String {
        let parameter = |segment: &str| segment.strip_prefix('{')?.strip_suffix('}').map(&value);
        let segments = self.path.split('/');
        segments.map(|segment| parameter(segment).unwrap_or_else(|| segment.to_owned())).collect::<Vec<_>>().join("/")
    }

    /// Sends a request with the example of its body, in which `members` replace those of the same name.
    pub fn send(&self, client: Client<'_>, path: &str, members: &Value) -> Answer {
        let content = self.described["requestBody"]["content"].as_object();
        let Some((media_type, content)) = content.and_then(|content| content.iter().next()) else {
            return client.send(&self.method, path, None);
        };
        if media_type == "image/*" {
            return client.header("content-type", "image/png").send_bytes(&self.method, path, PICTURE.to_vec());
        }
        let mut body = content["example"].clone();
        assert!(!body.is_null(), "{} {} has no example of a body", self.method, self.path);
        for (name, value) in members.as_object().into_iter().flatten() {
            body[name] = value.clone();
        }
        let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
        client.header("content-type", media_type).send_bytes(&self.method, path, body.into_bytes())
    }
}

/// A row of a table.
struct Row {
    /// Method, path and the description of the object: the name of the builder.
    name: String,
    operation: String,
    cells: Vec<String>,
    /// The line of the table.
    line: String,
}

impl Row {
    fn cell(&self, column: &str) -> &str {
        &self.cells[COLUMNS.iter().position(|name| *name == column).expect(column)]
    }
}

/// The page with the tables.
fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/access.md")
}

/// The rows of a service's table, one for each operation and object: a line lists those with the same statuses.
fn table(service: &str) -> Vec<Row> {
    let page = fs::read_to_string(page()).unwrap();
    let (begin, end) = (format!("<!-- access to {service}: begin -->"), format!("<!-- access to {service}: end -->"));
    let lines = page.split_once(&begin).unwrap().1.split_once(&end).unwrap().0.trim().lines();
    let cells = |line: &str| {
        let cells = line.strip_prefix('|').and_then(|line| line.strip_suffix('|')).unwrap_or_else(|| panic!("{line}"));
        cells.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>()
    };
    let mut lines = lines.map(|line| (line, cells(line)));
    assert_eq!(lines.next().unwrap().1, [&COLUMNS[..], &["operations"]].concat(), "{service}: the columns");
    assert!(lines.next().unwrap().1.iter().all(|cell| cell.chars().all(|c| "-:".contains(c))), "{service}: line 2");
    let rows = |(line, cells): (&str, Vec<String>)| {
        let (operations, cells) = cells.split_last().unwrap();
        assert_eq!(cells.len(), COLUMNS.len(), "{service}: {line}");
        let row = |entry: &str| {
            let (operation, object) = entry.strip_prefix('`').and_then(|entry| entry.split_once('`')).expect(line);
            let object = object.trim().trim_start_matches('(').trim_end_matches(')');
            let name = if object.is_empty() { operation.to_owned() } else { format!("{operation}, {object}") };
            Row { name, operation: operation.to_owned(), cells: cells.to_vec(), line: line.to_owned() }
        };
        operations.split(", ").map(row).collect::<Vec<_>>()
    };
    lines.flat_map(rows).collect()
}

/// A caller with one of the credentials of a column.
pub struct Caller<'club> {
    pub column: &'static str,
    /// The credential, for messages.
    pub way: &'static str,
    /// The sign-in name, unless the caller is anonymous.
    pub name: Option<&'static str>,
    pub client: Client<'club>,
    /// The code of the problem when the answer has this status.
    pub refusal: Option<(u16, &'static str)>,
    /// The column that applies when the service does not have the credential of this one.
    pub instead: Option<&'static str>,
}

/// The objects, body, query and cookie of a request.
#[derive(Clone, Default)]
pub struct Fixture {
    /// The values of the parameters of the path.
    values: Vec<(&'static str, String)>,
    body: Value,
    query: String,
    for_one: bool,
    cookie: Option<String>,
}

impl Fixture {
    /// Members of the body, which replace those of the document's example.
    pub fn body(members: Value) -> Self {
        Self { body: members, ..Self::default() }
    }

    /// The id of an object in the path.
    pub fn object(parameter: &'static str, value: &impl ToString) -> Self {
        Self::default().and(parameter, value)
    }

    /// The value of a parameter of the path.
    #[allow(dead_code, reason = "not every service changes its objects once more")]
    pub fn value(&self, parameter: &str) -> &str {
        &self.values.iter().find(|(name, _)| *name == parameter).unwrap().1
    }

    pub fn and(mut self, parameter: &'static str, value: &impl ToString) -> Self {
        self.values.push((parameter, value.to_string()));
        self
    }

    pub fn with(self, members: Value) -> Self {
        Self { body: members, ..self }
    }

    /// Adds a parameter to the query.
    pub fn and_query(mut self, parameter: &str) -> Self {
        self.query.push(if self.query.is_empty() { '?' } else { '&' });
        self.query.push_str(parameter);
        self
    }

    /// Replaces the query.
    pub fn at(self, query: &str) -> Self {
        Self { query: format!("?{query}"), ..self }
    }

    /// A query that only one request can use, such as a code, perhaps with a cookie of its own.
    #[allow(dead_code, reason = "the portfolio-service has nothing of the kind")]
    pub fn for_one(query: String, cookie: Option<String>) -> Self {
        Self { query, cookie, for_one: true, ..Self::default() }
    }
}

/// Creates the objects of a request. `W` is the input of the service's builders.
pub type Builder<W> = fn(&W, &Caller<'_>) -> Fixture;

/// The builder of a row: the one with its name, or else the one with the last parameter of its path, such as
/// `{roomID}`. A row with the description of an object needs one with its name.
fn builder_of<'a, W>(row: &Row, builders: &'a [(&'a str, Builder<W>)]) -> Option<&'a (&'a str, Builder<W>)> {
    let find = |wanted: &str| builders.iter().find(|(name, _)| *name == wanted);
    let of_parameter = || row.operation.rsplit('/').find(|segment| segment.starts_with('{')).and_then(find);
    let by_name = find(&row.name);
    if row.name == row.operation { by_name.or_else(of_parameter) } else { by_name }
}

/// Calls an operation as every caller.
///
/// After a request that may have changed its objects, the next one gets new objects. After a refused request, the next
/// one gets the same objects, which shows whether the refused one has changed something.
fn call_as_all<'a, 'c, W>(
    operation: &'a Operation,
    builder: Option<&'a Builder<W>>,
    world: &'a W,
    callers: &'a [Caller<'c>],
) -> impl Iterator<Item = (&'a Caller<'c>, Answer)> {
    let mut made = None;
    callers.iter().map(move |caller| {
        let ready = made.take().unwrap_or_else(|| builder.map_or_else(Fixture::default, |make| make(world, caller)));
        let answer = send(operation, &ready, &caller.client);
        let is_unchanged = answer.status >= 400 || operation.method == "GET";
        made = Some(ready).filter(|made| is_unchanged && !made.for_one);
        (caller, answer)
    })
}

/// Writes a row with the statuses of the answers for each operation of the document that has none: one for each object
/// that a builder describes, or one without.
fn write_missing_rows<W>(service: &str, world: &W, builders: &[(&str, Builder<W>)], callers: &[Caller<'_>]) {
    // The tests of both databases do this at the same time. The second one finds the rows of the first one.
    static WRITING: Mutex<()> = Mutex::new(());
    let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let known: BTreeSet<_> = table(service).into_iter().map(|row| row.operation).collect();
    for operation in Operation::all().iter().filter(|operation| !known.contains(&operation.key())) {
        let described = format!("{}, ", operation.key());
        let of_builders = builders.iter().map(|(name, _)| *name).filter(|name| name.starts_with(&described));
        let mut names: Vec<_> = of_builders.map(str::to_owned).collect();
        if names.is_empty() {
            names.push(operation.key());
        }
        for name in names {
            let object = name.strip_prefix(&described).map(|object| format!(" ({object})")).unwrap_or_default();
            let mut row = Row { name, operation: operation.key(), cells: Vec::new(), line: String::new() };
            let builder = builder_of(&row, builders).map(|(_, builder)| builder);
            let answers: Vec<_> = call_as_all(operation, builder, world, callers).collect();
            for column in COLUMNS {
                let of_column = answers.iter().filter(|(caller, _)| caller.column == column);
                let status = |(caller, answer): &(&Caller<'_>, Answer)| match caller.instead {
                    Some(_) => NONE.to_owned(),
                    None => answer.status.to_string(),
                };
                let statuses: BTreeSet<_> = of_column.map(status).collect();
                assert_eq!(statuses.len(), 1, "{}: the callers of {column} get {statuses:?}", row.name);
                row.cells.extend(statuses);
            }
            let (entry, rows) = (format!("`{}`{object}", operation.key()), table(service));
            let (line, text) = if let Some(alike) = rows.iter().find(|other| other.cells == row.cells) {
                (&alike.line, format!("{}, {entry} |", alike.line.trim_end_matches(" |")))
            } else {
                let last = &rows.last().unwrap().line;
                (last, format!("{last}\n| {} | {entry} |", row.cells.join(" | ")))
            };
            let (old, new) = (fs::read_to_string(page()).unwrap(), page().with_extension("md.new"));
            fs::write(&new, old.replacen(line, &text, 1)).unwrap();
            // Other tests read the page meanwhile.
            fs::rename(new, page()).unwrap();
        }
    }
}

/// Calls every operation of the document as every caller and compares the statuses with the table of the service. With
/// `UPDATE_DOCS=1`, writes the rows of new operations first. It does not change rows.
pub fn check_access<W>(service: &str, world: &W, builders: &[(&str, Builder<W>)], callers: &[Caller<'_>]) {
    if env::var_os("UPDATE_DOCS").is_some_and(|value| value == "1") {
        write_missing_rows(service, world, builders, callers);
    }
    let (rows, operations) = (table(service), Operation::all());
    let of_document: BTreeSet<_> = operations.iter().map(Operation::key).collect();
    let of_table: BTreeSet<_> = rows.iter().map(|row| row.operation.clone()).collect();
    let missing: Vec<_> = of_document.difference(&of_table).collect();
    assert!(
        missing.is_empty(),
        "{service}: docs/access.md has no row for {missing:?}; with UPDATE_DOCS=1 this test writes one with the \
         statuses of the answers, to be reviewed"
    );
    let unknown: Vec<_> = of_table.difference(&of_document).collect();
    assert!(unknown.is_empty(), "{service}: only in docs/access.md, not in the OpenAPI document: {unknown:?}");
    let names: BTreeSet<_> = rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names.len(), rows.len(), "two rows of the table are the same");
    let used: Vec<_> = rows.iter().filter_map(|row| builder_of(row, builders)).collect();
    for builder in builders {
        assert!(
            used.iter().any(|used| ptr::eq(*used, builder)),
            "no row of the table uses the builder {:?}",
            builder.0
        );
    }
    for column in COLUMNS {
        assert!(callers.iter().any(|caller| caller.column == column), "nobody calls for the column {column}");
    }
    let mut wrong = Vec::new();
    for row in &rows {
        let operation = operations.iter().find(|operation| operation.key() == row.operation).unwrap();
        assert_eq!(
            row.cell("anonymous") != "401",
            operation.is_public(),
            "{}: public as its row says (left), as its `security(())` says (right)",
            row.name
        );
        let builder = builder_of(row, builders).map(|(_, builder)| builder);
        assert!(builder.is_some() || row.name == row.operation, "{} needs a builder", row.name);
        for (caller, answer) in call_as_all(operation, builder, world, callers) {
            let cell = match (row.cell(caller.column), caller.instead) {
                (NONE, Some(instead)) => row.cell(instead),
                (cell, _) => cell,
            };
            let name = caller.name.unwrap_or("nobody");
            let place = format!("{}, {} ({name}, {})", row.name, caller.column, caller.way);
            if answer.status.to_string() != cell {
                let shown: String = answer.text().chars().take(200).collect();
                wrong.push(format!("{place}: {cell} in the table, but {} {shown}", answer.status));
            } else if let Some((status, code)) = caller.refusal
                && status == answer.status
                // A read that is allowed only with a session is refused to tokens of any scope.
                && (operation.method != "GET" || code != "insufficient-scope")
            {
                assert_eq!(answer.json()["code"], code, "{place}");
            }
        }
    }
    assert!(wrong.is_empty(), "docs/access.md says otherwise:\n{}", wrong.join("\n"));
}

/// A row of the table with a caller who may call the operation: its name, operation, builder, caller and status.
pub type Success<'a, W> = (String, Operation, Option<&'a Builder<W>>, &'a Caller<'a>, u16);

/// All rows of the table with a caller who may call the operation.
pub fn successes<'a, W>(
    service: &str,
    builders: &'a [(&'a str, Builder<W>)],
    callers: &'a [Caller<'a>],
) -> Vec<Success<'a, W>> {
    successes_of(service, builders, callers, &["privileged", "owner", "member"])
}

/// All rows of the table with a caller of one of these columns who may call the operation.
pub fn successes_of<'a, W>(
    service: &str,
    builders: &'a [(&'a str, Builder<W>)],
    callers: &'a [Caller<'a>],
    columns: &[&str],
) -> Vec<Success<'a, W>> {
    let able = |row: &Row| {
        let (column, status) =
            columns.iter().map(|column| (column, row.cell(column))).find(|(_, cell)| ("200".."400").contains(cell))?;
        Some((callers.iter().find(|caller| caller.column == *column)?, status.parse().ok()?))
    };
    let rows = table(service).into_iter().filter_map(|row| {
        let (caller, status) = able(&row)?;
        let operation = Operation::all().into_iter().find(|it| it.key() == row.operation)?;
        let builder = builder_of(&row, builders).map(|(_, builder)| builder);
        Some((row.name, operation, builder, caller, status))
    });
    rows.collect()
}

pub fn send(operation: &Operation, made: &Fixture, client: &Client<'_>) -> Answer {
    let value = |parameter: &str| {
        let found = made.values.iter().find(|(name, _)| *name == parameter).map(|(_, value)| value.clone());
        found.unwrap_or_else(|| panic!("{} {} needs a builder for {parameter}", operation.method, operation.path))
    };
    let path = format!("{}{}", operation.path_with(value), made.query);
    let mut client = client.clone();
    if let Some(cookie) = &made.cookie {
        client = client.without("cookie").header("cookie", cookie);
    }
    // On a slow machine a connection may not be free in time. That changes nothing, and a client tries again.
    let is_busy = |answer: &Answer| answer.status == 503 && answer.text().contains("\"code\":\"unavailable\"");
    let send = || operation.send(client.clone(), &path, &made.body);
    (0..20).map(|_| send()).find(|answer| !is_busy(answer)).unwrap_or_else(send)
}
