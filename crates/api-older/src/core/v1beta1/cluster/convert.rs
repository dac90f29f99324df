//! Conversion of Clusters, with their topologies.

use windlass_api::core as hub;

use super::{
    APIEndpoint, Cluster, ClusterNetwork, ClusterSpec, ClusterStatus, ClusterV1Beta2Status, ClusterVariable,
    ControlPlaneTopology, MachineDeploymentTopology, MachineHealthCheckTopology, MachinePoolTopology, NetworkRanges,
    Topology, TopologyRolloutSpec, VariableOverrides, WorkersTopology,
};
use crate::common;
use crate::convert::{ConversionError, References, Spoke};
use crate::core::v1beta1::machine_deployment::Strategy;
use crate::core::v1beta1::machine_health_check::HubCheck;
use crate::core::v1beta1::{MachineHealthCheckClass, ObjectMeta};
use crate::parts::{
    from_hub_reference, from_seconds, intent, some_text, to_hub_reference, to_seconds, unless_default, unless_empty,
};

impl Spoke for Cluster {
    type Hub = hub::Cluster;

    fn into_hub(self, kept: Option<Self::Hub>) -> Result<Self::Hub, ConversionError> {
        let kept = kept.unwrap_or_default();
        let ClusterSpec {
            paused,
            cluster_network,
            control_plane_endpoint: APIEndpoint { host, port },
            control_plane_ref,
            infrastructure_ref,
            topology,
            availability_gates,
        } = self.spec;
        let reference = |field: &str, reference: Option<_>| {
            let converted = reference
                .map(|reference| to_hub_reference(field, reference))
                .transpose()?;
            Ok(converted.and_then(unless_default))
        };
        let kept_initialization = kept.status.and_then(|status| status.initialization).unwrap_or_default();
        Ok(hub::Cluster {
            spec: hub::ClusterSpec {
                availability_gates,
                cluster_network: cluster_network.and_then(network_to_hub),
                control_plane_endpoint: unless_default(hub::APIEndpoint {
                    host: some_text(host),
                    port: unless_default(port),
                }),
                control_plane_ref: reference("spec.controlPlaneRef", control_plane_ref)?,
                infrastructure_ref: reference("spec.infrastructureRef", infrastructure_ref)?,
                paused: intent(paused, kept.spec.paused),
                topology: topology.map(topology_to_hub).and_then(unless_default),
            },
            status: unless_default(status_to_hub(self.status, &kept_initialization)),
            ..Self::Hub::default()
        })
    }

    fn from_hub(hub: Self::Hub, namespace: &str, references: &dyn References) -> Result<Self, ConversionError> {
        let hub::ClusterSpec {
            availability_gates,
            cluster_network,
            control_plane_endpoint,
            control_plane_ref,
            infrastructure_ref,
            paused,
            topology,
        } = hub.spec;
        let reference = |field: &str, reference: Option<_>| match reference {
            Some(reference) => from_hub_reference(field, reference, namespace, references),
            None => Ok(None),
        };
        let endpoint = control_plane_endpoint.unwrap_or_default();
        Ok(Self {
            spec: ClusterSpec {
                paused: paused.unwrap_or_default(),
                cluster_network: cluster_network.and_then(unless_default).map(network_from_hub),
                control_plane_endpoint: APIEndpoint {
                    host: endpoint.host.unwrap_or_default(),
                    port: endpoint.port.unwrap_or_default(),
                },
                control_plane_ref: reference("spec.controlPlaneRef", control_plane_ref)?,
                infrastructure_ref: reference("spec.infrastructureRef", infrastructure_ref)?,
                topology: topology
                    .and_then(unless_default)
                    .map(|topology| topology_from_hub(topology, namespace)),
                availability_gates,
            },
            status: status_from_hub(hub.status.unwrap_or_default()),
            ..Self::default()
        })
    }
}

