//! When and how control plane Machines are replaced: the parts that KubeadmControlPlanes and their templates share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_api_kubeadm::controlplane::v1beta2::KubeadmControlPlaneRollingUpdate;
use windlass_meta::GoDuration;

use crate::bootstrap::v1beta1::parts::without_hub_bounds;

/// Triggers of a rollout ahead of an event.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct RolloutBefore {
    /// Replaces Machines whose certificates expire within this number of days.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificates_expiry_days: Option<i32>,
}

/// Rollout strategy of control plane Machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct RolloutStrategy {
    /// Settings of rolling updates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = without_hub_bounds)]
    pub rolling_update: Option<KubeadmControlPlaneRollingUpdate>,
    /// Type of rollout. RollingUpdate is the only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["RollingUpdate"]))]
    pub type_: Option<String>,
}

/// Remediation settings of unhealthy control plane Machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct RemediationStrategy {
    /// Maximum number of retries when the replacement of an unhealthy Machine becomes unhealthy too. No limit when
    /// unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retry: Option<i32>,
    /// How long a replacement must stay healthy before a later failure starts a new retry count. Defaults to an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub min_healthy_period: Option<GoDuration>,
    /// Time between two retries of a remediation. 0s means unset.
    #[serde(default)]
    #[schemars(with = "String")]
    pub retry_period: GoDuration,
}
