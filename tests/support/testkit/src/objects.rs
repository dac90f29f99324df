//! Access to the objects of a management cluster: writes, reads and waits.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::discovery::{ApiGroup, Discovery, verbs};
use serde_json::Value;
use windlass_api::labels;
use windlass_controller_runtime::ObjectKey;
use windlass_manager::registry::kinds::{KINDS, KindEntry, find};

use crate::explain;
use crate::wait::{self, Watched};

/// The field manager of objects that tests apply.
pub const MANAGER: &str = "test";
/// The namespace of test objects.
pub const NAMESPACE: &str = "default";
/// The example ClusterClass with its templates: in-memory infrastructure without start-up times.
pub const CLASS: &str = include_str!("../../../../examples/clusterclass-quick-start.yaml");

/// The group of the inventory of providers.
const INVENTORY: &str = "clusterctl.cluster.x-k8s.io";
/// The namespace of the inventory of built-in providers.
const INVENTORY_NAMESPACE: &str = "windlass-system";
/// Resources whose objects come and go by themselves, or that show other objects.
const OF_THE_SERVER: [&str; 8] = [
    "events",
    "leases",
    "apiservices",
    "componentstatuses",
    "endpoints",
    "endpointslices",
    "ipaddresses",
    "servicecidrs",
];

/// Access to any management cluster.
#[derive(Clone)]
pub struct Objects {
    client: kube::Client,
}

impl std::fmt::Debug for Objects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Objects").finish_non_exhaustive()
    }
}

/// How often an object is applied again whose admission had no answer in time.
const UNANSWERED: usize = 3;

/// Whether kube-apiserver refuses a write as a webhook did not answer in time.
fn is_unanswered(message: &str) -> bool {
    message.contains("failed calling webhook") && message.contains("context deadline exceeded")
}

impl Objects {
    /// Access with a client.
    pub fn new(client: kube::Client) -> Self {
        Self { client }
    }

    /// The test's client.
    pub fn client(&self) -> &kube::Client {
        &self.client
    }

    /// Applies all documents of a YAML text, in order.
    pub async fn apply_yaml(&self, yaml: &str) {
        let documents: Vec<Value> = serde_saphyr::from_multiple(yaml).expect("the test's YAML is valid");
        for document in documents {
            self.apply(&document).await;
        }
    }

    /// Applies an object and returns it as stored.
    pub async fn apply(&self, object: &Value) -> Value {
        let applied = self.try_apply(object).await;
        applied.unwrap_or_else(|error| panic!("cannot apply {object}: {error}"))
    }

    /// Applies an object. A busy host may leave an admission review without an answer in time: then it is sent again, as a person would do.
    pub async fn try_apply(&self, object: &Value) -> Result<Value, kube::Error> {
        let kind = object["kind"].as_str().unwrap_or_default();
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let parameters = PatchParams::apply(MANAGER).force();
        let api = self.dynamic(kind);
        let mut stored = api.patch(name, &parameters, &Patch::Apply(object)).await;
        for _ in 0..UNANSWERED {
            match &stored {
                Err(kube::Error::Api(status)) if is_unanswered(&status.message) => {}
                _ => break,
            }
            stored = api.patch(name, &parameters, &Patch::Apply(object)).await;
        }
        serde_json::to_value(stored?).map_err(kube::Error::SerdeError)
    }

    /// Changes an object by a merge patch.
    pub async fn merge(&self, kind: &str, name: &str, patch: &Value) {
        let sent = self
            .dynamic(kind)
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await;
        sent.unwrap_or_else(|error| panic!("cannot change {kind} {name}: {error}"));
    }

    /// Starts the deletion of an object.
    pub async fn delete(&self, kind: &str, name: &str) {
        let sent = self.dynamic(kind).delete(name, &DeleteParams::default()).await;
        sent.unwrap_or_else(|error| panic!("cannot delete {kind} {name}: {error}"));
    }

    /// Access to one of our kinds, by its name or `Kind.group`, or to Roles and their bindings.
    pub fn dynamic(&self, kind: &str) -> Api<DynamicObject> {
        self.dynamic_in(kind, NAMESPACE)
    }

    /// [`Self::dynamic`] in another namespace.
    pub fn dynamic_in(&self, kind: &str, namespace: &str) -> Api<DynamicObject> {
        let rights = matches!(kind, "Role" | "RoleBinding")
            .then(|| ApiResource::from_gvk(&GroupVersionKind::gvk("rbac.authorization.k8s.io", "v1", kind)));
        let ours = find(kind);
        let resource = rights
            .or_else(|| ours.map(resource))
            .unwrap_or_else(|| panic!("{kind} is none of our kinds"));
        if ours.is_some_and(|kind| !kind.is_namespaced) {
            return Api::all_with(self.client.clone(), &resource);
        }
        Api::namespaced_with(self.client.clone(), namespace, &resource)
    }

