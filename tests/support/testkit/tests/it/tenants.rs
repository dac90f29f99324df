//! Two teams with a namespace each and all rights in it: neither reads or changes anything of the other through a controller.

use std::collections::BTreeMap;

use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use windlass_manager::registry::kinds::KINDS;
use windlass_testkit::{CLASS, ClusterOf, Env, Objects, wait};

use crate::foreign_class::{grant, namespace, put, refused};

const CORE: &str = "cluster.x-k8s.io";
const BOOTSTRAP: &str = "bootstrap.cluster.x-k8s.io";
const CONTROL_PLANE: &str = "controlplane.cluster.x-k8s.io";
const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";
const ADDONS: &str = "addons.cluster.x-k8s.io";
const V: &str = "v1beta2";

/// A team: its namespace, and its user.
struct Team {
    name: &'static str,
    client: kube::Client,
}

impl Team {
    /// The team's Cluster.
    fn cluster(&self) -> String {
        format!("{}-main", self.name)
    }

    /// What only this team may see.
    fn mark(&self) -> String {
        format!("private-content-of-{}", self.name)
    }
}

fn api(client: &kube::Client, namespace: &str, (group, version, kind): (&str, &str, &str)) -> Api<DynamicObject> {
    let known = KINDS.iter().find(|entry| (entry.group, entry.kind) == (group, kind));
    let gvk = GroupVersionKind::gvk(group, version, kind);
    let resource = match known {
        Some(entry) => ApiResource::from_gvk_with_plural(&gvk, entry.plural),
        None => ApiResource::from_gvk(&gvk),
    };
    Api::namespaced_with(client.clone(), namespace, &resource)
}

/// The kinds whose objects a team may write.
fn kinds() -> Vec<(&'static str, &'static str, &'static str)> {
    let groups = [CORE, BOOTSTRAP, CONTROL_PLANE, INFRASTRUCTURE, ADDONS];
    let ours = KINDS.iter().filter(|entry| groups.contains(&entry.group));
    let ours = ours.map(|entry| (entry.group, entry.version, entry.kind));
    ours.chain([("", "v1", "Secret"), ("", "v1", "ConfigMap")]).collect()
}

/// What is stored in a namespace, by kind and name.
async fn stored(admin: &Objects, namespace: &str) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for kind in kinds() {
        let all = api(admin.client(), namespace, kind).list(&ListParams::default()).await;
        for object in all.unwrap() {
            let name = object.metadata.name.clone().unwrap_or_default();
            found.insert(format!("{} {name}", kind.2), serde_json::to_value(&object).unwrap());
        }
    }
    found
}

/// A namespace, a user with all rights there, a class, and a Cluster that runs.
async fn settle(env: &Env, name: &'static str) -> Team {
    let admin: &Objects = env;
    namespace(admin, name).await;
    let groups = ["", CORE, BOOTSTRAP, CONTROL_PLANE, INFRASTRUCTURE, ADDONS];
    let rules = json!([{"apiGroups": groups, "resources": ["*"], "verbs": ["*"]}]);
    grant(admin, name, name, "everything", &rules).await;
    let team = Team {
        name,
        client: env.server().client_of(name, &["system:authenticated"]),
    };
    let documents: Vec<Value> = serde_saphyr::from_multiple(CLASS).unwrap();
    for mut document in documents {
        document["metadata"]["namespace"] = json!(name);
        if document["kind"] == "KubeadmConfigTemplate" {
            let file = json!({"path": "/etc/private", "content": team.mark()});
            document["spec"]["template"]["spec"]["files"] = json!([file]);
        }
        put(admin, &document).await;
    }
    let mut cluster = ClusterOf::new(&team.cluster(), 1, 1).object();
    cluster["metadata"]["namespace"] = json!(name);
    put(admin, &cluster).await;
    is_running(env, &team).await;
    team
}

/// Waits until the Cluster of a team is available, with all of its Machines.
async fn is_running(env: &Env, team: &Team) {
    let cluster = team.cluster();
    let found = wait::until(
        api(env.client(), team.name, (CORE, V, "Cluster")),
        Some(&cluster),
        |all| {
            all.first().is_some_and(|cluster| {
                let conditions = cluster.data["status"]["conditions"].as_array().into_iter().flatten();
                let available = conditions
                    .filter(|condition| condition["type"] == "Available" || condition["type"] == "WorkersAvailable")
                    .all(|condition| condition["status"] == "True");
                available && cluster.data["status"]["workers"]["availableReplicas"] == 1
            })
        },
    );
    assert!(found.await.is_some(), "{cluster} does not run");
}

