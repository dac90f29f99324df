//! Conversion of Machines, and of the templates of Machines.

use windlass_api::core as hub;

use super::{Bootstrap, Machine, MachineSpec, MachineStatus};
use crate::common::V1Beta2Status;
use crate::convert::{ConversionError, References, Spoke};
use crate::parts::{
    from_hub_reference, from_seconds, intent, some_text, to_hub_reference, to_seconds, unless_default, unless_empty,
};

/// The phase of a Machine that is updated in place, which older versions do not have.
const UPDATING: &str = "Updating";
const RUNNING: &str = "Running";

impl Spoke for Machine {
    type Hub = hub::Machine;

    fn into_hub(self, kept: Option<Self::Hub>) -> Result<Self::Hub, ConversionError> {
        let has_kept = kept.is_some();
        let kept = kept.unwrap_or_default();
        let kept_status = kept.status.unwrap_or_default();
        let mut spec = spec_to_hub("spec", self.spec)?;
        spec.min_ready_seconds = kept.spec.min_ready_seconds;
        let mut status = status_to_hub(self.status, &kept_status.initialization.unwrap_or_default());
        // The older version has only some of the phases and no failure domain in the status. Only the controller writes them.
        if has_kept {
            status.phase = kept_status.phase;
            status.failure_domain = kept_status.failure_domain;
        }
        Ok(hub::Machine {
            spec,
            status: unless_default(status),
            ..Self::Hub::default()
        })
    }

    fn from_hub(hub: Self::Hub, namespace: &str, references: &dyn References) -> Result<Self, ConversionError> {
        Ok(Self {
            spec: spec_from_hub("spec", hub.spec, namespace, references)?.0,
            status: status_from_hub(hub.status.unwrap_or_default()),
            ..Self::default()
        })
    }
}

/// The spec of a Machine at a path. `minReadySeconds` is a field of the objects around it in the older version.
pub(in crate::core::v1beta1) fn spec_to_hub(
    path: &str,
    spec: MachineSpec,
) -> Result<hub::MachineSpec, ConversionError> {
    let MachineSpec {
        cluster_name,
        bootstrap: Bootstrap {
            config_ref,
            data_secret_name,
        },
        infrastructure_ref,
        version,
        provider_id,
        failure_domain,
        readiness_gates,
        node_drain_timeout,
        node_volume_detach_timeout,
        node_deletion_timeout,
        taints,
    } = spec;
    let config_ref = config_ref
        .map(|reference| to_hub_reference(&format!("{path}.bootstrap.configRef"), reference))
        .transpose()?;
    Ok(hub::MachineSpec {
        bootstrap: hub::Bootstrap {
            config_ref: config_ref.and_then(unless_default),
            data_secret_name,
        },
        cluster_name,
        deletion: unless_default(hub::MachineDeletionSpec {
            node_deletion_timeout_seconds: to_seconds(node_deletion_timeout),
            node_drain_timeout_seconds: to_seconds(node_drain_timeout),
            node_volume_detach_timeout_seconds: to_seconds(node_volume_detach_timeout),
        }),
        failure_domain: unless_empty(failure_domain),
        infrastructure_ref: to_hub_reference(&format!("{path}.infrastructureRef"), infrastructure_ref)?,
        min_ready_seconds: None,
        provider_id: unless_empty(provider_id),
        readiness_gates,
        taints,
        version: unless_empty(version),
    })
}

