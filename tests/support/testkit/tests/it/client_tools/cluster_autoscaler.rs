//! The cluster autoscaler's provider `clusterapi`, request by request: which kinds it finds, what it watches, how it scales, and which machines it
//! removes. It has only the rights that its documentation grants.
//!
//! Its module is not published, so that the program itself cannot be built here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use http::{Method, Request};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DynamicObject, ListParams, WatchEvent};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use windlass_api::core::{Machine, MachineDeployment};
use windlass_testkit::{CLASS, ClusterOf, Env, NAMESPACE, Objects, wait};

use crate::life::workload;
use crate::machine_pools::{dev_pool, wait_whole};

const MIN: &str = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size";
const MAX: &str = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size";
const DELETE: &str = "cluster.x-k8s.io/delete-machine";
const CPU: &str = "capacity.cluster-autoscaler.kubernetes.io/cpu";
/// How it writes the time into the annotation.
const NOW: &str = "2026-11-01 12:00:00.123456789 +0000 UTC m=+61.5";

/// Its connection to the management cluster.
struct Autoscaler {
    client: kube::Client,
    /// The preferred version of the group.
    base: String,
    stores: BTreeMap<&'static str, Store>,
}

/// What one of its informers knows, by name.
struct Store {
    objects: Arc<Mutex<BTreeMap<String, Value>>>,
    task: JoinHandle<()>,
}

impl Drop for Store {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Autoscaler {
    /// Finds the version and the kinds, and starts its informers, for the node groups of one namespace.
    async fn start(env: &Env) -> Self {
        let objects = with_rights(env).await;
        let mut autoscaler = Self {
            client: objects.client().clone(),
            base: String::new(),
            stores: BTreeMap::new(),
        };
        let version = autoscaler.preferred("cluster.x-k8s.io").await;
        assert_eq!(version, "v1beta2");
        let group = format!("/apis/cluster.x-k8s.io/{version}");
        let served = autoscaler.get(&group).await;
        let resources = served["resources"].as_array().unwrap();
        for plural in ["machinedeployments", "machinesets", "machinepools"] {
            let named = |name: &str| resources.iter().find(|one| one["name"] == name);
            assert!(named(plural).is_some(), "{served}");
            let scale = named(&format!("{plural}/scale")).unwrap_or_else(|| panic!("no scale of {plural}: {served}"));
            let kind = (&scale["group"], &scale["version"], &scale["kind"]);
            assert_eq!(kind, (&json!("autoscaling"), &json!("v1"), &json!("Scale")));
        }
        autoscaler.base = format!("{group}/namespaces/{NAMESPACE}");
        for plural in ["machinedeployments", "machinesets", "machinepools", "machines"] {
            let store = autoscaler.informer(&format!("{}/{plural}", autoscaler.base)).await;
            autoscaler.stores.insert(plural, store);
        }
        autoscaler
    }

    async fn send(&self, method: Method, path: &str, kind: &str, body: Option<&Value>) -> Result<Value, kube::Error> {
        let request = Request::builder().method(method).uri(path).header("Content-Type", kind);
        let body = body.map(|body| serde_json::to_vec(body).unwrap()).unwrap_or_default();
        self.client.request(request.body(body).unwrap()).await
    }

    async fn get(&self, path: &str) -> Value {
        let got = self.send(Method::GET, path, "application/json", None).await;
        got.unwrap_or_else(|error| panic!("GET {path}: {error}"))
    }

    async fn preferred(&self, group: &str) -> String {
        let all = self.get("/apis").await;
        let mut groups = all["groups"].as_array().unwrap().iter();
        let found = groups
            .find(|one| one["name"] == group)
            .unwrap_or_else(|| panic!("no {group}"));
        found["preferredVersion"]["version"].as_str().unwrap().to_owned()
    }

