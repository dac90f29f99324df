//! The view of an object in the demo: the fields that are shown.

use serde_json::Value;

/// Kind and uid-free name of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id {
    pub(crate) namespace: String,
    pub(crate) kind: String,
    pub(crate) name: String,
}

impl std::fmt::Display for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) kind: String,
    pub(crate) status: String,
    pub(crate) reason: String,
    pub(crate) message: String,
}

/// Counts of machines that an object reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Replicas {
    pub(crate) wanted: Option<i64>,
    pub(crate) there: Option<i64>,
    pub(crate) available: Option<i64>,
    pub(crate) up_to_date: Option<i64>,
}

/// An object of the demo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) id: Id,
    pub(crate) uid: String,
    /// The Cluster it belongs to: its own name for a Cluster.
    pub(crate) cluster: String,
    /// Uids of its owners.
    pub(crate) owners: Vec<String>,
    /// Kind and name of infrastructure and control plane of a Cluster.
    pub(crate) references: Vec<(String, String)>,
    pub(crate) is_control_plane: bool,
    pub(crate) is_deleting: bool,
    /// Whether the status is about the current spec.
    pub(crate) is_observed: bool,
    pub(crate) phase: String,
    pub(crate) version: String,
    pub(crate) node: String,
    pub(crate) replicas: Replicas,
    pub(crate) conditions: Vec<Condition>,
}

fn text(value: &Value, pointer: &str) -> String {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

fn number(value: &Value, pointer: &str) -> Option<i64> {
    value.pointer(pointer).and_then(Value::as_i64)
}

impl Item {
    /// Reads an object.
    pub(crate) fn read(kind: &str, object: &Value) -> Self {
        let name = text(object, "/metadata/name");
        let label = |key: &str| object["metadata"]["labels"].get(key);
        let cluster = if kind == "Cluster" {
            name.clone()
        } else {
            label("cluster.x-k8s.io/cluster-name")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let version = match kind {
            "Cluster" => text(object, "/spec/topology/version"),
            "MachineDeployment" | "MachineSet" => text(object, "/spec/template/spec/version"),
            _ => text(object, "/spec/version"),
        };
        let references = ["/spec/infrastructureRef", "/spec/controlPlaneRef"];
        let generation = number(object, "/metadata/generation");
        let observed = number(object, "/status/observedGeneration");
        Self {
            uid: text(object, "/metadata/uid"),
            cluster,
            owners: array(object, "/metadata/ownerReferences")
                .map(|owner| text(owner, "/uid"))
                .collect(),
            references: references
                .iter()
                .filter_map(|pointer| object.pointer(pointer))
                .map(|reference| (text(reference, "/kind"), text(reference, "/name")))
                .filter(|(kind, _)| !kind.is_empty())
                .collect(),
            is_control_plane: label("cluster.x-k8s.io/control-plane").is_some(),
            is_deleting: object.pointer("/metadata/deletionTimestamp").is_some(),
            is_observed: observed.is_none() || observed >= generation,
            phase: text(object, "/status/phase"),
            version,
            node: text(object, "/status/nodeRef/name"),
            replicas: Replicas {
                wanted: number(object, "/spec/replicas"),
                there: number(object, "/status/replicas"),
                available: number(object, "/status/availableReplicas"),
                up_to_date: number(object, "/status/upToDateReplicas"),
            },
            conditions: array(object, "/status/conditions")
                .map(|condition| Condition {
                    kind: text(condition, "/type"),
                    status: text(condition, "/status"),
                    reason: text(condition, "/reason"),
                    message: text(condition, "/message"),
                })
                .collect(),
            id: Id {
                namespace: text(object, "/metadata/namespace"),
                kind: kind.to_owned(),
                name,
            },
        }
    }

    /// A condition by its type.
    pub(crate) fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.kind == kind)
    }

    /// The status of a condition; empty when there is none.
    pub(crate) fn status(&self, kind: &str) -> &str {
        self.condition(kind).map_or("", |condition| &condition.status)
    }

    /// Whether a condition is true.
    pub(crate) fn is(&self, kind: &str) -> bool {
        self.status(kind) == "True"
    }

    /// The condition that best explains why the object is not ready.
    pub(crate) fn trouble(&self) -> Option<&Condition> {
        if let Some(deleting) = self.condition("Deleting").filter(|c| c.status == "True") {
            return Some(deleting);
        }
        let known = ["Available", "Ready", "TopologyReconciled"]
            .into_iter()
            .filter_map(|kind| self.condition(kind));
        known.into_iter().find(|condition| condition.status != "True")
    }
}

fn array<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    object.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_machine_is_read() {
        let item = Item::read(
            "Machine",
            &json!({
                "metadata": {
                    "name": "m", "namespace": "default", "uid": "u", "generation": 2, "deletionTimestamp": "2026-01-01T00:00:00Z",
                    "labels": {"cluster.x-k8s.io/cluster-name": "c", "cluster.x-k8s.io/control-plane": ""},
                    "ownerReferences": [{"uid": "o"}],
                },
                "spec": {"version": "v1.35.0"},
                "status": {
                    "phase": "Running", "nodeRef": {"name": "n"}, "observedGeneration": 1,
                    "conditions": [
                        {"type": "Available", "status": "True"},
                        {"type": "Ready", "status": "False", "reason": "NotReady", "message": "* X: why"},
                    ],
                },
            }),
        );
        assert_eq!(item.id.to_string(), "Machine/m");
        assert_eq!(
            (item.cluster.as_str(), item.node.as_str(), item.version.as_str()),
            ("c", "n", "v1.35.0")
        );
        assert_eq!(item.owners, ["o"]);
        assert!(item.is_control_plane && item.is_deleting && !item.is_observed && item.is("Available"));
        assert_eq!(item.trouble().unwrap().reason, "NotReady");
    }
}
