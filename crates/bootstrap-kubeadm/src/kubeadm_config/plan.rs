//! Decides, from what was seen, what to write and what the conditions will say once it is written.

mod certificates;
mod data;
mod pins;
mod token;

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::Value;
use windlass_conditions::legacy::Severity;
use windlass_controller_runtime::{Blocked, Decision, Moment, Note, ObjectKey, Seen};
use windlass_pki::Purpose;

use super::desired;
use super::observed::{
    Observed, Situation, is_init_config, is_initialized, situation, spec_pins, spec_token, token_due,
};
use super::owner::ConfigOwner;
use super::question::Question;
use super::token::Token;
use pins::Pins;

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
    /// What keeps the plan from going further.
    pub(super) blocked: Option<Blocked>,
    /// When to look again at what sends no event.
    pub(super) requeue: Option<Duration>,
    /// Whether there is anything to report at all.
    pub(super) silent: bool,
    /// Why this plan is as it is.
    pub(super) notes: Vec<Note>,
}

/// One write.
#[derive(Debug, PartialEq)]
pub(super) enum Action {
    /// Create the init lock, after taking one away whose holder is gone.
    TakeLock { stale: Option<String>, object: Box<Value> },
    /// Delete the init lock with this uid.
    ReleaseLock { key: ObjectKey, uid: String },
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
    /// Give the data Secret, as it was seen, these owners.
    AdoptData {
        /// Name, namespace, uid and resource version of the Secret.
        secret: Box<ObjectMeta>,
        /// All its owners.
        owners: Vec<OwnerReference>,
    },
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

    /// Something that a user may have to mend.
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
        self.notes.push(Note::new(note));
        self
    }

    /// Something is wrong that waiting for an event may not mend.
    fn block(mut self, why: impl Into<String>) -> Self {
        self.blocked = Some(Blocked::failed("BootstrapData", why));
        self
    }

    /// Nothing more can be decided: the data waits.
    fn wait(mut self, lack: Lack) -> Self {
        self.notes.push(Note::new(lack.message.as_str()));
        self.data = Verdict::NotAvailable(lack);
        self
    }

    /// The data cannot be made as things are.
    fn fail(mut self, message: impl Into<String>) -> Self {
        let message = message.into();
        let reason = windlass_api_kubeadm::v1beta1::reasons::DATA_SECRET_GENERATION_FAILED;
        self.data = Verdict::NotAvailable(Lack::failed(message.clone(), reason));
        self.block(message)
    }
}

/// The decision, or a question about what the situation needs in addition.
pub(super) fn plan(seen: &Observed, now: &Moment) -> Decision<Plan, Question> {
    let plan = Plan::default();
    let plan = match situation(&seen.config, &seen.owner, &seen.cluster) {
        // Nothing blocks the deletion.
        Situation::Deleting => Plan { silent: true, ..plan },
        Situation::Unknown(why) => Plan { silent: true, ..plan }.note(why),
        Situation::Recover(name) => {
            let plan = Plan {
                certificates: Verdict::Available,
                data: Verdict::Available,
                data_secret_name: Some(name),
                ..plan
            };
            keep_owned(plan, seen).note("the Machine knows the data Secret: the status is rebuilt from it")
        }
        Situation::Done { joined } => return done(seen, joined, now),
        Situation::WaitInfrastructure => plan.wait(wait_for_infrastructure()),
        Situation::Init => {
            let (Some(lock), Some(material)) = (&seen.lock, &seen.material) else {
                return Decision::Ask(Question {
                    lock: seen.lock.is_none(),
                    material: seen.material.is_none(),
                    ..Question::default()
                });
            };
            data::init(plan, seen, lock, material)
        }
        Situation::WaitControlPlane => plan.wait(wait_for_control_plane()),
        Situation::Join { control_plane } => {
            let (Some(connection), Some(material)) = (&seen.connection, &seen.material) else {
                return Decision::Ask(Question {
                    connection: seen.connection.is_none(),
                    material: seen.material.is_none(),
                    ..Question::default()
                });
            };
            if pins::judge(seen, material) == Pins::Ask {
                return Decision::Ask(Question {
                    pins: true,
                    ..Question::default()
                });
            }
            data::join(plan, seen, (material, connection), control_plane, now)
        }
    };
    Decision::Plan(plan)
}

fn wait_for_infrastructure() -> Lack {
    Lack::waiting(
        "Waiting for Cluster status.initialization.infrastructureProvisioned to be true",
        windlass_api_kubeadm::v1beta1::reasons::WAITING_FOR_CLUSTER_INFRASTRUCTURE,
    )
}

pub(super) fn wait_for_control_plane() -> Lack {
    Lack::waiting(
        "Waiting for Cluster control plane to be initialized",
        windlass_api_kubeadm::v1beta1::reasons::WAITING_FOR_CONTROL_PLANE_AVAILABLE,
    )
}