    /// A watch that begins with what is there, as the reflectors of client-go have it.
    async fn informer(&self, path: &str) -> Store {
        let parameters = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=500";
        let request = Request::get(format!("{path}?{parameters}")).body(Vec::new()).unwrap();
        let events = self.client.request_events::<DynamicObject>(request).await.unwrap();
        let mut events: BoxStream<'static, kube::Result<WatchEvent<DynamicObject>>> = Box::pin(events);
        let objects = Arc::<Mutex<BTreeMap<String, Value>>>::default();
        let into = objects.clone();
        let (synced, has_synced) = tokio::sync::oneshot::channel();
        let task = tokio::spawn(async move {
            let mut synced = Some(synced);
            while let Some(Ok(event)) = events.next().await {
                match event {
                    WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                        let name = object.metadata.name.clone().unwrap();
                        into.lock().insert(name, serde_json::to_value(object).unwrap());
                    }
                    WatchEvent::Deleted(object) => {
                        into.lock().remove(&object.metadata.name.unwrap());
                    }
                    WatchEvent::Bookmark(bookmark) => {
                        let ends = bookmark.metadata.annotations.get("k8s.io/initial-events-end");
                        if ends.is_some_and(|ends| ends == "true")
                            && let Some(synced) = synced.take()
                        {
                            let _ = synced.send(());
                        }
                    }
                    WatchEvent::Error(error) => panic!("{error:?}"),
                }
            }
        });
        let in_time = tokio::time::timeout(wait::TIMEOUT, has_synced).await;
        in_time.expect("the watch ends its initial events").unwrap();
        Store { objects, task }
    }

    /// What an informer knows of an object.
    fn known(&self, plural: &str, name: &str) -> Option<Value> {
        self.stores[plural].objects.lock().get(name).cloned()
    }

    /// Waits until its informers know of a state.
    async fn learns(&self, what: &str, is_so: impl Fn() -> bool) {
        let waiting = async {
            let mut looks = wait::looks();
            while !is_so() {
                looks.tick().await;
            }
        };
        let in_time = tokio::time::timeout(wait::TIMEOUT, waiting).await;
        in_time.unwrap_or_else(|_| panic!("its informers never have {what}"));
    }

    /// The limits of a node group: two annotations.
    fn limits(&self, plural: &str, name: &str) -> (i64, i64) {
        let group = self.known(plural, name).unwrap_or_else(|| panic!("no {plural} {name}"));
        let limit = |key: &str| group["metadata"]["annotations"][key].as_str().unwrap().parse().unwrap();
        (limit(MIN), limit(MAX))
    }

    async fn replicas(&self, plural: &str, name: &str) -> i64 {
        let scale = self.get(&format!("{}/{plural}/{name}/scale", self.base)).await;
        assert_eq!(
            (&scale["apiVersion"], &scale["kind"]),
            (&json!("autoscaling/v1"), &json!("Scale"))
        );
        scale["spec"]["replicas"].as_i64().unwrap_or_default()
    }

    /// As newer versions do: a merge patch with nothing but the number, zero included.
    async fn patch_replicas(&self, plural: &str, name: &str, replicas: i64) {
        let path = format!("{}/{plural}/{name}/scale", self.base);
        let patch = json!({"spec": {"replicas": replicas}});
        let sent = self
            .send(Method::PATCH, &path, "application/merge-patch+json", Some(&patch))
            .await;
        assert_eq!(sent.unwrap()["spec"]["replicas"].as_i64().unwrap_or_default(), replicas);
    }

    /// An update of what was read. After a conflict it reads again, as in its next round.
    async fn update(&self, path: &str, change: impl Fn(&mut Value)) {
        loop {
            let mut object = self.get(path).await;
            change(&mut object);
            match self.send(Method::PUT, path, "application/json", Some(&object)).await {
                Ok(_) => return,
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(error) => panic!("PUT {path}: {error}"),
            }
        }
    }

    /// As older versions do.
    async fn update_replicas(&self, plural: &str, name: &str, replicas: i64) {
        let path = format!("{}/{plural}/{name}/scale", self.base);
        self.update(&path, |scale| scale["spec"]["replicas"] = json!(replicas))
            .await;
    }

    /// Sets or removes the annotation of a Machine that is to go.
    async fn mark(&self, machine: &str, value: Option<&str>) {
        let path = format!("{}/machines/{machine}", self.base);
        self.update(&path, |object| {
            let annotations = object["metadata"]["annotations"].as_object_mut().unwrap();
            match value {
                Some(value) => annotations.insert(DELETE.to_owned(), json!(value)),
                None => annotations.remove(DELETE),
            };
        })
        .await;
    }

    /// The Machines of a node group that are not on their way out, by the selector of the group, with their provider IDs.
    fn machines(&self, group: &str) -> BTreeMap<String, String> {
        let selector = &self.known("machinedeployments", group).unwrap()["spec"]["selector"]["matchLabels"];
        let selector = selector.as_object().unwrap();
        let all = self.stores["machines"].objects.lock();
        let mine = all.values().filter(|machine| {
            let labels = &machine["metadata"]["labels"];
            selector.iter().all(|(key, value)| labels[key] == *value)
        });
        let staying = mine.filter(|machine| machine["metadata"]["deletionTimestamp"].is_null());
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        staying
            .map(|machine| (text(&machine["metadata"]["name"]), text(&machine["spec"]["providerID"])))
            .collect()
    }

