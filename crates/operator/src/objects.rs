//! References to objects, their order, and hashes that tell whether an object is still as it was left.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use windlass_controller_runtime::{Codec, Gvk, ObjectKey, Stored, gvk_from};

/// An object, by kind and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectRef {
    /// `group/version`, or `v1`.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The namespace; empty for cluster-scoped objects.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl ObjectRef {
    /// What a manifest says.
    pub fn of(object: &Value) -> Self {
        let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
        Self {
            api_version: text(&object["apiVersion"]),
            kind: text(&object["kind"]),
            namespace: text(&object["metadata"]["namespace"]),
            name: text(&object["metadata"]["name"]),
        }
    }

    /// Group, version and kind.
    pub fn gvk(&self) -> Gvk {
        gvk_from(&self.api_version, &self.kind)
    }

    /// Namespace and name.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(self.namespace.as_str(), self.name.as_str())
    }

    /// The same object in whatever version: what two references have to have in common to mean the same.
    pub fn identity(&self) -> (String, String, String, String) {
        (
            self.group().to_owned(),
            self.kind.clone(),
            self.namespace.clone(),
            self.name.clone(),
        )
    }

    /// Whether it runs pods.
    pub fn is_workload(&self) -> bool {
        matches!(self.kind.as_str(), "Deployment" | "StatefulSet" | "DaemonSet")
            && self.api_version.starts_with("apps/")
    }

    /// Whether it is a Deployment.
    pub fn is_deployment(&self) -> bool {
        self.kind == "Deployment" && self.api_version.starts_with("apps/")
    }

    /// Whether it defines a kind.
    pub fn is_definition(&self) -> bool {
        self.kind == "CustomResourceDefinition"
    }

    /// Whether the operator never deletes it: users' objects hang on it.
    pub fn is_kept_for_users(&self) -> bool {
        self.is_definition() || (self.kind == "Namespace" && self.api_version == "v1")
    }

    /// Whether the operator may delete it and create it again when it cannot be changed in place. It may if nothing depends on the
    /// identity of the object: no pods, no data and no objects of controllers, whose deletion has effects of its own.
    pub fn is_replaceable(&self) -> bool {
        matches!(
            (self.group(), self.kind.as_str()),
            ("", "ConfigMap" | "Secret" | "Service")
                | ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding")
                | ("batch", "Job" | "CronJob")
                | ("policy", "PodDisruptionBudget")
                | ("scheduling.k8s.io", "PriorityClass")
                | ("storage.k8s.io", "StorageClass" | "CSIDriver")
                | ("cert-manager.io", _)
        )
    }

    /// The API group; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// The place in the order of installation: first what other objects need, then workloads. Objects of the groups that the provider
    /// defines come after its workloads, which serve the webhooks of these kinds.
    pub fn rank(&self, own: &BTreeSet<String>) -> u8 {
        match (self.group(), self.kind.as_str()) {
            ("", "Namespace") => 0,
            ("apiextensions.k8s.io", _) => 1,
            ("", "ServiceAccount") => 2,
            ("rbac.authorization.k8s.io", "Role" | "ClusterRole") => 3,
            ("rbac.authorization.k8s.io", _) => 4,
            ("", "Secret" | "ConfigMap") => 5,
            ("", "Service") => 6,
            ("cert-manager.io", "Issuer" | "ClusterIssuer") => 7,
            ("cert-manager.io", _) => 8,
            ("admissionregistration.k8s.io", _) => 10,
            ("apps", _) => 11,
            ("clusterctl.cluster.x-k8s.io", "Provider") => 13,
            (group, _) if own.contains(group) => OWN,
            _ => 9,
        }
    }
}

/// The [rank](ObjectRef::rank) of objects of the provider's own kinds.
pub const OWN: u8 = 12;

/// The groups of the kinds that these objects define: the name of a definition is `PLURAL.GROUP`.
pub fn own_groups<'a>(objects: impl IntoIterator<Item = &'a ObjectRef>) -> BTreeSet<String> {
    let definitions = objects.into_iter().filter(|object| object.is_definition());
    let groups = definitions.filter_map(|definition| definition.name.split_once('.'));
    groups.map(|(_, group)| group.to_owned()).collect()
}

impl std::fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "{} {}", self.kind, self.name)
        } else {
            write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
        }
    }
}

/// A hash of everything about an object that the operator applied, as it is now. What others put beside it, such as the revision of
/// a Deployment or the bundle of a webhook, does not count.
pub fn hash_of(object: &Value) -> [u8; 16] {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    let mine = entries.filter(|entry| {
        entry["manager"] == crate::names::MANAGER && entry["operation"] == "Apply" && entry["subresource"].is_null()
    });
    let mine: Vec<_> = mine.map(|entry| owned(object, &entry["fieldsV1"])).collect();
    short_hash(Value::Array(mine).to_string().as_bytes())
}

