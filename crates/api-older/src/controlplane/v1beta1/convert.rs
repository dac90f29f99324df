//! Conversion of the spec of KubeadmControlPlanes and their templates.

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use windlass_api::core::v1beta2::{
    ContractVersionedObjectReference, MachineDeletionSpec, MachineNamingSpec, MachineReadinessGate, MachineTaint,
};
use windlass_api_kubeadm::controlplane::v1beta2 as hub;
use windlass_meta::GoDuration;

use super::{
    KubeadmControlPlaneMachineTemplate, KubeadmControlPlaneSpec, KubeadmControlPlaneTemplateMachineTemplate,
    KubeadmControlPlaneTemplateResourceSpec, RemediationStrategy, RolloutBefore, RolloutStrategy,
};
use crate::bootstrap::v1beta1::convert as config;
use crate::bootstrap::v1beta1::parts::{duration, filled, intended_seconds, seconds, unless_default};
use crate::convert::{ConversionError, References};

/// Where the reference is in both versions, in the words of the version.
const OLDER_REF: &str = "spec.machineTemplate.infrastructureRef";
const HUB_REF: &str = "spec.machineTemplate.spec.infrastructureRef";

/// The only type of rollout. Older templates need not name it; in a control plane it is defaulted after the conversion.
const ROLLING_UPDATE: &str = "RollingUpdate";

/// The spec of a KubeadmControlPlane in the older version.
pub(super) fn spec_from_hub(
    hub: hub::KubeadmControlPlaneSpec,
    namespace: &str,
    references: &dyn References,
) -> Result<KubeadmControlPlaneSpec, ConversionError> {
    let hub::KubeadmControlPlaneSpec {
        kubeadm_config_spec,
        machine_naming,
        machine_template,
        remediation,
        replicas,
        rollout,
        version,
    } = hub;
    let (rollout_after, rollout_before, rollout_strategy) = rollout_from_hub(rollout);
    Ok(KubeadmControlPlaneSpec {
        kubeadm_config_spec: config::spec_from_hub(kubeadm_config_spec),
        machine_naming_strategy: filled(machine_naming.map(plain_naming)),
        machine_template: machine_template_from_hub(machine_template, namespace, references)?,
        remediation_strategy: filled(remediation).as_ref().map(remediation_from_hub),
        replicas,
        rollout_after,
        rollout_before,
        rollout_strategy,
        version,
    })
}

/// The spec of a KubeadmControlPlane in the hub version.
pub(super) fn spec_to_hub(
    older: KubeadmControlPlaneSpec,
    kept: Option<&hub::KubeadmControlPlaneSpec>,
) -> Result<hub::KubeadmControlPlaneSpec, ConversionError> {
    let KubeadmControlPlaneSpec {
        kubeadm_config_spec,
        machine_naming_strategy,
        machine_template,
        remediation_strategy,
        replicas,
        rollout_after,
        rollout_before,
        rollout_strategy,
        version,
    } = older;
    let kept_config = kept.and_then(|kept| kept.kubeadm_config_spec.as_ref());
    let kept_remediation = kept.and_then(|kept| kept.remediation.as_ref());
    Ok(hub::KubeadmControlPlaneSpec {
        kubeadm_config_spec: config::spec_to_hub(kubeadm_config_spec, kept_config),
        machine_naming: filled(machine_naming_strategy.map(plain_naming)),
        machine_template: machine_template_to_hub(machine_template)?,
        remediation: remediation_strategy.and_then(|strategy| remediation_to_hub(&strategy, kept_remediation)),
        replicas,
        rollout: rollout_to_hub(rollout_after, rollout_before, rollout_strategy),
        version,
    })
}

/// The spec in a KubeadmControlPlaneTemplate in the older version.
pub(super) fn resource_from_hub(
    hub: hub::KubeadmControlPlaneTemplateResourceSpec,
) -> KubeadmControlPlaneTemplateResourceSpec {
    let hub::KubeadmControlPlaneTemplateResourceSpec {
        kubeadm_config_spec,
        machine_naming,
        machine_template,
        remediation,
        rollout,
    } = hub;
    let (rollout_after, rollout_before, rollout_strategy) = rollout_from_hub(rollout);
    KubeadmControlPlaneTemplateResourceSpec {
        kubeadm_config_spec: config::spec_from_hub(kubeadm_config_spec),
        machine_naming_strategy: filled(machine_naming.map(plain_naming)),
        // Always there, as in Cluster API.
        machine_template: Some(template_machines_from_hub(machine_template.unwrap_or_default())),
        remediation_strategy: filled(remediation).as_ref().map(remediation_from_hub),
        rollout_after,
        rollout_before,
        rollout_strategy,
    }
}

