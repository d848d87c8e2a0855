//! The log: one line a record, plain or JSON, on standard error. Panics are records too.
//!
//! A thread of its own writes the records, so that a full pipe stops nothing but the log: while it does not write,
//! records are dropped and counted.

use std::{
    backtrace::{Backtrace, BacktraceStatus},
    borrow::Cow,
    io::{self, Write},
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

use chrono::SecondsFormat;
use clap::ValueEnum;
use common::time::Clock;
use env_logger::{Builder, Target};
use log::{
    Level, LevelFilter, Log, Metadata, Record,
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

/// Checks a filter: directives `LEVEL` and `TARGET=LEVEL`, separated by commas. `env_logger` would take a misspelt
/// level for a target, and log nothing else.
///
/// # Errors
/// When a directive has no level.
pub fn parse_filter(text: &str) -> Result<String, String> {
    let level_of = |directive: &str| directive.rsplit('=').next().unwrap_or_default().trim().to_owned();
    let directives = text.split(',').filter(|directive| !directive.trim().is_empty());
    match directives.map(level_of).find(|level| level.parse::<LevelFilter>().is_err()) {
        Some(level) => Err(format!("{level:?} is no level; levels are error, warn, info, debug, trace and off")),
        None => Ok(text.to_owned()),
    }
}

/// Starts logging. A second start in one process changes nothing, so that tests may start several services.
pub fn start(filter: &str, format: Format) {
    let mut builder = Builder::new();
    builder.parse_filters(filter).target(Target::Pipe(Box::new(Queue)));
    match format {
        Format::Plain => builder.format(|out, record| {
            let mut line = format!("{} {:5} {} {}", now(), record.level(), record.target(), record.args());
            let mut fields = Fields::default();
            let _ = record.key_values().visit(&mut fields);
            for (key, value) in fields.0 {
                let plain =
                    value.as_str().filter(|text| !text.contains(|c: char| c == ' ' || c == '"' || is_control(c)));
                let value = plain.map_or_else(|| value.to_string(), str::to_owned);
                line.extend([" ", &key, "=", &value]);
            }
            writeln!(out, "{}", escape_controls(line.trim_end()))
        }),
        Format::Json => builder.format(|out, record| {
            let mut fields = Fields::default();
            let _ = record.key_values().visit(&mut fields);
            let mut line = json!({
                "time": now(),
                "level": record.level().as_str(),
                "target": record.target(),
                "message": record.args().to_string().trim_end(),
            });
            for (key, value) in fields.0 {
                line[key] = value;
            }
            writeln!(out, "{line}")
        }),
    };
    let logger = SecretFilter(builder.build());
    let level = logger.0.filter();
    if log::set_boxed_logger(Box::new(logger)).is_ok() {
        log::set_max_level(level);
        // Instead of the several lines that Rust writes.
        std::panic::set_hook(Box::new(|panic| {
            let backtrace = Backtrace::capture();
            if backtrace.status() == BacktraceStatus::Captured {
                log::error!("{panic}\n{backtrace}");
            } else {
                log::error!("{panic}");
            }
        }));
    }
}

/// Whether a character could end a line or control a terminal.
fn is_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// The text on one line.
fn escape_controls(text: &str) -> Cow<'_, str> {
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let escape = |c: char| if is_control(c) { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escape).collect::<String>().into()
}

/// The most records that wait to be written.
const QUEUE_LENGTH: usize = 4096;

/// How long [`flush`] waits.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// The number of records that were dropped because the queue was full.
static DROPPED: AtomicU64 = AtomicU64::new(0);

enum Message {
    Record(Vec<u8>),
    /// Answered when everything before it has been written.
    Flush(SyncSender<()>),
}

static SENDER: LazyLock<SyncSender<Message>> = LazyLock::new(|| {
    let (sender, receiver) = sync_channel(QUEUE_LENGTH);
    // If the thread does not start, there is no receiver: all records are dropped and counted.
    let _ = thread::Builder::new().name("log".to_owned()).spawn(move || write_all(&receiver));
    sender
});

fn write_all(receiver: &Receiver<Message>) {
    for message in receiver {
        match message {
            Message::Record(record) => {
                if io::stderr().write_all(&record).is_err() {
                    DROPPED.fetch_add(1, Ordering::Relaxed);
                }
            }
            Message::Flush(sender) => drop(sender.send(())),
        }
    }
}

/// Queues records without waiting. `env_logger` writes each record with one call.
struct Queue;

impl Write for Queue {
    fn write(&mut self, record: &[u8]) -> io::Result<usize> {
        if SENDER.try_send(Message::Record(record.to_vec())).is_err() {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
        Ok(record.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The number of records that could not be written since the start.
pub fn dropped_records() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}

/// Waits until the records so far have been written, for a second at most. To be called before the process ends.
pub fn flush() {
    let (sender, receiver) = sync_channel(1);
    if SENDER.try_send(Message::Flush(sender)).is_ok() {
        let _ = receiver.recv_timeout(FLUSH_TIMEOUT);
    }
}

/// RFC 3339 in UTC, with milliseconds.
fn now() -> String {
    Clock::default().now().utc().to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Drops records that may show secrets, whatever the filter says.
struct SecretFilter(env_logger::Logger);

/// Targets whose records below the level info are dropped. `ureq_proto` logs whole requests with their credentials,
/// `ureq` the `Location` of answers, and `actix_web` the path of a malformed request, which may be a feed's.
const MAY_SHOW_SECRETS: [&str; 2] = ["ureq", "actix_web"];

impl Log for SecretFilter {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let may_show_secrets = MAY_SHOW_SECRETS.iter().any(|target| metadata.target().starts_with(target));
        (metadata.level() <= Level::Info || !may_show_secrets) && self.0.enabled(metadata)
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        if record.level() == Level::Error && record.target().starts_with("actix_http") {
            // A malformed request is the client's fault.
            self.0.log(
                &Record::builder()
                    .metadata(Metadata::builder().level(Level::Info).target(record.target()).build())
                    .args(*record.args())
                    .build(),
            );
        } else {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_a_line_or_commands_a_terminal() {
        assert_eq!(
            escape_controls("one\r\n\ttwo\u{1b}[2J\u{85}\u{2028}é \\"),
            "one\\r\\n\\ttwo\\u{1b}[2J\\u{85}\\u{2028}é \\"
        );
        assert!(matches!(escape_controls("plain"), Cow::Borrowed("plain")));
    }
}