    /// Access to the objects of a type.
    pub fn api<K: Watched>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// All objects of a type.
    pub async fn list<K: Watched>(&self) -> Vec<K> {
        let list = self.api::<K>().list(&ListParams::default()).await;
        list.unwrap_or_else(|error| panic!("cannot list {}: {error}", K::kind(&())))
            .items
    }

    /// Waits until an object satisfies `is_right`.
    pub async fn wait_for<K: Watched>(&self, key: &ObjectKey, what: &str, is_right: impl Fn(&K) -> bool) -> K {
        let found = wait::until(self.api(), Some(&key.name), |all| all.first().is_some_and(&is_right)).await;
        let object = found.and_then(|all| all.into_iter().next());
        match object {
            Some(object) => object,
            None => self.give_up(&format!("{} {key}: {what}", K::kind(&()))).await,
        }
    }

    /// Waits until all objects of a type together satisfy `are_right`.
    pub async fn wait_all<K: Watched>(&self, what: &str, is_right: impl Fn(&[K]) -> bool) -> Vec<K> {
        match wait::until(self.api(), None, is_right).await {
            Some(all) => all,
            None => self.give_up(&format!("{}: {what}", K::plural(&()))).await,
        }
    }

    /// Waits until a cluster is deleted with all objects that were created for it.
    pub async fn wait_gone(&self, cluster: &str) {
        let is_its_own = |metadata: &ObjectMeta| {
            let named = metadata.labels.as_ref().and_then(|all| all.get(labels::CLUSTER_NAME));
            named.is_some_and(|name| name == cluster)
        };
        for entry in KINDS {
            let found = wait::until(self.dynamic(&entry.full_name()), None, |all: &[DynamicObject]| {
                !all.iter().any(|object| {
                    is_its_own(&object.metadata)
                        || entry.kind == "Cluster" && object.metadata.name.as_deref() == Some(cluster)
                })
            });
            if found.await.is_none() {
                self.give_up(&format!("{} of cluster {cluster} to be gone", entry.plural))
                    .await;
            }
        }
        self.wait_all::<Secret>("none of the cluster", |all| {
            !all.iter().any(|secret| is_its_own(&secret.metadata))
        })
        .await;
    }

    /// The names of all stored objects, except for Events, objects of the server itself, and the inventory of providers, which comes by itself
    /// some time after the start.
    pub async fn stored(&self) -> BTreeSet<String> {
        let discovery = Discovery::new(self.client.clone()).run().await;
        let discovery = discovery.unwrap_or_else(|error| panic!("cannot discover what there is: {error}"));
        let mut found = BTreeSet::new();
        for (resource, can) in discovery.groups().flat_map(ApiGroup::recommended_resources) {
            if !can.supports_operation(verbs::LIST) || OF_THE_SERVER.contains(&resource.plural.as_str()) {
                continue;
            }
            let group = if resource.group.is_empty() {
                String::new()
            } else {
                format!(".{}", resource.group)
            };
            let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
            let all = api.list(&ListParams::default()).await;
            for object in all.unwrap_or_else(|error| panic!("cannot list {}: {error}", resource.plural)) {
                let namespace = object.metadata.namespace.unwrap_or_default();
                let name = object.metadata.name.unwrap_or_default();
                if resource.group == INVENTORY || name == INVENTORY_NAMESPACE {
                    continue;
                }
                found.insert(format!("{}{group} {namespace}/{name}", resource.plural));
            }
        }
        found
    }

    /// The conditions of all objects, to explain a failure.
    pub async fn explain(&self) -> String {
        let mut lines = Vec::new();
        for entry in KINDS {
            let all = self.dynamic(&entry.full_name()).list(&ListParams::default()).await;
            for object in all.map(|list| list.items).unwrap_or_default() {
                lines.extend(explain::lines(
                    entry.kind,
                    &serde_json::to_value(object).unwrap_or_default(),
                ));
            }
        }
        lines.join("\n")
    }

    pub(crate) async fn give_up(&self, what: &str) -> ! {
        let limit = wait::TIMEOUT.as_secs();
        panic!("waited {limit} s in vain for {what}\n{}", self.explain().await)
    }
}

fn resource(entry: &KindEntry) -> ApiResource {
    let gvk = GroupVersionKind::gvk(entry.group, entry.version, entry.kind);
    ApiResource::from_gvk_with_plural(&gvk, entry.plural)
}
