//! The parts of ClusterClass and `Cluster.spec.topology` that decide what is generated.
//!
//! Read from JSON, so that a preview works on files as well as on stored objects. Parts that are only copied
//! into generated objects (health checks, taints, gates, strategies) stay JSON.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use windlass_gotemplate::Prepared;

use crate::error::{Error, describe};

/// Labels and annotations that a class or a topology adds.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
}

/// Which template a class means.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TemplateRef {
    /// Group and version.
    pub api_version: String,
    /// Kind, ending in `Template`.
    pub kind: String,
    /// Name, in the namespace of the class.
    pub name: String,
}

impl TemplateRef {
    /// The API group.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }
}

/// A place that holds a template reference.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Templated {
    /// The reference.
    pub template_ref: TemplateRef,
    /// How objects made from it are named.
    pub naming: Naming,
}

/// A naming strategy.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Naming {
    /// A Go template.
    pub template: Option<String>,
}

/// `ClusterClass.spec`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClassSpec {
    /// The infrastructure cluster.
    pub infrastructure: Templated,
    /// The control plane.
    pub control_plane: ControlPlaneClass,
    /// The worker classes.
    pub workers: WorkersClass,
    /// Inline variables.
    pub variables: Vec<VariableClass>,
    /// Patches, in order.
    pub patches: Vec<Patch>,
    /// Versions that Clusters of the class may have, oldest first.
    pub kubernetes_versions: Vec<String>,
    /// Where an upgrade plan comes from, if not from the versions.
    pub upgrade: UpgradeClass,
}

/// `ClusterClass.spec.upgrade`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct UpgradeClass {
    /// Extensions that take part.
    pub external: UpgradeExternal,
}

/// `ClusterClass.spec.upgrade.external`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UpgradeExternal {
    /// The handler that says which versions an upgrade goes through.
    pub generate_upgrade_plan_extension: Option<String>,
}

/// `ClusterClass.spec.controlPlane`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ControlPlaneClass {
    /// Labels and annotations.
    pub metadata: Metadata,
    /// The control plane template.
    pub template_ref: TemplateRef,
    /// The machine template, for control planes made of Machines.
    pub machine_infrastructure: Option<Templated>,
    /// Health check definition.
    pub health_check: Option<Map<String, Value>>,
    /// How the control plane is named.
    pub naming: Naming,
    /// Deletion timeouts.
    pub deletion: Map<String, Value>,
    /// Taints of the Machines.
    pub taints: Option<Value>,
    /// Readiness gates of the Machines.
    pub readiness_gates: Option<Value>,
}

/// `ClusterClass.spec.workers`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkersClass {
    /// Classes of MachineDeployments.
    pub machine_deployments: Vec<MachineDeploymentClass>,
    /// Classes of MachinePools.
    pub machine_pools: Vec<MachinePoolClass>,
}

/// One class of MachineDeployments.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineDeploymentClass {
    /// Labels and annotations.
    pub metadata: Metadata,
    /// Its name.
    pub class: String,
    /// The bootstrap template.
    pub bootstrap: Templated,
    /// The machine template.
    pub infrastructure: Templated,
    /// Health check definition.
    pub health_check: Option<Map<String, Value>>,
    /// How MachineDeployments are named.
    pub naming: Naming,
    /// Settings of both a class and a topology.
    #[serde(flatten)]
    pub common: WorkerFields,
}

/// One class of MachinePools.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachinePoolClass {
    /// Labels and annotations.
    pub metadata: Metadata,
    /// Its name.
    pub class: String,
    /// The bootstrap template.
    pub bootstrap: Templated,
    /// The machine pool template.
    pub infrastructure: Templated,
    /// How MachinePools are named.
    pub naming: Naming,
    /// Settings of both a class and a topology.
    #[serde(flatten)]
    pub common: PoolFields,
}

/// Fields of MachinePools that a class sets and a topology may override as a whole.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PoolFields {
    /// The failure domains of the machines.
    pub failure_domains: Option<Value>,
    /// Deletion timeouts.
    pub deletion: Map<String, Value>,
    /// Taints of the Nodes.
    pub taints: Option<Value>,
    /// How long a machine must be ready to count as available.
    pub min_ready_seconds: Option<i64>,
}

/// Fields that a class sets and a topology may override as a whole.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkerFields {
    /// The failure domain of the Machines.
    pub failure_domain: Option<String>,
    /// Deletion order and timeouts.
    pub deletion: Map<String, Value>,
    /// Taints of the Machines.
    pub taints: Option<Value>,
    /// How long a Machine must be ready to count as available.
    pub min_ready_seconds: Option<i64>,
    /// Readiness gates of the Machines.
    pub readiness_gates: Option<Value>,
    /// Rollout strategy and time.
    pub rollout: Map<String, Value>,
}

