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
    /// Bootstrap configuration of one Machine. Its bootstrap data is generated from it.
    pub struct KubeadmConfig {
        /// The desired state of the object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub spec: Option<KubeadmConfigSpec>,
        /// The observed state of the object.
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
        Column::new("Cluster", "string", r".metadata.labels['cluster\.x-k8s\.io/cluster-name']", "Name of the Cluster"),
        Column::new("Paused", "string", r#".status.conditions[?(@.type=="Paused")].status"#, "Whether reconciliation is paused").wide(),
        Column::new("Data secret created", "string", ".status.initialization.dataSecretCreated", "Whether the bootstrap data Secret exists"),
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
    ],
}

windlass_api::conditioned!(KubeadmConfig);

/// The desired state of a KubeadmConfig: settings of cloud-init or Ignition, and of kubeadm. Unset fields default to
/// values of the Cluster and the Machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct KubeadmConfigSpec {
    /// Commands that run early in every boot (cloud-init bootcmd).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 1000), inner(length(min = 1, max = 10240)), extend("x-kubernetes-list-type" = "atomic"))]
    pub boot_commands: Vec<String>,
    /// Cluster-wide kubeadm configuration, used by the first control plane machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_configuration: Option<ClusterConfiguration>,
    /// Disk partitions and file systems to set up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_setup: Option<DiskSetup>,
    /// Files to write before kubeadm runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 200), extend("x-kubernetes-list-type" = "atomic"))]
    pub files: Vec<File>,
    /// Format of the bootstrap data: cloud-config or ignition. Defaults to cloud-config.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["cloud-config", "ignition"]))]
    pub format: Option<String>,
    /// Settings of the format ignition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignition: Option<IgnitionSpec>,
    /// kubeadm configuration of the first control plane machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init_configuration: Option<InitConfiguration>,
    /// kubeadm configuration of joining machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join_configuration: Option<JoinConfiguration>,
    /// Mount points: fstab entries with up to six fields each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), inner(length(min = 1, max = 100), inner(length(min = 1, max = 512))), extend("x-kubernetes-list-type" = "atomic"))]
    pub mounts: Vec<Vec<String>>,
    /// Time synchronization.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ntp: Option<NTP>,
    /// Commands that run after kubeadm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 1000), inner(length(min = 1, max = 10240)), extend("x-kubernetes-list-type" = "atomic"))]
    pub post_kubeadm_commands: Vec<String>,
    /// Commands that run before kubeadm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 1000), inner(length(min = 1, max = 10240)), extend("x-kubernetes-list-type" = "atomic"))]
    pub pre_kubeadm_commands: Vec<String>,
    /// Users to create.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub users: Vec<User>,
    /// Log verbosity of kubeadm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbosity: Option<i32>,
}

/// The observed state of a KubeadmConfig.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct KubeadmConfigStatus {
    /// Conditions of the object, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// Name of the Secret with the bootstrap data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub data_secret_name: Option<String>,
    /// Fields that are kept for older API versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<KubeadmConfigDeprecatedStatus>,
    /// Initialization milestones. Each one becomes true once and never becomes false again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization: Option<KubeadmConfigInitializationStatus>,
    /// The metadata.generation that the controller observed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub observed_generation: Option<i64>,
}

/// Disk setup by cloud-init or Ignition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct DiskSetup {
    /// File systems to create.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub filesystems: Vec<Filesystem>,
    /// Partition tables to create.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub partitions: Vec<Partition>,
}

/// A file to write before kubeadm runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct File {
    /// Whether to append the content to an existing file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append: Option<bool>,
    /// Literal content of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10240))]
    pub content: Option<String>,
    /// Format of the content: Raw, or Template for a Go template with data such as the Kubernetes version. Defaults to
    /// Raw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Raw", "Template"]))]
    pub content_format: Option<String>,
    /// Source of the content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_from: Option<FileSource>,
    /// Encoding of the content: base64, gzip or gzip+base64. Plain text when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["base64", "gzip", "gzip+base64"]))]
    pub encoding: Option<String>,
    /// Owner of the file, for example root:root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub owner: Option<String>,
    /// Full path of the file.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 512))]
    pub path: String,
    /// Permissions in octal notation, for example 0640.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 16))]
    pub permissions: Option<String>,
}

/// Settings of the format ignition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct IgnitionSpec {
    /// Additional Container Linux Config.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_linux_config: Option<ContainerLinuxConfig>,
}

