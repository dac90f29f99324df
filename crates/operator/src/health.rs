//! Whether an installed provider works: what its Deployments say of themselves.

use windlass_api_operator::reasons as known;
use windlass_conditions::Status;

use crate::names::reasons;
use crate::objects::Running;

/// What the condition Ready says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// Whether it works.
    pub status: Status,
    /// A word for it.
    pub reason: String,
    /// What is wrong.
    pub message: String,
}

impl Health {
    fn new(status: Status, reason: &str, message: impl Into<String>) -> Self {
        Self {
            status,
            reason: reason.to_owned(),
            message: message.into(),
        }
    }

    /// The health of a provider with these Deployments. Where no controller ever looked at one of them, nothing runs Deployments: an
    /// API server of its own takes them, and they wait for a cluster that runs them.
    pub fn of(deployments: &[(String, Option<Running>)]) -> Self {
        if deployments.is_empty() {
            return Self::new(Status::True, reasons::NO_DEPLOYMENTS, "the provider has no Deployments");
        }
        let mut waiting = Vec::new();
        let mut wrong: Option<Self> = None;
        for (name, running) in deployments {
            let found = match running {
                None => Self::new(
                    Status::False,
                    reasons::DEPLOYMENT_MISSING,
                    format!("Deployment {name} is not there"),
                ),
                Some(running) if !running.observed && running.available.is_none() => {
                    waiting.push(name.as_str());
                    continue;
                }
                Some(running) => match &running.available {
                    Some((status, _, _)) if status == "True" => continue,
                    Some((status, reason, message)) => {
                        let status = if status == "False" {
                            Status::False
                        } else {
                            Status::Unknown
                        };
                        Self::new(status, reason, format!("Deployment {name}: {message}"))
                    }
                    None => Self::new(
                        Status::False,
                        known::NO_DEPLOYMENT_AVAILABLE_CONDITION,
                        format!("Deployment {name} does not say yet whether it is available"),
                    ),
                },
            };
            wrong = Some(match wrong {
                Some(first) => Self {
                    message: format!("{}; {}", first.message, found.message),
                    ..first
                },
                None => found,
            });
        }
        if let Some(wrong) = wrong {
            return wrong;
        }
        if waiting.is_empty() {
            return Self::new(Status::True, known::DEPLOYMENT_AVAILABLE, "");
        }
        let (noun, verb) = if waiting.len() == 1 {
            ("Deployment", "waits")
        } else {
            ("Deployments", "wait")
        };
        let message = format!(
            "everything is installed; {noun} {} {verb} for a cluster that runs Deployments: no controller has looked at them yet",
            waiting.join(", ")
        );
        Self::new(Status::False, reasons::NOTHING_RUNS_DEPLOYMENTS, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(observed: bool, available: Option<&str>) -> Running {
        Running {
            observed,
            available: available.map(|status| (status.to_owned(), "Why".to_owned(), "because".to_owned())),
            ..Running::default()
        }
    }

    #[test]
    fn ready_is_what_the_deployments_say() {
        let check = |all: &[Option<Running>], status: Status, reason: &str, message: &str| {
            let named: Vec<_> = all
                .iter()
                .enumerate()
                .map(|(n, r)| (format!("d{n}"), r.clone()))
                .collect();
            let health = Health::of(&named);
            assert_eq!((health.status, health.reason.as_str()), (status, reason));
            assert!(health.message.contains(message), "{}", health.message);
        };
        check(&[], Status::True, reasons::NO_DEPLOYMENTS, "");
        check(
            &[Some(running(true, Some("True")))],
            Status::True,
            "DeploymentAvailable",
            "",
        );
        check(
            &[Some(running(true, Some("True"))), Some(running(true, Some("False")))],
            Status::False,
            "Why",
            "Deployment d1: because",
        );
        check(&[Some(running(true, Some("Unknown")))], Status::Unknown, "Why", "d0");
        check(
            &[Some(running(true, None))],
            Status::False,
            "NoDeploymentAvailableConditionReason",
            "d0",
        );
        check(&[None], Status::False, "DeploymentMissing", "d0 is not there");
        check(
            &[Some(running(false, None)), Some(running(true, Some("True")))],
            Status::False,
            "WaitingForClusterThatRunsDeployments",
            "Deployment d0 waits for a cluster",
        );
    }
}
