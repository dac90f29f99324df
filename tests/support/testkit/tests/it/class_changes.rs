//! Changes of a class, field by field: which Machines they replace, and that the same changes do the same to a Cluster without a topology.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use serde_json::{Value, json};
use windlass_api::core::{Cluster, Machine};
use windlass_testkit::wait::TIMEOUT;
use windlass_testkit::{CLASS, ClusterOf, Env, NAMESPACE};

const MANAGED: &str = "managed";
/// The same cluster, whose objects a user writes.
const TWIN: &str = "twin";
const TEAM: &str = "node.cluster.x-k8s.io/team";

async fn stored(env: &Env, kind: &str, name: &str) -> Value {
    serde_json::to_value(env.dynamic(kind).get(name).await.unwrap()).unwrap()
}

/// The only object of a kind that the topology has made, for workers or for the control plane.
async fn generated(env: &Env, kind: &str, for_workers: bool) -> Value {
    let all = env.dynamic(kind).list(&kube::api::ListParams::default()).await.unwrap();
    let mut all = all.into_iter().map(|one| serde_json::to_value(one).unwrap());
    let found = all.find(|one| {
        let labels = &one["metadata"]["labels"];
        labels.get("topology.cluster.x-k8s.io/owned").is_some()
            && labels.get("topology.cluster.x-k8s.io/deployment-name").is_some() == for_workers
    });
    let mut found = found.unwrap_or_else(|| panic!("no {kind}"));
    found["kind"] = kind.into();
    found
}

/// Puts the fields of a change into an object.
fn merge(object: &mut Value, change: &Value) {
    match (object, change) {
        (Value::Object(fields), Value::Object(changed)) => {
            for (name, change) in changed {
                merge(fields.entry(name).or_insert(Value::Null), change);
            }
        }
        (object, change) => *object = change.clone(),
    }
}

/// A copy of an object under another name, as a user would write it.
fn copy(object: &Value, name: &str) -> Value {
    json!({
        "apiVersion": object["apiVersion"], "kind": object["kind"],
        "metadata": {"name": name, "namespace": NAMESPACE}, "spec": object["spec"],
    })
}

/// The same cluster as the managed one, from a user's objects.
async fn make_twin(env: &Env) {
    let cluster = stored(env, "Cluster", MANAGED).await;
    let infrastructure = generated(env, "DevCluster", false).await;
    let mut infrastructure = copy(&infrastructure, TWIN);
    infrastructure["spec"]
        .as_object_mut()
        .unwrap()
        .remove("controlPlaneEndpoint");
    env.apply(&infrastructure).await;
    for (kind, name, for_workers) in [
        ("DevMachineTemplate", "twin-control-plane", false),
        ("DevMachineTemplate", "twin-workers", true),
        ("KubeadmConfigTemplate", "twin-workers", true),
    ] {
        let template = generated(env, kind, for_workers).await;
        env.apply(&copy(&template, name)).await;
    }
    let mut control_plane = copy(&generated(env, "KubeadmControlPlane", false).await, TWIN);
    let machines = &mut control_plane["spec"]["machineTemplate"];
    machines["spec"]["infrastructureRef"]["name"] = "twin-control-plane".into();
    machines.as_object_mut().unwrap().remove("metadata");
    env.apply(&control_plane).await;
    let mut twin = copy(&cluster, TWIN);
    let spec = twin["spec"].as_object_mut().unwrap();
    for field in ["topology", "controlPlaneEndpoint"] {
        spec.remove(field);
    }
    for field in ["infrastructureRef", "controlPlaneRef"] {
        spec[field]["name"] = TWIN.into();
    }
    env.apply(&twin).await;
    let mut workers = copy(&generated(env, "MachineDeployment", true).await, TWIN);
    let spec = &mut workers["spec"];
    (spec["clusterName"], spec["template"]["spec"]["clusterName"]) = (TWIN.into(), TWIN.into());
    (spec["selector"], spec["template"]["metadata"]) = (json!({"matchLabels": {}}), json!({}));
    let template = &mut spec["template"]["spec"];
    template["bootstrap"]["configRef"]["name"] = "twin-workers".into();
    template["infrastructureRef"]["name"] = "twin-workers".into();
    env.apply(&workers).await;
}

/// What can be seen of the Machines of one role of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    uids: BTreeSet<String>,
    team: Option<String>,
    drain: Option<i32>,
}

type State = BTreeMap<(&'static str, &'static str), Seen>;