/// Time synchronization.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct NTP {
    /// Whether time synchronization is enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// NTP servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 512)), extend("x-kubernetes-list-type" = "atomic"))]
    pub servers: Vec<String>,
}

/// A user to create on the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct User {
    /// GECOS field: full name or comment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub gecos: Option<String>,
    /// Additional groups, separated by commas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub groups: Option<String>,
    /// Home directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub home_dir: Option<String>,
    /// Whether the user is inactive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inactive: Option<bool>,
    /// Whether password login is disabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_password: Option<bool>,
    /// User name.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
    /// Password hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub passwd: Option<String>,
    /// Source of the password hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passwd_from: Option<PasswdSource>,
    /// Primary group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub primary_group: Option<String>,
    /// Login shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub shell: Option<String>,
    /// Authorized SSH public keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 2048)), extend("x-kubernetes-list-type" = "atomic"))]
    pub ssh_authorized_keys: Vec<String>,
    /// sudo rule of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub sudo: Option<String>,
}

/// Status fields that are kept for older API versions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct KubeadmConfigDeprecatedStatus {
    /// Status fields of API version v1beta1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta1: Option<KubeadmConfigV1Beta1DeprecatedStatus>,
}

/// Initialization milestones of a KubeadmConfig. Each one becomes true once and never becomes false again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct KubeadmConfigInitializationStatus {
    /// True once the bootstrap data exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_secret_created: Option<bool>,
}

/// A file system to create on a disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct Filesystem {
    /// Device or partition.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 256))]
    pub device: String,
    /// Additional options of mkfs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 256)), extend("x-kubernetes-list-type" = "atomic"))]
    pub extra_opts: Vec<String>,
    /// Type of the file system, for example ext4.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 128))]
    pub filesystem: String,
    /// Label of the file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub label: Option<String>,
    /// Whether existing data may be overwritten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overwrite: Option<bool>,
    /// Partition: a number, auto, any or none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub partition: Option<String>,
    /// Type of file system that may be replaced, for instances that come with one.
    #[serde(rename = "replaceFS", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub replace_fs: Option<String>,
}

/// A partition table to create on a disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("x-kubernetes-validations" = rules::partition_layout()))]
pub struct Partition {
    /// Disk device.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 256))]
    pub device: String,
    /// Partitions of the disk. Mutually exclusive with layout.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub disk_layout: Vec<PartitionSpec>,
    /// Whether to create one partition that fills the disk. Mutually exclusive with diskLayout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<bool>,
    /// Whether existing data may be overwritten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overwrite: Option<bool>,
    /// Type of the partition table: mbr or gpt. Defaults to mbr.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["mbr", "gpt"]))]
    pub table_type: Option<String>,
}

/// Source of the content of a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct FileSource {
    /// Key of a Secret.
    #[serde(skip_serializing_if = "windlass_api::kind::is_unset")]
    pub secret: SecretKeySource,
}

/// Container Linux Config that is merged into the generated one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct ContainerLinuxConfig {
    /// The configuration as YAML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32768))]
    pub additional_config: Option<String>,
    /// Whether warnings count as errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
}

/// Source of a password hash.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct PasswdSource {
    /// Key of a Secret.
    #[serde(skip_serializing_if = "windlass_api::kind::is_unset")]
    pub secret: SecretKeySource,
}

/// Status fields of v1beta1. Controllers still set them for older clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct KubeadmConfigV1Beta1DeprecatedStatus {
    /// Conditions of the object, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<V1Beta1Condition>,
    /// Message of a terminal failure that needs manual intervention.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10240))]
    pub failure_message: Option<String>,
    /// Machine-readable reason of a terminal failure that needs manual intervention.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub failure_reason: Option<String>,
}

/// A partition of a disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct PartitionSpec {
    /// Partition type, by name or GUID. Defaults to Linux.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 36), extend("x-kubernetes-validations" = rules::partition_type()))]
    pub partition_type: Option<String>,
    /// Size of the partition in percent of the disk.
    #[serde(skip_serializing_if = "windlass_api::kind::is_unset")]
    #[schemars(range(min = 1, max = 100))]
    pub percentage: i32,
}

/// Key of a Secret in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct SecretKeySource {
    /// Key in the Secret.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 256))]
    pub key: String,
    /// Name of the Secret.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}
