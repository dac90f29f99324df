//! Conversion of the status of KubeadmConfigs.

use windlass_api_kubeadm::bootstrap::v1beta2 as hub;

use super::parts::{filled, intended, unless_default};
use super::{KubeadmConfigStatus, KubeadmConfigV1Beta2Status};

/// The status in the older version.
pub(super) fn from_hub(hub: Option<hub::KubeadmConfigStatus>) -> KubeadmConfigStatus {
    let hub::KubeadmConfigStatus {
        conditions,
        data_secret_name,
        deprecated,
        initialization,
        observed_generation,
    } = hub.unwrap_or_default();
    let hub::KubeadmConfigV1Beta1DeprecatedStatus {
        conditions: older_conditions,
        failure_message,
        failure_reason,
    } = deprecated
        .and_then(|hub::KubeadmConfigDeprecatedStatus { v1beta1 }| v1beta1)
        .unwrap_or_default();
    let hub::KubeadmConfigInitializationStatus { data_secret_created } = initialization.unwrap_or_default();
    KubeadmConfigStatus {
        conditions: older_conditions,
        data_secret_name: filled(data_secret_name),
        failure_message: filled(failure_message),
        failure_reason: filled(failure_reason),
        observed_generation: filled(observed_generation),
        ready: data_secret_created.unwrap_or_default(),
        v1beta2: unless_default(KubeadmConfigV1Beta2Status { conditions }),
    }
}

/// The status in the hub version, unless it is empty.
pub(super) fn to_hub(
    older: KubeadmConfigStatus,
    kept: Option<&hub::KubeadmConfig>,
) -> Option<hub::KubeadmConfigStatus> {
    let KubeadmConfigStatus {
        conditions,
        data_secret_name,
        failure_message,
        failure_reason,
        observed_generation,
        ready,
        v1beta2,
    } = older;
    let KubeadmConfigV1Beta2Status {
        conditions: hub_conditions,
    } = v1beta2.unwrap_or_default();
    let kept_created = kept
        .and_then(|kept| kept.status.as_ref()?.initialization.as_ref())
        .and_then(|kept| kept.data_secret_created);
    let of_v1beta1 = hub::KubeadmConfigV1Beta1DeprecatedStatus {
        conditions,
        failure_message: filled(failure_message),
        failure_reason: filled(failure_reason),
    };
    unless_default(hub::KubeadmConfigStatus {
        conditions: hub_conditions,
        data_secret_name: filled(data_secret_name),
        deprecated: deprecated(of_v1beta1, kept),
        initialization: unless_default(hub::KubeadmConfigInitializationStatus {
            data_secret_created: intended(ready, kept_created),
        }),
        observed_generation: filled(observed_generation),
    })
}

/// The fields of v1beta1. They are always there, except when the kept status was without them and there is still nothing.
fn deprecated(
    v1beta1: hub::KubeadmConfigV1Beta1DeprecatedStatus,
    kept: Option<&hub::KubeadmConfig>,
) -> Option<hub::KubeadmConfigDeprecatedStatus> {
    if v1beta1 == hub::KubeadmConfigV1Beta1DeprecatedStatus::default()
        && let Some(kept) = kept
    {
        let kept = kept.status.as_ref().and_then(|status| status.deprecated.as_ref());
        if kept.is_none_or(|kept| kept.v1beta1.is_none()) {
            return kept.cloned();
        }
    }
    Some(hub::KubeadmConfigDeprecatedStatus { v1beta1: Some(v1beta1) })
}
