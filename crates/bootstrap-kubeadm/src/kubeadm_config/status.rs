//! The status: what the conditions say after everything that was tried.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use windlass_api::Condition;
use windlass_api::core::v1beta2::V1Beta1Condition;
use windlass_api_kubeadm::bootstrap::KubeadmConfigStatus;
use windlass_api_kubeadm::v1beta1::reasons as v1beta1;
use windlass_api_kubeadm::{conditions, reasons};
use windlass_conditions::{Reasons, Status, Summary, legacy};
use windlass_controller_runtime::{Moment, ReconcileError};

use super::observed::Observed;
use super::plan::{Action, Lack, Plan, Verdict};

/// What Ready is the sum of, the most important first.
const TYPES: [&str; 2] = [conditions::DATA_SECRET_AVAILABLE, conditions::CERTIFICATES_AVAILABLE];

/// What was done.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// The first failure; nothing after it was tried.
    pub(super) failed: Option<Failure>,
    /// Generation of the object after its spec was written.
    pub(super) generation: Option<i64>,
}

/// Why an action failed.
#[derive(Debug)]
pub(super) struct Failure {
    /// Position in the plan.
    pub(super) action: usize,
    /// Another machine was faster to take the init lock.
    pub(super) lost_lock: bool,
    pub(super) error: ReconcileError,
}

/// The status to apply; none when there is nothing to say.
pub(super) fn status(seen: &Observed, plan: &Plan, done: &Done, now: &Moment) -> Option<Value> {
    if plan.silent {
        return None;
    }
    let now = now.now();
    let config = &*seen.config;
    let old = config.status.clone().unwrap_or_default();
    let (certificates, data) = verdicts(plan, done, &old);
    let created = data == Verdict::Available;
    let generation = done.generation.or(config.metadata.generation).unwrap_or(1);

    // Only what this controller owns: Paused is the driver's.
    let mut new: Vec<_> = old
        .conditions
        .iter()
        .filter(|condition| TYPES.contains(&condition.type_.as_str()) || condition.type_ == conditions::READY)
        .cloned()
        .collect();
    set(&mut new, conditions::DATA_SECRET_AVAILABLE, &data, generation, now);
    set(
        &mut new,
        conditions::CERTIFICATES_AVAILABLE,
        &certificates,
        generation,
        now,
    );
    let ready = Summary {
        reasons: Reasons {
            issue: reasons::NOT_READY,
            unknown: reasons::READY_UNKNOWN,
            info: reasons::READY,
        },
        ..Summary::new(conditions::READY, &TYPES)
    };
    let ready = windlass_conditions::summary(&new, &ready, now, Some(generation));
    windlass_conditions::set(&mut new, ready);

    let mut deprecated = old
        .deprecated
        .and_then(|deprecated| deprecated.v1beta1)
        .map(|v1beta1| v1beta1.conditions)
        .unwrap_or_default();
    set_legacy(&mut deprecated, conditions::DATA_SECRET_AVAILABLE, &data, now);
    set_legacy(&mut deprecated, conditions::CERTIFICATES_AVAILABLE, &certificates, now);
    if let Some(ready) = legacy::summary(&deprecated, &TYPES, false, now) {
        legacy::set(&mut deprecated, ready);
    }

    let mut status = Map::new();
    status.insert("conditions".to_owned(), json!(new));
    status.insert("observedGeneration".to_owned(), generation.into());
    if created && let Some(name) = &plan.data_secret_name {
        status.insert("dataSecretName".to_owned(), name.as_str().into());
        status.insert("initialization".to_owned(), json!({"dataSecretCreated": true}));
    }
    status.insert("deprecated".to_owned(), json!({"v1beta1": {"conditions": deprecated}}));
    Some(Value::Object(status))
}

/// What the plan promised, corrected by what failed.
fn verdicts(plan: &Plan, done: &Done, old: &KubeadmConfigStatus) -> (Verdict, Verdict) {
    let (mut certificates, mut data) = (plan.certificates.clone(), plan.data.clone());
    if certificates == Verdict::Keep
        && data == Verdict::Available
        && windlass_conditions::get(&old.conditions, conditions::CERTIFICATES_AVAILABLE).is_none()
    {
        certificates = Verdict::Available;
    }
    let Some(failure) = &done.failed else {
        return (certificates, data);
    };
    let message = failure.error.to_string();
    if let Some(Action::GenerateCertificates(_)) = plan.actions.get(failure.action) {
        let lack = Lack::failed(message.clone(), v1beta1::CERTIFICATES_GENERATION_FAILED);
        certificates = Verdict::InternalError(lack);
    }
    // Data that was there before does not go away because a later write failed.
    if old.data_secret_name.is_none() {
        data = Verdict::NotAvailable(if failure.lost_lock {
            super::plan::wait_for_control_plane()
        } else {
            Lack::failed(message, v1beta1::DATA_SECRET_GENERATION_FAILED)
        });
    }
    (certificates, data)
}

/// Sets a condition of the v1beta2 generation.
fn set(all: &mut Vec<Condition>, type_: &str, verdict: &Verdict, generation: i64, now: Timestamp) {
    let (status, reason, message) = match verdict {
        Verdict::Keep => {
            if let Some(condition) = all.iter_mut().find(|condition| condition.type_ == type_) {
                condition.observed_generation = Some(generation);
            }
            return;
        }
        Verdict::Available => (Status::True, reasons::AVAILABLE, ""),
        Verdict::NotAvailable(lack) => (Status::False, reasons::NOT_AVAILABLE, lack.message.as_str()),
        Verdict::InternalError(lack) => (Status::Unknown, reasons::INTERNAL_ERROR, lack.message.as_str()),
    };
    windlass_conditions::set(
        all,
        windlass_conditions::condition(type_, status, reason, message, now, Some(generation)),
    );
}

/// Sets a condition of the generation before.
fn set_legacy(all: &mut Vec<V1Beta1Condition>, type_: &str, verdict: &Verdict, now: Timestamp) {
    match verdict {
        Verdict::Keep => {}
        Verdict::Available => legacy::set(all, legacy::truth(type_, now)),
        Verdict::NotAvailable(lack) | Verdict::InternalError(lack) => {
            let message = lack.v1beta1_message.as_deref().unwrap_or_default();
            let condition = legacy::falsehood(type_, lack.v1beta1_reason, lack.v1beta1_severity, message, now);
            legacy::set(all, condition);
        }
    }
}

impl windlass_controller_runtime::Done for Done {
    fn failed(&self) -> Option<&ReconcileError> {
        self.failed.as_ref().map(|failure| &failure.error)
    }
}
