//! Decides, from what was seen, what to write and what the conditions will say once it is written.

mod certificates;
mod data;
mod token;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use windlass_conditions::legacy::Severity;
use windlass_kit::Seen;
use windlass_pki::Purpose;

use super::observed::{Observed, Situation, situation};
pub(super) use certificates::needed as needed_certificates;

use super::token::Token;

/// What is to be done, in order. If one action fails, those after it are not tried.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Plan {
    pub(super) actions: Vec<Action>,
    /// What the condition CertificatesAvailable says if all actions succeed.
    pub(super) certificates: Verdict,
    /// What the condition DataSecretAvailable says if all actions succeed.
    pub(super) data: Verdict,
    /// Name of the data Secret, once all actions have succeeded.
    pub(super) data_secret_name: Option<String>,
    /// Something is wrong that waiting for an event may not mend.
    pub(super) error: Option<String>,
    /// When to look again without an event.
    pub(super) requeue: Option<SignedDuration>,
    /// Whether there is anything to report at all.
    pub(super) silent: bool,
    /// Why this plan is as it is, for the log.
    pub(super) notes: Vec<String>,
}

/// One write.
#[derive(Debug, PartialEq)]
pub(super) enum Action {
    /// Create the init lock, after taking one away whose holder is gone.
    TakeLock { stale: Option<String>, object: Box<Value> },
    /// Delete the init lock with this uid.
    ReleaseLock { uid: String },
    /// Make the authorities and keys that are missing.
    GenerateCertificates(Vec<Purpose>),
    /// Create a token in the workload cluster.
    CreateToken { token: Token, expires: Timestamp },
    /// Let a token in the workload cluster live longer.
    ExtendToken { token: Token, expires: Timestamp },
    /// Fill in what the cluster knows in the spec.
    ApplySpec(Box<Value>),
    /// Create the data Secret.
    CreateData(Hidden),
    /// Replace content and owner of the data Secret with this uid.
    ReplaceData { uid: String, content: Hidden },
}

/// A Secret to be written. `Debug` does not show it.
#[derive(PartialEq)]
pub(super) struct Hidden(pub(super) Value);

impl std::fmt::Debug for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secret {}", self.0["metadata"]["name"])
    }
}

/// What a condition is going to say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Verdict {
    /// What it says now.
    #[default]
    Keep,
    /// True.
    Available,
    /// False: something is being waited for, or has failed.
    NotAvailable(Lack),
    /// Unknown: something could not be looked at.
    InternalError(Lack),
}

/// What a false or unknown condition says, in both generations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lack {
    pub(super) message: String,
    pub(super) v1beta1_reason: &'static str,
    pub(super) v1beta1_severity: Severity,
    pub(super) v1beta1_message: Option<String>,
}

impl Lack {
    /// Waiting for something that will come by itself.
    pub(super) fn waiting(message: impl Into<String>, v1beta1_reason: &'static str) -> Self {
        Self {
            message: message.into(),
            v1beta1_reason,
            v1beta1_severity: Severity::Info,
            v1beta1_message: None,
        }
    }

    /// Something that somebody may have to mend.
    pub(super) fn failed(message: impl Into<String>, v1beta1_reason: &'static str) -> Self {
        let message = message.into();
        Self {
            v1beta1_message: Some(message.clone()),
            message,
            v1beta1_reason,
            v1beta1_severity: Severity::Warning,
        }
    }
}

impl Plan {
    fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Nothing more can be decided: the data waits.
    fn wait(mut self, lack: Lack) -> Self {
        self.notes.push(lack.message.clone());
        self.data = Verdict::NotAvailable(lack);
        self
    }

    /// The data cannot be made as things are.
    fn fail(mut self, message: impl Into<String>) -> Self {
        let message = message.into();
        let reason = windlass_api_kubeadm::v1beta1::reasons::DATA_SECRET_GENERATION_FAILED;
        self.data = Verdict::NotAvailable(Lack::failed(message.clone(), reason));
        self.error = Some(message);
        self
    }
}

/// The decision.
pub(super) fn plan(seen: &Observed, now: Timestamp) -> Plan {
    let plan = Plan::default();
    match situation(&seen.config, &seen.machine, &seen.cluster) {
        Situation::Deleting => Plan { silent: true, ..plan }.note("being deleted, nothing blocks that"),
        Situation::Unknown(why) => Plan { silent: true, ..plan }.note(why),
        Situation::Recover(name) => Plan {
            certificates: Verdict::Available,
            data: Verdict::Available,
            data_secret_name: Some(name),
            ..plan
        }
        .note("the Machine knows the data Secret: the status is rebuilt from it"),
        Situation::Done { joined } => done(seen, joined, now),
        Situation::WaitInfrastructure { first } => {
            let plan = if first { data::prepare(plan, seen) } else { plan };
            plan.wait(Lack::waiting(
                "Waiting for Cluster status.initialization.infrastructureProvisioned to be true",
                windlass_api_kubeadm::v1beta1::reasons::WAITING_FOR_CLUSTER_INFRASTRUCTURE,
            ))
        }
        Situation::WaitControlPlane => plan.wait(wait_for_control_plane()),
        Situation::Init => data::init(plan, seen),
        Situation::Join { control_plane } => data::join(plan, seen, control_plane, now),
    }
}

pub(super) fn wait_for_control_plane() -> Lack {
    Lack::waiting(
        "Waiting for Cluster control plane to be initialized",
        windlass_api_kubeadm::v1beta1::reasons::WAITING_FOR_CONTROL_PLANE_AVAILABLE,
    )
}

/// After the data was made: the lock is given back, and the token is kept alive until the machine has used it.
fn done(seen: &Observed, joined: bool, now: Timestamp) -> Plan {
    let status = seen.config.status.as_ref();
    let mut plan = Plan {
        data: Verdict::Available,
        data_secret_name: status.and_then(|status| status.data_secret_name.clone()),
        ..Plan::default()
    };
    if let (Seen::Found(lock), Seen::Found(machine)) = (&seen.lock, &seen.machine)
        && Some(&lock.machine) == machine.metadata.name.as_ref()
    {
        plan.actions.push(Action::ReleaseLock { uid: lock.uid.clone() });
        plan = plan.note("the control plane is initialized: the init lock is given back");
    }
    let leaving = seen
        .machine
        .found()
        .is_some_and(|machine| machine.metadata.deletion_timestamp.is_some());
    if joined || leaving {
        return plan;
    }
    token::keep_alive(plan, seen, now)
}

impl windlass_kit::Plan for Plan {
    fn requeue(&self) -> Option<std::time::Duration> {
        self.requeue.and_then(|after| after.try_into().ok())
    }

    fn blocked(&self) -> Option<windlass_kit::Blocked> {
        let why = self.error.as_deref()?;
        Some(windlass_kit::Blocked::failed("BootstrapData", why))
    }
}

#[cfg(test)]
mod tests;