/// The first object of a kind in a namespace.
async fn first(admin: &Objects, namespace: &str, kind: (&str, &str, &str)) -> DynamicObject {
    let all = api(admin.client(), namespace, kind).list(&ListParams::default()).await;
    all.unwrap()
        .items
        .into_iter()
        .next()
        .unwrap_or_else(|| panic!("no {kind:?}"))
}

/// The objects of a team, as another one may know their names.
struct Theirs {
    namespace: &'static str,
    name: String,
    cluster: DynamicObject,
    dev_cluster: DynamicObject,
    machine: DynamicObject,
    set: DynamicObject,
    dev_machine: DynamicObject,
    config: DynamicObject,
    control_plane: DynamicObject,
}

fn name(object: &DynamicObject) -> String {
    object.metadata.name.clone().unwrap_or_default()
}

/// An owner reference to an object, as its controller sets it.
fn owner(object: &DynamicObject, group: &str, kind: &str) -> Value {
    json!([{
        "apiVersion": format!("{group}/{V}"), "kind": kind, "name": name(object), "uid": object.metadata.uid,
        "controller": true, "blockOwnerDeletion": true,
    }])
}

impl Theirs {
    async fn of(admin: &Objects, team: &Team) -> Self {
        let of = async |group, kind| first(admin, team.name, (group, V, kind)).await;
        Self {
            namespace: team.name,
            name: team.cluster(),
            cluster: of(CORE, "Cluster").await,
            dev_cluster: of(INFRASTRUCTURE, "DevCluster").await,
            machine: of(CORE, "Machine").await,
            set: of(CORE, "MachineSet").await,
            dev_machine: of(INFRASTRUCTURE, "DevMachine").await,
            config: of(BOOTSTRAP, "KubeadmConfig").await,
            control_plane: of(CONTROL_PLANE, "KubeadmControlPlane").await,
        }
    }

    /// A reference in all forms that versions of the API have had.
    fn reference(&self, group: &str, kind: &str, name: &str) -> Value {
        json!({
            "apiGroup": group, "apiVersion": format!("{group}/{V}"), "kind": kind, "name": name, "namespace": self.namespace,
        })
    }

    fn template(&self, name: &str) -> Value {
        self.reference(INFRASTRUCTURE, "DevMachineTemplate", name)
    }

    fn labels(&self) -> Value {
        json!({
            "cluster.x-k8s.io/cluster-name": self.name, "cluster.x-k8s.io/set-name": name(&self.set),
            "cluster.x-k8s.io/control-plane": "", "cluster.x-k8s.io/control-plane-name": name(&self.control_plane),
            "topology.cluster.x-k8s.io/owned": "",
        })
    }

    /// An object that claims to belong to them.
    fn stray(&self, (group, kind): (&str, &str), owners: &Value, spec: &Value) -> Value {
        json!({
            "apiVersion": format!("{group}/{V}"), "kind": kind, "spec": spec,
            "metadata": {"name": "stray", "labels": self.labels(), "ownerReferences": owners},
        })
    }

