//! Conversion of MachinePools.

use windlass_api::core as hub;

use super::{MachinePool, MachinePoolSpec, MachinePoolStatus, MachinePoolV1Beta2Status};
use crate::convert::{ConversionError, References, Spoke};
use crate::core::v1beta1::MachineTemplateSpec;
use crate::parts::{intent, some_text, unless_default};

impl Spoke for MachinePool {
    type Hub = hub::MachinePool;

    fn into_hub(self, kept: Option<Self::Hub>) -> Result<Self::Hub, ConversionError> {
        let MachinePoolSpec {
            cluster_name,
            replicas,
            template,
            min_ready_seconds,
            provider_id_list,
            failure_domains,
        } = self.spec;
        let kept = kept.and_then(|kept| kept.status?.initialization).unwrap_or_default();
        Ok(hub::MachinePool {
            spec: hub::MachinePoolSpec {
                cluster_name,
                failure_domains,
                provider_id_list,
                replicas,
                template: template.into_hub(min_ready_seconds)?,
            },
            status: Some(status_to_hub(self.status, &kept)),
            ..Self::Hub::default()
        })
    }

    fn from_hub(hub: Self::Hub, namespace: &str, references: &dyn References) -> Result<Self, ConversionError> {
        let hub::MachinePoolSpec {
            cluster_name,
            failure_domains,
            provider_id_list,
            replicas,
            template,
        } = hub.spec;
        let (template, min_ready_seconds) = MachineTemplateSpec::from_hub(template, namespace, references)?;
        Ok(Self {
            spec: MachinePoolSpec {
                cluster_name,
                replicas,
                template,
                min_ready_seconds,
                provider_id_list,
                failure_domains,
            },
            status: status_from_hub(hub.status.unwrap_or_default()),
            ..Self::default()
        })
    }
}

fn status_to_hub(status: MachinePoolStatus, kept: &hub::MachinePoolInitializationStatus) -> hub::MachinePoolStatus {
    let MachinePoolStatus {
        node_refs,
        replicas,
        ready_replicas,
        available_replicas,
        unavailable_replicas,
        failure_reason,
        failure_message,
        phase,
        bootstrap_ready,
        infrastructure_ready,
        observed_generation,
        conditions,
        versions,
        v1beta2,
    } = status;
    let new = v1beta2.unwrap_or_default();
    hub::MachinePoolStatus {
        available_replicas: new.available_replicas,
        conditions: new.conditions,
        deprecated: Some(hub::MachinePoolDeprecatedStatus {
            v1beta1: Some(hub::MachinePoolV1Beta1DeprecatedStatus {
                available_replicas: unless_default(available_replicas),
                conditions,
                failure_message,
                failure_reason,
                ready_replicas: unless_default(ready_replicas),
                unavailable_replicas: unless_default(unavailable_replicas),
            }),
        }),
        initialization: unless_default(hub::MachinePoolInitializationStatus {
            bootstrap_data_secret_created: intent(bootstrap_ready, kept.bootstrap_data_secret_created),
            infrastructure_provisioned: intent(infrastructure_ready, kept.infrastructure_provisioned),
        }),
        node_refs,
        observed_generation: unless_default(observed_generation),
        phase: some_text(phase),
        ready_replicas: new.ready_replicas,
        replicas: Some(replicas),
        up_to_date_replicas: new.up_to_date_replicas,
        versions,
    }
}

fn status_from_hub(status: hub::MachinePoolStatus) -> MachinePoolStatus {
    let hub::MachinePoolStatus {
        available_replicas,
        conditions,
        deprecated,
        initialization,
        node_refs,
        observed_generation,
        phase,
        ready_replicas,
        replicas,
        up_to_date_replicas,
        versions,
    } = status;
    let old = deprecated.unwrap_or_default().v1beta1.unwrap_or_default();
    let initialization = initialization.unwrap_or_default();
    MachinePoolStatus {
        node_refs,
        replicas: replicas.unwrap_or_default(),
        ready_replicas: old.ready_replicas.unwrap_or_default(),
        available_replicas: old.available_replicas.unwrap_or_default(),
        unavailable_replicas: old.unavailable_replicas.unwrap_or_default(),
        failure_reason: old.failure_reason,
        failure_message: old.failure_message,
        phase: phase.unwrap_or_default(),
        bootstrap_ready: initialization.bootstrap_data_secret_created.unwrap_or_default(),
        infrastructure_ready: initialization.infrastructure_provisioned.unwrap_or_default(),
        observed_generation: observed_generation.unwrap_or_default(),
        conditions: old.conditions,
        versions,
        v1beta2: unless_default(MachinePoolV1Beta2Status {
            conditions,
            ready_replicas,
            available_replicas,
            up_to_date_replicas,
        }),
    }
}