/// After the data was made: the lock is given back, and the token is kept alive until the machine has used it.
fn done(seen: &Observed, joined: bool, now: &Moment) -> Decision<Plan, Question> {
    let is_pool = seen.owner.found().is_some_and(ConfigOwner::is_pool);
    // A Machine needs its data once, but a pool may get more machines at any time.
    let is_lost = is_pool && seen.data_secret.is_not_found() && !seen.is_owner_leaving();
    let token = ((!joined || is_pool) && !is_lost && !seen.is_owner_leaving())
        .then(|| token_to_keep(seen, now))
        .flatten();
    let follows_authority = is_pool && !is_lost && !seen.is_owner_leaving() && !spec_pins(&seen.config).is_empty();
    let may_render = token.is_some() || is_lost || follows_authority;
    let judged = seen.material.as_ref().filter(|_| may_render);
    let pins = judged.map_or(Pins::Kept, |material| pins::judge(seen, material));
    let question = Question {
        lock: seen.lock.is_none() && may_hold_lock(seen),
        token: seen.token_expires.is_none() && token.is_some(),
        // For the case that the token has vanished.
        material: seen.material.is_none() && may_render,
        connection: seen.connection.is_none() && (is_lost || follows_authority),
        pins: pins == Pins::Ask,
    };
    if !question.is_empty() {
        return Decision::Ask(question);
    }
    let status = seen.config.status.as_ref();
    let mut plan = Plan {
        data: Verdict::Available,
        data_secret_name: status.and_then(|status| status.data_secret_name.clone()),
        ..Plan::default()
    };
    if let Some(Seen::Failed(why)) = &seen.lock {
        plan = plan.block(format!("Failed to read the init lock: {why}"));
    } else if let Some(release) = seen.lock.as_ref().and_then(|lock| data::release_lock(seen, lock)) {
        plan.actions.push(release);
        plan = plan.note("the control plane is initialized: the init lock is given back");
    }
    if is_lost {
        let why = "the data Secret of the MachinePool does not exist any more";
        plan = data::rejoin(plan, seen, why, now);
    } else if let (Some(token), Some(expires)) = (token, &seen.token_expires) {
        plan = if joined {
            token::rotate(plan, seen, expires, now)
        } else {
            token::keep_alive(plan, seen, token, expires, now)
        };
    }
    if follows_authority {
        plan = follow_authority(plan, seen, pins, now);
    }
    Decision::Plan(keep_owned(plan, seen))
}

/// Makes the data of a MachinePool again when its pins are those of an authority that is not the cluster's any more. Data that is made again
/// with another token has the right ones.
fn follow_authority(plan: Plan, seen: &Observed, pins: Pins, now: &Moment) -> Plan {
    if plan.actions.iter().any(is_replaced) {
        return plan;
    }
    match pins {
        Pins::Outdated => data::repin(plan, seen, now),
        Pins::Foreign => plan.note(pins::FOREIGN),
        Pins::Unknown(why) => plan.block(why),
        Pins::Kept | Pins::Ask => plan,
    }
}

/// Whether the content of the data Secret is replaced.
fn is_replaced(action: &Action) -> bool {
    matches!(action, Action::ReplaceData { .. })
}

/// Takes the data Secret back when its reference to this config is lost or old.
fn keep_owned(mut plan: Plan, seen: &Observed) -> Plan {
    let Seen::Found(secret) = &seen.data_secret else {
        return plan;
    };
    let name = plan.data_secret_name.clone();
    if secret.metadata.name != name || plan.actions.iter().any(is_replaced) {
        return plan;
    }
    match desired::renewed_owners(secret, &seen.config) {
        Ok(None) => plan,
        Ok(Some(owners)) => {
            let secret = ObjectMeta {
                name: secret.metadata.name.clone(),
                namespace: secret.metadata.namespace.clone(),
                uid: secret.metadata.uid.clone(),
                resource_version: secret.metadata.resource_version.clone(),
                ..ObjectMeta::default()
            };
            let secret = Box::new(secret);
            plan.actions.push(Action::AdoptData { secret, owners });
            plan.note("the data Secret does not name this KubeadmConfig as its controller: the reference is renewed")
        }
        Err(owner) => {
            let name = name.unwrap_or_default();
            plan.block(format!(
                "Secret {name} is controlled by {owner}, and not by its KubeadmConfig; remove that owner reference"
            ))
        }
    }
}

/// Whether the Machine may have taken the lock, and the cluster does not need it any more.
fn may_hold_lock(seen: &Observed) -> bool {
    let (Seen::Found(owner), Seen::Found(cluster)) = (&seen.owner, &seen.cluster) else {
        return false;
    };
    // One with a bootstrap token has joined.
    let may_have_made_it = is_init_config(&seen.config) && spec_token(&seen.config).is_none();
    owner.is_control_plane() && may_have_made_it && is_initialized(cluster)
}

/// The token in the spec, once it is time to look at it.
fn token_to_keep(seen: &Observed, now: &Moment) -> Option<Token> {
    let token = spec_token(&seen.config)?;
    let due = token_due(&seen.config, &seen.data_secret, seen.token_ttl)?;
    now.reached(due).then_some(token)
}

impl windlass_controller_runtime::Plan for Plan {
    fn notes(&self) -> &[Note] {
        &self.notes
    }

    fn requeue(&self) -> Option<Duration> {
        self.requeue
    }

    fn blocked(&self) -> Option<Blocked> {
        self.blocked.clone()
    }
}

#[cfg(test)]
mod tests;