    /// Infrastructure, a control plane, bootstrap configuration and a kubeconfig that claim to be of their Cluster.
    fn parts(&self) -> Vec<Value> {
        let endpoint = &self.dev_cluster.data["spec"]["controlPlaneEndpoint"];
        let cluster = owner(&self.cluster, CORE, "Cluster");
        let kubeconfig = format!("{}-kubeconfig", self.name);
        let file = json!({"secret": {"name": kubeconfig, "key": "value", "namespace": self.namespace}});
        let mut same_name = self.stray(
            (CORE, "Cluster"),
            &Value::Null,
            &json!({
                "controlPlaneEndpoint": endpoint,
                "controlPlaneRef": self.reference(CONTROL_PLANE, "KubeadmControlPlane", &name(&self.control_plane)),
                "infrastructureRef": self.reference(INFRASTRUCTURE, "DevCluster", &name(&self.dev_cluster)),
            }),
        );
        same_name["metadata"]["name"] = json!(self.name);
        let of_control_plane = owner(&self.control_plane, CONTROL_PLANE, "KubeadmControlPlane");
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": kubeconfig, "labels": self.labels(), "ownerReferences": of_control_plane},
        });
        let machine = owner(&self.machine, CORE, "Machine");
        vec![
            same_name,
            self.stray(
                (INFRASTRUCTURE, "DevCluster"),
                &cluster,
                &json!({
                    "backend": {"inMemory": {}}, "controlPlaneEndpoint": endpoint,
                }),
            ),
            self.stray(
                (BOOTSTRAP, "KubeadmConfig"),
                &machine,
                &json!({
                    "joinConfiguration": {"nodeRegistration": {"name": "stray"}},
                    "files": [{"path": "/a", "contentFrom": file}],
                }),
            ),
            self.stray(
                (CONTROL_PLANE, "KubeadmControlPlane"),
                &cluster,
                &json!({
                    "replicas": 1, "version": "v1.35.0",
                    "kubeadmConfigSpec": {"clusterConfiguration": {"certificatesDir": "/etc/kubernetes/pki"}},
                    "machineTemplate": {"spec": {"infrastructureRef": self.template("quick-start-control-plane")}},
                }),
            ),
            secret,
        ]
    }

    /// Machines, and what makes and remediates them.
    fn machines(&self) -> Vec<Value> {
        let (cluster, set) = (
            owner(&self.cluster, CORE, "Cluster"),
            owner(&self.set, CORE, "MachineSet"),
        );
        let machine = owner(&self.machine, CORE, "Machine");
        let host = self.reference(INFRASTRUCTURE, "DevMachine", &name(&self.dev_machine));
        let spec = &self.machine.data["spec"];
        let template = json!({"metadata": {"labels": self.labels()}, "spec": {
            "clusterName": self.name, "version": "v1.35.0",
            "bootstrap": {"configRef": self.reference(BOOTSTRAP, "KubeadmConfigTemplate", "quick-start-default-worker")},
            "infrastructureRef": self.template("quick-start-default-worker"),
        }});
        let selector = json!({"matchLabels": {"cluster.x-k8s.io/cluster-name": self.name}});
        let sets = json!({"clusterName": self.name, "replicas": 1, "selector": selector, "template": template});
        let mut with_config = self.stray(
            (CORE, "Machine"),
            &Value::Null,
            &json!({
                "clusterName": self.name, "version": "v1.35.0", "infrastructureRef": host,
                "bootstrap": {"configRef": self.reference(BOOTSTRAP, "KubeadmConfig", &name(&self.config))},
            }),
        );
        with_config["metadata"]["name"] = json!("stray-config");
        vec![
            self.stray((INFRASTRUCTURE, "DevMachine"), &machine, &json!({
                "backend": {"inMemory": {}}, "providerID": self.dev_machine.data["spec"]["providerID"],
            })),
            self.stray((CORE, "Machine"), &set, &json!({
                "clusterName": self.name, "version": "v1.35.0", "providerID": spec["providerID"], "infrastructureRef": host,
                "bootstrap": {"dataSecretName": spec["bootstrap"]["dataSecretName"]},
            })),
            with_config,
            self.stray((CORE, "MachineSet"), &Value::Null, &sets),
            self.stray((CORE, "MachineDeployment"), &cluster, &sets),
            self.stray((CORE, "MachineHealthCheck"), &Value::Null, &json!({
                "clusterName": self.name, "selector": selector,
                "checks": {"nodeStartupTimeoutSeconds": 0, "unhealthyNodeConditions": [
                    {"type": "Ready", "status": "True", "timeoutSeconds": 0},
                ]},
                "remediation": {"templateRef": self.template("quick-start-default-worker")},
            })),
        ]
    }

    /// Charts with their Secrets, and a release on their Cluster.
    fn charts(&self) -> Vec<Value> {
        let secret = |suffix: &str| json!({"name": format!("{}-{suffix}", self.name), "namespace": self.namespace});
        let mut chart = json!({
            "chartName": "chart", "repoURL": "https://127.0.0.1:1",
            "credentials": {"secret": secret("kubeconfig"), "key": "value"}, "tlsConfig": {"caSecret": secret("ca")},
        });
        let mut release = chart.clone();
        chart["clusterSelector"] = json!({});
        release["clusterRef"] = self.reference(CORE, "Cluster", &self.name);
        let api_version = format!("{ADDONS}/v1alpha1");
        let meta = json!({"name": "stray", "labels": self.labels()});
        vec![
            json!({"apiVersion": api_version, "kind": "HelmChartProxy", "metadata": meta, "spec": chart}),
            json!({"apiVersion": api_version, "kind": "HelmReleaseProxy", "metadata": meta, "spec": release}),
        ]
    }
}

/// What must not be seen by others: the private content, and the data of all Secrets.
async fn secrets_of(admin: &Objects, team: &Team) -> Vec<String> {
    let all = api(admin.client(), team.name, ("", "v1", "Secret"))
        .list(&ListParams::default())
        .await;
    let data = |secret: DynamicObject| secret.data["data"].as_object().cloned().unwrap_or_default();
    let values = all
        .unwrap()
        .into_iter()
        .flat_map(data)
        .filter_map(|(_, value)| value.as_str().map(str::to_owned));
    // Short ones, such as a format, are no secrets.
    values.filter(|value| value.len() > 40).chain([team.mark()]).collect()
}

