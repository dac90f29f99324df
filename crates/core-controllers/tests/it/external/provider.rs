//! Kinds of infrastructure without a controller, how a client outside writes them, and what a test looks at.

use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use windlass_api::core::Cluster;

use crate::env::Env;

pub(super) const GROUP: &str = "infrastructure.example.org";

/// A kind that was unknown when this was compiled, without a controller.
#[derive(Clone, Copy)]
pub(super) struct Provider {
    pub(super) kind: &'static str,
    version: &'static str,
    plural: &'static str,
    label: (&'static str, &'static str),
    /// Where it says that it is ready.
    pub(super) ready: [&'static str; 2],
}

/// By the present contract, in a version of its own counting.
pub(super) const TERRA: Provider = Provider {
    kind: "TerraCluster",
    version: "v1",
    plural: "terraclusters",
    label: ("cluster.x-k8s.io/v1beta2", "v1alpha1_v1"),
    ready: ["initialization", "provisioned"],
};

/// By the contract before, and no other.
pub(super) const LEGACY: Provider = Provider {
    kind: "LegacyCluster",
    version: "v1beta1",
    plural: "legacyclusters",
    label: ("cluster.x-k8s.io/v1beta1", "v1beta1"),
    ready: ["ready", ""],
};

impl Provider {
    /// The definition: a schema that knows nothing of who manages the objects.
    pub(super) fn definition(self) -> Value {
        let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let version = |name: &str, storage: bool| {
            json!({
                "name": name, "served": true, "storage": storage, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}},
            })
        };
        let mut versions = vec![version(self.version, true)];
        if self.label.1.contains("v1alpha1") {
            versions.push(version("v1alpha1", false));
        }
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{}.{GROUP}", self.plural), "labels": {(self.label.0): self.label.1}},
            "spec": {
                "group": GROUP, "scope": "Namespaced", "versions": versions,
                "names": {"kind": self.kind, "listKind": format!("{}List", self.kind), "plural": self.plural,
                    "singular": self.kind.to_lowercase()},
            },
        })
    }

    pub(super) fn api(self, env: &Env) -> Api<DynamicObject> {
        let gvk = GroupVersionKind::gvk(GROUP, self.version, self.kind);
        Api::namespaced_with(
            env.client.clone(),
            "default",
            &ApiResource::from_gvk_with_plural(&gvk, self.plural),
        )
    }

    /// An object as its external manager makes it.
    pub(super) async fn create(self, env: &Env, name: &str, spec: Value, finalizers: Value) {
        let object = json!({
            "apiVersion": format!("{GROUP}/{}", self.version), "kind": self.kind,
            "metadata": {"name": name, "finalizers": finalizers, "annotations": {"cluster.x-k8s.io/managed-by": "terraform"}},
            "spec": spec,
        });
        let object = serde_json::from_value(object).unwrap();
        self.api(env).create(&PostParams::default(), &object).await.unwrap();
    }

    pub(super) async fn spec(self, env: &Env, name: &str, spec: Value) {
        let patch = json!({ "spec": spec });
        let params = PatchParams::default();
        self.api(env).patch(name, &params, &Patch::Merge(&patch)).await.unwrap();
    }

    pub(super) async fn status(self, env: &Env, name: &str, status: Value) {
        let patch = json!({ "status": status });
        let params = PatchParams::default();
        self.api(env)
            .patch_status(name, &params, &Patch::Merge(&patch))
            .await
            .unwrap();
    }

    /// Says in its contract's words whether the infrastructure is there.
    pub(super) async fn ready(self, env: &Env, name: &str, ready: bool) {
        let status = match self.ready {
            [field, ""] => json!({ (field): ready }),
            [outer, field] => json!({ (outer): { (field): ready } }),
        };
        self.status(env, name, status).await;
    }

    pub(super) async fn refer(self, env: &Env, cluster: &str, name: &str) {
        let reference = json!({"apiGroup": GROUP, "kind": self.kind, "name": name});
        env.create::<Cluster>(json!({
            "metadata": {"name": cluster, "annotations": {"cluster.x-k8s.io/managed-by": "also here"}},
            "spec": {"infrastructureRef": reference},
        }))
        .await;
    }

    pub(super) async fn get(self, env: &Env, name: &str) -> Value {
        serde_json::to_value(self.api(env).get(name).await.unwrap()).unwrap()
    }

    /// Waits until the Cluster has adopted the object.
    pub(super) async fn adopted(self, env: &Env, name: &str, by: &str) {
        let objects = self.api(env);
        env.until_in(&objects, "the owner", |all: &[DynamicObject]| {
            let object = all.iter().find(|object| object.metadata.name.as_deref() == Some(name));
            let owners = object.and_then(|object| object.metadata.owner_references.as_ref());
            owners.is_some_and(|owners| owners.iter().any(|owner| owner.name == by))
        })
        .await;
    }

    /// How often a controller wrote objects of this kind: no other client applies here, and refusals count.
    pub(super) fn writes(self, env: &Env) -> u64 {
        let counts = env.server.counters().snapshot();
        let ours = counts
            .iter()
            .filter(|(key, _)| key.resource == self.plural && ["apply", "update"].contains(&key.verb));
        ours.map(|(_, count)| count).sum()
    }

    /// Writes what this contract calls ready to an object of a kind by another one.
    pub(super) async fn clone_ready_of(self, other: Self, env: &Env) {
        let as_other = Self {
            ready: self.ready,
            ..other
        };
        as_other.ready(env, "infra", true).await;
    }
}

