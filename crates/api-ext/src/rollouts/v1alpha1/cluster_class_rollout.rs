//! ClusterClassRollout: the kind and its parts.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use windlass_api::Condition;
use windlass_api::kind::Column;
use windlass_api::schema;

windlass_api::api_kind! {
    /// How the Clusters of a ClusterClass get the changes of it and of its templates: in waves, as long as those that have them are healthy. It has
    /// the name and the namespace of the ClusterClass.
    pub struct ClusterClassRollout {
        /// The desired state of the object.
        #[serde(default)]
        pub spec: ClusterClassRolloutSpec,
        /// The observed state of the object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub status: Option<ClusterClassRolloutStatus>,
    }
    group: "windlass.dev",
    version: "v1alpha1",
    plural: "clusterclassrollouts",
    short_names: ["ccro"],
    provider: "",
    labels: [("clusterctl.cluster.x-k8s.io/move", "")],
    contract: false,
    required: [],
    status: true,
    scale: None,
    columns: [
        Column::new("Revision", "string", ".status.updateRevision", "The newest revision of the class"),
        Column::new("Updated", "string", ".status.progress", "Clusters that have it, of all"),
        Column::new("Healthy", "integer", ".status.healthyClusters", "Clusters that have it and are healthy"),
        Column::new("Wave", "integer", ".status.wave.number", "The last wave that has begun"),
        Column::new("Stage", "string", ".status.wave.stage", "The stage of that wave"),
        Column::new("State", "string", r#".status.conditions[?(@.type=="Progressing")].reason"#, "What is going on"),
        Column::new("Message", "string", r#".status.conditions[?(@.type=="Progressing")].message"#, "What it waits for").wide(),
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
    ],
}

windlass_api::conditioned!(ClusterClassRollout);

/// The desired state of a ClusterClassRollout.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterClassRolloutSpec {
    /// Ends the rollout of one revision: Clusters that do not have it stay as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abort: Option<RolloutAbort>,
    /// When a Cluster that has the revision counts as healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_gate: Option<HealthGate>,
    /// Begins no further wave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// Seconds for which all Clusters must stay healthy before the next wave begins. Defaults to 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub soak_seconds: Option<i32>,
    /// Groups of Clusters, in the order in which they get a change. A Cluster belongs to the first stage whose selector matches its labels, or to
    /// a last stage with the name others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub stages: Vec<RolloutStage>,
    /// The most Clusters of a stage that get a change at a time: a number, or a percentage of the stage, rounded up. Defaults to 1. A wave has 1000
    /// Clusters at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::int_or_string")]
    pub wave_size: Option<IntOrString>,
}

/// The end of the rollout of one revision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutAbort {
    /// What happens with the Clusters that have the revision: Stay, or GoBack to the revision before it, in waves without soak time. Defaults to Stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "released")]
    pub released: Option<String>,
    /// Name of the ClusterClassRevision. The field has no effect on other revisions.
    #[schemars(length(min = 1, max = 253))]
    pub revision: String,
}

/// The value of [`RolloutAbort::released`] that brings Clusters back.
pub const GO_BACK: &str = "GoBack";

fn released(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "string", "enum": ["Stay", "GoBack"]})
}

/// When a Cluster that has the revision counts as healthy. Its objects must be up to date in any case.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HealthGate {
    /// The conditions that the Cluster must have. Defaults to Available with the status True.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<RequiredCondition>,
    /// The number of Clusters with the revision that may stay unhealthy. With more of them, the rollout stops. Defaults to 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max_unhealthy: Option<i32>,
    /// Seconds after which a Cluster that is not healthy counts as failed. Defaults to 3600.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub progress_deadline_seconds: Option<i32>,
}

/// A condition that a Cluster must have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequiredCondition {
    /// The status that it must have: True, False or Unknown.
    #[schemars(extend("enum" = ["True", "False", "Unknown"]))]
    pub status: String,
    /// The type of the condition.
    #[schemars(length(min = 1, max = 316))]
    pub type_: String,
}

/// A group of Clusters that get a change after those of the stages before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStage {
    /// Name of the stage.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Label selector of its Clusters. An empty selector matches all of them, and is the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::label_selector")]
    pub selector: Option<LabelSelector>,
    /// The same as spec.soakSeconds, after waves of this stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub soak_seconds: Option<i32>,
    /// The same as spec.waveSize, for this stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::int_or_string")]
    pub wave_size: Option<IntOrString>,
}

/// The observed state of a ClusterClassRollout.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterClassRolloutStatus {
    /// Number of Clusters of the class that are not being deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub clusters: Option<i32>,
    /// Conditions of the object, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// The revision that all Clusters had before the rollout of the newest one; the same when that has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub current_revision: Option<String>,
    /// Why the rollout has stopped. It goes on with the annotation windlass.dev/resume, or with a new revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<RolloutFailure>,
    /// Number of Clusters that have the newest revision and are healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub healthy_clusters: Option<i32>,
    /// The metadata.generation that the controller observed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub observed_generation: Option<i64>,
    /// Clusters that have the newest revision, of all, for kubectl get.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32))]
    pub progress: Option<String>,
    /// The newest revision of the class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub update_revision: Option<String>,
    /// When that was found. Clusters that are younger are not judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::date_time")]
    pub update_time: Option<Time>,
    /// Number of Clusters that have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub updated_clusters: Option<i32>,
    /// The last wave that has begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wave: Option<RolloutWave>,
}

/// Why a rollout has stopped.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutFailure {
    /// The Clusters that were not healthy in time, as namespace/name; the first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 317)), extend("x-kubernetes-list-type" = "atomic"))]
    pub clusters: Vec<String>,
    /// The revision that they have.
    #[schemars(length(min = 1, max = 253))]
    pub revision: String,
    /// When it was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::date_time")]
    pub time: Option<Time>,
}

/// A wave: Clusters that get a change together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutWave {
    /// Its Clusters, as namespace/name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000), inner(length(min = 1, max = 317)), extend("x-kubernetes-list-type" = "atomic"))]
    pub clusters: Vec<String>,
    /// Since when all Clusters that have the revision are healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::date_time")]
    pub healthy_time: Option<Time>,
    /// The number of the wave, from 1.
    #[schemars(range(min = 1))]
    pub number: i32,
    /// The revision that its Clusters get.
    #[schemars(length(min = 1, max = 253))]
    pub revision: String,
    /// The stage of its Clusters.
    #[schemars(length(min = 1, max = 63))]
    pub stage: String,
    /// The Clusters that were not healthy in time and may stay so, as namespace/name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000), inner(length(min = 1, max = 317)), extend("x-kubernetes-list-type" = "atomic"))]
    pub tolerated_clusters: Vec<String>,
    /// The Clusters that have not been healthy since waitingTime, as namespace/name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000), inner(length(min = 1, max = 317)), extend("x-kubernetes-list-type" = "atomic"))]
    pub waiting_clusters: Vec<String>,
    /// Since when Clusters that have the revision are not healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::date_time")]
    pub waiting_time: Option<Time>,
}

windlass_api::parts!(ClusterClassRolloutStatus);
