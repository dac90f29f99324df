//! KubeadmConfig: the kind and its parts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_api::Condition;
use windlass_api::api_kind;
use windlass_api::core::v1beta2::V1Beta1Condition;
use windlass_api::kind::Column;
use windlass_api::schema;
use windlass_api_kubeadm::bootstrap as hub;
use windlass_api_kubeadm::bootstrap::v1beta2::{File, Filesystem, IgnitionSpec, NTP, PartitionSpec, User};

use super::parts::without_hub_bounds;
use super::{ClusterConfiguration, InitConfiguration, JoinConfiguration, convert, convert_status};
use crate::convert::{ConversionError, References, Spoke};

api_kind! {
    /// Bootstrap configuration of one Machine. Its bootstrap data is generated from it.
    pub struct KubeadmConfig {
        /// The desired state of the object.
        #[serde(default)]
        pub spec: KubeadmConfigSpec,
        /// The observed state of the object.
        #[serde(default)]
        pub status: KubeadmConfigStatus,
    }
    group: "bootstrap.cluster.x-k8s.io",
    version: "v1beta1",
    plural: "kubeadmconfigs",
    short_names: [],
    provider: "bootstrap-kubeadm",
    contract: false,
    required: [],
    status: true,
    scale: None,
    columns: [
        Column::new("Cluster", "string", r".metadata.labels['cluster\.x-k8s\.io/cluster-name']", "Name of the Cluster"),
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
    ],
}

impl Spoke for KubeadmConfig {
    type Hub = hub::KubeadmConfig;

    fn into_hub(self, kept: Option<Self::Hub>) -> Result<Self::Hub, ConversionError> {
        let Self {
            metadata: _,
            spec,
            status,
        } = self;
        let kept_spec = kept.as_ref().and_then(|kept| kept.spec.as_ref());
        Ok(hub::KubeadmConfig {
            spec: convert::spec_to_hub(spec, kept_spec),
            status: convert_status::to_hub(status, kept.as_ref()),
            ..Self::Hub::default()
        })
    }

    fn from_hub(hub: Self::Hub, _: &str, _: &dyn References) -> Result<Self, ConversionError> {
        let hub::KubeadmConfig {
            metadata: _,
            spec,
            status,
        } = hub;
        Ok(Self {
            spec: convert::spec_from_hub(spec),
            status: convert_status::from_hub(status),
            ..Self::default()
        })
    }
}

/// The desired state of a KubeadmConfig: settings of cloud-init or Ignition, and of kubeadm. Unset fields default to
/// values of the Cluster and the Machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct KubeadmConfigSpec {
    /// Commands that run early in every boot (cloud-init bootcmd).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000), inner(length(min = 1, max = 10240)))]
    pub boot_commands: Vec<String>,
    /// Cluster-wide kubeadm configuration, used by the first control plane machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_configuration: Option<ClusterConfiguration>,
    /// Disk partitions and file systems to set up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_setup: Option<DiskSetup>,
    /// Files to write before kubeadm runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200))]
    pub files: Vec<File>,
    /// Format of the bootstrap data: cloud-config or ignition. Defaults to cloud-config.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["cloud-config", "ignition"]))]
    pub format: Option<String>,
    /// Settings of the format ignition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = without_hub_bounds)]
    pub ignition: Option<IgnitionSpec>,
    /// kubeadm configuration of the first control plane machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init_configuration: Option<InitConfiguration>,
    /// kubeadm configuration of joining machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join_configuration: Option<JoinConfiguration>,
    /// Mount points: fstab entries with up to six fields each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(inner(length(min = 1, max = 512))))]
    pub mounts: Vec<Vec<String>>,
    /// Time synchronization.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = without_hub_bounds)]
    pub ntp: Option<NTP>,
    /// Commands that run after kubeadm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000), inner(length(min = 1, max = 10240)))]
    pub post_kubeadm_commands: Vec<String>,
    /// Commands that run before kubeadm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000), inner(length(min = 1, max = 10240)))]
    pub pre_kubeadm_commands: Vec<String>,
    /// Has no effect: kubeadm itself retries a join that fails. Not kept by the hub version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub use_experimental_retry_join: Option<bool>,
    /// Users to create.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), transform = without_hub_bounds)]
    pub users: Vec<User>,
    /// Log verbosity of kubeadm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbosity: Option<i32>,
}

/// Disk setup by cloud-init or Ignition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct DiskSetup {
    /// File systems to create.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), transform = without_hub_bounds)]
    pub filesystems: Vec<Filesystem>,
    /// Partition tables to create.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub partitions: Vec<Partition>,
}

/// A partition table to create on a disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct Partition {
    /// Disk device.
    #[schemars(length(min = 1, max = 256))]
    pub device: String,
    /// Partitions of the disk, instead of a single one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100))]
    pub disk_layout: Vec<PartitionSpec>,
    /// Whether to create one partition that fills the disk.
    pub layout: bool,
    /// Whether existing data may be overwritten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overwrite: Option<bool>,
    /// Type of the partition table: mbr or gpt. Defaults to mbr.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["mbr", "gpt"]))]
    pub table_type: Option<String>,
}

/// The observed state of a KubeadmConfig.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct KubeadmConfigStatus {
    /// Conditions of the v1beta1 generation, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<V1Beta1Condition>,
    /// Name of the Secret with the bootstrap data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub data_secret_name: Option<String>,
    /// Message of a terminal failure that needs manual intervention.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10240))]
    pub failure_message: Option<String>,
    /// Machine-readable reason of a terminal failure that needs manual intervention.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub failure_reason: Option<String>,
    /// The metadata.generation that the controller observed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Whether the bootstrap data exists.
    #[serde(default)]
    pub ready: bool,
    /// Status fields that the hub version has instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta2: Option<KubeadmConfigV1Beta2Status>,
}

/// Status fields of the hub version.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct KubeadmConfigV1Beta2Status {
    /// Conditions of the object, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}