/// The spec in a KubeadmControlPlaneTemplate in the hub version.
pub(super) fn resource_to_hub(
    older: KubeadmControlPlaneTemplateResourceSpec,
    kept: Option<&hub::KubeadmControlPlaneTemplateResourceSpec>,
) -> hub::KubeadmControlPlaneTemplateResourceSpec {
    let KubeadmControlPlaneTemplateResourceSpec {
        kubeadm_config_spec,
        machine_naming_strategy,
        machine_template,
        remediation_strategy,
        rollout_after,
        rollout_before,
        rollout_strategy,
    } = older;
    let kept_config = kept.and_then(|kept| kept.kubeadm_config_spec.as_ref());
    let kept_remediation = kept.and_then(|kept| kept.remediation.as_ref());
    hub::KubeadmControlPlaneTemplateResourceSpec {
        kubeadm_config_spec: config::spec_to_hub(kubeadm_config_spec, kept_config),
        machine_naming: filled(machine_naming_strategy.map(plain_naming)),
        machine_template: filled(machine_template.map(template_machines_to_hub)),
        remediation: remediation_strategy.and_then(|strategy| remediation_to_hub(&strategy, kept_remediation)),
        rollout: rollout_to_hub(rollout_after, rollout_before, rollout_strategy.map(rolling)),
    }
}

fn machine_template_from_hub(
    hub: hub::KubeadmControlPlaneMachineTemplate,
    namespace: &str,
    references: &dyn References,
) -> Result<KubeadmControlPlaneMachineTemplate, ConversionError> {
    let hub::KubeadmControlPlaneMachineTemplate { metadata, spec } = hub;
    let hub::KubeadmControlPlaneMachineTemplateSpec {
        deletion,
        infrastructure_ref,
        readiness_gates,
        taints,
    } = spec;
    let timeouts = NodeTimeouts::from_hub(deletion);
    Ok(KubeadmControlPlaneMachineTemplate {
        infrastructure_ref: reference_from_hub(infrastructure_ref, namespace, references)?,
        metadata: metadata.unwrap_or_default(),
        node_deletion_timeout: timeouts.deletion,
        node_drain_timeout: timeouts.drain,
        node_volume_detach_timeout: timeouts.volume_detach,
        readiness_gates: readiness_gates.into_iter().map(plain_gate).collect(),
        taints: taints.into_iter().map(plain_taint).collect(),
    })
}

fn machine_template_to_hub(
    older: KubeadmControlPlaneMachineTemplate,
) -> Result<hub::KubeadmControlPlaneMachineTemplate, ConversionError> {
    let KubeadmControlPlaneMachineTemplate {
        infrastructure_ref,
        metadata,
        node_deletion_timeout,
        node_drain_timeout,
        node_volume_detach_timeout,
        readiness_gates,
        taints,
    } = older;
    let timeouts = NodeTimeouts {
        deletion: node_deletion_timeout,
        drain: node_drain_timeout,
        volume_detach: node_volume_detach_timeout,
    };
    Ok(hub::KubeadmControlPlaneMachineTemplate {
        metadata: unless_default(metadata),
        spec: hub::KubeadmControlPlaneMachineTemplateSpec {
            deletion: timeouts.into_hub(),
            infrastructure_ref: reference_to_hub(infrastructure_ref)?,
            readiness_gates: readiness_gates.into_iter().map(plain_gate).collect(),
            taints: taints.into_iter().map(plain_taint).collect(),
        },
    })
}