/// One team tries everything against the other.
async fn try_all(env: &Env, me: &Team, other: &Team) {
    let admin: &Objects = env;
    env.rest().await;
    let (before, mine) = (stored(admin, other.name).await, stored(admin, me.name).await);
    let made = make_strays(admin, me, other).await;
    requests_are_refused(me, other).await;
    env.rest().await;
    is_unchanged(&before, &stored(admin, other.name).await);
    nothing_is_seen(admin, me, other).await;
    for ((group, version, kind), name) in made.iter().rev() {
        let target = api(&me.client, me.name, (group, version, kind));
        match target.delete(name, &DeleteParams::default()).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => panic!("{kind} {name}: {error}"),
        }
    }
    env.rest().await;
    is_unchanged(&before, &stored(admin, other.name).await);
    is_running(env, other).await;
    is_running(env, me).await;
    let left = stored(admin, me.name).await;
    for name in mine.keys() {
        assert!(left.contains_key(name), "{name} of the own namespace is gone");
    }
}

/// Creates what refers to the other team by every field that has references, and gives back its kinds and names.
async fn make_strays(admin: &Objects, me: &Team, other: &Team) -> Vec<((String, String, &'static str), String)> {
    let theirs = Theirs::of(admin, other).await;
    let mut made = Vec::new();
    for mut object in [theirs.parts(), theirs.machines(), theirs.charts()].concat() {
        object["metadata"]["namespace"] = json!(me.name);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let api_version = text(&object["apiVersion"]);
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", &api_version));
        let kind = KINDS
            .iter()
            .find(|entry| entry.group == group && object["kind"] == entry.kind);
        let at = (
            group.to_owned(),
            version.to_owned(),
            kind.map_or("Secret", |entry| entry.kind),
        );
        let target = api(&me.client, me.name, (&at.0, &at.1, at.2));
        let parsed: DynamicObject = serde_json::from_value(object.clone()).unwrap();
        let created = target.create(&PostParams::default(), &parsed).await;
        created.unwrap_or_else(|error| panic!("{object}: {error}"));
        made.push((at, text(&object["metadata"]["name"])));
    }
    made
}

/// Neither a class of the other team nor requests to its namespace give anything away.
async fn requests_are_refused(me: &Team, other: &Team) {
    let mut cluster = ClusterOf::new("copy", 1, 1).object();
    cluster["metadata"]["namespace"] = json!(me.name);
    cluster["spec"]["topology"]["classRef"] = json!({"name": "quick-start", "namespace": other.name});
    let clusters = api(&me.client, me.name, (CORE, V, "Cluster"));
    let copy: DynamicObject = serde_json::from_value(cluster).unwrap();
    assert_eq!(refused(clusters.create(&PostParams::default(), &copy).await).code, 403);
    for kind in kinds() {
        let theirs = api(&me.client, other.name, kind);
        let listed = theirs.list(&ListParams::default()).await;
        assert_eq!(refused(listed).code, 403, "{kind:?}");
        let label = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
        let patched = theirs.patch("x", &PatchParams::default(), &label).await;
        assert_eq!(refused(patched).code, 403, "{kind:?}");
    }
}

/// No object or event in a namespace has a secret of the other one.
async fn nothing_is_seen(admin: &Objects, me: &Team, other: &Team) {
    let secrets = secrets_of(admin, other).await;
    let mut seen = stored(admin, me.name).await;
    let events = api(admin.client(), me.name, ("", "v1", "Event"));
    for event in events.list(&ListParams::default()).await.unwrap() {
        seen.insert(format!("Event {}", name(&event)), serde_json::to_value(event).unwrap());
    }
    for (name, object) in &seen {
        let text = object.to_string();
        let leaks = secrets.iter().any(|secret| text.contains(secret));
        assert!(!leaks, "{name} has a secret of {}", other.name);
    }
}

fn is_unchanged(before: &BTreeMap<String, Value>, after: &BTreeMap<String, Value>) {
    let names = |all: &BTreeMap<String, Value>| all.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(after), names(before));
    for (name, object) in before {
        assert_eq!(&after[name], object, "{name} has changed");
    }
}

// CL-028: a reference reaches nothing in another namespace.
#[tokio::test]
async fn two_teams_cannot_read_or_change_anything_of_each_other() {
    let env = Env::start().await;
    let (one, two) = (settle(&env, "team-one").await, settle(&env, "team-two").await);
    try_all(&env, &one, &two).await;
    try_all(&env, &two, &one).await;
    env.stop().await;
}
