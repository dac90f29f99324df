//! DevCluster: failure domains are a map, and one flag says that the infrastructure is ready.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_api::api_kind;
use windlass_api::core::{APIEndpoint as HubEndpoint, V1Beta1Condition};
use windlass_api::kind::Column;
use windlass_api_ext::infrastructure as hub;
use windlass_api_ext::infrastructure::{DockerLoadBalancer, InMemoryClusterBackendSpec};

use crate::common::{self, FailureDomainSpec, V1Beta2Status};
use crate::convert::{ConversionError, References, Spoke};
use crate::parts::unless_default;

api_kind! {
    /// Cluster infrastructure for development and tests. Windlass simulates it in memory.
    pub struct DevCluster {
        /// The desired state of the object.
        #[serde(default)]
        pub spec: DevClusterSpec,
        /// The observed state of the object.
        #[serde(default)]
        pub status: DevClusterStatus,
    }
    group: "infrastructure.cluster.x-k8s.io",
    version: "v1beta1",
    plural: "devclusters",
    short_names: [],
    provider: "infrastructure-docker",
    contract: true,
    required: [],
    status: true,
    scale: None,
    columns: [
        Column::new("Cluster", "string", r".metadata.labels['cluster\.x-k8s\.io/cluster-name']", "Name of the Cluster"),
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
    ],
}

/// The desired state of a DevCluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevClusterSpec {
    /// Backend of the cluster.
    #[serde(default)]
    #[schemars(!default)]
    pub backend: DevClusterBackendSpec,
    /// The endpoint of the cluster's API server.
    #[serde(default)]
    pub control_plane_endpoint: APIEndpoint,
}

/// Backend of a DevCluster. Exactly one field is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevClusterBackendSpec {
    /// Container backend. Windlass accepts it for compatibility but does not run it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub docker: Option<DockerClusterBackendSpec>,
    /// In-memory backend: the infrastructure is simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_memory: Option<InMemoryClusterBackendSpec>,
}

/// Settings of the container backend.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DockerClusterBackendSpec {
    /// Failure domains to report, by name. They have no effect on containers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failure_domains: BTreeMap<String, FailureDomainSpec>,
    /// Settings of the load balancer container.
    #[serde(default)]
    pub load_balancer: DockerLoadBalancer,
}

/// The endpoint of an API server. Empty until it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct APIEndpoint {
    /// Host name or IP address. Empty until it is known.
    #[serde(default)]
    pub host: String,
    /// Port number. 0 until it is known.
    #[serde(default)]
    #[schemars(schema_with = "common::integer")]
    pub port: i32,
}

/// The observed state of a DevCluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevClusterStatus {
    /// Conditions in the form of v1beta1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<V1Beta1Condition>,
    /// Failure domains of the cluster, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failure_domains: BTreeMap<String, FailureDomainSpec>,
    /// Whether the infrastructure is provisioned.
    #[serde(default)]
    pub ready: bool,
    /// Conditions in the form of v1beta2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta2: Option<V1Beta2Status>,
}

impl Spoke for DevCluster {
    type Hub = hub::DevCluster;

    fn into_hub(self, kept: Option<Self::Hub>) -> Result<Self::Hub, ConversionError> {
        let Self {
            metadata: _,
            spec,
            status,
        } = self;
        let kept_status = kept.and_then(|kept| kept.status).unwrap_or_default();
        Ok(hub::DevCluster {
            spec: Some(spec.into_hub()),
            status: Some(status.into_hub(kept_status)),
            ..Self::Hub::default()
        })
    }

    fn from_hub(hub: Self::Hub, _: &str, _: &dyn References) -> Result<Self, ConversionError> {
        let hub::DevCluster {
            metadata: _,
            spec,
            status,
        } = hub;
        Ok(Self {
            spec: DevClusterSpec::from_hub(spec.unwrap_or_default()),
            status: DevClusterStatus::from_hub(status.unwrap_or_default()),
            ..Self::default()
        })
    }

    fn carried(hub: &mut Self::Hub) {
        if let Some(docker) = &mut hub.spec.get_or_insert_default().backend.docker {
            docker.load_balancer.get_or_insert_default();
        }
        hub.status.get_or_insert_default();
    }
}