fn template_machines_from_hub(
    hub: hub::KubeadmControlPlaneTemplateMachineTemplate,
) -> KubeadmControlPlaneTemplateMachineTemplate {
    let hub::KubeadmControlPlaneTemplateMachineTemplate { metadata, spec } = hub;
    let hub::KubeadmControlPlaneTemplateMachineTemplateSpec { deletion, taints } = spec.unwrap_or_default();
    let timeouts = NodeTimeouts::from_hub(deletion);
    KubeadmControlPlaneTemplateMachineTemplate {
        metadata: metadata.unwrap_or_default(),
        node_deletion_timeout: timeouts.deletion,
        node_drain_timeout: timeouts.drain,
        node_volume_detach_timeout: timeouts.volume_detach,
        taints: taints.into_iter().map(plain_taint).collect(),
    }
}

fn template_machines_to_hub(
    older: KubeadmControlPlaneTemplateMachineTemplate,
) -> hub::KubeadmControlPlaneTemplateMachineTemplate {
    let KubeadmControlPlaneTemplateMachineTemplate {
        metadata,
        node_deletion_timeout,
        node_drain_timeout,
        node_volume_detach_timeout,
        taints,
    } = older;
    let timeouts = NodeTimeouts {
        deletion: node_deletion_timeout,
        drain: node_drain_timeout,
        volume_detach: node_volume_detach_timeout,
    };
    hub::KubeadmControlPlaneTemplateMachineTemplate {
        metadata: unless_default(metadata),
        spec: unless_default(hub::KubeadmControlPlaneTemplateMachineTemplateSpec {
            deletion: timeouts.into_hub(),
            taints: taints.into_iter().map(plain_taint).collect(),
        }),
    }
}

/// The timeouts of a Machine's deletion.
struct NodeTimeouts {
    deletion: Option<GoDuration>,
    drain: Option<GoDuration>,
    volume_detach: Option<GoDuration>,
}

impl NodeTimeouts {
    fn from_hub(hub: Option<MachineDeletionSpec>) -> Self {
        let MachineDeletionSpec {
            node_deletion_timeout_seconds,
            node_drain_timeout_seconds,
            node_volume_detach_timeout_seconds,
        } = hub.unwrap_or_default();
        Self {
            deletion: node_deletion_timeout_seconds.map(duration),
            drain: node_drain_timeout_seconds.map(duration),
            volume_detach: node_volume_detach_timeout_seconds.map(duration),
        }
    }

    fn into_hub(self) -> Option<MachineDeletionSpec> {
        let Self {
            deletion,
            drain,
            volume_detach,
        } = self;
        unless_default(MachineDeletionSpec {
            node_deletion_timeout_seconds: deletion.map(seconds),
            node_drain_timeout_seconds: drain.map(seconds),
            node_volume_detach_timeout_seconds: volume_detach.map(seconds),
        })
    }
}

/// The reference with the version of the kind and the namespace of the control plane. An empty reference stays empty.
fn reference_from_hub(
    hub: ContractVersionedObjectReference,
    namespace: &str,
    references: &dyn References,
) -> Result<ObjectReference, ConversionError> {
    if hub == ContractVersionedObjectReference::default() {
        return Ok(ObjectReference::default());
    }
    let group_kind = hub.group_kind();
    let ContractVersionedObjectReference {
        api_group: _,
        kind,
        name,
    } = hub;
    let api_version = references
        .api_version(&group_kind)
        .map_err(|why| ConversionError::new(HUB_REF, format!("the apiVersion of {group_kind} is not known: {why}")))?;
    Ok(ObjectReference {
        api_version: filled(Some(api_version)),
        kind: filled(Some(kind)),
        name: filled(Some(name)),
        namespace: filled(Some(namespace.to_owned())),
        ..ObjectReference::default()
    })
}

/// The reference without the version. The namespace is that of the control plane, and the other fields have no meaning here.
fn reference_to_hub(older: ObjectReference) -> Result<ContractVersionedObjectReference, ConversionError> {
    let ObjectReference {
        api_version,
        field_path: _,
        kind,
        name,
        namespace: _,
        resource_version: _,
        uid: _,
    } = older;
    let api_version = api_version.unwrap_or_default();
    let api_group = match api_version.split_once('/') {
        None => "",
        Some((group, version)) if !version.contains('/') => group,
        Some(_) => {
            return Err(ConversionError::new(
                format!("{OLDER_REF}.apiVersion"),
                format!("{api_version:?} is not an API version: expected GROUP/VERSION"),
            ));
        }
    };
    Ok(ContractVersionedObjectReference {
        api_group: api_group.to_owned(),
        kind: kind.unwrap_or_default(),
        name: name.unwrap_or_default(),
    })
}

