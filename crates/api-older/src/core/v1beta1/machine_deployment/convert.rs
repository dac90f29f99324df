//! Conversion of MachineDeployments, and of how Machines are replaced.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use windlass_api::core as hub;

use super::{
    MachineDeployment, MachineDeploymentSpec, MachineDeploymentStatus, MachineDeploymentStrategy,
    MachineDeploymentV1Beta2Status, MachineRollingUpdateDeployment, RemediationStrategy,
};
use crate::convert::{ConversionError, References, Spoke};
use crate::core::v1beta1::MachineTemplateSpec;
use crate::core::v1beta1::common::{naming_from_hub, naming_to_hub};
use crate::parts::{intent, some_text, unless_default, unless_empty};

/// The parts of a strategy, which are fields of their own in the hub.
#[derive(Default)]
pub(in crate::core::v1beta1) struct Strategy {
    /// How Machines are replaced.
    pub(in crate::core::v1beta1) rollout: Option<hub::MachineDeploymentRolloutStrategy>,
    /// Which Machines go first.
    pub(in crate::core::v1beta1) order: Option<String>,
    /// How many Machines may be under remediation.
    pub(in crate::core::v1beta1) max_in_flight: Option<IntOrString>,
}

impl Strategy {
    pub(in crate::core::v1beta1) fn of(strategy: Option<MachineDeploymentStrategy>) -> Self {
        let MachineDeploymentStrategy {
            type_,
            rolling_update,
            remediation,
        } = strategy.unwrap_or_default();
        let MachineRollingUpdateDeployment {
            max_unavailable,
            max_surge,
            delete_policy,
        } = rolling_update.unwrap_or_default();
        Self {
            rollout: unless_default(hub::MachineDeploymentRolloutStrategy {
                rolling_update: unless_default(hub::MachineDeploymentRollingUpdate {
                    max_surge,
                    max_unavailable,
                }),
                type_,
            }),
            order: unless_empty(delete_policy),
            max_in_flight: remediation.and_then(|remediation| remediation.max_in_flight),
        }
    }

    pub(in crate::core::v1beta1) fn into_older(self) -> Option<MachineDeploymentStrategy> {
        let hub::MachineDeploymentRolloutStrategy { rolling_update, type_ } = self.rollout.unwrap_or_default();
        let hub::MachineDeploymentRollingUpdate {
            max_surge,
            max_unavailable,
        } = rolling_update.unwrap_or_default();
        unless_default(MachineDeploymentStrategy {
            type_,
            rolling_update: unless_default(MachineRollingUpdateDeployment {
                max_unavailable,
                max_surge,
                delete_policy: unless_empty(self.order),
            }),
            remediation: self.max_in_flight.map(|max_in_flight| RemediationStrategy {
                max_in_flight: Some(max_in_flight),
            }),
        })
    }
}

impl Spoke for MachineDeployment {
    type Hub = hub::MachineDeployment;

    fn into_hub(self, kept: Option<Self::Hub>) -> Result<Self::Hub, ConversionError> {
        let MachineDeploymentSpec {
            cluster_name,
            replicas,
            rollout_after,
            selector,
            template,
            strategy,
            machine_naming_strategy,
            min_ready_seconds,
            revision_history_limit: _,
            paused,
            progress_deadline_seconds: _,
        } = self.spec;
        let strategy = Strategy::of(strategy);
        Ok(hub::MachineDeployment {
            spec: hub::MachineDeploymentSpec {
                cluster_name,
                deletion: unless_default(hub::MachineDeploymentDeletionSpec { order: strategy.order }),
                machine_naming: naming_to_hub(machine_naming_strategy),
                paused: intent(paused, kept.and_then(|kept| kept.spec.paused)),
                remediation: unless_default(hub::MachineDeploymentRemediationSpec {
                    max_in_flight: strategy.max_in_flight,
                }),
                replicas,
                rollout: unless_default(hub::MachineDeploymentRolloutSpec {
                    after: rollout_after,
                    strategy: strategy.rollout,
                }),
                selector,
                template: template.into_hub(min_ready_seconds)?,
            },
            status: Some(status_to_hub(self.status)),
            ..Self::Hub::default()
        })
    }

