//! Changes of Machines without a replacement.

use k8s_openapi::ByteString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_api::core::{Machine, MachineSet};
use windlass_api::schema;

use crate::hook::hook;
use crate::openapi;

/// A patch of one object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Patch {
    /// JSONPatch or JSONMergePatch.
    pub patch_type: String,
    /// The patch.
    #[schemars(schema_with = "schema::bytes")]
    pub patch: ByteString,
}

hook! {
    /// While an update of one Machine is planned: the changes that the extension can make in place, as patches of the current objects.
    CanUpdateMachine;
    CanUpdateMachineRequest {
        /// The objects as they are.
        current: MachineObjects,
        /// The objects as they are to be.
        desired: MachineObjects,
    }
    CanUpdateMachineResponse {
        /// The changes of the Machine's spec that the extension can make.
        #[serde(skip_serializing_if = "Option::is_none")]
        machine_patch: Option<Patch>,
        /// The changes of the infrastructure machine's spec that the extension can make.
        #[serde(skip_serializing_if = "Option::is_none")]
        infrastructure_machine_patch: Option<Patch>,
        /// The changes of the bootstrap configuration's spec that the extension can make.
        #[serde(skip_serializing_if = "Option::is_none")]
        bootstrap_config_patch: Option<Patch>,
    }
}

/// A Machine and the objects it refers to, each with metadata and spec only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineObjects {
    /// The Machine.
    #[schemars(schema_with = "openapi::machine")]
    pub machine: Machine,
    /// The infrastructure machine.
    #[schemars(schema_with = "schema::any")]
    pub infrastructure_machine: Value,
    /// The bootstrap configuration; null without one.
    #[serde(skip_serializing_if = "Value::is_null")]
    #[schemars(schema_with = "schema::any")]
    pub bootstrap_config: Value,
}

hook! {
    /// While an update of the Machines of a MachineSet is planned: the changes that the extension can make in place.
    CanUpdateMachineSet;
    CanUpdateMachineSetRequest {
        /// The objects as they are.
        current: MachineSetObjects,
        /// The objects as they are to be.
        desired: MachineSetObjects,
    }
    CanUpdateMachineSetResponse {
        /// The changes of the MachineSet's `spec.template.spec` that the extension can make.
        #[serde(skip_serializing_if = "Option::is_none")]
        machine_set_patch: Option<Patch>,
        /// The changes of the infrastructure machine template's `spec.template.spec` that the extension can make.
        #[serde(skip_serializing_if = "Option::is_none")]
        infrastructure_machine_template_patch: Option<Patch>,
        /// The changes of the bootstrap configuration template's `spec.template.spec` that the extension can make.
        #[serde(skip_serializing_if = "Option::is_none")]
        bootstrap_config_template_patch: Option<Patch>,
    }
}

/// A MachineSet and its templates, each with metadata and spec only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineSetObjects {
    /// The MachineSet.
    #[schemars(schema_with = "openapi::machine_set")]
    pub machine_set: MachineSet,
    /// The template of infrastructure machines.
    #[schemars(schema_with = "schema::any")]
    pub infrastructure_machine_template: Value,
    /// The template of bootstrap configurations; null without one.
    #[serde(skip_serializing_if = "Value::is_null")]
    #[schemars(schema_with = "schema::any")]
    pub bootstrap_config_template: Value,
}

hook! {
    /// The update of a Machine in place. Asked again until it is done: `retryAfterSeconds` is zero then.
    UpdateMachine;
    UpdateMachineRequest {
        /// The objects as they are to be.
        desired: MachineObjects,
    }
    UpdateMachineResponse blocks {}
}
