//! Reads single fields and collects problems.

use windlass_meta::{GoDuration, ObjectKey};

use super::problem::{Problem, Problems};
use super::settings::LeaderElection;

/// Problems so far.
#[derive(Debug, Default)]
pub(super) struct Reader {
    problems: Vec<Problem>,
}

/// A string, unless it is empty.
pub(super) fn text(text: Option<&String>) -> Option<String> {
    text.filter(|text| !text.is_empty()).cloned()
}

impl Reader {
    pub(super) fn problem(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.problems.push(Problem {
            field: field.into(),
            message: message.into(),
        });
    }

    pub(super) fn finish(self) -> Result<(), Problems> {
        Problems::check(self.problems)
    }

    /// A version. An empty string means unset.
    pub(super) fn version(&mut self, version: Option<&String>, needs_v: bool) -> Option<String> {
        let version = text(version)?;
        let (v, number) = version
            .strip_prefix('v')
            .map_or((false, &*version), |rest| (true, rest));
        if semver::Version::parse(number).is_err() || (needs_v && !v) {
            self.problem(
                "spec.version",
                format!("{version:?} is not a version: expected one like v1.2.3 or v1.2.3-rc.0"),
            );
        }
        Some(version)
    }

    /// A duration.
    pub(super) fn duration(&mut self, field: &str, text: Option<&String>) -> Option<GoDuration> {
        match text?.parse() {
            Ok(duration) => Some(duration),
            Err(error) => {
                self.problem(field, format!("{error}"));
                None
            }
        }
    }

    /// A duration that must not be negative.
    pub(super) fn waiting(&mut self, field: &str, text: Option<&String>) -> Option<GoDuration> {
        let duration = self.duration(field, text)?;
        if duration < GoDuration::default() {
            self.problem(field, format!("{duration} is negative"));
        }
        Some(duration)
    }

    /// A duration. Zero means unset.
    pub(super) fn nonzero(&mut self, field: &str, text: Option<&String>) -> Option<GoDuration> {
        self.waiting(field, text)
            .filter(|duration| *duration != GoDuration::default())
    }

    /// A number with a minimum.
    pub(super) fn at_least(&mut self, lowest: i64, field: &str, number: Option<i64>) -> Option<i64> {
        if let Some(number) = number.filter(|number| *number < lowest) {
            self.problem(field, format!("{number} is less than {lowest}"));
        }
        number
    }

    /// A number of Pods.
    pub(super) fn replicas(&mut self, field: &str, replicas: Option<i64>) -> Option<i64> {
        if let Some(replicas) = replicas.filter(|replicas| *replicas > i64::from(i32::MAX)) {
            self.problem(field, format!("{replicas} is more than {}", i32::MAX));
        }
        self.at_least(0, field, replicas)
    }

    /// A port.
    pub(super) fn port(&mut self, field: &str, port: Option<i64>) -> Option<i64> {
        if let Some(port) = port.filter(|port| !(0..=65535).contains(port)) {
            self.problem(field, format!("{port} is not a port: expected 1 to 65535"));
        }
        port.filter(|port| *port != 0)
    }

    /// Checks that renewDeadline is at most leaseDuration. Otherwise there could be two leaders.
    pub(super) fn renews_in_time(&mut self, field: &str, election: &LeaderElection) {
        if let (Some(lease), Some(renew)) = (election.lease_duration, election.renew_deadline)
            && renew > lease
        {
            self.problem(
                format!("{field}.renewDeadline"),
                format!("{renew} is longer than leaseDuration, {lease}"),
            );
        }
    }

    /// A container's name.
    pub(super) fn container_name(&mut self, field: &str, name: &str) {
        if name.is_empty() {
            self.problem(field, "is empty: name a container that the provider's Deployment has");
        }
    }

    /// A referenced object. Its namespace defaults to that of the provider object.
    pub(super) fn reference(
        &mut self,
        field: &str,
        name: &str,
        namespace: Option<&String>,
        own: &ObjectKey,
    ) -> ObjectKey {
        if name.is_empty() {
            self.problem(format!("{field}.name"), "is empty");
        }
        ObjectKey::new(text(namespace).unwrap_or_else(|| own.namespace.clone()), name)
    }
}
