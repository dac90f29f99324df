//! Conversion of ClusterClasses.

use windlass_api::core as hub;

use super::{
    ClassNamingStrategy, ClusterClass, ClusterClassSpec, ClusterClassStatus, ControlPlaneClass, LocalObjectTemplate,
    MachineDeploymentClass, MachinePoolClass, WorkerClassTemplate, WorkersClass,
};
use crate::common::V1Beta2Status;
use crate::convert::{ConversionError, References, Spoke};
use crate::core::v1beta1::ObjectMeta;
use crate::core::v1beta1::machine_deployment::Strategy;
use crate::core::v1beta1::machine_health_check::HubCheck;
use crate::parts::{from_seconds, from_template, to_seconds, to_template, unless_default, unless_empty};

impl Spoke for ClusterClass {
    type Hub = hub::ClusterClass;

    fn into_hub(self, kept: Option<Self::Hub>) -> Result<Self::Hub, ConversionError> {
        let kept = kept.unwrap_or_default();
        let ClusterClassSpec {
            availability_gates,
            infrastructure,
            infrastructure_naming_strategy,
            control_plane,
            workers: WorkersClass {
                machine_deployments,
                machine_pools,
            },
            variables,
            patches,
            upgrade,
            kubernetes_versions,
        } = self.spec;
        let workers = hub::WorkersClass {
            machine_deployments: machine_deployments.into_iter().map(deployment_to_hub).collect(),
            machine_pools: machine_pools.into_iter().map(pool_to_hub).collect(),
        };
        Ok(hub::ClusterClass {
            spec: hub::ClusterClassSpec {
                availability_gates,
                control_plane: control_plane_to_hub(control_plane),
                infrastructure: hub::InfrastructureClass {
                    naming: naming_to_hub(infrastructure_naming_strategy),
                    template_ref: infrastructure.into_hub(),
                },
                kubernetes_versions,
                patches: super::patches::to_hub(patches, &kept.spec.patches),
                upgrade: upgrade.and_then(unless_default),
                variables: super::variables::to_hub(variables, &kept.spec.variables),
                workers: unless_default(workers),
            },
            status: unless_default(status_to_hub(self.status, &kept.status.unwrap_or_default())),
            ..Self::Hub::default()
        })
    }

    fn from_hub(hub: Self::Hub, namespace: &str, _: &dyn References) -> Result<Self, ConversionError> {
        let hub::ClusterClassSpec {
            availability_gates,
            control_plane,
            infrastructure: hub::InfrastructureClass { naming, template_ref },
            kubernetes_versions,
            patches,
            upgrade,
            variables,
            workers,
        } = hub.spec;
        let hub::WorkersClass {
            machine_deployments,
            machine_pools,
        } = workers.unwrap_or_default();
        let deployment = |deployment| deployment_from_hub(deployment, namespace);
        let pool = |pool| pool_from_hub(pool, namespace);
        Ok(Self {
            spec: ClusterClassSpec {
                availability_gates,
                infrastructure: LocalObjectTemplate::from_hub(template_ref, namespace),
                infrastructure_naming_strategy: naming_from_hub(naming),
                control_plane: control_plane_from_hub(control_plane, namespace),
                workers: WorkersClass {
                    machine_deployments: machine_deployments.into_iter().map(deployment).collect(),
                    machine_pools: machine_pools.into_iter().map(pool).collect(),
                },
                variables: super::variables::from_hub(variables),
                patches: super::patches::from_hub(patches),
                upgrade: upgrade.and_then(unless_default),
                kubernetes_versions,
            },
            status: status_from_hub(hub.status.unwrap_or_default()),
            ..Self::default()
        })
    }
}

impl LocalObjectTemplate {
    fn into_hub(self) -> hub::TemplateReference {
        self.reference.map(to_template).unwrap_or_default()
    }

    fn from_hub(template: hub::TemplateReference, namespace: &str) -> Self {
        Self {
            reference: Some(from_template(template, namespace)),
        }
    }
}

fn naming_to_hub(naming: Option<ClassNamingStrategy>) -> Option<hub::ClassNamingSpec> {
    let template = unless_empty(naming?.template)?;
    Some(hub::ClassNamingSpec {
        template: Some(template),
    })
}

fn naming_from_hub(naming: Option<hub::ClassNamingSpec>) -> Option<ClassNamingStrategy> {
    let template = unless_empty(naming?.template)?;
    Some(ClassNamingStrategy {
        template: Some(template),
    })
}