/// The part of a value that a set of fields is about, by their names in the set.
fn owned(value: &Value, fields: &Value) -> Value {
    let Some(fields) = fields.as_object().filter(|fields| !fields.is_empty()) else {
        return value.clone();
    };
    let item = |is: &dyn Fn(&Value) -> bool| value.as_array().and_then(|items| items.iter().find(|item| is(item)));
    let mut parts = Map::new();
    for (field, inner) in fields {
        let found = match field.split_once(':') {
            Some(("f", name)) => value.get(name),
            Some(("k", keys)) => serde_json::from_str::<Map<String, Value>>(keys)
                .ok()
                .and_then(|keys| item(&|item| keys.iter().all(|(key, value)| item.get(key) == Some(value)))),
            Some(("v", one)) => serde_json::from_str::<Value>(one)
                .ok()
                .and_then(|one| item(&|item| *item == one)),
            Some(("i", at)) => at.parse::<usize>().ok().and_then(|at| value.get(at)),
            _ => continue,
        };
        parts.insert(field.clone(), found.map_or(Value::Null, |found| owned(found, inner)));
    }
    Value::Object(parts)
}

/// Half a SHA-256.
pub fn short_hash(bytes: &[u8]) -> [u8; 16] {
    let full = Sha256::digest(bytes);
    let mut short = [0; 16];
    short.copy_from_slice(&full[..16]);
    short
}

/// As hexadecimal text.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let halves = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    halves.map(|half| char::from(DIGITS[usize::from(half)])).collect()
}

/// What a watch keeps of an object: what tells whether it is as it was left, and of a Deployment how it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Digest {
    meta: ObjectMeta,
    /// Hash of what it says.
    pub hash: [u8; 16],
    /// Of a Deployment.
    pub running: Option<Running>,
}

/// How a Deployment is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Running {
    /// How many replicas are desired.
    pub replicas: i64,
    /// The release that it is of.
    pub release: Option<String>,
    /// Whether a controller of Deployments has reconciled it at all.
    pub observed: bool,
    /// The condition Available: status, reason, message.
    pub available: Option<(String, String, String)>,
    /// The message of the controller of Deployments about one that did not come up within its own deadline.
    pub overdue: Option<String>,
}

impl Running {
    /// What a stored Deployment says.
    pub fn of(object: &Value) -> Self {
        let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
        let status = &object["status"];
        let annotation = |name: &str| object["metadata"]["annotations"][name].as_str();
        let condition = |type_: &str| {
            let conditions = status["conditions"].as_array();
            conditions.and_then(|all| all.iter().find(|c| c["type"] == type_))
        };
        let available = condition("Available");
        // The status of an earlier generation is not about this specification.
        let is_of_now = status["observedGeneration"] == object["metadata"]["generation"];
        let overdue = condition("Progressing")
            .filter(|c| is_of_now && c["status"] == "False" && c["reason"] == "ProgressDeadlineExceeded");
        Self {
            replicas: object["spec"]["replicas"].as_i64().unwrap_or(1),
            release: annotation(crate::names::RELEASE).map(str::to_owned),
            observed: status["observedGeneration"].as_i64().unwrap_or(0) > 0,
            available: available.map(|c| (text(&c["status"]), text(&c["reason"]), text(&c["message"]))),
            overdue: overdue.map(|c| text(&c["message"])),
        }
    }
}

impl Digest {
    /// The digest of a stored object, with its managed fields.
    pub fn of(object: &Value) -> Self {
        let meta = &object["metadata"];
        let text = |field: &str| meta[field].as_str().map(str::to_owned);
        let label = windlass_api_operator::labels::PROVIDER;
        let provider = meta["labels"][label].as_str();
        Self {
            meta: ObjectMeta {
                name: text("name"),
                namespace: text("namespace"),
                uid: text("uid"),
                resource_version: text("resourceVersion"),
                labels: provider.map(|provider| [(label.to_owned(), provider.to_owned())].into()),
                ..ObjectMeta::default()
            },
            hash: hash_of(object),
            running: (object["kind"] == "Deployment").then(|| Running::of(object)),
        }
    }

    /// The uid.
    pub fn uid(&self) -> &str {
        self.meta.uid.as_deref().unwrap_or_default()
    }

    /// The label of the provider it belongs to.
    pub fn provider(&self) -> &str {
        let label = windlass_api_operator::labels::PROVIDER;
        let labels = self.meta.labels.as_ref();
        labels.and_then(|labels| labels.get(label)).map_or("", String::as_str)
    }

    /// The version that was seen.
    pub fn version(&self) -> u64 {
        let version = self.meta.resource_version.as_deref();
        version.and_then(|v| v.parse().ok()).unwrap_or(0)
    }
}

