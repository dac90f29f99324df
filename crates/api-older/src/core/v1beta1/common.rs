//! Types that several kinds share.

mod convert;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::common::ObjectMeta;
pub(in crate::core::v1beta1) use convert::{naming_from_hub, naming_to_hub};

use super::MachineSpec;

/// Template of the Machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineTemplateSpec {
    /// Labels and annotations of the created objects.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Spec of the Machines.
    #[serde(default)]
    pub spec: MachineSpec,
}

/// How Machines are named.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineNamingStrategy {
    /// Go template of the names of the Machines.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 256))]
    pub template: String,
}