fn control_plane_to_hub(class: ControlPlaneClass) -> hub::ControlPlaneClass {
    let ControlPlaneClass {
        metadata,
        reference,
        machine_infrastructure,
        machine_health_check,
        naming_strategy,
        node_drain_timeout,
        node_volume_detach_timeout,
        node_deletion_timeout,
        taints,
        readiness_gates,
    } = class;
    let check = machine_health_check.map(HubCheck::of).unwrap_or_default();
    let machine_infrastructure = machine_infrastructure.map(|template| hub::ClassTemplate {
        template_ref: template.into_hub(),
    });
    hub::ControlPlaneClass {
        deletion: unless_default(hub::MachineDeletionSpec {
            node_deletion_timeout_seconds: to_seconds(node_deletion_timeout),
            node_drain_timeout_seconds: to_seconds(node_drain_timeout),
            node_volume_detach_timeout_seconds: to_seconds(node_volume_detach_timeout),
        }),
        health_check: unless_default(hub::ControlPlaneClassHealthCheck {
            checks: check.checks,
            remediation: HubCheck::remediation(check.trigger_if, check.template_ref),
        }),
        machine_infrastructure: machine_infrastructure.and_then(unless_default),
        metadata: metadata.into_hub(),
        naming: naming_to_hub(naming_strategy),
        readiness_gates,
        taints,
        template_ref: LocalObjectTemplate { reference }.into_hub(),
    }
}

fn control_plane_from_hub(class: hub::ControlPlaneClass, namespace: &str) -> ControlPlaneClass {
    let hub::ControlPlaneClass {
        deletion,
        health_check,
        machine_infrastructure,
        metadata,
        naming,
        readiness_gates,
        taints,
        template_ref,
    } = class;
    let deletion = deletion.unwrap_or_default();
    let machine_health_check = health_check.and_then(unless_default).map(|check| {
        let hub::ControlPlaneClassHealthCheck { checks, remediation } = check;
        let hub::MachineHealthCheckRemediation {
            template_ref,
            trigger_if,
        } = remediation.unwrap_or_default();
        HubCheck {
            checks,
            trigger_if,
            template_ref,
        }
        .into_older(namespace)
    });
    let machine_infrastructure = machine_infrastructure
        .and_then(unless_default)
        .map(|template| LocalObjectTemplate::from_hub(template.template_ref, namespace));
    ControlPlaneClass {
        metadata: ObjectMeta::from_hub(metadata),
        reference: LocalObjectTemplate::from_hub(template_ref, namespace).reference,
        machine_infrastructure,
        machine_health_check,
        naming_strategy: naming_from_hub(naming),
        node_drain_timeout: from_seconds(deletion.node_drain_timeout_seconds),
        node_volume_detach_timeout: from_seconds(deletion.node_volume_detach_timeout_seconds),
        node_deletion_timeout: from_seconds(deletion.node_deletion_timeout_seconds),
        taints,
        readiness_gates,
    }
}

fn deployment_to_hub(class: MachineDeploymentClass) -> hub::MachineDeploymentClass {
    let MachineDeploymentClass {
        class,
        template:
            WorkerClassTemplate {
                metadata,
                bootstrap,
                infrastructure,
            },
        machine_health_check,
        failure_domain,
        naming_strategy,
        node_drain_timeout,
        node_volume_detach_timeout,
        node_deletion_timeout,
        taints,
        min_ready_seconds,
        readiness_gates,
        strategy,
    } = class;
    let check = machine_health_check.map(HubCheck::of).unwrap_or_default();
    let strategy = Strategy::of(strategy);
    hub::MachineDeploymentClass {
        bootstrap: hub::ClassTemplate {
            template_ref: bootstrap.into_hub(),
        },
        class,
        deletion: unless_default(hub::OrderedMachineDeletionSpec {
            node_deletion_timeout_seconds: to_seconds(node_deletion_timeout),
            node_drain_timeout_seconds: to_seconds(node_drain_timeout),
            node_volume_detach_timeout_seconds: to_seconds(node_volume_detach_timeout),
            order: strategy.order,
        }),
        failure_domain: unless_empty(failure_domain),
        health_check: unless_default(hub::MachineDeploymentClassHealthCheck {
            checks: check.checks,
            remediation: unless_default(hub::MachineDeploymentHealthCheckRemediation {
                max_in_flight: strategy.max_in_flight,
                template_ref: check.template_ref,
                trigger_if: check.trigger_if,
            }),
        }),
        infrastructure: hub::ClassTemplate {
            template_ref: infrastructure.into_hub(),
        },
        metadata: metadata.into_hub(),
        min_ready_seconds,
        naming: naming_to_hub(naming_strategy),
        readiness_gates,
        rollout: unless_default(hub::MachineDeploymentClassRolloutSpec {
            strategy: strategy.rollout,
        }),
        taints,
    }
}