const ROLES: [&str; 2] = ["control plane", "workers"];

fn state(machines: &[Machine]) -> State {
    let mut all = State::new();
    for cluster in [MANAGED, TWIN] {
        for role in ROLES {
            let of_role = machines.iter().filter(|machine| {
                let labels = machine.metadata.labels.as_ref().unwrap();
                let is_control_plane = labels.contains_key("cluster.x-k8s.io/control-plane");
                machine.spec.cluster_name == cluster && is_control_plane == (role == ROLES[0])
            });
            let (mut uids, mut teams, mut drains) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
            for machine in of_role {
                uids.insert(machine.metadata.uid.clone().unwrap());
                teams.insert(machine.metadata.labels.as_ref().unwrap().get(TEAM).cloned());
                let deletion = machine.spec.deletion.as_ref();
                drains.insert(deletion.and_then(|deletion| deletion.node_drain_timeout_seconds));
            }
            let seen = Seen {
                uids,
                team: teams.into_iter().next().flatten(),
                drain: drains.into_iter().next().flatten(),
            };
            all.insert((cluster, role), seen);
        }
    }
    all
}

/// The state when nothing is written any more and all Machines are up to date.
async fn settled(env: &Env) -> State {
    let begun = Instant::now();
    loop {
        env.rest().await;
        let machines = env.list::<Machine>().await;
        let is_well = |machine: &Machine| {
            let conditions = machine.status.iter().flat_map(|status| &status.conditions);
            let is_true = |type_: &str| conditions.clone().any(|one| one.type_ == type_ && one.status == "True");
            is_true("Available") && is_true("UpToDate")
        };
        let clusters = env.list::<Cluster>().await;
        let is_reconciled = |cluster: &Cluster| {
            let mut conditions = cluster.status.iter().flat_map(|status| &status.conditions);
            let found = conditions.find(|one| one.type_ == "TopologyReconciled");
            found.is_none_or(|one| one.status == "True")
        };
        if machines.iter().all(is_well) && clusters.iter().all(is_reconciled) {
            return state(&machines);
        }
        assert!(begun.elapsed() < TIMEOUT, "never settled\n{}", env.explain().await);
    }
}

/// A change, and what it does.
struct Case {
    what: &'static str,
    /// Objects that the class is to name, as copies of those that it names: kind, name, the new name, and a change.
    template: Template,
    /// A change of the class.
    class: Value,
    /// The same change of the twin's objects, if there is one: kind, name and patch.
    twin: Twin,
    /// Which Machines are replaced.
    replaced: [bool; 2],
}

fn reference(kind: &str, name: &str) -> Value {
    let group = match kind {
        "KubeadmConfigTemplate" => "bootstrap",
        "KubeadmControlPlaneTemplate" => "controlplane",
        _ => "infrastructure",
    };
    json!({"templateRef": {"apiVersion": format!("{group}.cluster.x-k8s.io/v1beta2"), "kind": kind, "name": name}})
}

/// The worker class with other values.
fn worker(bootstrap: &str, infrastructure: &str, more: &Value) -> Value {
    let mut class = json!({
        "class": "default-worker",
        "bootstrap": reference("KubeadmConfigTemplate", bootstrap),
        "infrastructure": reference("DevMachineTemplate", infrastructure),
    });
    for (field, value) in more.as_object().unwrap() {
        class[field] = value.clone();
    }
    class
}

fn workers(classes: &[Value]) -> Value {
    json!({"workers": {"machineDeployments": classes}})
}

const CONTROL_PLANE: &str = "quick-start-control-plane";
const WORKER: &str = "quick-start-default-worker";

fn spec(value: &Value) -> Value {
    json!({"spec": {"template": {"spec": value}}})
}

fn slower() -> Value {
    json!({"backend": {"inMemory": {"vm": {"provisioning": {"startupJitter": "0.1"}}}}})
}

fn label(name: &str) -> Value {
    json!({"metadata": {"labels": {"copied-as": name}}})
}

fn of_machines(template: &Value) -> Value {
    json!({"spec": {"template": template}})
}

fn commands() -> Value {
    json!({"preKubeadmCommands": ["true"]})
}

/// The fields of both.
fn both(one: &Value, other: &Value) -> Value {
    let mut all = one.clone();
    all.as_object_mut().unwrap().extend(other.as_object().unwrap().clone());
    all
}

