//! MachineDrainRule: the kind and its parts.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kind::Column;
use crate::rules;
use crate::schema;

crate::api_kind! {
    /// How the Pods of Machines are drained when the Machines are deleted.
    pub struct MachineDrainRule {
        /// The rule.
        pub spec: MachineDrainRuleSpec,
    }
    group: "cluster.x-k8s.io",
    version: "v1beta2",
    plural: "machinedrainrules",
    short_names: [],
    provider: "cluster-api",
    contract: false,
    required: ["spec"],
    status: false,
    scale: None,
    columns: [
        Column::new("Behavior", "string", ".spec.drain.behavior", "How the Pods are drained"),
        Column::new("Order", "string", ".spec.drain.order", "When they are drained, lowest first"),
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
    ],
}

/// Which Pods of which Machines are drained how.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct MachineDrainRuleSpec {
    /// How the Pods are drained.
    #[serde(skip_serializing_if = "crate::kind::is_unset")]
    pub drain: MachineDrainRuleDrainConfig,
    /// Machines that the rule is about: those of any entry. All Machines of the namespace when unset.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 32), extend("x-kubernetes-list-type" = "atomic", "x-kubernetes-validations" = rules::unique("machines")))]
    pub machines: Vec<MachineDrainRuleMachineSelector>,
    /// Pods that the rule is about: those of any entry. All Pods when unset.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 32), extend("x-kubernetes-list-type" = "atomic", "x-kubernetes-validations" = rules::unique("pods")))]
    pub pods: Vec<MachineDrainRulePodSelector>,
}

/// How Pods are drained.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct MachineDrainRuleDrainConfig {
    /// Drain: the Pods are evicted. Skip: they are left alone. WaitCompleted: they are not evicted, and the drain waits until they have
    /// completed.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["Drain", "Skip", "WaitCompleted"]))]
    pub behavior: String,
    /// When the Pods are evicted: those with a lower number are gone before. Only with behavior Drain. Defaults to 0, which is also that of
    /// Pods without a rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<i32>,
}

/// Machines that a rule is about: both selectors have to match.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct MachineDrainRuleMachineSelector {
    /// Label selector of the Clusters of the Machines. All Clusters when unset or empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::label_selector")]
    pub cluster_selector: Option<LabelSelector>,
    /// Label selector of the Machines. All Machines when unset or empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::label_selector")]
    pub selector: Option<LabelSelector>,
}

/// Pods that a rule is about: both selectors have to match.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct MachineDrainRulePodSelector {
    /// Label selector of the namespaces of the Pods, in the workload cluster. All namespaces when unset or empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::label_selector")]
    pub namespace_selector: Option<LabelSelector>,
    /// Label selector of the Pods. All Pods when unset or empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::label_selector")]
    pub selector: Option<LabelSelector>,
}