fn deployment_from_hub(class: hub::MachineDeploymentClass, namespace: &str) -> MachineDeploymentClass {
    let hub::MachineDeploymentClass {
        bootstrap,
        class,
        deletion,
        failure_domain,
        health_check,
        infrastructure,
        metadata,
        min_ready_seconds,
        naming,
        readiness_gates,
        rollout,
        taints,
    } = class;
    let hub::OrderedMachineDeletionSpec {
        node_deletion_timeout_seconds,
        node_drain_timeout_seconds,
        node_volume_detach_timeout_seconds,
        order,
    } = deletion.unwrap_or_default();
    let hub::MachineDeploymentClassHealthCheck { checks, remediation } = health_check.unwrap_or_default();
    let hub::MachineDeploymentHealthCheckRemediation {
        max_in_flight,
        template_ref,
        trigger_if,
    } = remediation.unwrap_or_default();
    // The limit of remediation is a part of the strategy here. Without anything else there is no health check.
    let check = HubCheck {
        checks: checks.and_then(unless_default),
        trigger_if: trigger_if.and_then(unless_default),
        template_ref,
    };
    let strategy = Strategy {
        rollout: rollout.and_then(|rollout| rollout.strategy),
        order,
        max_in_flight,
    };
    MachineDeploymentClass {
        class,
        template: WorkerClassTemplate {
            metadata: ObjectMeta::from_hub(metadata),
            bootstrap: LocalObjectTemplate::from_hub(bootstrap.template_ref, namespace),
            infrastructure: LocalObjectTemplate::from_hub(infrastructure.template_ref, namespace),
        },
        machine_health_check: (!check.is_empty()).then(|| check.into_older(namespace)),
        failure_domain: unless_empty(failure_domain),
        naming_strategy: naming_from_hub(naming),
        node_drain_timeout: from_seconds(node_drain_timeout_seconds),
        node_volume_detach_timeout: from_seconds(node_volume_detach_timeout_seconds),
        node_deletion_timeout: from_seconds(node_deletion_timeout_seconds),
        taints,
        min_ready_seconds,
        readiness_gates,
        strategy: strategy.into_older(),
    }
}

fn pool_to_hub(class: MachinePoolClass) -> hub::MachinePoolClass {
    let MachinePoolClass {
        class,
        template:
            WorkerClassTemplate {
                metadata,
                bootstrap,
                infrastructure,
            },
        failure_domains,
        naming_strategy,
        node_drain_timeout,
        node_volume_detach_timeout,
        node_deletion_timeout,
        taints,
        min_ready_seconds,
    } = class;
    hub::MachinePoolClass {
        bootstrap: hub::ClassTemplate {
            template_ref: bootstrap.into_hub(),
        },
        class,
        deletion: unless_default(hub::MachineDeletionSpec {
            node_deletion_timeout_seconds: to_seconds(node_deletion_timeout),
            node_drain_timeout_seconds: to_seconds(node_drain_timeout),
            node_volume_detach_timeout_seconds: to_seconds(node_volume_detach_timeout),
        }),
        failure_domains,
        infrastructure: hub::ClassTemplate {
            template_ref: infrastructure.into_hub(),
        },
        metadata: metadata.into_hub(),
        min_ready_seconds,
        naming: naming_to_hub(naming_strategy),
        taints,
    }
}

fn pool_from_hub(class: hub::MachinePoolClass, namespace: &str) -> MachinePoolClass {
    let hub::MachinePoolClass {
        bootstrap,
        class,
        deletion,
        failure_domains,
        infrastructure,
        metadata,
        min_ready_seconds,
        naming,
        taints,
    } = class;
    let deletion = deletion.unwrap_or_default();
    MachinePoolClass {
        class,
        template: WorkerClassTemplate {
            metadata: ObjectMeta::from_hub(metadata),
            bootstrap: LocalObjectTemplate::from_hub(bootstrap.template_ref, namespace),
            infrastructure: LocalObjectTemplate::from_hub(infrastructure.template_ref, namespace),
        },
        failure_domains,
        naming_strategy: naming_from_hub(naming),
        node_drain_timeout: from_seconds(deletion.node_drain_timeout_seconds),
        node_volume_detach_timeout: from_seconds(deletion.node_volume_detach_timeout_seconds),
        node_deletion_timeout: from_seconds(deletion.node_deletion_timeout_seconds),
        taints,
        min_ready_seconds,
    }
}

fn status_to_hub(status: ClusterClassStatus, kept: &hub::ClusterClassStatus) -> hub::ClusterClassStatus {
    let ClusterClassStatus {
        variables,
        conditions,
        observed_generation,
        v1beta2,
    } = status;
    let deprecated = unless_default(hub::ClusterClassV1Beta1DeprecatedStatus { conditions });
    hub::ClusterClassStatus {
        conditions: V1Beta2Status::into_conditions(v1beta2),
        deprecated: deprecated.map(|v1beta1| hub::ClusterClassDeprecatedStatus { v1beta1: Some(v1beta1) }),
        observed_generation: unless_default(observed_generation),
        variables: super::variables::status_to_hub(variables, &kept.variables),
    }
}

fn status_from_hub(status: hub::ClusterClassStatus) -> ClusterClassStatus {
    let hub::ClusterClassStatus {
        conditions,
        deprecated,
        observed_generation,
        variables,
    } = status;
    ClusterClassStatus {
        variables: super::variables::status_from_hub(variables),
        conditions: deprecated.unwrap_or_default().v1beta1.unwrap_or_default().conditions,
        observed_generation: observed_generation.unwrap_or_default(),
        v1beta2: V1Beta2Status::holding(conditions),
    }
}