/// The inverse of [`spec_to_hub`], with `minReadySeconds`.
pub(in crate::core::v1beta1) fn spec_from_hub(
    path: &str,
    spec: hub::MachineSpec,
    namespace: &str,
    references: &dyn References,
) -> Result<(MachineSpec, Option<i32>), ConversionError> {
    let hub::MachineSpec {
        bootstrap,
        cluster_name,
        deletion,
        failure_domain,
        infrastructure_ref,
        min_ready_seconds,
        provider_id,
        readiness_gates,
        taints,
        version,
    } = spec;
    let reference =
        |field: &str, reference| from_hub_reference(&format!("{path}.{field}"), reference, namespace, references);
    let deletion = deletion.unwrap_or_default();
    let config_ref = match bootstrap.config_ref {
        Some(config_ref) => reference("bootstrap.configRef", config_ref)?,
        None => None,
    };
    let spec = MachineSpec {
        cluster_name,
        bootstrap: Bootstrap {
            config_ref,
            data_secret_name: bootstrap.data_secret_name,
        },
        infrastructure_ref: reference("infrastructureRef", infrastructure_ref)?.unwrap_or_default(),
        version: unless_empty(version),
        provider_id: unless_empty(provider_id),
        failure_domain: unless_empty(failure_domain),
        readiness_gates,
        node_drain_timeout: from_seconds(deletion.node_drain_timeout_seconds),
        node_volume_detach_timeout: from_seconds(deletion.node_volume_detach_timeout_seconds),
        node_deletion_timeout: from_seconds(deletion.node_deletion_timeout_seconds),
        taints,
    };
    Ok((spec, min_ready_seconds))
}

fn status_to_hub(status: MachineStatus, kept: &hub::MachineInitializationStatus) -> hub::MachineStatus {
    let MachineStatus {
        node_ref,
        node_info,
        last_updated,
        failure_reason,
        failure_message,
        addresses,
        phase,
        certificates_expiry_date,
        bootstrap_ready,
        infrastructure_ready,
        observed_generation,
        conditions,
        deletion,
        v1beta2,
    } = status;
    let deprecated = unless_default(hub::MachineV1Beta1DeprecatedStatus {
        conditions,
        failure_message,
        failure_reason,
    });
    hub::MachineStatus {
        addresses,
        certificates_expiry_date,
        conditions: V1Beta2Status::into_conditions(v1beta2),
        deletion,
        deprecated: deprecated.map(|v1beta1| hub::MachineDeprecatedStatus { v1beta1: Some(v1beta1) }),
        failure_domain: None,
        initialization: unless_default(hub::MachineInitializationStatus {
            bootstrap_data_secret_created: intent(bootstrap_ready, kept.bootstrap_data_secret_created),
            infrastructure_provisioned: intent(infrastructure_ready, kept.infrastructure_provisioned),
        }),
        last_updated,
        node_info,
        node_ref: node_ref
            .and_then(|node| node.name)
            .and_then(some_text)
            .map(|name| hub::MachineNodeReference { name }),
        observed_generation: unless_default(observed_generation),
        phase: some_text(phase),
    }
}

fn status_from_hub(status: hub::MachineStatus) -> MachineStatus {
    let hub::MachineStatus {
        addresses,
        certificates_expiry_date,
        conditions,
        deletion,
        deprecated,
        failure_domain: _,
        initialization,
        last_updated,
        node_info,
        node_ref,
        observed_generation,
        phase,
    } = status;
    let deprecated = deprecated.unwrap_or_default().v1beta1.unwrap_or_default();
    let initialization = initialization.unwrap_or_default();
    let node = |node: hub::MachineNodeReference| k8s_openapi::api::core::v1::ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Node".to_owned()),
        name: Some(node.name),
        ..Default::default()
    };
    MachineStatus {
        node_ref: node_ref.filter(|node| !node.name.is_empty()).map(node),
        node_info,
        last_updated,
        failure_reason: deprecated.failure_reason,
        failure_message: deprecated.failure_message,
        addresses,
        phase: match phase {
            Some(phase) if phase == UPDATING => RUNNING.to_owned(),
            phase => phase.unwrap_or_default(),
        },
        certificates_expiry_date,
        bootstrap_ready: initialization.bootstrap_data_secret_created.unwrap_or_default(),
        infrastructure_ready: initialization.infrastructure_provisioned.unwrap_or_default(),
        observed_generation: observed_generation.unwrap_or_default(),
        conditions: deprecated.conditions,
        deletion,
        v1beta2: V1Beta2Status::holding(conditions),
    }
}
