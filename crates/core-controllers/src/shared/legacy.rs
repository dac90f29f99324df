//! Conditions of the previous API generation (`status.deprecated.v1beta1.conditions`).
//!
//! They are derived from the same facts as the current ones, for tools that still read them.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;
use windlass_api::core::V1Beta1Condition;
use windlass_api::v1beta1::conditions;
use windlass_conditions::whole_seconds;
use windlass_controller_runtime::Seen;

use super::read::Referenced;

/// The longest reason and message that such a condition may have.
const LONGEST_REASON: usize = 256;
const LONGEST_MESSAGE: usize = 10_240;

/// State of one old condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Legacy {
    /// True.
    Good,
    /// False, with severity, reason and message.
    Bad {
        severity: &'static str,
        reason: String,
        message: String,
    },
}

impl Legacy {
    pub(crate) fn error(reason: &str, message: impl Into<String>) -> Self {
        Self::Bad {
            severity: "Error",
            reason: reason.to_owned(),
            message: message.into(),
        }
    }

    pub(crate) fn warning(reason: &str, message: impl Into<String>) -> Self {
        Self::Bad {
            severity: "Warning",
            reason: reason.to_owned(),
            message: message.into(),
        }
    }

    pub(crate) fn info(reason: &str, message: impl Into<String>) -> Self {
        Self::Bad {
            severity: "Info",
            reason: reason.to_owned(),
            message: message.into(),
        }
    }

    /// What an existing condition says; unknown counts as nothing.
    pub(crate) fn read(condition: &V1Beta1Condition) -> Option<Self> {
        match condition.status.as_str() {
            "True" => Some(Self::Good),
            "False" => Some(Self::Bad {
                severity: match condition.severity.as_deref() {
                    Some("Error") => "Error",
                    Some("Warning") => "Warning",
                    _ => "Info",
                },
                reason: condition.reason.clone().unwrap_or_default(),
                message: condition.message.clone().unwrap_or_default(),
            }),
            _ => None,
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Bad { severity: "Error", .. } => 0,
            Self::Bad {
                severity: "Warning", ..
            } => 1,
            Self::Bad { .. } => 2,
            Self::Good => 3,
        }
    }
}

/// The own old condition Ready of a provider's object, if it has one.
pub(crate) fn own_ready(object: &Value) -> Option<Legacy> {
    let status = object.get("status")?;
    let lists = [&status["deprecated"]["v1beta1"]["conditions"], &status["conditions"]];
    let mut all = lists.into_iter().filter_map(|list| list.as_array()).flatten();
    let ready = all.find(|condition| condition["type"] == conditions::READY)?;
    let text = |field: &str| ready[field].as_str().unwrap_or_default();
    match text("status") {
        "True" => Some(Legacy::Good),
        "False" => Some(match text("severity") {
            "Error" => Legacy::error(text("reason"), text("message")),
            "Warning" => Legacy::warning(text("reason"), text("message")),
            _ => Legacy::info(text("reason"), text("message")),
        }),
        _ => None,
    }
}

/// The longest failure message that an object may have.
const LONGEST_FAILURE: usize = 10_240;

/// `failureReason` and `failureMessage` of the previous API generation: a failure that needs a user, as providers of the older contract report
/// it. That of the last object counts. While one of them cannot be read, what was reported stays. Nothing follows from it.
pub(crate) fn failures<'a>(
    objects: impl DoubleEndedIterator<Item = &'a Seen<Referenced>> + Clone,
    before: impl FnOnce() -> (Option<String>, Option<String>),
) -> (Option<String>, Option<String>) {
    if objects.clone().any(|object| object.failure().is_some()) {
        return before();
    }
    let mut found = objects.rev().filter_map(Seen::found).filter_map(|object| {
        let (reason, message) = windlass_contract::failures(object.value());
        let message = message.map(|message| {
            let text = format!(
                "Failure detected from referenced resource {}, Kind={} with name \"{}\": {message}",
                object.api_version(),
                object.kind(),
                object.name()
            );
            text.chars().take(LONGEST_FAILURE).collect()
        });
        (reason.is_some() || message.is_some()).then_some((reason, message))
    });
    found.next().unwrap_or_default()
}