    /// The capacity of a Machine that is not there yet, from the infrastructure template: each value must be a text.
    async fn capacity(&self, group: &str) -> BTreeMap<String, String> {
        let group = self.known("machinedeployments", group).unwrap();
        let reference = &group["spec"]["template"]["spec"]["infrastructureRef"];
        let text = |field: &str| reference[field].as_str().unwrap();
        let version = self.preferred(text("apiGroup")).await;
        let plural = format!("{}s", text("kind").to_lowercase());
        let path = format!("/apis/{}/{version}/namespaces/{NAMESPACE}/{plural}", text("apiGroup"));
        let templates = self.informer(&path).await;
        let template = templates.objects.lock().get(text("name")).cloned().unwrap();
        serde_json::from_value(template["status"]["capacity"].clone()).unwrap()
    }
}

/// A user with the rights of the documentation, in one namespace.
async fn with_rights(env: &Env) -> Objects {
    let metadata = json!({"name": "autoscaler", "namespace": NAMESPACE});
    let groups = ["machinedeployments", "machinepools", "machinesets"];
    let scales = groups.map(|plural| format!("{plural}/scale"));
    let resources: Vec<&str> = groups
        .into_iter()
        .chain(["machines"])
        .chain(scales.iter().map(String::as_str))
        .collect();
    env.apply(&json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata,
        "rules": [
            {"apiGroups": ["cluster.x-k8s.io"], "resources": resources, "verbs": ["get", "list", "watch", "update", "patch"]},
            {"apiGroups": ["infrastructure.cluster.x-k8s.io"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
        ],
    }))
    .await;
    env.apply(&json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "autoscaler"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "autoscaler"}],
    }))
    .await;
    env.as_user("autoscaler", &["system:authenticated"])
}

/// A cluster with two node groups of MachineDeployments, one of them empty, whose numbers are the autoscaler's.
fn cluster() -> Value {
    let mut cluster = ClusterOf::new("scaled", 1, 0).object();
    let group = |name: &str, min: &str| {
        json!({
            "class": "default-worker", "name": name,
            "metadata": {"annotations": {(MIN): min, (MAX): "4", (CPU): "16"}},
        })
    };
    cluster["spec"]["topology"]["workers"]["machineDeployments"] = json!([group("some", "1"), group("none", "0")]);
    cluster
}

/// The name of the MachineDeployment of a worker set.
async fn deployment(env: &Env, set: &str) -> String {
    let is_it = |one: &&MachineDeployment| {
        let labels = one.metadata.labels.as_ref();
        labels.is_some_and(|all| {
            all.get("topology.cluster.x-k8s.io/deployment-name")
                .is_some_and(|name| name == set)
        })
    };
    let found = env
        .wait_all::<MachineDeployment>("both node groups", |all| all.len() == 2)
        .await;
    found.iter().find(is_it).unwrap().metadata.name.clone().unwrap()
}

