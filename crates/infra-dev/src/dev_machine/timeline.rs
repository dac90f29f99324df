//! When each simulated part of a machine is up: pure arithmetic on start times, durations and jitter.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use jiff::Timestamp;

/// A part of a simulated machine that takes time to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Part {
    /// The virtual machine itself.
    Vm,
    /// The kubelet, up to a registered Node.
    Node,
    /// The etcd member of a control plane machine.
    Etcd,
    /// The API server, controller manager and scheduler of a control plane machine.
    ApiServer,
}

/// How long a part takes to start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Startup {
    /// The least time it takes.
    pub(crate) duration: Duration,
    /// What may be added, as a share of the duration (0.2: up to a fifth).
    pub(crate) jitter: f64,
}

impl Startup {
    /// The time `part` of the machine with that uid takes. The same uid always gives the same time, so that a restart neither
    /// shortens nor prolongs a start under way.
    pub(crate) fn of(self, uid: &str, part: Part) -> Duration {
        let mut hasher = DefaultHasher::new();
        (uid, part).hash(&mut hasher);
        let share = f64::from(u32::try_from(hasher.finish() >> 32).unwrap_or_default()) / f64::from(u32::MAX);
        // A text such as NaN is a number as well; it adds nothing.
        let jitter = if self.jitter.is_nan() {
            0.0
        } else {
            self.jitter.clamp(0.0, 10.0)
        };
        let added = Duration::try_from_secs_f64(self.duration.as_secs_f64() * share * jitter).unwrap_or(Duration::MAX);
        self.duration.saturating_add(added)
    }
}

/// When a part is up that takes `takes` from `started`.
pub(crate) fn up_at(started: Timestamp, takes: Duration) -> Timestamp {
    started.checked_add(takes).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    #[test]
    fn jitter_adds_at_most_its_share_and_is_stable() {
        let startup = Startup {
            duration: Duration::from_secs(10),
            jitter: 0.2,
        };
        for uid in ["a", "b", "c", "d"] {
            let takes = startup.of(uid, Part::Vm);
            assert!(
                takes >= Duration::from_secs(10) && takes <= Duration::from_secs(12),
                "{takes:?}"
            );
            assert_eq!(takes, startup.of(uid, Part::Vm));
        }
        assert_ne!(startup.of("a", Part::Vm), startup.of("b", Part::Vm));
    }

    #[test]
    fn any_number_is_a_jitter() {
        let takes = |seconds, jitter| {
            let duration = Duration::from_secs(seconds);
            Startup { duration, jitter }.of("a", Part::Vm)
        };
        assert_eq!(takes(10, f64::NAN), Duration::from_secs(10));
        assert_eq!(takes(10, f64::NEG_INFINITY), Duration::from_secs(10));
        assert_eq!(takes(10, f64::INFINITY), takes(10, 10.0));
        assert_eq!(takes(u64::MAX, 10.0), Duration::MAX);
    }

    #[test]
    fn nothing_takes_no_time() {
        assert_eq!(Startup::default().of("a", Part::Node), Duration::ZERO);
        assert_eq!(up_at(at(5), Duration::ZERO), at(5));
    }

    #[test]
    fn a_part_is_up_after_the_time_it_takes() {
        assert_eq!(up_at(at(5), Duration::from_secs(10)), at(15));
        assert_eq!(up_at(Timestamp::MAX, Duration::from_secs(10)), Timestamp::MAX);
    }
}