fn network_to_hub(network: ClusterNetwork) -> Option<hub::ClusterNetwork> {
    let ClusterNetwork {
        api_server_port,
        services,
        pods,
        service_domain,
    } = network;
    let ranges = |ranges: Option<NetworkRanges>| {
        unless_default(hub::NetworkRanges {
            cidr_blocks: ranges?.cidr_blocks,
        })
    };
    unless_default(hub::ClusterNetwork {
        api_server_port: api_server_port.and_then(unless_default),
        pods: ranges(pods),
        service_domain: some_text(service_domain),
        services: ranges(services),
    })
}

fn network_from_hub(network: hub::ClusterNetwork) -> ClusterNetwork {
    let hub::ClusterNetwork {
        api_server_port,
        pods,
        service_domain,
        services,
    } = network;
    let ranges = |ranges: Option<hub::NetworkRanges>| {
        let hub::NetworkRanges { cidr_blocks } = ranges.and_then(unless_default)?;
        Some(NetworkRanges { cidr_blocks })
    };
    ClusterNetwork {
        api_server_port: api_server_port.and_then(unless_default),
        services: ranges(services),
        pods: ranges(pods),
        service_domain: service_domain.unwrap_or_default(),
    }
}

fn status_to_hub(status: ClusterStatus, kept: &hub::ClusterInitializationStatus) -> hub::ClusterStatus {
    let ClusterStatus {
        failure_domains,
        failure_reason,
        failure_message,
        phase,
        infrastructure_ready,
        control_plane_ready,
        conditions,
        observed_generation,
        v1beta2,
    } = status;
    let ClusterV1Beta2Status {
        conditions: new_conditions,
        control_plane,
        workers,
    } = v1beta2.unwrap_or_default();
    let deprecated = unless_default(hub::ClusterV1Beta1DeprecatedStatus {
        conditions,
        failure_message,
        failure_reason,
    });
    hub::ClusterStatus {
        conditions: new_conditions,
        control_plane,
        deprecated: deprecated.map(|v1beta1| hub::ClusterDeprecatedStatus { v1beta1: Some(v1beta1) }),
        failure_domains: common::failure_domains_into_hub(failure_domains),
        initialization: unless_default(hub::ClusterInitializationStatus {
            control_plane_initialized: intent(control_plane_ready, kept.control_plane_initialized),
            infrastructure_provisioned: intent(infrastructure_ready, kept.infrastructure_provisioned),
        }),
        observed_generation: unless_default(observed_generation),
        phase: some_text(phase),
        workers,
    }
}

fn status_from_hub(status: hub::ClusterStatus) -> ClusterStatus {
    let hub::ClusterStatus {
        conditions,
        control_plane,
        deprecated,
        failure_domains,
        initialization,
        observed_generation,
        phase,
        workers,
    } = status;
    let old = deprecated.unwrap_or_default().v1beta1.unwrap_or_default();
    let initialization = initialization.unwrap_or_default();
    ClusterStatus {
        failure_domains: common::failure_domains_from_hub(failure_domains),
        failure_reason: old.failure_reason,
        failure_message: old.failure_message,
        phase: phase.unwrap_or_default(),
        infrastructure_ready: initialization.infrastructure_provisioned.unwrap_or_default(),
        control_plane_ready: initialization.control_plane_initialized.unwrap_or_default(),
        conditions: old.conditions,
        observed_generation: observed_generation.unwrap_or_default(),
        v1beta2: unless_default(ClusterV1Beta2Status {
            conditions,
            control_plane,
            workers,
        }),
    }
}

fn topology_to_hub(topology: Topology) -> hub::Topology {
    let Topology {
        class,
        class_namespace,
        version,
        rollout_after: _,
        control_plane,
        workers,
        variables,
    } = topology;
    let workers = workers.map(|workers| {
        let WorkersTopology {
            machine_deployments,
            machine_pools,
        } = workers;
        hub::WorkersTopology {
            machine_deployments: machine_deployments.into_iter().map(deployment_to_hub).collect(),
            machine_pools: machine_pools.into_iter().map(pool_to_hub).collect(),
        }
    });
    hub::Topology {
        class_ref: hub::ClusterClassRef {
            name: class,
            namespace: some_text(class_namespace),
        },
        control_plane: unless_default(control_plane_to_hub(control_plane)),
        variables: variables_to_hub(variables),
        version,
        workers: workers.and_then(unless_default),
    }
}

