//! KubeadmConfig: the kind and its parts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bootstrap::v1beta2::{ClusterConfiguration, InitConfiguration, JoinConfiguration};
use windlass_api::Condition;
use windlass_api::core::v1beta2::V1Beta1Condition;
use windlass_api::kind::Column;
use windlass_api::rules;
use windlass_api::schema;

windlass_api::api_kind! {
    /// The kubeadm configuration of one Machine, from which its bootstrap data is made.
    pub struct KubeadmConfig {
        /// What is wished for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub spec: Option<KubeadmConfigSpec>,
        /// What was observed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub status: Option<KubeadmConfigStatus>,
    }
    group: "bootstrap.cluster.x-k8s.io",
    version: "v1beta2",
    plural: "kubeadmconfigs",
    short_names: [],
    provider: "bootstrap-kubeadm",
    contract: true,
    required: [],
    status: true,
    scale: None,
    columns: [
        Column::new("Cluster", "string", r#".metadata.labels['cluster\.x-k8s\.io/cluster-name']"#, "The Cluster that this belongs to"),
        Column::new("Paused", "string", r#".status.conditions[?(@.type=="Paused")].status"#, "Whether reconciling is paused").wide(),
        Column::new("Data secret created", "string", ".status.initialization.dataSecretCreated", "Whether the bootstrap data is there"),
        Column::new("Age", "date", ".metadata.creationTimestamp", "How long ago this was created"),
    ],
}

windlass_api::conditioned!(KubeadmConfig);

/// Kubeadm config spec.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct KubeadmConfigSpec {
    /// Boot commands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 1000), inner(length(min = 1, max = 10240)), extend("x-kubernetes-list-type" = "atomic"))]
    pub boot_commands: Vec<String>,
    /// Cluster configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_configuration: Option<ClusterConfiguration>,
    /// Disk setup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_setup: Option<DiskSetup>,
    /// Files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 200), extend("x-kubernetes-list-type" = "atomic"))]
    pub files: Vec<File>,
    /// Format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["cloud-config", "ignition"]))]
    pub format: Option<String>,
    /// Ignition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignition: Option<IgnitionSpec>,
    /// Init configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init_configuration: Option<InitConfiguration>,
    /// Join configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join_configuration: Option<JoinConfiguration>,
    /// Mounts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), inner(length(min = 1, max = 100), inner(length(min = 1, max = 512))), extend("x-kubernetes-list-type" = "atomic"))]
    pub mounts: Vec<Vec<String>>,
    /// Ntp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ntp: Option<NTP>,
    /// Post kubeadm commands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 1000), inner(length(min = 1, max = 10240)), extend("x-kubernetes-list-type" = "atomic"))]
    pub post_kubeadm_commands: Vec<String>,
    /// Pre kubeadm commands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 1000), inner(length(min = 1, max = 10240)), extend("x-kubernetes-list-type" = "atomic"))]
    pub pre_kubeadm_commands: Vec<String>,
    /// Users.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub users: Vec<User>,
    /// Verbosity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbosity: Option<i32>,
}

/// Kubeadm config status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct KubeadmConfigStatus {
    /// Conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// Data secret name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub data_secret_name: Option<String>,
    /// Deprecated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<KubeadmConfigDeprecatedStatus>,
    /// Initialization.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization: Option<KubeadmConfigInitializationStatus>,
    /// Observed generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub observed_generation: Option<i64>,
}

/// Disk setup.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct DiskSetup {
    /// Filesystems.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub filesystems: Vec<Filesystem>,
    /// Partitions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub partitions: Vec<Partition>,
}

/// File.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct File {
    /// Append.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append: Option<bool>,
    /// Content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10240))]
    pub content: Option<String>,
    /// Content format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Raw", "Template"]))]
    pub content_format: Option<String>,
    /// Content from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_from: Option<FileSource>,
    /// Encoding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["base64", "gzip", "gzip+base64"]))]
    pub encoding: Option<String>,
    /// Owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub owner: Option<String>,
    /// Path.
    #[schemars(length(min = 1, max = 512))]
    pub path: String,
    /// Permissions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 16))]
    pub permissions: Option<String>,
}

/// Ignition spec.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct IgnitionSpec {
    /// Container linux config.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_linux_config: Option<ContainerLinuxConfig>,
}

/// Ntp.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct NTP {
    /// Enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 512)), extend("x-kubernetes-list-type" = "atomic"))]
    pub servers: Vec<String>,
}

/// User.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct User {
    /// Gecos.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub gecos: Option<String>,
    /// Groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub groups: Option<String>,
    /// Home dir.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub home_dir: Option<String>,
    /// Inactive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inactive: Option<bool>,
    /// Lock password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_password: Option<bool>,
    /// Name.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
    /// Passwd.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub passwd: Option<String>,
    /// Passwd from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passwd_from: Option<PasswdSource>,
    /// Primary group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub primary_group: Option<String>,
    /// Shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub shell: Option<String>,
    /// Ssh authorized keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 2048)), extend("x-kubernetes-list-type" = "atomic"))]
    pub ssh_authorized_keys: Vec<String>,
    /// Sudo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub sudo: Option<String>,
}

/// Kubeadm config deprecated status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeadmConfigDeprecatedStatus {
    /// V1beta1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta1: Option<KubeadmConfigV1Beta1DeprecatedStatus>,
}

/// Kubeadm config initialization status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct KubeadmConfigInitializationStatus {
    /// Data secret created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_secret_created: Option<bool>,
}

/// Filesystem.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Filesystem {
    /// Device.
    #[schemars(length(min = 1, max = 256))]
    pub device: String,
    /// Extra opts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 256)), extend("x-kubernetes-list-type" = "atomic"))]
    pub extra_opts: Vec<String>,
    /// Filesystem.
    #[schemars(length(min = 1, max = 128))]
    pub filesystem: String,
    /// Label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub label: Option<String>,
    /// Overwrite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overwrite: Option<bool>,
    /// Partition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub partition: Option<String>,
    /// Replace fs.
    #[serde(rename = "replaceFS", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub replace_fs: Option<String>,
}

/// Partition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::partition_layout()))]
pub struct Partition {
    /// Device.
    #[schemars(length(min = 1, max = 256))]
    pub device: String,
    /// Disk layout.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub disk_layout: Vec<PartitionSpec>,
    /// Layout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<bool>,
    /// Overwrite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overwrite: Option<bool>,
    /// Table type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["mbr", "gpt"]))]
    pub table_type: Option<String>,
}

/// File source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileSource {
    /// Secret.
    pub secret: SecretKeySource,
}

/// Container linux config.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct ContainerLinuxConfig {
    /// Additional config.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32768))]
    pub additional_config: Option<String>,
    /// Strict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
}

/// Passwd source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PasswdSource {
    /// Secret.
    pub secret: SecretKeySource,
}

/// Kubeadm config v1 beta1 deprecated status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeadmConfigV1Beta1DeprecatedStatus {
    /// Conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<V1Beta1Condition>,
    /// Failure message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10240))]
    pub failure_message: Option<String>,
    /// Failure reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub failure_reason: Option<String>,
}

/// Partition spec.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PartitionSpec {
    /// Partition type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 36), extend("x-kubernetes-validations" = rules::partition_type()))]
    pub partition_type: Option<String>,
    /// Percentage.
    #[schemars(range(min = 1, max = 100))]
    pub percentage: i32,
}

/// Secret key source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretKeySource {
    /// Key.
    #[schemars(length(min = 1, max = 256))]
    pub key: String,
    /// Name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}
