//! What a preview says, as data: the model of all outputs.

use serde::Serialize;
use serde_json::Value;

use crate::names::Id;

/// A preview.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// What the user changes.
    pub changes: Vec<ObjectChange>,
    /// Changes that admission refuses. Nothing that depends on them is planned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Refusal>,
    /// Objects in files that plans do not depend on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<Id>,
    /// In which order Clusters get a change of their class, for classes that are rolled out in waves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waves: Vec<ClassWaves>,
    /// What the controllers do, for Clusters with the same result together.
    pub groups: Vec<Group>,
    /// Numbers.
    pub summary: Summary,
}

/// A change that is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Refusal {
    /// The object.
    pub object: Id,
    /// The server's words.
    pub message: String,
}

/// The waves in which the Clusters of a class get a change of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClassWaves {
    /// The class, by namespace and name.
    pub class: String,
    /// The waves in order. Each begins when the Clusters of those before are healthy.
    pub waves: Vec<Wave>,
    /// Clusters that are in no wave, as they are paused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Why no wave begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
}

/// Clusters that get a change together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Wave {
    /// The stage that they belong to.
    pub stage: String,
    /// The Clusters, by namespace and name.
    pub clusters: Vec<String>,
    /// For how many seconds they must be healthy before the next wave begins.
    pub soak_seconds: i64,
}

/// Clusters for which the same is done, up to their names.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// The Clusters, by namespace and name. The plan is that of the first one.
    pub clusters: Vec<String>,
    /// The plan.
    pub plan: ClusterPlan,
}

/// What is done for a Cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterPlan {
    /// The class, by namespace and name; empty without a topology.
    pub class: String,
    /// What is done, one after another: a phase begins when the rollouts of the one before have ended.
    pub phases: Vec<Phase>,
    /// Why the plan ends although something is left to do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<String>,
    /// What the condition TopologyReconciled will say is wrong, and refused writes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

impl ClusterPlan {
    /// Whether anything is done, waited for, or wrong.
    pub fn is_empty(&self) -> bool {
        self.phases.is_empty() && self.waits.is_empty() && self.problems.is_empty()
    }
}

/// What is done at once.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Phase {
    /// Hooks of the Runtime SDK that are called before, and may hold it back.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookCall>,
    /// Objects that are created, changed or deleted.
    pub objects: Vec<ObjectChange>,
    /// Templates that are replaced by new ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rotated: Vec<Rotated>,
    /// What becomes of Machines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<MachineChange>,
    /// What is left as it is in this phase, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<String>,
}

impl Phase {
    /// Whether nothing is done.
    pub fn is_empty(&self) -> bool {
        self.hooks.is_empty() && self.objects.is_empty() && self.rotated.is_empty() && self.machines.is_empty()
    }
}

/// A hook that is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HookCall {
    /// Its name.
    pub hook: String,
    /// The version before, if it has one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub from: String,
    /// The version after, if it has one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub to: String,
}

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Verb {
    /// It is created.
    Created,
    /// It is changed in place.
    Changed,
    /// It is deleted.
    Deleted,
}

/// A change of an object.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectChange {
    /// What is done.
    pub verb: Verb,
    /// The object.
    pub object: Id,
    /// Why, if that is more than the change itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The fields of a changed object.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldChange>,
}

/// The change of a field.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldChange {
    /// Its path, such as `spec.template.spec.version`.
    pub path: String,
    /// The value before; none if the field is added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Value>,
    /// The value after; none if the field is removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Value>,
}

/// A template that is replaced.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rotated {
    /// Kind of both.
    pub kind: String,
    /// Namespace of both.
    pub namespace: String,
    /// Name of the template that goes when no Machine needs it any more.
    pub from: String,
    /// Name of the new one.
    pub to: String,
    /// What refers to it.
    pub user: Id,
    /// How the new one differs.
    pub fields: Vec<FieldChange>,
}

/// What becomes of the Machines of an object.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineChange {
    /// Their owner.
    pub owner: Id,
    /// Machines that there are before.
    pub total: usize,
    /// Machines that are replaced, or updated in place if extensions can.
    pub replaced: Vec<MachineReason>,
    /// Machines that stay.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<String>,
    /// Machines that go without a replacement.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
    /// Machines that are made beside replacements.
    pub added: i32,
    /// Machines that go, if it is not known which.
    pub surplus: i32,
    /// How the rollout goes, in words.
    pub how: String,
    /// Handlers of extensions that may be able to update the Machines in place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub in_place: Vec<String>,
}

/// A Machine that is replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineReason {
    /// Its name. A Machine that an earlier phase made stands under the name of the one that it replaced.
    pub name: String,
    /// Why, one sentence each.
    pub reasons: Vec<String>,
}

/// Numbers of a preview.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Clusters that were looked at.
    pub clusters: usize,
    /// Clusters for which something is done.
    pub changed_clusters: usize,
    /// Clusters with problems.
    pub failed_clusters: usize,
    /// Objects that are created.
    pub created: usize,
    /// Objects that are changed.
    pub changed: usize,
    /// Templates that are replaced.
    pub rotated: usize,
    /// Objects that are deleted.
    pub deleted: usize,
    /// Replacements of Machines. A Machine counts once a phase.
    pub machines_replaced: usize,
    /// Machines that are made beside replacements.
    pub machines_added: usize,
    /// Machines that go without a replacement.
    pub machines_removed: usize,
}

/// The result of a preview, for exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing would change.
    Same,
    /// Something would change.
    Changes,
    /// Something is refused, or cannot be planned.
    Problems,
}

impl Report {
    /// The result.
    pub fn verdict(&self) -> Verdict {
        if !self.refused.is_empty() || self.groups.iter().any(|group| !group.plan.problems.is_empty()) {
            return Verdict::Problems;
        }
        let is_same = self.changes.is_empty() && self.groups.iter().all(|group| group.plan.phases.is_empty());
        if is_same { Verdict::Same } else { Verdict::Changes }
    }
}