fn topology_from_hub(topology: hub::Topology, namespace: &str) -> Topology {
    let hub::Topology {
        class_ref,
        control_plane,
        variables,
        version,
        workers,
    } = topology;
    let workers = workers.and_then(unless_default).map(|workers| {
        let hub::WorkersTopology {
            machine_deployments,
            machine_pools,
        } = workers;
        let deployment = |deployment| deployment_from_hub(deployment, namespace);
        WorkersTopology {
            machine_deployments: machine_deployments.into_iter().map(deployment).collect(),
            machine_pools: machine_pools.into_iter().map(pool_from_hub).collect(),
        }
    });
    Topology {
        class: class_ref.name,
        class_namespace: class_ref.namespace.unwrap_or_default(),
        version,
        rollout_after: None,
        control_plane: control_plane_from_hub(control_plane.unwrap_or_default(), namespace),
        workers,
        variables: variables_from_hub(variables),
    }
}

/// The definition that a value belongs to is lost: v1.14 does not accept one any more.
fn variables_to_hub(variables: Vec<ClusterVariable>) -> Vec<hub::ClusterVariable> {
    let variable = |variable: ClusterVariable| {
        let ClusterVariable {
            name,
            definition_from: _,
            value,
        } = variable;
        hub::ClusterVariable { name, value }
    };
    variables.into_iter().map(variable).collect()
}

fn variables_from_hub(variables: Vec<hub::ClusterVariable>) -> Vec<ClusterVariable> {
    let variable = |variable: hub::ClusterVariable| ClusterVariable {
        name: variable.name,
        definition_from: String::new(),
        value: variable.value,
    };
    variables.into_iter().map(variable).collect()
}

fn overrides_to_hub(overrides: Option<VariableOverrides>) -> Option<hub::VariableOverrides> {
    unless_default(hub::VariableOverrides {
        overrides: variables_to_hub(overrides?.overrides),
    })
}

fn overrides_from_hub(overrides: Option<hub::VariableOverrides>) -> Option<VariableOverrides> {
    unless_default(VariableOverrides {
        overrides: variables_from_hub(overrides?.overrides),
    })
}

fn control_plane_to_hub(control_plane: ControlPlaneTopology) -> hub::ControlPlaneTopology {
    let ControlPlaneTopology {
        metadata,
        replicas,
        rollout,
        machine_health_check,
        node_drain_timeout,
        node_volume_detach_timeout,
        node_deletion_timeout,
        taints,
        readiness_gates,
        variables,
    } = control_plane;
    let (enabled, check) = check_to_hub(machine_health_check);
    hub::ControlPlaneTopology {
        deletion: unless_default(hub::MachineDeletionSpec {
            node_deletion_timeout_seconds: to_seconds(node_deletion_timeout),
            node_drain_timeout_seconds: to_seconds(node_drain_timeout),
            node_volume_detach_timeout_seconds: to_seconds(node_volume_detach_timeout),
        }),
        health_check: unless_default(hub::ControlPlaneTopologyHealthCheck {
            checks: check.checks,
            enabled,
            remediation: HubCheck::remediation(check.trigger_if, check.template_ref),
        }),
        metadata: metadata.into_hub(),
        readiness_gates,
        replicas,
        rollout: unless_default(hub::ControlPlaneTopologyRolloutSpec {
            after: rollout.and_then(|rollout| rollout.after),
        }),
        taints,
        variables: overrides_to_hub(variables),
    }
}

