//! The resource usage of a child process, from `/proc`.

use std::time::Duration;

/// The resource usage of a program so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Resident memory, in bytes.
    pub memory: u64,
    /// The peak of resident memory.
    pub peak_memory: u64,
    /// Processor time, user and system.
    pub cpu: Duration,
}

/// Linux reports times in hundredths of a second.
const TICK: Duration = Duration::from_millis(10);

impl Usage {
    /// The usage of a process; `None` if it has ended, or without `/proc`.
    pub fn of(pid: u32) -> Option<Self> {
        let text = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).ok();
        Self::read(&text("status")?, &text("stat")?)
    }

    fn read(status: &str, stat: &str) -> Option<Self> {
        let kibibytes = |name: &str| -> Option<u64> {
            let rest = status.lines().find_map(|line| line.strip_prefix(name))?;
            rest.split_whitespace().next()?.parse().ok()
        };
        // The name of the program is in parentheses and may contain anything; the times follow it.
        let after = stat.rsplit_once(')')?.1;
        let mut times = after.split_whitespace().skip(11).map(str::parse::<u32>);
        let ticks = times.next()?.ok()? + times.next()?.ok()?;
        Some(Self {
            memory: kibibytes("VmRSS:")? * 1024,
            peak_memory: kibibytes("VmHWM:")? * 1024,
            cpu: TICK * ticks,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_times_are_found_whatever_the_program_is_called() {
        let status = "Name:\tx\nVmHWM:\t    200 kB\nVmRSS:\t    100 kB\n";
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194304 1 2 3 4 150 50 0 0 20 0 1 0";
        let expect = Usage {
            memory: 102_400,
            peak_memory: 204_800,
            cpu: Duration::from_secs(2),
        };
        assert_eq!(Usage::read(status, stat), Some(expect));
        assert_eq!(Usage::read(status, "7 (x) S 1"), None);
    }

    #[test]
    fn this_process_can_be_read() {
        let usage = Usage::of(std::process::id()).unwrap();
        assert!(usage.memory > 0 && usage.peak_memory >= usage.memory);
    }
}