impl DevClusterSpec {
    pub(super) fn into_hub(self) -> hub::DevClusterSpec {
        let Self {
            backend: DevClusterBackendSpec { docker, in_memory },
            control_plane_endpoint,
        } = self;
        let backend = hub::DevClusterBackendSpec {
            docker: docker.map(DockerClusterBackendSpec::into_hub),
            in_memory,
        };
        hub::DevClusterSpec {
            backend,
            control_plane_endpoint: control_plane_endpoint.into_hub(),
        }
    }

    pub(super) fn from_hub(hub: hub::DevClusterSpec) -> Self {
        let hub::DevClusterSpec {
            backend: hub::DevClusterBackendSpec { docker, in_memory },
            control_plane_endpoint,
        } = hub;
        let backend = DevClusterBackendSpec {
            docker: docker.map(DockerClusterBackendSpec::from_hub),
            in_memory,
        };
        Self {
            backend,
            control_plane_endpoint: APIEndpoint::from_hub(control_plane_endpoint),
        }
    }
}

impl DockerClusterBackendSpec {
    fn into_hub(self) -> hub::DockerClusterBackendSpec {
        let Self {
            failure_domains,
            load_balancer,
        } = self;
        hub::DockerClusterBackendSpec {
            failure_domains: common::failure_domains_into_hub(failure_domains),
            load_balancer: Some(load_balancer),
        }
    }

    fn from_hub(hub: hub::DockerClusterBackendSpec) -> Self {
        let hub::DockerClusterBackendSpec {
            failure_domains,
            load_balancer,
        } = hub;
        Self {
            failure_domains: common::failure_domains_from_hub(failure_domains),
            load_balancer: load_balancer.unwrap_or_default(),
        }
    }
}

impl APIEndpoint {
    fn into_hub(self) -> Option<HubEndpoint> {
        let Self { host, port } = self;
        unless_default(HubEndpoint {
            host: unless_default(host),
            port: unless_default(port),
        })
    }

    fn from_hub(hub: Option<HubEndpoint>) -> Self {
        let HubEndpoint { host, port } = hub.unwrap_or_default();
        Self {
            host: host.unwrap_or_default(),
            port: port.unwrap_or_default(),
        }
    }
}

impl DevClusterStatus {
    fn into_hub(self, kept: hub::DevClusterStatus) -> hub::DevClusterStatus {
        let Self {
            conditions,
            failure_domains,
            ready,
            v1beta2,
        } = self;
        // Everything else of the hub's status has a field in this version.
        let kept_provisioned = kept
            .initialization
            .and_then(|initialization| initialization.provisioned);
        let deprecated = hub::DevClusterV1Beta1DeprecatedStatus { conditions };
        hub::DevClusterStatus {
            conditions: V1Beta2Status::into_conditions(v1beta2),
            deprecated: unless_default(deprecated)
                .map(|v1beta1| hub::DevClusterDeprecatedStatus { v1beta1: Some(v1beta1) }),
            failure_domains: common::failure_domains_into_hub(failure_domains),
            initialization: unless_default(hub::DevClusterInitializationStatus {
                provisioned: crate::parts::intent(ready, kept_provisioned),
            }),
        }
    }

    fn from_hub(hub: hub::DevClusterStatus) -> Self {
        let hub::DevClusterStatus {
            conditions,
            deprecated,
            failure_domains,
            initialization,
        } = hub;
        let hub::DevClusterInitializationStatus { provisioned } = initialization.unwrap_or_default();
        let hub::DevClusterDeprecatedStatus { v1beta1 } = deprecated.unwrap_or_default();
        let hub::DevClusterV1Beta1DeprecatedStatus {
            conditions: v1beta1_conditions,
        } = v1beta1.unwrap_or_default();
        Self {
            conditions: v1beta1_conditions,
            failure_domains: common::failure_domains_from_hub(failure_domains),
            ready: provisioned.unwrap_or_default(),
            v1beta2: V1Beta2Status::holding(conditions),
        }
    }
}
