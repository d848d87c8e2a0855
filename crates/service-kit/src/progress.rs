//! Shows on standard error what a long command is doing and how far it is: on a terminal in one line that changes, and
//! elsewhere in a line every ten seconds.
#![expect(clippy::disallowed_types, reason = "threads of a command, and no actix worker, take the lock")]

use std::{
    borrow::Cow,
    fs,
    io::{self, Write},
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};

/// The time between two lines without a terminal.
const PLAIN_INTERVAL: Duration = Duration::from_secs(10);

/// The time between two looks at a [followed](Progress::follow) file on a terminal.
const TERMINAL_INTERVAL: Duration = Duration::from_millis(100);

/// The progress of a command. It disappears from the terminal on drop.
pub struct Progress {
    bar: ProgressBar,
    followed: Arc<Mutex<Option<PathBuf>>>,
    thread: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Begins with this step.
    pub fn start(step: impl Into<Cow<'static, str>>) -> Self {
        let bar = ProgressBar::no_length();
        let interval = if bar.is_hidden() { PLAIN_INTERVAL } else { TERMINAL_INTERVAL };
        let progress = Self::with(bar, interval, io::stderr());
        progress.step(step, None);
        progress
    }

    fn with(bar: ProgressBar, interval: Duration, mut out: impl Write + Send + 'static) -> Self {
        let (stop, stopped) = mpsc::channel();
        let followed = Arc::new(Mutex::new(None));
        let (shown, file) = (bar.clone(), followed.clone());
        let thread = thread::spawn(move || {
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                if let Some(file) = &*file.lock().unwrap_or_else(PoisonError::into_inner) {
                    shown.set_position(fs::metadata(file).map_or(0, |found| found.len()));
                }
                if shown.is_hidden() {
                    // The command itself notices when its output is closed.
                    let _ = writeln!(out, "{}", line(&shown));
                } else {
                    shown.tick();
                }
            }
        });
        Self { bar, followed, thread: Some((stop, thread)) }
    }

    /// Begins a step, which has `total` parts if that is known.
    pub fn step(&self, name: impl Into<Cow<'static, str>>, total: Option<u64>) {
        self.set_followed(None);
        let template =
            if total.is_some() { "{spinner} {msg} {percent} % ({elapsed})" } else { "{spinner} {msg} ({elapsed})" };
        // The templates are valid.
        self.bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner()));
        self.bar.set_position(0);
        match total {
            Some(total) => self.bar.set_length(total),
            None => self.bar.unset_length(),
        }
        self.bar.set_message(name);
    }

    /// Notes that this many more parts of the step are done.
    pub fn add(&self, parts: u64) {
        self.bar.inc(parts);
    }

    /// The parts of this step are the bytes of a file that is being written.
    pub fn follow(&self, file: PathBuf) {
        self.set_followed(Some(file));
    }

    /// Runs `print`, which writes to the terminal.
    pub fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    fn set_followed(&self, file: Option<PathBuf>) {
        *self.followed.lock().unwrap_or_else(PoisonError::into_inner) = file;
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.thread.take() {
            drop(stop);
            let _ = thread.join();
        }
        self.bar.finish_and_clear();
    }
}

/// The step and how far it is.
fn line(bar: &ProgressBar) -> String {
    let (message, position) = (bar.message(), bar.position());
    match bar.length() {
        Some(total @ 1..) => format!("{message}: {} %", position.min(total) * 100 / total),
        _ if position > 0 => format!("{message}: {position}"),
        _ => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands each written line to a test.
    struct Lines(Sender<String>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.send(String::from_utf8_lossy(bytes).into_owned());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_without_a_terminal_have_the_step_and_how_far_it_is() {
        let (sender, lines) = mpsc::channel();
        let progress = Progress::with(ProgressBar::hidden(), Duration::from_millis(1), Lines(sender));
        let wait_for = |expected: &str| {
            let mut text = String::new();
            while !text.ends_with(expected) {
                text += &lines.recv_timeout(Duration::from_mins(1)).unwrap_or_else(|_| panic!("{expected}: {text}"));
            }
        };
        progress.step("reading", None);
        wait_for("reading\n");
        progress.add(7);
        wait_for("reading: 7\n");
        progress.step("writing", Some(200));
        wait_for("writing: 0 %\n");
        progress.add(50);
        wait_for("writing: 25 %\n");
        progress.add(1000);
        wait_for("writing: 100 %\n");
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), [0; 50]).unwrap();
        progress.step("copying", Some(100));
        progress.follow(file.path().to_owned());
        wait_for("copying: 50 %\n");
        progress.step("checking", None);
        wait_for("checking\n");
        drop(progress);
        while lines.try_recv().is_ok() {}
        assert!(lines.recv_timeout(Duration::from_millis(50)).is_err(), "it has ended");
    }
}
