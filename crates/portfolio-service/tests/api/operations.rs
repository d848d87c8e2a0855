//! The tables of docs/operations.md, the alerts and the dashboard agree with the metrics and labels that both services
//! export.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::LazyLock,
};

use regex_lite::Regex;
use serde_json::{Value, json};

use crate::{
    booking::{Booking, until},
    harness::{ALICE, BOB, Backend, Club, id},
};

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn text(path: &str) -> String {
    fs::read_to_string(file(path)).unwrap()
}

/// The rows of a table of docs/operations.md, which is between two markers, without its head.
fn table(name: &str) -> Vec<Vec<String>> {
    let document = text("docs/operations.md");
    let (_, rest) = document.split_once(&format!("<!-- {name}: begin -->\n")).unwrap();
    let (table, _) = rest.split_once(&format!("<!-- {name}: end -->\n")).unwrap();
    let cells = |row: &str| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    table.lines().skip(2).map(cells).collect()
}

type Labels = BTreeMap<String, String>;

/// The metrics of `/metrics`.
#[derive(Default)]
struct Exported {
    /// The type and the labels of each metric, by its name in queries.
    metrics: BTreeMap<String, (String, BTreeSet<String>)>,
    /// Labels of each series, by its full name.
    series: BTreeMap<String, Vec<Labels>>,
}

impl Exported {
    fn read(text: &str) -> Self {
        let mut exported = Self::default();
        let mut declared = BTreeMap::new();
        for line in text.lines() {
            if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
                let suffix = if kind == "counter" { "_total" } else { "" };
                declared.insert(format!("{name}{suffix}"), kind.to_owned());
            }
            let Some((series, _)) = line.rsplit_once(' ').filter(|_| !line.starts_with('#')) else { continue };
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            let labels: Labels = LABEL.captures_iter(labels).map(|it| (it[1].to_owned(), it[3].to_owned())).collect();
            exported.series.entry(name.to_owned()).or_default().push(labels);
        }
        for (name, kind) in declared {
            let suffix = if kind == "histogram" { "_count" } else { "" };
            let series = exported.series.get(&format!("{name}{suffix}"));
            let series = series.unwrap_or_else(|| panic!("nothing was counted by {name}"));
            let labels = series.iter().flat_map(Labels::keys).cloned().collect();
            exported.metrics.insert(name, (kind, labels));
        }
        exported
    }

    fn add(&mut self, other: Self) {
        for (name, series) in other.series {
            self.series.entry(name).or_default().extend(series);
        }
    }
}

/// A label with an operator and a value, as in selectors and in `/metrics`.
static LABEL: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#"([a-z_]+)(=~|!~|!=|=)"([^"]*)""#).unwrap());

/// `by (…)` and its like.
static GROUPING: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)").unwrap());

