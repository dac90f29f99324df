//! kubeadm configuration of joining machines.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bootstrap::v1beta2::{LocalAPIEndpoint, NodeRegistrationOptions, Patches, Timeouts};
use windlass_api::schema;

/// kubeadm configuration of joining machines (kubeadm join).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct JoinConfiguration {
    /// Path of the CA certificate. Defaults to /etc/kubernetes/pki/ca.crt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub ca_cert_path: Option<String>,
    /// Settings of a joining control plane machine. Its presence makes the machine a control plane machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<JoinControlPlane>,
    /// Discovery of the cluster. Generated when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discovery: Option<Discovery>,
    /// Registration of the Node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_registration: Option<NodeRegistrationOptions>,
    /// Patches for the manifests that kubeadm generates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patches: Option<Patches>,
    /// kubeadm phases to skip.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 50), inner(length(min = 1, max = 256)), extend("x-kubernetes-list-type" = "atomic"))]
    pub skip_phases: Vec<String>,
    /// Timeouts of kubeadm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<Timeouts>,
}

/// Settings of a joining control plane machine. Its presence makes the machine a control plane machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct JoinControlPlane {
    /// Address and port on which the API server of this machine listens.
    #[serde(rename = "localAPIEndpoint", default, skip_serializing_if = "Option::is_none")]
    pub local_api_endpoint: Option<LocalAPIEndpoint>,
}

/// Discovery and verification of the cluster that the machine joins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct Discovery {
    /// Discovery with a bootstrap token. Mutually exclusive with file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap_token: Option<BootstrapTokenDiscovery>,
    /// Discovery with a kubeconfig file. Mutually exclusive with bootstrapToken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileDiscovery>,
    /// Token for the kubelet's TLS bootstrap. Defaults to the token of bootstrapToken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub tls_bootstrap_token: Option<String>,
}

/// Discovery with a bootstrap token.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct BootstrapTokenDiscovery {
    /// Endpoint of the API server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub api_server_endpoint: Option<String>,
    /// Hashes of the CA's public keys, in the form sha256:HEX.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), inner(length(min = 1, max = 512)), extend("x-kubernetes-list-type" = "atomic"))]
    pub ca_cert_hashes: Vec<String>,
    /// The bootstrap token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub token: Option<String>,
    /// Whether to skip the verification of the CA.
    #[serde(
        rename = "unsafeSkipCAVerification",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub unsafe_skip_ca_verification: Option<bool>,
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
    #[serde(skip_serializing_if = "String::is_empty")]
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
    pub cluster: Option<KubeConfigCluster>,
    /// User entry of the kubeconfig.
    #[serde(skip_serializing_if = "windlass_api::kind::is_unset")]
    pub user: KubeConfigUser,
}

/// Cluster entry of the kubeconfig. Unset fields default to values of the Cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct KubeConfigCluster {
    /// CA certificates of the API server as PEM. Defaults to the CA of the Cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::bytes", length(min = 1, max = 51200))]
    pub certificate_authority_data: Option<ByteString>,
    /// Whether to skip the verification of the API server's certificate.
    #[serde(rename = "insecureSkipTLSVerify", default, skip_serializing_if = "Option::is_none")]
    pub insecure_skip_tls_verify: Option<bool>,
    /// URL of a proxy.
    #[serde(rename = "proxyURL", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub proxy_url: Option<String>,
    /// URL of the API server. Defaults to the endpoint of the Cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub server: Option<String>,
    /// Server name for the verification of the API server's certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub tls_server_name: Option<String>,
}

/// The user entry of the kubeconfig.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct KubeConfigUser {
    /// Built-in authentication plugin. Mutually exclusive with exec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_provider: Option<KubeConfigAuthProvider>,
    /// Command that provides credentials. Mutually exclusive with authProvider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec: Option<KubeConfigAuthExec>,
}

/// A built-in authentication plugin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct KubeConfigAuthProvider {
    /// Settings of the plugin.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, String>,
    /// Name of the plugin.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
}

/// A command that provides credentials.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct KubeConfigAuthExec {
    /// API version of the exchanged ExecCredential. Defaults to client.authentication.k8s.io/v1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub api_version: Option<String>,
    /// Arguments of the command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), inner(length(min = 1, max = 512)), extend("x-kubernetes-list-type" = "atomic"))]
    pub args: Vec<String>,
    /// Command to run.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 1024))]
    pub command: String,
    /// Additional environment variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub env: Vec<KubeConfigAuthExecEnv>,
    /// Whether cluster information is passed to the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provide_cluster_info: Option<bool>,
}

/// An environment variable of the command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct KubeConfigAuthExecEnv {
    /// Name of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 512))]
    pub name: String,
    /// Value of the variable.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 512))]
    pub value: String,
}