pub(super) fn endpoint(host: &str) -> Value {
    json!({"controlPlaneEndpoint": {"host": host, "port": 6443}})
}

/// The Cluster once it is as `done` says.
pub(super) async fn until(env: &Env, name: &str, what: &str, done: impl Fn(&Value) -> bool) -> Value {
    let mut found = Value::Null;
    env.until::<Cluster>(what, |all| {
        let mut values = all.iter().map(|cluster| serde_json::to_value(cluster).unwrap());
        found = values
            .find(|cluster| cluster["metadata"]["name"] == name)
            .unwrap_or_default();
        done(&found)
    })
    .await;
    found
}

pub(super) async fn phase(env: &Env, name: &str, phase: &str) -> Value {
    until(env, name, phase, |cluster| cluster["status"]["phase"] == phase).await
}

pub(super) fn condition(cluster: &Value, type_: &str) -> Value {
    let mut all = cluster["status"]["conditions"].as_array().into_iter().flatten();
    all.find(|one| one["type"] == type_).cloned().unwrap_or_default()
}

/// The message of a condition, once it is this.
pub(super) async fn says(env: &Env, name: &str, type_: &str, message: &str) -> Value {
    until(env, name, &format!("{type_}: {message}"), |cluster| {
        condition(cluster, type_)["message"] == message
    })
    .await
}

pub(super) fn provisioned(cluster: &Value) -> bool {
    cluster["status"]["initialization"]["infrastructureProvisioned"] == true
}

/// Owner and label are there, by the Cluster controller's field manager alone, which has nothing else on the object.
pub(super) fn is_only_adopted(object: &Value, cluster: &str) {
    let owners = object["metadata"]["ownerReferences"].as_array().unwrap();
    assert_eq!(owners.len(), 1);
    assert_eq!(
        (&owners[0]["kind"], &owners[0]["name"], &owners[0]["controller"]),
        (&json!("Cluster"), &json!(cluster), &Value::Null)
    );
    assert_eq!(object["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"], cluster);
    assert_eq!(
        object["metadata"]["annotations"]["cluster.x-k8s.io/managed-by"],
        "terraform"
    );
    let managers = object["metadata"]["managedFields"].as_array().unwrap();
    for entry in managers
        .iter()
        .filter(|entry| entry["manager"].as_str().unwrap().starts_with("capi"))
    {
        assert_eq!(
            (&entry["manager"], &entry["operation"], entry.get("subresource")),
            (&json!("capi-manager"), &json!("Apply"), None)
        );
        let fields: Vec<&String> = entry["fieldsV1"].as_object().unwrap().keys().collect();
        assert_eq!(fields, ["f:metadata"]);
        let metadata: Vec<&String> = entry["fieldsV1"]["f:metadata"].as_object().unwrap().keys().collect();
        assert_eq!(metadata, ["f:labels", "f:ownerReferences"]);
    }
    let ours = |entry: &&Value| entry["manager"] == "capi-manager";
    assert_eq!(managers.iter().filter(ours).count(), 1);
}
