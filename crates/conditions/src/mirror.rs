//! Mirrors a condition of one object on another.

use jiff::Timestamp;

use crate::{Condition, NO_REASON_REPORTED, NOT_YET_REPORTED, Status, condition};

/// Options of a mirror.
#[derive(Clone, Debug)]
pub struct Mirror<'a> {
    /// Type at the source.
    pub source_type: &'a str,
    /// Type at the target.
    pub target_type: &'a str,
    /// The condition if the source has none.
    pub fallback: Option<Fallback<'a>>,
}

/// The condition in place of a missing one.
#[derive(Clone, Debug)]
pub struct Fallback<'a> {
    /// Its status.
    pub status: Status,
    /// Its reason.
    pub reason: &'a str,
    /// Its message.
    pub message: String,
}

/// The condition for the target. It keeps the source's transition time. Without a source and a fallback it is Unknown.
pub fn mirror(source: Option<&Condition>, how: &Mirror<'_>, now: Timestamp, generation: Option<i64>) -> Condition {
    match (source, &how.fallback) {
        (Some(source), _) => Condition {
            type_: how.target_type.to_owned(),
            observed_generation: generation,
            ..source.clone()
        },
        (None, Some(f)) => condition(how.target_type, f.status, f.reason, f.message.as_str(), now, generation),
        (None, None) => {
            let message = format!("Condition {} not yet reported", how.source_type);
            condition(
                how.target_type,
                Status::Unknown,
                NOT_YET_REPORTED,
                message,
                now,
                generation,
            )
        }
    }
}

/// A condition of the older form may be True without a reason. It gets this one, in place of words that sound like trouble.
pub fn named(mut condition: Condition, good: &str) -> Condition {
    if condition.reason == NO_REASON_REPORTED && condition.status == Status::True.as_str() {
        good.clone_into(&mut condition.reason);
    }
    condition
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirrors_or_falls_back_or_is_unknown() {
        let (t1, t2) = (Timestamp::from_second(1).unwrap(), Timestamp::from_second(2).unwrap());
        let mut how = Mirror {
            source_type: "Ready",
            target_type: "InfrastructureReady",
            fallback: None,
        };
        let source = condition("Ready", Status::False, "Broken", "is broken", t1, Some(7));
        let c = mirror(Some(&source), &how, t2, Some(3));
        assert_eq!(
            (
                c.type_.as_str(),
                c.status.as_str(),
                c.reason.as_str(),
                c.message.as_str()
            ),
            ("InfrastructureReady", "False", "Broken", "is broken")
        );
        assert_eq!((c.last_transition_time.0, c.observed_generation), (t1, Some(3)));
        let c = mirror(None, &how, t2, None);
        assert_eq!(
            (c.status.as_str(), c.reason.as_str(), c.message.as_str()),
            ("Unknown", "NotYetReported", "Condition Ready not yet reported")
        );
        how.fallback = Some(Fallback {
            status: Status::False,
            reason: "NotReady",
            message: "DevMachine status.initialization.provisioned is false".to_owned(),
        });
        let c = mirror(None, &how, t2, None);
        assert_eq!((c.status.as_str(), c.reason.as_str()), ("False", "NotReady"));
        assert_eq!(c.last_transition_time.0, t2);
    }
}