impl Stored for Digest {
    fn metadata(&self) -> &ObjectMeta {
        &self.meta
    }

    fn encode(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&json!({ "metadata": self.meta }))
    }
}

impl Codec for Digest {
    fn decode(json: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(json).map(|object| Self::of(&object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_of_what_the_operator_applied_and_of_nothing_else() {
        let object = |change: &dyn Fn(&mut Value)| {
            let mut object = json!({
                "metadata": {
                    "name": "a", "resourceVersion": "1", "labels": {"mine": "1"},
                    "managedFields": [{"manager": "capi-operator", "operation": "Apply", "fieldsV1": {
                        "f:metadata": {"f:labels": {"f:mine": {}}, "f:finalizers": {".": {}, "v:\"f\"": {}}},
                        "f:spec": {
                            "f:args": {},
                            "f:ports": {"k:{\"port\":1,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:name": {}}},
                        },
                    }}],
                    "finalizers": ["f"],
                },
                "spec": {"args": ["a"], "ports": [{"port": 1, "protocol": "TCP", "name": "n"}]},
                "status": {"seen": 1},
            });
            change(&mut object);
            hash_of(&object)
        };
        let check = |same: bool, change: &dyn Fn(&mut Value)| assert_eq!(object(change) == object(&|_| {}), same);
        check(true, &|o| o["metadata"]["resourceVersion"] = json!("2"));
        check(true, &|o| o["status"]["seen"] = json!(2));
        check(true, &|o| o["metadata"]["labels"]["other"] = json!("x"));
        check(true, &|o| o["metadata"]["finalizers"] = json!(["g", "f"]));
        check(true, &|o| {
            o["spec"]["ports"] = json!([{"port": 2}, {"port": 1, "protocol": "TCP", "name": "n", "x": 1}]);
        });
        check(false, &|o| o["metadata"]["labels"]["mine"] = json!("2"));
        check(false, &|o| o["metadata"]["finalizers"] = json!([]));
        check(false, &|o| o["spec"]["args"] = json!(["a", "b"]));
        check(false, &|o| o["spec"]["ports"][0]["name"] = json!("m"));
        check(false, &|o| o["metadata"]["managedFields"] = json!([]));
    }

    #[test]
    fn a_deadline_counts_for_the_specification_that_missed_it() {
        let check = |seen: i64, reason: &str, overdue: bool| {
            let running = Running::of(&json!({
                "metadata": {"generation": 2},
                "status": {"observedGeneration": seen, "conditions": [
                    {"type": "Progressing", "status": "False", "reason": reason, "message": "too late"},
                ]},
            }));
            assert_eq!(running.overdue.is_some(), overdue);
        };
        check(2, "ProgressDeadlineExceeded", true);
        check(1, "ProgressDeadlineExceeded", false);
        check(2, "FailedCreate", false);
    }

    #[test]
    fn what_runs_comes_after_what_it_needs() {
        let of = |api_version: &str, kind: &str, name: &str| {
            ObjectRef::of(&json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}))
        };
        let definition = "rigs.infrastructure.cluster.x-k8s.io";
        let own = own_groups([&of("apiextensions.k8s.io/v1", "CustomResourceDefinition", definition)]);
        let rank = |api_version: &str, kind: &str| of(api_version, kind, "a").rank(&own);
        let order = [
            rank("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
            rank("v1", "ServiceAccount"),
            rank("rbac.authorization.k8s.io/v1", "ClusterRole"),
            rank("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
            rank("v1", "Service"),
            rank("cert-manager.io/v1", "Issuer"),
            rank("cert-manager.io/v1", "Certificate"),
            rank("monitoring.example.com/v1", "Monitor"),
            rank("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
            rank("apps/v1", "Deployment"),
            rank("infrastructure.cluster.x-k8s.io/v1beta2", "Rig"),
            rank("clusterctl.cluster.x-k8s.io/v1alpha3", "Provider"),
        ];
        assert!(order.is_sorted());
        assert_eq!(rank("infrastructure.cluster.x-k8s.io/v1beta2", "Rig"), OWN);
    }

    #[test]
    fn what_has_pods_data_or_a_controller_is_never_replaced() {
        let check = |api_version: &str, kind: &str, expect: bool| {
            let object = ObjectRef::of(&json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}}));
            assert_eq!(object.is_replaceable(), expect, "{object}");
        };
        check("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", true);
        check("v1", "Service", true);
        check("apps/v1", "Deployment", false);
        check("v1", "Namespace", false);
        check("v1", "PersistentVolumeClaim", false);
        check("apiextensions.k8s.io/v1", "CustomResourceDefinition", false);
        check("cluster.x-k8s.io/v1beta2", "Cluster", false);
        check("infrastructure.cluster.x-k8s.io/v1beta2", "RigMachineTemplate", false);
    }
}
