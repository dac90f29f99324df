//! The kubeadm configuration types that KubeadmConfig embeds.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_api::schema;
use windlass_api_kubeadm::bootstrap::v1beta2::{
    BootstrapTokenDiscovery, DNS, EnvVar, ExternalEtcd, HostPathMount, KubeConfigCluster, KubeConfigUser, Patches,
    Taint,
};
use windlass_meta::GoDuration;

use super::parts::without_hub_bounds;

/// Cluster-wide kubeadm configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct ClusterConfiguration {
    /// Settings of the API server.
    #[serde(default)]
    pub api_server: APIServer,
    /// API version of the kubeadm configuration. It has no effect, and the hub version does not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Validity period of CA certificates in days. Defaults to 3650.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 36500))]
    pub ca_certificate_validity_period_days: Option<i32>,
    /// Validity period of the other certificates in days. Defaults to 365.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1095))]
    pub certificate_validity_period_days: Option<i32>,
    /// Directory of the certificates. Defaults to /etc/kubernetes/pki.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub certificates_dir: Option<String>,
    /// Name of the cluster. It has no effect, and the hub version does not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub cluster_name: Option<String>,
    /// Endpoint of the API server, HOST:PORT. Defaults to the controlPlaneEndpoint of the Cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub control_plane_endpoint: Option<String>,
    /// Settings of the controller manager.
    #[serde(default)]
    pub controller_manager: ControlPlaneComponent,
    /// Settings of the DNS add-on.
    #[serde(default)]
    #[schemars(transform = without_hub_bounds)]
    pub dns: DNS,
    /// Algorithm of generated keys. Defaults to RSA-2048.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["ECDSA-P256", "ECDSA-P384", "RSA-2048", "RSA-3072", "RSA-4096"]))]
    pub encryption_algorithm: Option<String>,
    /// Settings of etcd.
    #[serde(default)]
    pub etcd: Etcd,
    /// Feature gates of kubeadm.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub feature_gates: BTreeMap<String, bool>,
    /// Image repository of the control plane images. Defaults to registry.k8s.io.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub image_repository: Option<String>,
    /// Kind of the kubeadm configuration. It has no effect, and the hub version does not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Kubernetes version of the control plane. It has no effect, and the hub version does not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub kubernetes_version: Option<String>,
    /// Networks of the cluster. They have no effect, and the hub version does not keep them.
    #[serde(default)]
    pub networking: Networking,
    /// Settings of the scheduler.
    #[serde(default)]
    pub scheduler: ControlPlaneComponent,
}

/// Networks of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct Networking {
    /// DNS domain of Services.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub dns_domain: Option<String>,
    /// Addresses of Pods, as CIDR blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub pod_subnet: Option<String>,
    /// Addresses of Services, as CIDR blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub service_subnet: Option<String>,
}

/// Settings of the API server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct APIServer {
    /// Additional subject alternative names of the certificate.
    #[serde(rename = "certSANs", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 253)))]
    pub cert_sans: Vec<String>,
    /// Additional command-line flags, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_args: BTreeMap<String, String>,
    /// Additional environment variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub extra_envs: Vec<EnvVar>,
    /// Additional host paths to mount into the Pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub extra_volumes: Vec<HostPathMount>,
    /// How long kubeadm init waits for the API server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub timeout_for_control_plane: Option<GoDuration>,
}

/// Settings of a control plane component.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct ControlPlaneComponent {
    /// Additional command-line flags, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_args: BTreeMap<String, String>,
    /// Additional environment variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub extra_envs: Vec<EnvVar>,
    /// Additional host paths to mount into the Pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub extra_volumes: Vec<HostPathMount>,
}

/// etcd settings: members on the control plane machines (local) or an existing etcd cluster (external).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct Etcd {
    /// An existing etcd cluster. Mutually exclusive with local.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = without_hub_bounds)]
    pub external: Option<ExternalEtcd>,
    /// Settings of etcd members on the control plane machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<LocalEtcd>,
}

/// Settings of etcd members on the control plane machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct LocalEtcd {
    /// Data directory of etcd. Defaults to /var/lib/etcd.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub data_dir: Option<String>,
    /// Additional command-line flags, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_args: BTreeMap<String, String>,
    /// Additional environment variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub extra_envs: Vec<EnvVar>,
    /// Image repository: registry and path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub image_repository: Option<String>,
    /// Image tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub image_tag: Option<String>,
    /// Additional subject alternative names of the peer certificate.
    #[serde(rename = "peerCertSANs", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 253)))]
    pub peer_cert_sans: Vec<String>,
    /// Additional subject alternative names of the server certificate.
    #[serde(rename = "serverCertSANs", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 253)))]
    pub server_cert_sans: Vec<String>,
}