fn control_plane_from_hub(control_plane: hub::ControlPlaneTopology, namespace: &str) -> ControlPlaneTopology {
    let hub::ControlPlaneTopology {
        deletion,
        health_check,
        metadata,
        readiness_gates,
        replicas,
        rollout,
        taints,
        variables,
    } = control_plane;
    let deletion = deletion.unwrap_or_default();
    let machine_health_check = health_check.and_then(unless_default).map(|check| {
        let hub::ControlPlaneTopologyHealthCheck {
            checks,
            enabled,
            remediation,
        } = check;
        let hub::MachineHealthCheckRemediation {
            template_ref,
            trigger_if,
        } = remediation.unwrap_or_default();
        let check = HubCheck {
            checks,
            trigger_if,
            template_ref,
        };
        check_from_hub(enabled, check, namespace)
    });
    ControlPlaneTopology {
        metadata: ObjectMeta::from_hub(metadata),
        replicas,
        rollout: unless_default(TopologyRolloutSpec {
            after: rollout.and_then(|rollout| rollout.after),
        }),
        machine_health_check,
        node_drain_timeout: from_seconds(deletion.node_drain_timeout_seconds),
        node_volume_detach_timeout: from_seconds(deletion.node_volume_detach_timeout_seconds),
        node_deletion_timeout: from_seconds(deletion.node_deletion_timeout_seconds),
        taints,
        readiness_gates,
        variables: overrides_from_hub(variables),
    }
}

fn check_to_hub(check: Option<MachineHealthCheckTopology>) -> (Option<bool>, HubCheck) {
    let Some(check) = check else {
        return (None, HubCheck::default());
    };
    let MachineHealthCheckTopology {
        enable,
        unhealthy_conditions,
        unhealthy_machine_conditions,
        max_unhealthy,
        unhealthy_range,
        node_startup_timeout,
        remediation_template,
    } = check;
    let check = HubCheck::of(MachineHealthCheckClass {
        unhealthy_conditions,
        unhealthy_machine_conditions,
        max_unhealthy,
        unhealthy_range,
        node_startup_timeout,
        remediation_template,
    });
    (enable, check)
}

fn check_from_hub(enable: Option<bool>, check: HubCheck, namespace: &str) -> MachineHealthCheckTopology {
    let MachineHealthCheckClass {
        unhealthy_conditions,
        unhealthy_machine_conditions,
        max_unhealthy,
        unhealthy_range,
        node_startup_timeout,
        remediation_template,
    } = check.into_older(namespace);
    MachineHealthCheckTopology {
        enable,
        unhealthy_conditions,
        unhealthy_machine_conditions,
        max_unhealthy,
        unhealthy_range,
        node_startup_timeout,
        remediation_template,
    }
}

fn deployment_to_hub(deployment: MachineDeploymentTopology) -> hub::MachineDeploymentTopology {
    let MachineDeploymentTopology {
        metadata,
        class,
        name,
        failure_domain,
        replicas,
        machine_health_check,
        node_drain_timeout,
        node_volume_detach_timeout,
        node_deletion_timeout,
        taints,
        min_ready_seconds,
        readiness_gates,
        rollout,
        strategy,
        variables,
    } = deployment;
    let (enabled, check) = check_to_hub(machine_health_check);
    let strategy = Strategy::of(strategy);
    hub::MachineDeploymentTopology {
        class,
        deletion: unless_default(hub::OrderedMachineDeletionSpec {
            node_deletion_timeout_seconds: to_seconds(node_deletion_timeout),
            node_drain_timeout_seconds: to_seconds(node_drain_timeout),
            node_volume_detach_timeout_seconds: to_seconds(node_volume_detach_timeout),
            order: strategy.order,
        }),
        failure_domain: unless_empty(failure_domain),
        health_check: unless_default(hub::MachineDeploymentTopologyHealthCheck {
            checks: check.checks,
            enabled,
            remediation: unless_default(hub::MachineDeploymentHealthCheckRemediation {
                max_in_flight: strategy.max_in_flight,
                template_ref: check.template_ref,
                trigger_if: check.trigger_if,
            }),
        }),
        metadata: metadata.into_hub(),
        min_ready_seconds,
        name,
        readiness_gates,
        replicas,
        rollout: unless_default(hub::MachineDeploymentRolloutSpec {
            after: rollout.and_then(|rollout| rollout.after),
            strategy: strategy.rollout,
        }),
        taints,
        variables: overrides_to_hub(variables),
    }
}