/// A name, its selector, and the bracket that follows the name of a function.
static NAME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b([a-z_][a-z0-9_]*)\b\s*(\{[^}]*\})?(?:\[[^\]]*\])?\s*(\(?)").unwrap());

/// The labels that Prometheus adds to the series of each replica.
const TARGET_LABELS: [&str; 2] = ["job", "instance"];

/// Asserts that the metrics and labels of an expression are exported.
fn check(expression: &str, exported: &Exported) {
    let mut labels = BTreeSet::from(TARGET_LABELS);
    let mut names = 0;
    let bare = GROUPING.replace_all(expression, "");
    for found in NAME.captures_iter(&bare) {
        let name = &found[1];
        if &found[3] == "(" || ["and", "or", "unless"].contains(&name) {
            continue;
        }
        names += 1;
        // Prometheus adds this metric itself.
        if name == "up" {
            continue;
        }
        let series = exported.series.get(name).unwrap_or_else(|| panic!("no {name}, but in {expression}"));
        labels.extend(series.iter().flat_map(Labels::keys).map(String::as_str));
        let selector = found.get(2).map_or("", |selector| selector.as_str());
        for matcher in LABEL.captures_iter(selector) {
            let (label, value) = (&matcher[1], &matcher[3]);
            let of_series: BTreeSet<_> = series.iter().filter_map(|labels| labels.get(label)).collect();
            if TARGET_LABELS.contains(&label) {
                continue;
            }
            let pattern = Regex::new(&format!("^(?:{value})$")).unwrap();
            let fits = |found: &&String| match &matcher[2] {
                "=" => *found == value,
                "!=" => *found != value,
                "=~" => pattern.is_match(found),
                _ => !pattern.is_match(found),
            };
            assert!(of_series.iter().any(fits), "no {name} with {}, but in {expression}", &matcher[0]);
        }
    }
    assert!(names > 0, "no metric in {expression}");
    for grouping in GROUPING.captures_iter(expression) {
        for label in grouping[1].split(',').map(str::trim) {
            assert!(labels.contains(label), "no label {label}, but in {expression}");
        }
    }
}

/// The alerts and their expressions.
fn alerts() -> Vec<(String, String)> {
    let rules = text("deploy/prometheus/rules.yaml");
    let value = |mark: &str| -> Vec<String> {
        rules.lines().filter_map(|line| Some(line.split_once(mark)?.1.to_owned())).collect()
    };
    let (names, expressions) = (value("- alert: "), value("  expr: "));
    assert_eq!(names.len(), expressions.len());
    names.into_iter().zip(expressions).collect()
}

fn dashboard() -> Value {
    serde_json::from_str(&text("deploy/grafana/dashboard.json")).unwrap()
}

/// The panels with data.
fn panels(dashboard: &Value) -> Vec<&Value> {
    dashboard["panels"].as_array().unwrap().iter().filter(|panel| panel["type"] != "row").collect()
}

fn expressions(dashboard: &Value) -> Vec<String> {
    let targets = panels(dashboard).into_iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect()
}

/// The metrics of the booking-service and of the portfolio-service, after events of every kind that they count.
fn scrape() -> (Exported, Exported) {
    let booking = Booking::start();
    booking.declare("Rust evening", &[BOB]);
    let agent: ureq::Agent = ureq::Agent::config_builder().proxy(None).http_status_as_error(false).build().into();
    let ask = |path: &str| {
        let mut answer = agent.get(format!("http://{}{path}", booking.address)).call().unwrap();
        (answer.status().as_u16(), answer.body_mut().read_to_string().unwrap())
    };
    assert_eq!(ask("/api/callback?code=x&state=x").0, 400);
    let begun = agent.post(format!("http://{}/api/authParams", booking.address)).send_empty().unwrap();
    assert_eq!(begun.status(), 201);
    assert_eq!(ask("/api/users").0, 401);

    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("club.json");
    fs::write(&directory, json!({"users": [{"id": id(ALICE), "name": ALICE, "state": 1}], "groups": []}).to_string())
        .unwrap();
    let mut options = booking.options();
    options.extend(["--directory-file", directory.to_str().unwrap(), "--rate-limit", "3"].map(str::to_owned));
    let club = Club::start_empty(Backend::Sqlite, &options.iter().map(String::as_str).collect::<Vec<_>>());
    let metrics = || club.anonymous().get("/metrics").expect(200).text();
    until("the events are copied", || metrics().contains("copy_age_seconds{what=\"events\"}"));
    assert!(metrics().contains("copy_age_seconds{what=\"directory\"}"));
    fs::write(&directory, "{").unwrap();
    club.by(ALICE).send("POST", "/api/v1/users/sync", None).refused(503, "unavailable");
    (0..4).for_each(|_| drop(club.anonymous().get("/api/v1/ping")));
    club.anonymous().get("/api/v1/ping").refused(429, "rate-limited");
    (Exported::read(&ask("/metrics").1), Exported::read(&metrics()))
}

#[test]
fn tables_alerts_and_dashboard_name_what_is_exported() {
    let (booking, portfolio) = scrape();

    let labels = |labels: &BTreeSet<String>| {
        let quoted: Vec<_> = labels.iter().map(|label| format!("`{label}`")).collect();
        quoted.join(", ")
    };
    let mut rows = BTreeMap::new();
    for (service, exported) in [("booking-service", &booking), ("portfolio-service", &portfolio)] {
        for (name, (kind, found)) in &exported.metrics {
            rows.entry(format!("`{name}`"))
                .and_modify(|row: &mut [String; 3]| "both".clone_into(&mut row[2]))
                .or_insert_with(|| [kind.clone(), labels(found), service.to_owned()]);
        }
    }
    let documented = table("metrics").into_iter().map(|row| {
        let mut labels: Vec<_> = row[2].split(", ").collect();
        labels.sort_unstable();
        (row[0].clone(), [row[1].clone(), labels.join(", "), row[3].clone()])
    });
    assert_eq!(documented.collect::<BTreeMap<_, _>>(), rows, "the table of docs/operations.md");

    let mut exported = booking;
    exported.add(portfolio);
    for (_, expression) in alerts() {
        check(&expression, &exported);
    }
    let expressions = expressions(&dashboard());
    for expression in &expressions {
        check(expression, &exported);
    }
    // The dashboard shows every series.
    let shown = expressions.join("\n");
    for name in exported.series.keys().filter(|name| !["_sum", "_count"].iter().any(|end| name.ends_with(end))) {
        assert!(shown.contains(name.as_str()), "{name} is not in the dashboard");
    }
}

#[test]
fn every_alert_is_documented() {
    let documented: Vec<_> = table("alerts").into_iter().map(|row| row[0].trim_matches('`').to_owned()).collect();
    assert_eq!(documented, alerts().into_iter().map(|(name, _)| name).collect::<Vec<_>>());
}

#[test]
fn the_dashboard_is_one_that_grafana_can_load() {
    let dashboard = dashboard();
    assert!(dashboard["uid"].as_str().is_some_and(|uid| (1..=40).contains(&uid.len())), "{}", dashboard["uid"]);
    assert!(dashboard["title"].is_string() && dashboard["schemaVersion"].is_u64());
    let variables: Vec<_> = dashboard["templating"]["list"].as_array().unwrap().iter().collect();
    let names: Vec<_> = variables.iter().map(|variable| variable["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["datasource", "job", "instance"]);
    assert_eq!((&variables[0]["type"], &variables[0]["query"]), (&json!("datasource"), &json!("prometheus")));

    let all = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<_> = all.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), all.len());
    let mut taken = BTreeSet::new();
    for panel in all {
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|side| panel["gridPos"][side].as_u64().unwrap());
        assert!(w > 0 && h > 0 && x + w <= 24, "{}", panel["title"]);
        for place in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
            assert!(taken.insert(place), "{} lies on another panel", panel["title"]);
        }
    }
    for panel in panels(&dashboard) {
        let title = &panel["title"];
        assert!(panel["description"].is_string(), "{title}");
        assert!(["timeseries", "stat", "table"].contains(&panel["type"].as_str().unwrap()), "{title}");
        let targets = panel["targets"].as_array().unwrap();
        let references: BTreeSet<_> = targets.iter().map(|target| target["refId"].as_str().unwrap()).collect();
        assert!(!targets.is_empty() && references.len() == targets.len(), "{title}");
        for part in targets.iter().chain([panel]) {
            assert_eq!(part["datasource"], json!({"type": "prometheus", "uid": "${datasource}"}), "{title}");
        }
        for target in targets {
            let expression = target["expr"].as_str().unwrap();
            let selectors = expression.matches('{').count();
            let chosen = expression.matches(r#"{job=~"$job",instance=~"$instance""#).count();
            assert!(selectors > 0 && selectors == chosen, "{title} does not ask for the replicas that are chosen");
        }
    }
}

