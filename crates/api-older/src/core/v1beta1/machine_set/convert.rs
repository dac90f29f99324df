//! Conversion of MachineSets. The older version can express everything of the hub.

use windlass_api::core as hub;

use super::{MachineSet, MachineSetSpec, MachineSetStatus, MachineSetV1Beta2Status};
use crate::convert::{ConversionError, References, Spoke};
use crate::core::v1beta1::MachineTemplateSpec;
use crate::core::v1beta1::common::{naming_from_hub, naming_to_hub};
use crate::parts::{some_text, unless_default};

impl Spoke for MachineSet {
    type Hub = hub::MachineSet;
    const CARRIES_HUB: bool = false;

    fn into_hub(self, _: Option<Self::Hub>) -> Result<Self::Hub, ConversionError> {
        let MachineSetSpec {
            cluster_name,
            replicas,
            min_ready_seconds,
            delete_policy,
            selector,
            template,
            machine_naming_strategy,
        } = self.spec;
        Ok(hub::MachineSet {
            spec: hub::MachineSetSpec {
                cluster_name,
                deletion: unless_default(hub::MachineSetDeletionSpec {
                    order: some_text(delete_policy),
                }),
                machine_naming: naming_to_hub(machine_naming_strategy),
                replicas,
                selector,
                template: template.into_hub(unless_default(min_ready_seconds))?,
            },
            status: Some(status_to_hub(self.status)),
            ..Self::Hub::default()
        })
    }

    fn from_hub(hub: Self::Hub, namespace: &str, references: &dyn References) -> Result<Self, ConversionError> {
        let hub::MachineSetSpec {
            cluster_name,
            deletion,
            machine_naming,
            replicas,
            selector,
            template,
        } = hub.spec;
        let (template, min_ready_seconds) = MachineTemplateSpec::from_hub(template, namespace, references)?;
        Ok(Self {
            spec: MachineSetSpec {
                cluster_name,
                replicas,
                min_ready_seconds: min_ready_seconds.unwrap_or_default(),
                delete_policy: deletion.and_then(|deletion| deletion.order).unwrap_or_default(),
                selector,
                template,
                machine_naming_strategy: naming_from_hub(machine_naming),
            },
            status: status_from_hub(hub.status.unwrap_or_default()),
            ..Self::default()
        })
    }
}

fn status_to_hub(status: MachineSetStatus) -> hub::MachineSetStatus {
    let MachineSetStatus {
        selector,
        replicas,
        fully_labeled_replicas,
        ready_replicas,
        available_replicas,
        observed_generation,
        failure_reason,
        failure_message,
        conditions,
        versions,
        v1beta2,
    } = status;
    let new = v1beta2.unwrap_or_default();
    hub::MachineSetStatus {
        available_replicas: new.available_replicas,
        conditions: new.conditions,
        deprecated: Some(hub::MachineSetDeprecatedStatus {
            v1beta1: Some(hub::MachineSetV1Beta1DeprecatedStatus {
                available_replicas: Some(available_replicas),
                conditions,
                failure_message,
                failure_reason,
                fully_labeled_replicas: Some(fully_labeled_replicas),
                ready_replicas: Some(ready_replicas),
            }),
        }),
        observed_generation: unless_default(observed_generation),
        ready_replicas: new.ready_replicas,
        replicas: Some(replicas),
        selector: some_text(selector),
        up_to_date_replicas: new.up_to_date_replicas,
        versions,
    }
}

fn status_from_hub(status: hub::MachineSetStatus) -> MachineSetStatus {
    let hub::MachineSetStatus {
        available_replicas,
        conditions,
        deprecated,
        observed_generation,
        ready_replicas,
        replicas,
        selector,
        up_to_date_replicas,
        versions,
    } = status;
    let old = deprecated.unwrap_or_default().v1beta1.unwrap_or_default();
    MachineSetStatus {
        selector: selector.unwrap_or_default(),
        replicas: replicas.unwrap_or_default(),
        fully_labeled_replicas: old.fully_labeled_replicas.unwrap_or_default(),
        ready_replicas: old.ready_replicas.unwrap_or_default(),
        available_replicas: old.available_replicas.unwrap_or_default(),
        observed_generation: observed_generation.unwrap_or_default(),
        failure_reason: old.failure_reason,
        failure_message: old.failure_message,
        conditions: old.conditions,
        versions,
        v1beta2: unless_default(MachineSetV1Beta2Status {
            conditions,
            ready_replicas,
            available_replicas,
            up_to_date_replicas,
        }),
    }
}