type Template = Option<(&'static str, &'static str, &'static str, Value)>;
type Twin = Vec<(&'static str, &'static str, Value)>;

fn change(what: &'static str, template: Template, class: Value, twin: Twin, replaced: [bool; 2]) -> Case {
    Case {
        what,
        template,
        class,
        twin,
        replaced,
    }
}

/// The templates of infrastructure and control plane.
fn of_control_plane() -> Vec<Case> {
    let of = |kind, from, to, change| Some((kind, from, to, change));
    let infrastructure = json!({"spec": {"template": {"metadata": {"labels": {"rack": "1"}}}}});
    let kubeadm = json!({"kubeadmConfigSpec": commands()});
    vec![
        change(
            "infrastructure.templateRef",
            of("DevClusterTemplate", "quick-start-cluster", "cluster-2", infrastructure),
            json!({"infrastructure": reference("DevClusterTemplate", "cluster-2")}),
            vec![("DevCluster", TWIN, json!({"metadata": {"labels": {"rack": "1"}}}))],
            [false, false],
        ),
        change(
            "controlPlane.templateRef with the same content",
            of("KubeadmControlPlaneTemplate", CONTROL_PLANE, "cp-2", label("cp-2")),
            json!({"controlPlane": reference("KubeadmControlPlaneTemplate", "cp-2")}),
            vec![],
            [false, false],
        ),
        change(
            "controlPlane.templateRef",
            of("KubeadmControlPlaneTemplate", "cp-2", "cp-3", spec(&kubeadm)),
            json!({"controlPlane": reference("KubeadmControlPlaneTemplate", "cp-3")}),
            vec![("KubeadmControlPlane", TWIN, json!({"spec": kubeadm}))],
            [true, false],
        ),
        change(
            "controlPlane.machineInfrastructure with other metadata alone",
            of(
                "DevMachineTemplate",
                CONTROL_PLANE,
                "cp-machines-2",
                label("cp-machines-2"),
            ),
            json!({"controlPlane": {"machineInfrastructure": reference("DevMachineTemplate", "cp-machines-2")}}),
            vec![],
            [false, false],
        ),
        change(
            "controlPlane.machineInfrastructure",
            of("DevMachineTemplate", CONTROL_PLANE, "cp-machines-3", spec(&slower())),
            json!({"controlPlane": {"machineInfrastructure": reference("DevMachineTemplate", "cp-machines-3")}}),
            vec![(
                "KubeadmControlPlane",
                TWIN,
                json!({"spec": {"machineTemplate": {"spec": {"infrastructureRef": {"name": "cp-machines-3"}}}}}),
            )],
            [true, false],
        ),
    ]
}

/// The templates of workers.
fn of_workers() -> Vec<Case> {
    let of = |kind, from, to, change| Some((kind, from, to, change));
    vec![
        change(
            "a worker's infrastructure with other metadata alone",
            of("DevMachineTemplate", WORKER, "machines-2", label("machines-2")),
            workers(&[worker(WORKER, "machines-2", &json!({}))]),
            vec![],
            [false, false],
        ),
        change(
            "a worker's infrastructure",
            of("DevMachineTemplate", WORKER, "machines-3", spec(&slower())),
            workers(&[worker(WORKER, "machines-3", &json!({}))]),
            vec![(
                "MachineDeployment",
                TWIN,
                of_machines(&json!({"spec": {"infrastructureRef": {"name": "machines-3"}}})),
            )],
            [false, true],
        ),
        change(
            "a worker's bootstrap with other metadata alone",
            of("KubeadmConfigTemplate", WORKER, "config-2", label("config-2")),
            workers(&[worker("config-2", "machines-3", &json!({}))]),
            vec![],
            [false, false],
        ),
        change(
            "a worker's bootstrap",
            of("KubeadmConfigTemplate", WORKER, "config-3", spec(&commands())),
            workers(&[worker("config-3", "machines-3", &json!({}))]),
            vec![(
                "MachineDeployment",
                TWIN,
                of_machines(&json!({"spec": {"bootstrap": {"configRef": {"name": "config-3"}}}})),
            )],
            [false, true],
        ),
    ]
}

/// Everything else.
fn of_fields() -> Vec<Case> {
    let team = json!({"metadata": {"labels": {TEAM: "a"}}});
    let drain = json!({"deletion": {"nodeDrainTimeoutSeconds": 7}});
    vec![
        change(
            "metadata",
            None,
            both(
                &json!({"controlPlane": team}),
                &workers(&[worker("config-3", "machines-3", &team)]),
            ),
            vec![
                ("KubeadmControlPlane", TWIN, json!({"spec": {"machineTemplate": team}})),
                ("MachineDeployment", TWIN, of_machines(&team)),
            ],
            [false, false],
        ),
        change(
            "timeouts of Nodes",
            None,
            both(
                &json!({"controlPlane": drain}),
                &workers(&[worker("config-3", "machines-3", &both(&team, &drain))]),
            ),
            vec![
                (
                    "KubeadmControlPlane",
                    TWIN,
                    json!({"spec": {"machineTemplate": {"spec": drain}}}),
                ),
                ("MachineDeployment", TWIN, of_machines(&json!({"spec": drain}))),
            ],
            [false, false],
        ),
        change(
            "minReadySeconds",
            None,
            workers(&[worker(
                "config-3",
                "machines-3",
                &both(&both(&team, &drain), &json!({"minReadySeconds": 1})),
            )]),
            vec![(
                "MachineDeployment",
                TWIN,
                of_machines(&json!({"spec": {"minReadySeconds": 1}})),
            )],
            [false, false],
        ),
        change(
            "a new worker class",
            None,
            {
                let mut other = worker(WORKER, WORKER, &json!({}));
                other["class"] = "another".into();
                let same = both(&both(&team, &drain), &json!({"minReadySeconds": 1}));
                workers(&[worker("config-3", "machines-3", &same), other])
            },
            vec![],
            [false, false],
        ),
    ]
}

/// What is written of the topology's objects, in the parts that a case is about.
async fn has_arrived(env: &Env, case: &Case) {
    match case.what {
        "infrastructure.templateRef" => {
            let labels = generated(env, "DevCluster", false).await["metadata"]["labels"].clone();
            assert_eq!(labels["rack"], "1");
        }
        "minReadySeconds" => {
            let workers = generated(env, "MachineDeployment", true).await;
            assert_eq!(workers["spec"]["template"]["spec"]["minReadySeconds"], 1);
        }
        _ => {}
    }
    // Other metadata is changed in place, on the template that there is.
    let Some((kind, _, name, change)) = &case.template else {
        return;
    };
    if change["metadata"]["labels"].is_object() && *kind != "KubeadmControlPlaneTemplate" {
        let for_workers = !case.what.starts_with("controlPlane");
        let template = generated(env, kind, for_workers).await;
        assert_eq!(template["metadata"]["labels"]["copied-as"], *name, "{}", case.what);
    }
}

// TO-368, TO-371
#[tokio::test]
async fn each_field_of_a_class_does_what_the_same_change_does_without_a_class() {
    let env = Env::start().await;
    env.apply_yaml(CLASS).await;
    let cluster = ClusterOf::new(MANAGED, 1, 2);
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    make_twin(&env).await;
    env.wait_all::<Machine>("the Machines of both", |all| all.len() == 6)
        .await;
    let mut before = settled(&env).await;
    for case in of_control_plane().into_iter().chain(of_workers()).chain(of_fields()) {
        if let Some((kind, from, to, change)) = &case.template {
            let mut template = copy(&stored(&env, kind, from).await, to);
            merge(&mut template, change);
            env.apply(&template).await;
        }
        env.merge("ClusterClass", "quick-start", &json!({"spec": case.class}))
            .await;
        for (kind, name, patch) in &case.twin {
            env.merge(kind, name, patch).await;
        }
        let after = settled(&env).await;
        for (role, expected) in ROLES.into_iter().zip(case.replaced) {
            let now = |cluster| (&before[&(cluster, role)], &after[&(cluster, role)]);
            let clusters: &[&str] = if case.twin.is_empty() {
                &[MANAGED]
            } else {
                &[MANAGED, TWIN]
            };
            for cluster in clusters {
                let (old, new) = now(*cluster);
                let kept = old.uids.intersection(&new.uids).count();
                let expected = if expected { 0 } else { old.uids.len() };
                assert_eq!(kept, expected, "{}: {role} of {cluster}", case.what);
            }
            let ((_, managed), (_, twin)) = (now(MANAGED), now(TWIN));
            assert_eq!(
                (&managed.team, managed.drain),
                (&twin.team, twin.drain),
                "{}: {role}",
                case.what
            );
        }
        has_arrived(&env, &case).await;
        before = after;
    }
    let workers = &before[&(MANAGED, ROLES[1])];
    assert_eq!((workers.team.as_deref(), workers.drain), (Some("a"), Some(7)));
    env.stop().await;
}
