//! ClusterClassRevision: the kind and its parts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use windlass_api::kind::Column;
use windlass_api::schema;

windlass_api::api_kind! {
    /// A ClusterClass and its templates as they were at one time, for the Clusters that do not have the changes since then yet. The controller of
    /// ClusterClassRollouts makes and deletes them.
    pub struct ClusterClassRevision {
        /// The contents. Immutable.
        pub spec: ClusterClassRevisionSpec,
    }
    group: "windlass.dev",
    version: "v1alpha1",
    plural: "clusterclassrevisions",
    short_names: ["ccrev"],
    provider: "",
    labels: [("clusterctl.cluster.x-k8s.io/move", "")],
    contract: false,
    required: ["spec"],
    status: false,
    scale: None,
    columns: [
        Column::new("Class", "string", ".spec.className", "Name of the ClusterClass"),
        Column::new("Generation", "integer", ".spec.generation", "Generation of the ClusterClass when the revision was made"),
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
    ],
}

impl windlass_api::kind::Conditioned for ClusterClassRevision {
    const HAS_CONDITIONS: bool = false;

    /// It has no status.
    fn conditions(&self) -> &[windlass_api::Condition] {
        &[]
    }
}

/// The contents of a ClusterClassRevision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{"rule": "self == oldSelf", "message": "spec is immutable"}]))]
pub struct ClusterClassRevisionSpec {
    /// The spec of the ClusterClass.
    #[schemars(schema_with = "object")]
    pub class: serde_json::Value,
    /// Name of the ClusterClass, in the namespace of this object.
    #[schemars(length(min = 1, max = 253))]
    pub class_name: String,
    /// The generation of the ClusterClass when the revision was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub generation: Option<i64>,
    /// The templates that the ClusterClass named, without what the API server adds to objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "objects")]
    pub templates: Vec<serde_json::Value>,
    /// The variables that the ClusterClass and the extensions of its patches defined: its status.variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "objects")]
    pub variables: Vec<serde_json::Value>,
}

/// Any object, kept as it is.
fn object(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let mut schema = schema::any(generator);
    schema.insert("type".to_owned(), "object".into());
    schema
}

/// A list of any objects.
fn objects(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "array", "items": object(generator), "maxItems": 1000, "x-kubernetes-list-type": "atomic"})
}