fn plain_gate(gate: MachineReadinessGate) -> MachineReadinessGate {
    let MachineReadinessGate {
        condition_type,
        polarity,
    } = gate;
    MachineReadinessGate {
        condition_type,
        polarity: filled(polarity),
    }
}

fn plain_taint(taint: MachineTaint) -> MachineTaint {
    let MachineTaint {
        effect,
        key,
        propagation,
        value,
    } = taint;
    MachineTaint {
        effect,
        key,
        propagation,
        value: filled(value),
    }
}

fn plain_naming(naming: MachineNamingSpec) -> MachineNamingSpec {
    let MachineNamingSpec { template } = naming;
    MachineNamingSpec {
        template: filled(template),
    }
}

fn remediation_from_hub(hub: &hub::KubeadmControlPlaneRemediationSpec) -> RemediationStrategy {
    let hub::KubeadmControlPlaneRemediationSpec {
        max_retry,
        min_healthy_period_seconds,
        retry_period_seconds,
    } = *hub;
    RemediationStrategy {
        max_retry,
        min_healthy_period: min_healthy_period_seconds.map(duration),
        retry_period: retry_period_seconds.map(duration).unwrap_or_default(),
    }
}

fn remediation_to_hub(
    older: &RemediationStrategy,
    kept: Option<&hub::KubeadmControlPlaneRemediationSpec>,
) -> Option<hub::KubeadmControlPlaneRemediationSpec> {
    let RemediationStrategy {
        max_retry,
        min_healthy_period,
        retry_period,
    } = *older;
    unless_default(hub::KubeadmControlPlaneRemediationSpec {
        max_retry,
        min_healthy_period_seconds: min_healthy_period.map(seconds),
        retry_period_seconds: intended_seconds(retry_period, kept.and_then(|kept| kept.retry_period_seconds)),
    })
}

fn rollout_from_hub(
    hub: Option<hub::KubeadmControlPlaneRolloutSpec>,
) -> (Option<Time>, Option<RolloutBefore>, Option<RolloutStrategy>) {
    let hub::KubeadmControlPlaneRolloutSpec {
        after,
        before,
        strategy,
    } = hub.unwrap_or_default();
    let before = filled(before).map(
        |hub::KubeadmControlPlaneRolloutBeforeSpec {
             certificates_expiry_days,
         }| {
            RolloutBefore {
                certificates_expiry_days,
            }
        },
    );
    let strategy =
        filled(strategy).map(
            |hub::KubeadmControlPlaneRolloutStrategy { rolling_update, type_ }| RolloutStrategy {
                rolling_update: filled(rolling_update),
                type_: filled(Some(type_)),
            },
        );
    (after, before, strategy)
}

/// The strategy of a template, with its type.
fn rolling(strategy: RolloutStrategy) -> RolloutStrategy {
    let RolloutStrategy { rolling_update, type_ } = strategy;
    RolloutStrategy {
        rolling_update,
        type_: filled(type_).or_else(|| Some(ROLLING_UPDATE.to_owned())),
    }
}

fn rollout_to_hub(
    after: Option<Time>,
    before: Option<RolloutBefore>,
    strategy: Option<RolloutStrategy>,
) -> Option<hub::KubeadmControlPlaneRolloutSpec> {
    let before = before.map(
        |RolloutBefore {
             certificates_expiry_days,
         }| hub::KubeadmControlPlaneRolloutBeforeSpec {
            certificates_expiry_days: filled(certificates_expiry_days),
        },
    );
    let strategy = strategy.map(
        |RolloutStrategy { rolling_update, type_ }| hub::KubeadmControlPlaneRolloutStrategy {
            rolling_update: filled(rolling_update),
            type_: type_.unwrap_or_default(),
        },
    );
    unless_default(hub::KubeadmControlPlaneRolloutSpec {
        after,
        before: filled(before),
        strategy: filled(strategy),
    })
}