/// `ClusterClass.spec.variables[]`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VariableClass {
    /// Its name.
    pub name: String,
    /// Whether every Cluster must have a value.
    pub required: bool,
    /// Its schema.
    pub schema: VariableSchema,
}

/// The schema of a variable.
#[derive(Debug, Clone, Default, PartialEq, Hash, Deserialize)]
#[serde(default)]
pub struct VariableSchema {
    /// The OpenAPI schema.
    #[serde(rename = "openAPIV3Schema")]
    pub open_api_v3_schema: Value,
}

/// `ClusterClass.status.variables[]`.
#[derive(Debug, Clone, Default, PartialEq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VariableStatus {
    /// Its name.
    pub name: String,
    /// Whether its definitions disagree.
    pub definitions_conflict: bool,
    /// Where it is defined.
    pub definitions: Vec<VariableDefinition>,
}

/// One definition of a variable.
#[derive(Debug, Clone, Default, PartialEq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VariableDefinition {
    /// `inline`, or the name of the patch that brought it.
    pub from: String,
    /// Whether every Cluster must have a value.
    pub required: bool,
    /// Its schema.
    pub schema: VariableSchema,
}

/// `ClusterClass.spec.patches[]`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Patch {
    /// Its name.
    pub name: String,
    /// A Go template that must give `true`.
    #[serde(deserialize_with = "template")]
    pub enabled_if: Option<Prepared>,
    /// Inline patches.
    pub definitions: Vec<PatchDefinition>,
    /// Patches by a runtime extension.
    pub external: Option<ExternalPatch>,
}

/// `ClusterClass.spec.patches[].external`. Extensions are named by handler, a dot and ExtensionConfig.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExternalPatch {
    /// The handler that gives the patches.
    pub generate_patches_extension: Option<String>,
    /// The handler that checks the templates when all patches were applied.
    pub validate_topology_extension: Option<String>,
    /// The handler that defines variables.
    pub discover_variables_extension: Option<String>,
    /// Settings for all three. They have priority over those of the ExtensionConfig.
    pub settings: BTreeMap<String, String>,
}

impl ExternalPatch {
    /// The handler that gives the patches, if one is named.
    pub fn generates(&self) -> Option<&str> {
        named(self.generate_patches_extension.as_deref())
    }

    /// The handler that checks the templates, if one is named.
    pub fn validates(&self) -> Option<&str> {
        named(self.validate_topology_extension.as_deref())
    }

    /// The handler that defines variables, if one is named.
    pub fn discovers(&self) -> Option<&str> {
        named(self.discover_variables_extension.as_deref())
    }
}

/// An empty name is none.
fn named(name: Option<&str>) -> Option<&str> {
    name.filter(|name| !name.is_empty())
}

/// Which templates are patched, and how.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PatchDefinition {
    /// Which templates.
    pub selector: PatchSelector,
    /// How, in order.
    pub json_patches: Vec<JsonPatch>,
}

/// Selects templates by kind and by place.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PatchSelector {
    /// Group and version of the template.
    pub api_version: String,
    /// Kind of the template.
    pub kind: String,
    /// Places, any of which may match.
    pub match_resources: MatchResources,
}

/// The places that a patch applies to.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MatchResources {
    /// The control plane template and its machine template.
    pub control_plane: bool,
    /// The infrastructure cluster template.
    pub infrastructure_cluster: bool,
    /// Templates of MachineDeployments, by class name.
    pub machine_deployment_class: Option<ClassNames>,
    /// Templates of MachinePools, by class name.
    pub machine_pool_class: Option<ClassNames>,
}

/// Names of worker classes; one `*` at the start or end stands for anything.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ClassNames {
    /// The names.
    pub names: Vec<String>,
}

/// One JSON patch operation.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JsonPatch {
    /// `add`, `replace` or `remove`.
    pub op: String,
    /// A JSON pointer.
    pub path: String,
    /// A literal value.
    #[serde(deserialize_with = "present")]
    pub value: Option<Value>,
    /// A computed value.
    pub value_from: Option<ValueFrom>,
}

/// The source of a patch's value.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ValueFrom {
    /// A variable, or a field in one.
    pub variable: Option<String>,
    /// A Go template that gives YAML.
    #[serde(deserialize_with = "template")]
    pub template: Option<Prepared>,
}

/// `Cluster.spec.topology`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Topology {
    /// The class.
    pub class_ref: ClassRef,
    /// The Kubernetes version.
    pub version: String,
    /// The control plane.
    pub control_plane: ControlPlaneTopology,
    /// The workers.
    pub workers: WorkersTopology,
    /// Values of variables.
    pub variables: Vec<VariableValue>,
}