/// Waits until the worker Machines of the cluster are these many, all with their Nodes.
async fn settles(env: &Env, workers: usize) {
    env.wait_all::<Machine>("the workers with their Nodes", |machines| {
        let cluster = ClusterOf::new("scaled", 1, workers);
        let found = cluster.machines(machines, false);
        let runs = |machine: &&&Machine| machine.status.as_ref().is_some_and(|status| status.node_ref.is_some());
        found.len() == workers && found.iter().filter(runs).count() == workers
    })
    .await;
    env.rest().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cluster_autoscaler_scales_up_and_down_and_from_zero_and_removes_the_machines_that_it_chose() {
    let env = Env::start().await;
    env.apply_yaml(CLASS).await;
    env.apply(&cluster()).await;
    settles(&env, 1).await;
    let (some, none) = (deployment(&env, "some").await, deployment(&env, "none").await);
    let autoscaler = Autoscaler::start(&env).await;
    let group = "machinedeployments";
    assert_eq!(autoscaler.limits(group, &some), (1, 4));
    assert_eq!(autoscaler.limits(group, &none), (0, 4));
    assert_eq!(autoscaler.replicas(group, &some).await, 1);
    assert_eq!(autoscaler.replicas(group, &none).await, 0);

    // Up, and no controller takes the number back.
    autoscaler.patch_replicas(group, &some, 4).await;
    settles(&env, 4).await;
    autoscaler
        .learns("four workers with provider IDs", || {
            let found = autoscaler.machines(&some);
            found.len() == 4 && found.values().all(|id| !id.is_empty())
        })
        .await;
    let machines = autoscaler.machines(&some);
    names_its_machines(&env, &machines).await;

    // Down: the chosen one goes, whichever it is, and not one whose mark was removed.
    let names: Vec<String> = machines.keys().cloned().collect();
    autoscaler.mark(&names[0], Some(NOW)).await;
    autoscaler.mark(&names[0], None).await;
    for (at, left) in [(2, 3), (1, 2)] {
        autoscaler.mark(&names[at], Some(NOW)).await;
        if left == 3 {
            autoscaler.patch_replicas(group, &some, left).await;
        } else {
            autoscaler.update_replicas(group, &some, left).await;
        }
    }
    settles(&env, 2).await;
    let expect: BTreeSet<&String> = [&names[0], &names[3]].into();
    autoscaler
        .learns("the two that were not chosen", || autoscaler.machines(&some).len() == 2)
        .await;
    assert_eq!(autoscaler.machines(&some).keys().collect::<BTreeSet<_>>(), expect);

    // From zero, for which it must know what a Machine will be, and back to zero.
    let capacity = autoscaler.capacity(&none).await;
    assert!(
        capacity.contains_key("cpu") && capacity.contains_key("memory"),
        "{capacity:?}"
    );
    let known = autoscaler.known(group, &none).unwrap();
    assert_eq!(
        known["metadata"]["annotations"][CPU], "16",
        "the annotation overrides the template"
    );
    autoscaler.patch_replicas(group, &none, 1).await;
    settles(&env, 3).await;
    autoscaler
        .learns("one from zero", || autoscaler.machines(&none).len() == 1)
        .await;
    autoscaler.patch_replicas(group, &none, 0).await;
    settles(&env, 2).await;
    autoscaler
        .learns("none again", || autoscaler.machines(&none).is_empty())
        .await;
    assert_eq!(autoscaler.machines(&some).keys().collect::<BTreeSet<_>>(), expect);

    pools(&env, &autoscaler).await;
    env.stop().await;
}

/// It finds the Machine of a Node by its provider ID and by its annotations.
async fn names_its_machines(env: &Env, machines: &BTreeMap<String, String>) {
    let nodes: Api<Node> = Api::all(workload(env, &ClusterOf::new("scaled", 1, 4)).await);
    let nodes = nodes.list(&ListParams::default()).await.unwrap();
    let found = nodes.iter().filter_map(|node| {
        let id = node.spec.as_ref()?.provider_id.clone()?;
        let annotations = node.metadata.annotations.as_ref()?;
        assert_eq!(annotations["cluster.x-k8s.io/cluster-namespace"], NAMESPACE);
        Some((annotations["cluster.x-k8s.io/machine"].clone(), id))
    });
    let found: BTreeMap<String, String> = found.filter(|(machine, _)| machines.contains_key(machine)).collect();
    assert_eq!(found, *machines);
}

/// A MachinePool is a node group, too: its machines are those of its list of provider IDs.
async fn pools(env: &Env, autoscaler: &Autoscaler) {
    let mut pool = dev_pool("scaled", "pool", 1, "v1.35.0");
    pool[2]["metadata"]["annotations"] = json!({(MIN): "0", (MAX): "3"});
    for object in &pool {
        env.apply(object).await;
    }
    wait_whole(env, "pool", 1, "v1.35.0").await;
    let group = "machinepools";
    let ids = || -> BTreeSet<String> {
        let pool = autoscaler.known(group, "pool").unwrap_or_default();
        let list = pool["spec"]["providerIDList"].as_array().into_iter().flatten();
        list.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    autoscaler
        .learns("the pool", || autoscaler.known(group, "pool").is_some())
        .await;
    assert_eq!(autoscaler.limits(group, "pool"), (0, 3));
    autoscaler.patch_replicas(group, "pool", 3).await;
    wait_whole(env, "pool", 3, "v1.35.0").await;
    autoscaler.learns("three machines", || ids().len() == 3).await;

    let chosen = ids().into_iter().nth(1).unwrap();
    let machines = env.list::<Machine>().await;
    let is_chosen = |machine: &&Machine| machine.spec.provider_id.as_ref() == Some(&chosen);
    let machine = machines.iter().find(is_chosen).unwrap().metadata.name.clone().unwrap();
    let mut expect = ids();
    expect.remove(&chosen);
    autoscaler.mark(&machine, Some(NOW)).await;
    autoscaler.patch_replicas(group, "pool", 2).await;
    wait_whole(env, "pool", 2, "v1.35.0").await;
    autoscaler.learns("two machines", || ids().len() == 2).await;
    assert_eq!(ids(), expect);
}
