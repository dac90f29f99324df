//! Conversion of the status of KubeadmControlPlanes.

use windlass_api_kubeadm::controlplane::v1beta2 as hub;

use super::{KubeadmControlPlaneStatus, KubeadmControlPlaneV1Beta2Status, LastRemediationStatus};
use crate::bootstrap::v1beta1::parts::{counted, filled, intended, unless_default};

/// The status in the older version.
pub(super) fn from_hub(hub: Option<hub::KubeadmControlPlaneStatus>) -> KubeadmControlPlaneStatus {
    let hub::KubeadmControlPlaneStatus {
        available_replicas,
        conditions,
        deprecated,
        initialization,
        last_remediation,
        observed_generation,
        ready_replicas,
        replicas,
        selector,
        up_to_date_replicas,
        version,
        versions,
    } = hub.unwrap_or_default();
    let hub::KubeadmControlPlaneV1Beta1DeprecatedStatus {
        conditions: older_conditions,
        failure_message,
        failure_reason,
        ready_replicas: older_ready_replicas,
        unavailable_replicas,
        updated_replicas,
    } = deprecated
        .and_then(|hub::KubeadmControlPlaneDeprecatedStatus { v1beta1 }| v1beta1)
        .unwrap_or_default();
    let hub::KubeadmControlPlaneInitializationStatus {
        control_plane_initialized,
    } = initialization.unwrap_or_default();
    let older_ready_replicas = older_ready_replicas.unwrap_or_default();
    KubeadmControlPlaneStatus {
        conditions: older_conditions,
        failure_message,
        failure_reason,
        initialized: control_plane_initialized.unwrap_or_default(),
        last_remediation: last_remediation.map(
            |hub::LastRemediationStatus {
                 machine,
                 retry_count,
                 time,
             }| LastRemediationStatus {
                machine,
                retry_count,
                timestamp: time,
            },
        ),
        observed_generation: filled(observed_generation),
        ready: older_ready_replicas > 0,
        ready_replicas: older_ready_replicas,
        replicas: replicas.unwrap_or_default(),
        selector: filled(selector),
        unavailable_replicas: unavailable_replicas.unwrap_or_default(),
        updated_replicas: updated_replicas.unwrap_or_default(),
        v1beta2: unless_default(KubeadmControlPlaneV1Beta2Status {
            available_replicas,
            conditions,
            ready_replicas,
            up_to_date_replicas,
        }),
        version: filled(version),
        versions,
    }
}

/// The status in the hub version, unless it is empty.
pub(super) fn to_hub(
    older: KubeadmControlPlaneStatus,
    kept: Option<&hub::KubeadmControlPlane>,
) -> Option<hub::KubeadmControlPlaneStatus> {
    // The hub has no field `ready`: it follows from the number of ready Machines.
    let KubeadmControlPlaneStatus {
        conditions,
        failure_message,
        failure_reason,
        initialized,
        last_remediation,
        observed_generation,
        ready: _,
        ready_replicas,
        replicas,
        selector,
        unavailable_replicas,
        updated_replicas,
        v1beta2,
        version,
        versions,
    } = older;
    let KubeadmControlPlaneV1Beta2Status {
        available_replicas,
        conditions: hub_conditions,
        ready_replicas: hub_ready_replicas,
        up_to_date_replicas,
    } = v1beta2.unwrap_or_default();
    let kept_status = kept.and_then(|kept| kept.status.as_ref());
    let kept_initialized = kept_status
        .and_then(|kept| kept.initialization.as_ref())
        .and_then(|kept| kept.control_plane_initialized);
    let kept_v1beta1 = kept_status
        .and_then(|kept| kept.deprecated.as_ref())
        .and_then(|kept| kept.v1beta1.as_ref());
    let is_unset = |count: fn(&hub::KubeadmControlPlaneV1Beta1DeprecatedStatus) -> Option<i32>| {
        kept.is_some() && kept_v1beta1.and_then(count).is_none()
    };
    let of_v1beta1 = hub::KubeadmControlPlaneV1Beta1DeprecatedStatus {
        conditions,
        failure_message,
        failure_reason,
        ready_replicas: counted(ready_replicas, is_unset(|kept| kept.ready_replicas)),
        unavailable_replicas: counted(unavailable_replicas, is_unset(|kept| kept.unavailable_replicas)),
        updated_replicas: counted(updated_replicas, is_unset(|kept| kept.updated_replicas)),
    };
    let are_replicas_unset = kept.is_some() && kept_status.and_then(|kept| kept.replicas).is_none();
    unless_default(hub::KubeadmControlPlaneStatus {
        available_replicas,
        conditions: hub_conditions,
        deprecated: deprecated(of_v1beta1, kept),
        initialization: unless_default(hub::KubeadmControlPlaneInitializationStatus {
            control_plane_initialized: intended(initialized, kept_initialized),
        }),
        last_remediation: last_remediation.map(
            |LastRemediationStatus {
                 machine,
                 retry_count,
                 timestamp,
             }| hub::LastRemediationStatus {
                machine,
                retry_count,
                time: timestamp,
            },
        ),
        observed_generation: filled(observed_generation),
        ready_replicas: hub_ready_replicas,
        replicas: counted(replicas, are_replicas_unset),
        selector: filled(selector),
        up_to_date_replicas,
        version: filled(version),
        versions,
    })
}

/// The fields of v1beta1. They are always there, except when the kept status was without them and there is still nothing.
fn deprecated(
    v1beta1: hub::KubeadmControlPlaneV1Beta1DeprecatedStatus,
    kept: Option<&hub::KubeadmControlPlane>,
) -> Option<hub::KubeadmControlPlaneDeprecatedStatus> {
    if v1beta1 == hub::KubeadmControlPlaneV1Beta1DeprecatedStatus::default()
        && let Some(kept) = kept
    {
        let kept = kept.status.as_ref().and_then(|status| status.deprecated.as_ref());
        if kept.is_none_or(|kept| kept.v1beta1.is_none()) {
            return kept.cloned();
        }
    }
    Some(hub::KubeadmControlPlaneDeprecatedStatus { v1beta1: Some(v1beta1) })
}