/// The worst of several; good when there are none.
pub(crate) fn summary<'a>(states: impl IntoIterator<Item = &'a Legacy>) -> Legacy {
    states
        .into_iter()
        .min_by_key(|state| state.rank())
        .cloned()
        .unwrap_or(Legacy::Good)
}

/// The worst of several objects' conditions, naming where it was found and how many are done.
pub(crate) fn aggregate<'a>(kind: &str, states: impl IntoIterator<Item = (&'a str, Legacy)>) -> Legacy {
    let states: Vec<_> = states.into_iter().collect();
    let done = states.iter().filter(|(_, state)| *state == Legacy::Good).count();
    match states.iter().min_by_key(|(_, state)| state.rank()) {
        Some((name, Legacy::Bad { severity, reason, .. })) => Legacy::Bad {
            severity,
            reason: format!("{reason} @ {kind}/{name}"),
            message: format!("{done} of {} completed", states.len()),
        },
        _ => Legacy::Good,
    }
}

/// The old conditions of one object.
pub(crate) struct LegacyConditions<'a> {
    previous: &'a [V1Beta1Condition],
    now: Timestamp,
    built: Vec<V1Beta1Condition>,
}

impl<'a> LegacyConditions<'a> {
    pub(crate) fn new(previous: &'a [V1Beta1Condition], now: Timestamp) -> Self {
        Self {
            previous,
            now,
            built: Vec::new(),
        }
    }

    /// Adds a condition, keeping its transition time when it says the same as before.
    pub(crate) fn set(&mut self, type_: &str, state: &Legacy) -> &mut Self {
        self.set_because(type_, state, "")
    }

    /// The same, with a reason also when all is well.
    pub(crate) fn set_because(&mut self, type_: &str, state: &Legacy, good_reason: &str) -> &mut Self {
        let cut = |text: &str, most| (!text.is_empty()).then(|| text.chars().take(most).collect::<String>());
        let mut condition = V1Beta1Condition {
            type_: type_.to_owned(),
            last_transition_time: Time(whole_seconds(self.now)),
            status: "True".to_owned(),
            severity: None,
            reason: cut(good_reason, LONGEST_REASON),
            message: None,
        };
        if let Legacy::Bad {
            severity,
            reason,
            message,
        } = state
        {
            "False".clone_into(&mut condition.status);
            condition.severity = Some((*severity).to_owned());
            condition.reason = cut(reason, LONGEST_REASON);
            condition.message = cut(message, LONGEST_MESSAGE);
        }
        if let Some(old) = self.previous.iter().find(|old| old.type_ == type_) {
            let same = old.status == condition.status
                && old.severity == condition.severity
                && old.reason == condition.reason
                && old.message == condition.message;
            if same {
                condition.last_transition_time = old.last_transition_time.clone();
            }
        }
        self.built.push(condition);
        self
    }

    /// The conditions, `Ready` first, the others by type.
    pub(crate) fn done(mut self) -> Vec<V1Beta1Condition> {
        self.built
            .sort_by(|a, b| (a.type_ != "Ready", &a.type_).cmp(&(b.type_ != "Ready", &b.type_)));
        self.built
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_machine_is_named_with_the_progress() {
        let states = [("a", Legacy::Good), ("b", Legacy::info("WaitingForInfrastructure", ""))];
        let all = aggregate("Machine", states);
        assert_eq!(
            all,
            Legacy::info("WaitingForInfrastructure @ Machine/b", "1 of 2 completed")
        );
        assert_eq!(aggregate("Machine", []), Legacy::Good);
    }

    #[test]
    fn errors_come_before_warnings() {
        let states = [
            Legacy::warning("ScalingUp", "x"),
            Legacy::error("PreflightCheckFailed", "y"),
            Legacy::Good,
        ];
        assert_eq!(summary(&states), states[1]);
    }
}