/// Which class a Cluster uses.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ClassRef {
    /// Name of the class.
    pub name: String,
    /// Its namespace, if not the Cluster's.
    pub namespace: Option<String>,
}

/// `Cluster.spec.topology.controlPlane`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ControlPlaneTopology {
    /// Labels and annotations.
    pub metadata: Metadata,
    /// Number of control plane Machines, if the control plane supports one.
    pub replicas: Option<i64>,
    /// When to roll out.
    pub rollout: Map<String, Value>,
    /// Health check override.
    pub health_check: Option<Map<String, Value>>,
    /// Deletion timeouts.
    pub deletion: Map<String, Value>,
    /// Taints of the Machines.
    pub taints: Option<Value>,
    /// Readiness gates of the Machines.
    pub readiness_gates: Option<Value>,
    /// Values for the control plane only.
    pub variables: Overrides,
}

/// `Cluster.spec.topology.workers`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkersTopology {
    /// Worker sets, in upgrade order.
    pub machine_deployments: Vec<MachineDeploymentTopology>,
    /// MachinePools, in upgrade order.
    pub machine_pools: Vec<MachinePoolTopology>,
}

/// One worker set.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineDeploymentTopology {
    /// Labels and annotations.
    pub metadata: Metadata,
    /// The MachineDeployment class.
    pub class: String,
    /// Its identity in the topology.
    pub name: String,
    /// Number of Machines; when unset, another controller such as an autoscaler manages it.
    pub replicas: Option<i64>,
    /// Health check override.
    pub health_check: Option<Map<String, Value>>,
    /// Values for this worker set only.
    pub variables: Overrides,
    /// Overrides of the class.
    #[serde(flatten)]
    pub common: WorkerFields,
}

/// One MachinePool.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachinePoolTopology {
    /// Labels and annotations.
    pub metadata: Metadata,
    /// The MachinePool class.
    pub class: String,
    /// Its identity in the topology.
    pub name: String,
    /// Number of machines; when unset, another controller such as an autoscaler manages it.
    pub replicas: Option<i64>,
    /// Values for this pool only.
    pub variables: Overrides,
    /// Overrides of the class.
    #[serde(flatten)]
    pub common: PoolFields,
}

/// Values of variables for one part of the topology.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Overrides {
    /// The values.
    pub overrides: Vec<VariableValue>,
}

/// One value.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct VariableValue {
    /// Name of the variable.
    pub name: String,
    /// The value.
    pub value: Value,
}

/// A template of a patch, which is rendered for each Cluster of the class.
fn template<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Prepared>, D::Error> {
    Ok(Option::deserialize(deserializer)?.map(Prepared::new))
}

/// A `null` that stands in a patch is a value, not an absence.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Reads one part of an object; the error names the object and the part.
pub fn read<T: DeserializeOwned + Default>(object: &Value, pointer: &str) -> Result<T, Error> {
    match object.pointer(pointer) {
        None | Some(Value::Null) => Ok(T::default()),
        Some(part) => T::deserialize(part).map_err(|e| {
            let field = pointer.trim_start_matches('/').replace('/', ".");
            Error::new(name_of(object), field, format!("cannot be read: {e}"))
        }),
    }
}

/// `Kind namespace/name` of an object.
pub fn name_of(object: &Value) -> String {
    describe(
        text(object, "/kind"),
        text(object, "/metadata/namespace"),
        text(object, "/metadata/name"),
    )
}

/// The text at `pointer`, or an empty one.
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    at(object, pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The value at a JSON pointer. As [`Value::pointer`], which copies each token: most have nothing to unescape.
pub fn at<'a>(object: &'a Value, pointer: &str) -> Option<&'a Value> {
    if pointer.contains('~') || !pointer.starts_with('/') {
        return object.pointer(pointer);
    }
    let mut tokens = pointer.split('/').skip(1);
    tokens.try_fold(object, |at, token| match at {
        Value::Object(fields) => fields.get(token),
        // An index has neither a sign nor leading zeros.
        Value::Array(_) if token.starts_with('+') || (token.starts_with('0') && token.len() > 1) => None,
        Value::Array(items) => items.get(token.parse::<usize>().ok()?),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pointers_lead_where_those_of_json_do() {
        let object = json!({"a": {"b/c": 1, "~": 2, "": 3, "0": 4}, "l": ["x", {"y": 5}], "": {"": 6}, "t": "text"});
        for pointer in [
            "", "/", "//", "a", "/a", "/a/", "/a/0", "/a/b~1c", "/a/~0", "/a/x", "/l/0", "/l/1/y", "/l/01", "/l/00",
            "/l/+1", "/l/-1", "/l/-", "/l/2", "/l/", "/l/x", "/t/0", "/t/", "a/b",
        ] {
            assert_eq!(at(&object, pointer), object.pointer(pointer), "{pointer:?}");
        }
    }
}