/// Runs the program that `scripts/real-components` installs.
fn promtool(arguments: &[&str], input: &str) {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("real").join("promtool");
    assert!(program.exists(), "{} is not there: run scripts/real-components, or scripts/test", program.display());
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = command.spawn().unwrap();
    running.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = running.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&[output.stdout, output.stderr].concat()));
}

#[test]
fn promtool_accepts_the_metrics() {
    let (booking, club) = (Booking::start(), Club::start(Backend::Sqlite));
    for address in [format!("http://{}", booking.address), club.origin(0).to_owned()] {
        let metrics = |accept: &str| {
            let request = ureq::get(format!("{address}/metrics")).header("accept", accept);
            let mut answer = request.call().unwrap();
            let format = answer.headers()["content-type"].to_str().unwrap().to_owned();
            (format, answer.body_mut().read_to_string().unwrap())
        };
        metrics("*/*");
        let (format, text) = metrics("text/plain;version=0.0.4;q=0.5,*/*;q=0.1");
        assert_eq!(format, "text/plain; version=0.0.4; charset=utf-8");
        assert!(
            text.contains("\n# TYPE http_requests_total counter\n") && text.contains("\nhttp_requests_total{"),
            "{text}"
        );
        assert!(!text.contains("# EOF"), "{text}");
        promtool(&["check", "metrics"], &text);
        // The default `Accept` of Prometheus.
        let (format, text) = metrics("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2");
        assert_eq!(format, "application/openmetrics-text; version=1.0.0; charset=utf-8");
        assert!(text.ends_with("\n# EOF\n"), "{text}");
    }
}

#[test]
fn promtool_accepts_the_alerts_and_their_tests_pass() {
    let [rules, tests] = ["rules", "rules_test"].map(|name| file(&format!("deploy/prometheus/{name}.yaml")));
    promtool(&["check", "rules", rules.to_str().unwrap()], "");
    promtool(&["test", "rules", tests.to_str().unwrap()], "");
    let tests = fs::read_to_string(tests).unwrap();
    for (name, _) in alerts() {
        // One test in which the alert does not fire, and one in which it does.
        assert_eq!(tests.matches(&format!("alertname: {name}")).count(), 2, "{name}");
    }
}

#[test]
fn promtool_accepts_the_expressions_of_the_dashboard() {
    let expressions = expressions(&dashboard());
    let rules: Vec<_> = expressions
        .iter()
        .enumerate()
        .map(|(n, expression)| json!({"record": format!("panel:{n}"), "expr": expression.replace("$__rate_interval", "5m")}))
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("panels.json");
    // JSON is YAML.
    fs::write(&file, json!({"groups": [{"name": "dashboard", "rules": rules}]}).to_string()).unwrap();
    promtool(&["check", "rules", file.to_str().unwrap()], "");
}