fn deployment_from_hub(deployment: hub::MachineDeploymentTopology, namespace: &str) -> MachineDeploymentTopology {
    let hub::MachineDeploymentTopology {
        class,
        deletion,
        failure_domain,
        health_check,
        metadata,
        min_ready_seconds,
        name,
        readiness_gates,
        replicas,
        rollout,
        taints,
        variables,
    } = deployment;
    let hub::OrderedMachineDeletionSpec {
        node_deletion_timeout_seconds,
        node_drain_timeout_seconds,
        node_volume_detach_timeout_seconds,
        order,
    } = deletion.unwrap_or_default();
    let hub::MachineDeploymentTopologyHealthCheck {
        checks,
        enabled,
        remediation,
    } = health_check.unwrap_or_default();
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
    let has_check = enabled.is_some() || !check.is_empty();
    let rollout = rollout.unwrap_or_default();
    let strategy = Strategy {
        rollout: rollout.strategy,
        order,
        max_in_flight,
    };
    MachineDeploymentTopology {
        metadata: ObjectMeta::from_hub(metadata),
        class,
        name,
        failure_domain: unless_empty(failure_domain),
        replicas,
        machine_health_check: has_check.then(|| check_from_hub(enabled, check, namespace)),
        node_drain_timeout: from_seconds(node_drain_timeout_seconds),
        node_volume_detach_timeout: from_seconds(node_volume_detach_timeout_seconds),
        node_deletion_timeout: from_seconds(node_deletion_timeout_seconds),
        taints,
        min_ready_seconds,
        readiness_gates,
        rollout: unless_default(TopologyRolloutSpec { after: rollout.after }),
        strategy: strategy.into_older(),
        variables: overrides_from_hub(variables),
    }
}

fn pool_to_hub(pool: MachinePoolTopology) -> hub::MachinePoolTopology {
    let MachinePoolTopology {
        metadata,
        class,
        name,
        failure_domains,
        node_drain_timeout,
        node_volume_detach_timeout,
        node_deletion_timeout,
        taints,
        min_ready_seconds,
        replicas,
        variables,
    } = pool;
    hub::MachinePoolTopology {
        class,
        deletion: unless_default(hub::MachineDeletionSpec {
            node_deletion_timeout_seconds: to_seconds(node_deletion_timeout),
            node_drain_timeout_seconds: to_seconds(node_drain_timeout),
            node_volume_detach_timeout_seconds: to_seconds(node_volume_detach_timeout),
        }),
        failure_domains,
        metadata: metadata.into_hub(),
        min_ready_seconds,
        name,
        replicas,
        taints,
        variables: overrides_to_hub(variables),
    }
}

fn pool_from_hub(pool: hub::MachinePoolTopology) -> MachinePoolTopology {
    let hub::MachinePoolTopology {
        class,
        deletion,
        failure_domains,
        metadata,
        min_ready_seconds,
        name,
        replicas,
        taints,
        variables,
    } = pool;
    let deletion = deletion.unwrap_or_default();
    MachinePoolTopology {
        metadata: ObjectMeta::from_hub(metadata),
        class,
        name,
        failure_domains,
        node_drain_timeout: from_seconds(deletion.node_drain_timeout_seconds),
        node_volume_detach_timeout: from_seconds(deletion.node_volume_detach_timeout_seconds),
        node_deletion_timeout: from_seconds(deletion.node_deletion_timeout_seconds),
        taints,
        min_ready_seconds,
        replicas,
        variables: overrides_from_hub(variables),
    }
}
