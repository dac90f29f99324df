//! What Cluster API knows about a handler, and why a handler is refused.

use std::ops::RangeInclusive;
use std::time::Duration;

use windlass_objects::names::label_problems;
use windlass_runtime_hooks::discovery::ExtensionHandler;
use windlass_runtime_hooks::{DEFAULT_TIMEOUT_SECONDS, Hook, LONGEST_TIMEOUT_SECONDS};

const TIMEOUTS: RangeInclusive<i32> = 1..=LONGEST_TIMEOUT_SECONDS;

/// The name of a handler and its options. A text is a handler with the default options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handler {
    name: String,
    timeout_seconds: Option<i32>,
    failure_policy: Option<FailurePolicy>,
}

/// What Cluster API does when a call of a handler has no answer. A failure that the handler returns is never ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailurePolicy {
    /// The reconcile fails and is tried again: the default.
    Fail,
    /// The handler counts as one that succeeded.
    Ignore,
}

/// Why a handler cannot be added to an extension.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadHandler {
    /// The name is not a DNS label.
    #[error("{name:?} cannot be the name of a handler: {why}")]
    Name {
        /// The name.
        name: String,
        /// The cause.
        why: String,
    },
    /// The extension has a handler of this name, of the same hook or of another one.
    #[error("the extension already has a handler {name:?}, of the hook {hook}: each handler needs its own name")]
    Repeated {
        /// The name.
        name: String,
        /// The hook of the handler that was added first.
        hook: String,
    },
    /// The timeout is out of range.
    #[error("the timeout of handler {name:?} is {seconds} s: it must be between 1 s and {LONGEST_TIMEOUT_SECONDS} s")]
    Timeout {
        /// The name of the handler.
        name: String,
        /// The timeout.
        seconds: i32,
    },
}

impl Handler {
    /// A handler with the default options. The name is a DNS label: lower case letters, digits and `-`, at most 63 characters.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            timeout_seconds: None,
            failure_policy: None,
        }
    }

    /// Sets how long Cluster API waits for an answer, from 1 to 30 seconds. Defaults to 10.
    #[must_use]
    pub fn timeout_seconds(mut self, seconds: i32) -> Self {
        self.timeout_seconds = Some(seconds);
        self
    }

    /// Sets what Cluster API does when a call has no answer. Defaults to [`FailurePolicy::Fail`].
    #[must_use]
    pub fn failure_policy(mut self, policy: FailurePolicy) -> Self {
        self.failure_policy = Some(policy);
        self
    }

    /// The limit of a call that has no timeout of its own.
    pub(crate) fn timeout(&self) -> Duration {
        let seconds = self.timeout_seconds.unwrap_or(DEFAULT_TIMEOUT_SECONDS);
        Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
    }

    /// The handler in the answer of the hook Discovery, after those that the extension has already.
    pub(crate) fn discovered<H: Hook>(self, others: &[ExtensionHandler]) -> Result<ExtensionHandler, BadHandler> {
        let name = self.name;
        let problems = label_problems(&name);
        if !problems.is_empty() {
            let why = problems.join("; ");
            return Err(BadHandler::Name { name, why });
        }
        if let Some(other) = others.iter().find(|other| other.name == name) {
            let hook = other.request_hook.hook.clone();
            return Err(BadHandler::Repeated { name, hook });
        }
        if let Some(seconds) = self.timeout_seconds.filter(|seconds| !TIMEOUTS.contains(seconds)) {
            return Err(BadHandler::Timeout { name, seconds });
        }
        let mut handler = ExtensionHandler::of::<H>(&name);
        handler.timeout_seconds = self.timeout_seconds;
        handler.failure_policy = self.failure_policy.map(|policy| policy.as_str().to_owned());
        Ok(handler)
    }
}

impl From<&str> for Handler {
    fn from(name: &str) -> Self {
        Self::named(name)
    }
}

impl From<String> for Handler {
    fn from(name: String) -> Self {
        Self::named(name)
    }
}

impl FailurePolicy {
    /// The word in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fail => "Fail",
            Self::Ignore => "Ignore",
        }
    }
}

#[cfg(test)]
mod tests {
    use windlass_runtime_hooks::lifecycle::{AfterClusterUpgrade, BeforeClusterDelete};

    use super::*;

    #[test]
    fn a_name_is_a_dns_label() {
        let check = |name: &str, expect: Option<&str>| {
            let result = Handler::named(name).discovered::<BeforeClusterDelete>(&[]);
            match (&result, expect) {
                (Ok(handler), None) => assert_eq!(handler.name, name),
                (Err(error @ BadHandler::Name { .. }), Some(part)) => {
                    let text = error.to_string();
                    assert!(text.contains(part) && text.contains(&format!("{name:?}")), "{text}");
                }
                _ => panic!("{name:?}: {result:?}"),
            }
        };
        check("a", None);
        check("9-lives", None);
        check(&"a".repeat(63), None);
        check(&"a".repeat(64), Some("63"));
        check("", Some("RFC 1123"));
        check("Upper", Some("lower case"));
        check("-a", Some("RFC 1123"));
        check("a-", Some("RFC 1123"));
        check("a.b", Some("dots"));
        check("a/b", Some("RFC 1123"));
        check("ä", Some("RFC 1123"));
    }

    #[test]
    fn a_name_is_used_once_also_by_different_hooks() {
        let first = Handler::named("guard").discovered::<BeforeClusterDelete>(&[]).unwrap();
        let repeated = Handler::named("guard").discovered::<AfterClusterUpgrade>(&[first]);
        let error = repeated.unwrap_err().to_string();
        assert!(
            error.contains("\"guard\"") && error.contains("BeforeClusterDelete"),
            "{error}"
        );
    }

    #[test]
    fn a_timeout_has_limits() {
        let check = |seconds: i32, is_good: bool| {
            let handler = Handler::named("guard").timeout_seconds(seconds);
            let result = handler.discovered::<BeforeClusterDelete>(&[]);
            assert_eq!(result.is_ok(), is_good, "{seconds}: {result:?}");
        };
        check(1, true);
        check(30, true);
        check(0, false);
        check(-1, false);
        check(31, false);
        assert_eq!(Handler::named("guard").timeout(), Duration::from_secs(10));
    }
}
