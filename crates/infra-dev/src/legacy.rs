//! Conditions of the previous API generation, derived from the current ones.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use windlass_api::Condition;
use windlass_api::core::V1Beta1Condition;

/// The old condition that says the same as a current one; times of transition are kept while it says the same.
pub(crate) fn restated(current: &Condition, before: &[V1Beta1Condition], now: Timestamp) -> V1Beta1Condition {
    let good = current.status == "True";
    let text = |text: &str| (!good && !text.is_empty()).then(|| text.to_owned());
    let mut old = V1Beta1Condition {
        type_: current.type_.clone(),
        status: current.status.clone(),
        severity: (current.status == "False").then(|| "Info".to_owned()),
        reason: text(&current.reason),
        message: text(&current.message),
        last_transition_time: Time(now),
    };
    if let Some(previous) = before.iter().find(|previous| previous.type_ == old.type_) {
        let same = previous.status == old.status && previous.reason == old.reason && previous.message == old.message;
        if same {
            old.last_transition_time = previous.last_transition_time.clone();
        }
    }
    old
}

/// `Ready` first, the others by type, as tools expect them.
pub(crate) fn sorted(mut list: Vec<V1Beta1Condition>) -> Vec<V1Beta1Condition> {
    list.sort_by(|a, b| (a.type_ != "Ready", &a.type_).cmp(&(b.type_ != "Ready", &b.type_)));
    list
}
