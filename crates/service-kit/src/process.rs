//! The metrics of this process, with the names that the Prometheus clients use. Without `/proc` they are left out.

use std::fmt;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
};
/// Ticks per second of the processor times in `/proc` (`USER_HZ`), 100 on every Linux that Rust supports.
const TICKS: f64 = 100.0;

/// Reads the metrics of this process whenever they are collected.
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
            write(
                "process_open_fds",
                "Files, sockets and pipes that are open",
                &ConstGauge::new(i64::try_from(open.count()).unwrap_or(i64::MAX)),
            )?;
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

/// `utime` and `stime`, the 12th and 13th after the name of the program, which ends with the last bracket.
fn processor_seconds(stat: &str) -> Option<f64> {
    let mut times = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let (user, system): (u32, u32) = (times.next()?.parse().ok()?, times.next()?.parse().ok()?);
    Some((f64::from(user) + f64::from(system)) / TICKS)
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
    use super::*;

    #[test]
    fn the_files_of_the_kernel_are_understood() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 120 0 0 0 1234 66 0 0 20 0 9 0 100 1 1 0\n";
        assert_eq!(processor_seconds(stat), Some(13.0));
        assert_eq!(processor_seconds("7 (a) S 1"), None);
        assert_eq!(resident_bytes("Name:\ta\nVmRSS:\t   20480 kB\nThreads:\t9\n"), Some(20_971_520));
        let limits = "Max open files            1024                 524288               files     \n";
        assert_eq!(most_files(limits), Some(1024));
        assert_eq!(most_files(&limits.replace("1024 ", "unlimited ")), None);
    }
}
