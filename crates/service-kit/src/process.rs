//! This process and the kernel: how its threads share the processors, and what `/metrics` tells of it, by the names that
//! Prometheus' own clients use. Where there is no `/proc` these numbers are left out.

use std::fmt;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
};
use thread_priority::{
    NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id,
};

/// Ticks of a second in which `/proc` counts the time of a processor: the same on every Linux that Rust runs on.
const TICKS: f64 = 100.0;

/// The crate's name for nice 0, which this process has already.
const USUAL_PRIORITY: u8 = 48;

/// Lets whatever has a processor go on when this thread, or one that it starts, is woken: `SCHED_BATCH` (sched(7)).
/// Where a processor is free nothing changes. An operator who has chosen a nice value is not interfered with.
pub fn wait_for_processors() {
    if read("stat").as_deref().and_then(niceness) != Some(0) {
        return;
    }
    let Ok(priority) = USUAL_PRIORITY.try_into().map(ThreadPriority::Crossplatform) else { return };
    let policy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Batch);
    if let Err(error) = set_thread_priority_and_policy(thread_native_id(), priority, policy) {
        log::debug!("threads are not scheduled in batches: {error}");
    }
}

/// The numbers of this process, looked up when they are asked for.
#[derive(Debug)]
pub struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let mut write = |name: &str, help: &str, metric: &dyn EncodeMetric| {
            metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
        };
        if let Some(seconds) = read("stat").as_deref().and_then(processor_seconds) {
            write(
                "process_cpu_seconds",
                "Processor time used, by the program and the kernel",
                &ConstCounter::new(seconds),
            )?;
        }
        if let Some(bytes) = read("status").as_deref().and_then(resident_bytes) {
            write("process_resident_memory_bytes", "Memory in use", &ConstGauge::new(bytes))?;
        }
        if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
            write("process_open_fds", "Files, sockets and pipes that are open", &ConstGauge::new(count(open)))?;
        }
        if let Some(most) = read("limits").as_deref().and_then(most_files) {
            write("process_max_fds", "Files, sockets and pipes that may be open", &ConstGauge::new(most))?;
        }
        Ok(())
    }
}

fn read(file: &str) -> Option<String> {
    std::fs::read_to_string(format!("/proc/self/{file}")).ok()
}

fn count(entries: impl Iterator) -> i64 {
    i64::try_from(entries.count()).unwrap_or(i64::MAX)
}

/// `utime` and `stime`, the 12th and 13th after the name of the program, which ends with the last bracket.
fn processor_seconds(stat: &str) -> Option<f64> {
    let mut times = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let (user, system): (u32, u32) = (times.next()?.parse().ok()?, times.next()?.parse().ok()?);
    Some((f64::from(user) + f64::from(system)) / TICKS)
}

/// `nice`, the 17th after the name of the program.
fn niceness(stat: &str) -> Option<i32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(16)?.parse().ok()
}

fn resident_bytes(status: &str) -> Option<i64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse::<i64>().ok()?.checked_mul(1024)
}

/// The soft limit. `None` when there is none.
fn most_files(limits: &str) -> Option<i64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use thread_priority::thread_schedule_policy;

    use super::*;

    #[test]
    fn a_thread_waits_for_processors_and_is_as_nice_as_before() {
        let look = || {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            (thread_schedule_policy().unwrap(), niceness(&stat))
        };
        let before = look();
        let after = std::thread::spawn(move || {
            wait_for_processors();
            let inherited = std::thread::spawn(look).join().unwrap();
            assert_eq!(inherited, look());
            inherited
        });
        let is_usual = before == (ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Other), Some(0));
        let batch = (ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Batch), Some(0));
        assert_eq!(after.join().unwrap(), if is_usual { batch } else { before });
        assert_eq!(look(), before);
    }

    #[test]
    fn the_files_of_the_kernel_are_understood() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 120 0 0 0 1234 66 0 0 20 0 9 0 100 1 1 0\n";
        assert_eq!(processor_seconds(stat), Some(13.0));
        assert_eq!(processor_seconds("7 (a) S 1"), None);
        assert_eq!((niceness(stat), niceness("7 (a) S 1")), (Some(0), None));
        assert_eq!(resident_bytes("Name:\ta\nVmRSS:\t   20480 kB\nThreads:\t9\n"), Some(20_971_520));
        let limits = "Max open files            1024                 524288               files     \n";
        assert_eq!(most_files(limits), Some(1024));
        assert_eq!(most_files(&limits.replace("1024 ", "unlimited ")), None);
    }
}