    fn from_hub(hub: Self::Hub, namespace: &str, references: &dyn References) -> Result<Self, ConversionError> {
        let hub::MachineDeploymentSpec {
            cluster_name,
            deletion,
            machine_naming,
            paused,
            remediation,
            replicas,
            rollout,
            selector,
            template,
        } = hub.spec;
        let (template, min_ready_seconds) = MachineTemplateSpec::from_hub(template, namespace, references)?;
        let rollout = rollout.unwrap_or_default();
        let strategy = Strategy {
            rollout: rollout.strategy,
            order: deletion.and_then(|deletion| deletion.order),
            max_in_flight: remediation.and_then(|remediation| remediation.max_in_flight),
        };
        Ok(Self {
            spec: MachineDeploymentSpec {
                cluster_name,
                replicas,
                rollout_after: rollout.after,
                selector,
                template,
                strategy: strategy.into_older(),
                machine_naming_strategy: naming_from_hub(machine_naming),
                min_ready_seconds,
                revision_history_limit: None,
                paused: paused.unwrap_or_default(),
                progress_deadline_seconds: None,
            },
            status: status_from_hub(hub.status.unwrap_or_default()),
            ..Self::default()
        })
    }
}

fn status_to_hub(status: MachineDeploymentStatus) -> hub::MachineDeploymentStatus {
    let MachineDeploymentStatus {
        observed_generation,
        selector,
        replicas,
        updated_replicas,
        ready_replicas,
        available_replicas,
        unavailable_replicas,
        phase,
        conditions,
        versions,
        v1beta2,
    } = status;
    let new = v1beta2.unwrap_or_default();
    hub::MachineDeploymentStatus {
        available_replicas: new.available_replicas,
        conditions: new.conditions,
        deprecated: Some(hub::MachineDeploymentDeprecatedStatus {
            v1beta1: Some(hub::MachineDeploymentV1Beta1DeprecatedStatus {
                available_replicas: Some(available_replicas),
                conditions,
                ready_replicas: Some(ready_replicas),
                unavailable_replicas: Some(unavailable_replicas),
                updated_replicas: Some(updated_replicas),
            }),
        }),
        observed_generation: unless_default(observed_generation),
        phase: some_text(phase),
        ready_replicas: new.ready_replicas,
        replicas: Some(replicas),
        selector: some_text(selector),
        up_to_date_replicas: new.up_to_date_replicas,
        versions,
    }
}

fn status_from_hub(status: hub::MachineDeploymentStatus) -> MachineDeploymentStatus {
    let hub::MachineDeploymentStatus {
        available_replicas,
        conditions,
        deprecated,
        observed_generation,
        phase,
        ready_replicas,
        replicas,
        selector,
        up_to_date_replicas,
        versions,
    } = status;
    let old = deprecated.unwrap_or_default().v1beta1.unwrap_or_default();
    MachineDeploymentStatus {
        observed_generation: observed_generation.unwrap_or_default(),
        selector: selector.unwrap_or_default(),
        replicas: replicas.unwrap_or_default(),
        updated_replicas: old.updated_replicas.unwrap_or_default(),
        ready_replicas: old.ready_replicas.unwrap_or_default(),
        available_replicas: old.available_replicas.unwrap_or_default(),
        unavailable_replicas: old.unavailable_replicas.unwrap_or_default(),
        phase: phase.unwrap_or_default(),
        conditions: old.conditions,
        versions,
        v1beta2: unless_default(MachineDeploymentV1Beta2Status {
            conditions,
            ready_replicas,
            available_replicas,
            up_to_date_replicas,
        }),
    }
}
