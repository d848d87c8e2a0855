//! The log: one line a record, plain or JSON, on standard error.

use std::io::Write;

use chrono::SecondsFormat;
use clap::ValueEnum;
use common::time::Clock;
use env_logger::{Builder, Target};
use log::{
    Log, Metadata, Record,
    kv::{self, Key, Value, VisitSource},
};
use serde_json::{Map, json};

/// How a record is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// `time level target message key=value …`
    Plain,
    /// One JSON object.
    Json,
}

/// Starts logging. A second start in one process changes nothing, so that tests may start several services.
pub fn start(filter: &str, format: Format) {
    let mut builder = Builder::new();
    builder.parse_filters(filter).target(Target::Stderr);
    match format {
        Format::Plain => builder.format(|out, record| {
            write!(out, "{} {:5} {} {}", now(), record.level(), record.target(), record.args())?;
            let mut fields = Fields::default();
            let _ = record.key_values().visit(&mut fields);
            for (key, value) in fields.0 {
                match value {
                    serde_json::Value::String(text) if !text.contains([' ', '"', '\n']) => {
                        write!(out, " {key}={text}")?;
                    }
                    other => {
                        write!(out, " {key}={other}")?;
                    }
                }
            }
            writeln!(out)
        }),
        Format::Json => builder.format(|out, record| {
            let mut fields = Fields::default();
            let _ = record.key_values().visit(&mut fields);
            let mut line = json!({
                "time": now(),
                "level": record.level().as_str(),
                "target": record.target(),
                "message": record.args().to_string(),
            });
            for (key, value) in fields.0 {
                line[key] = value;
            }
            writeln!(out, "{line}")
        }),
    };
    let logger = Discreet(builder.build());
    let level = logger.0.filter();
    if log::set_boxed_logger(Box::new(logger)).is_ok() {
        log::set_max_level(level);
    }
}

/// RFC 3339 in UTC, with milliseconds.
fn now() -> String {
    Clock::default().now().utc().to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Passes over what would show secrets, whatever the filter says: a cap among the filters would give way to one for a
/// module further inside.
struct Discreet(env_logger::Logger);

/// Whose records above the level info are not shown. `ureq_proto` dumps whole requests, credentials included, and `ureq`
/// the `Location` of answers, in which the other server may quote them; `actix_web` shows the path of a request that it
/// cannot read, which may be a feed's. What fails there is logged by us.
const TALKATIVE: [&str; 2] = ["ureq", "actix_web"];

impl Log for Discreet {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let is_talk = TALKATIVE.iter().any(|target| metadata.target().starts_with(target));
        (metadata.level() <= log::Level::Info || !is_talk) && self.0.enabled(metadata)
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            self.0.log(record);
        }
    }

    fn flush(&self) {
        self.0.flush();
    }
}

#[derive(Default)]
struct Fields(Map<String, serde_json::Value>);

impl<'kvs> VisitSource<'kvs> for Fields {
    fn visit_pair(&mut self, key: Key<'kvs>, value: Value<'kvs>) -> Result<(), kv::Error> {
        let value = match (value.to_u64(), value.to_f64(), value.to_borrowed_str()) {
            (Some(number), ..) => json!(number),
            (None, Some(number), _) => json!(number),
            (None, None, Some(text)) => json!(text),
            (None, None, None) => json!(value.to_string()),
        };
        self.0.insert(key.as_str().to_owned(), value);
        Ok(())
    }
}
