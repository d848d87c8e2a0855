//! The log: one line a record, plain or JSON, on standard error.

use std::io::Write;

use clap::ValueEnum;
use env_logger::{Builder, Target};
use log::kv::{self, Key, Value, VisitSource};
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
    // At the level trace this one dumps whole requests, credentials included.
    builder.filter_module("ureq_proto", log::LevelFilter::Info);
    match format {
        Format::Plain => builder.format(|out, record| {
            write!(out, "{} {:5} {} {}", out.timestamp_millis(), record.level(), record.target(), record.args())?;
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
                "time": out.timestamp_millis().to_string(),
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
    let _ = builder.try_init();
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