/// kubeadm configuration of the first control plane machine (kubeadm init).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct InitConfiguration {
    /// API version of the kubeadm configuration. It has no effect, and the hub version does not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Bootstrap tokens that kubeadm init creates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub bootstrap_tokens: Vec<BootstrapToken>,
    /// Kind of the kubeadm configuration. It has no effect, and the hub version does not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Address and port on which the API server of this machine listens.
    #[serde(rename = "localAPIEndpoint", default)]
    pub local_api_endpoint: APIEndpoint,
    /// Registration of the Node.
    #[serde(default)]
    pub node_registration: NodeRegistrationOptions,
    /// Patches for the manifests that kubeadm generates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = without_hub_bounds)]
    pub patches: Option<Patches>,
    /// kubeadm phases to skip.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50), inner(length(min = 1, max = 256)))]
    pub skip_phases: Vec<String>,
}

/// A bootstrap token with which machines join the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct BootstrapToken {
    /// Description of the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub description: Option<String>,
    /// Expiry time of the token. Mutually exclusive with ttl.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::date_time")]
    pub expires: Option<Time>,
    /// Groups of the user that authenticates with the token.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 256)))]
    pub groups: Vec<String>,
    /// The token, in the form abcdef.0123456789abcdef.
    pub token: String,
    /// Time to live of the token. Defaults to 24 hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub ttl: Option<GoDuration>,
    /// Permitted usages of the token.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 256)))]
    pub usages: Vec<String>,
}

/// Address and port on which the API server of this machine listens.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct APIEndpoint {
    /// Advertised IP address of the API server. Defaults to the address of the default route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 39))]
    pub advertise_address: Option<String>,
    /// Port of the API server. Defaults to 6443.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bind_port: Option<i32>,
}

/// Registration of the Node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct NodeRegistrationOptions {
    /// Socket of the container runtime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub cri_socket: Option<String>,
    /// Preflight checks of kubeadm whose errors are ignored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50), inner(length(min = 1, max = 512)))]
    pub ignore_preflight_errors: Vec<String>,
    /// Image pull policy. Defaults to IfNotPresent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Always", "IfNotPresent", "Never"]))]
    pub image_pull_policy: Option<String>,
    /// Whether images are pulled one at a time. Defaults to true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_serial: Option<bool>,
    /// Additional kubelet flags, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kubelet_extra_args: BTreeMap<String, String>,
    /// Name of the Node. Defaults to the host name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub name: Option<String>,
    /// Taints with which the Node registers. When unset, kubeadm adds its default taint to control plane Nodes. An
    /// empty list means no taints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100))]
    pub taints: Option<Vec<Taint>>,
}

/// kubeadm configuration of joining machines (kubeadm join).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct JoinConfiguration {
    /// API version of the kubeadm configuration. It has no effect, and the hub version does not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Path of the CA certificate. Defaults to /etc/kubernetes/pki/ca.crt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub ca_cert_path: Option<String>,
    /// Settings of a joining control plane machine. Its presence makes the machine a control plane machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<JoinControlPlane>,
    /// Discovery of the cluster. Generated when unset.
    #[serde(default)]
    pub discovery: Discovery,
    /// Kind of the kubeadm configuration. It has no effect, and the hub version does not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Registration of the Node.
    #[serde(default)]
    pub node_registration: NodeRegistrationOptions,
    /// Patches for the manifests that kubeadm generates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = without_hub_bounds)]
    pub patches: Option<Patches>,
    /// kubeadm phases to skip.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50), inner(length(min = 1, max = 256)))]
    pub skip_phases: Vec<String>,
}

/// Settings of a joining control plane machine. Its presence makes the machine a control plane machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct JoinControlPlane {
    /// Address and port on which the API server of this machine listens.
    #[serde(rename = "localAPIEndpoint", default)]
    pub local_api_endpoint: APIEndpoint,
}

/// Discovery and verification of the cluster that the machine joins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct Discovery {
    /// Discovery with a bootstrap token. Mutually exclusive with file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = without_hub_bounds)]
    pub bootstrap_token: Option<BootstrapTokenDiscovery>,
    /// Discovery with a kubeconfig file. Mutually exclusive with bootstrapToken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileDiscovery>,
    /// How long the kubelet waits for the discovery and its TLS bootstrap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub timeout: Option<GoDuration>,
    /// Token for the kubelet's TLS bootstrap. Defaults to the token of bootstrapToken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub tls_bootstrap_token: Option<String>,
}

/// Discovery with a kubeconfig file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct FileDiscovery {
    /// Kubeconfig to generate and write to kubeConfigPath.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_config: Option<FileDiscoveryKubeConfig>,
    /// Path of the kubeconfig on the machine.
    #[schemars(length(min = 1, max = 512))]
    pub kube_config_path: String,
}

/// A kubeconfig for discovery that is written to the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct FileDiscoveryKubeConfig {
    /// Cluster entry of the kubeconfig.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = without_hub_bounds)]
    pub cluster: Option<KubeConfigCluster>,
    /// User entry of the kubeconfig. It may be empty.
    #[schemars(transform = without_hub_bounds)]
    pub user: KubeConfigUser,
}
