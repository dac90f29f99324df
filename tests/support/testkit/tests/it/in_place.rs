//! Rollouts whose Machines are updated in place, by an extension of the Runtime SDK.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Event, Node};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{ListParams, Patch as ApiPatch, PatchParams};
use serde_json::{Value, json};
use windlass_api::annotations::{
    ACKNOWLEDGED_MOVE, MOVE_MACHINES_TO_MACHINE_SET, PENDING_ACKNOWLEDGE_MOVE, PENDING_HOOKS,
};
use windlass_api::core::{Machine, MachineDeployment, MachineSet};
use windlass_api_kubeadm::bootstrap::KubeadmConfig;
use windlass_api_kubeadm::controlplane::KubeadmControlPlane;
use windlass_meta::ObjectKey;
use windlass_runtime_extension::Extension;
use windlass_runtime_extension::hooks::Response as _;
use windlass_runtime_extension::hooks::in_place::{
    CanUpdateMachine, CanUpdateMachineRequest, CanUpdateMachineResponse, CanUpdateMachineSet,
    CanUpdateMachineSetRequest, CanUpdateMachineSetResponse, Patch, UpdateMachine, UpdateMachineRequest,
    UpdateMachineResponse,
};
use windlass_testkit::{ByHand, CLASS, ClusterOf, Env, NAMESPACE};

use crate::extensions::{Served, config, is_discovered};
use crate::life::workload;

const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";
const BOOTSTRAP: &str = "bootstrap.cluster.x-k8s.io";
const MARKS: &str = "in-place-updates.internal.cluster.x-k8s.io/";

/// What the extension says when it is asked what it can change.
#[derive(Clone, Default)]
pub(crate) struct Mood(Arc<AtomicU8>);

impl Mood {
    const ALL: u8 = 0;
    const NOTHING: u8 = 1;
    const BROKEN: u8 = 2;

    fn set(&self, mood: u8) {
        self.0.store(mood, Ordering::SeqCst);
    }
}

/// What the extension was asked to do last, by name of the Machine.
pub(crate) type Updated = Arc<Mutex<BTreeMap<String, UpdateMachineRequest>>>;

/// A merge patch with everything at `spec.template.spec` as it is to be.
fn whole(desired: &Value) -> Patch {
    let patch = json!({ "spec": { "template": { "spec": desired["spec"]["template"]["spec"] } } });
    Patch {
        patch_type: "JSONMergePatch".to_owned(),
        patch: ByteString(serde_json::to_vec(&patch).unwrap()),
    }
}

/// A JSON patch with everything at `spec` as it is to be.
fn json_patch(desired: &Value) -> Patch {
    let patch = json!([{ "op": "replace", "path": "/spec", "value": desired["spec"] }]);
    Patch {
        patch_type: "JSONPatch".to_owned(),
        patch: ByteString(serde_json::to_vec(&patch).unwrap()),
    }
}

/// An extension that can change everything, when it wants to. Each Machine takes it two looks.
pub(crate) fn extension(mood: Mood, updated: Updated, workload: Arc<OnceLock<kube::Client>>) -> Extension {
    let can = move |request: CanUpdateMachineSetRequest| {
        let mood = mood.0.load(Ordering::SeqCst);
        async move {
            if mood == Mood::BROKEN {
                return CanUpdateMachineSetResponse::failure("the inventory is down");
            }
            let mut answer = CanUpdateMachineSetResponse::success();
            if mood == Mood::ALL {
                let set = serde_json::to_value(&request.desired.machine_set).unwrap();
                answer.machine_set_patch = Some(whole(&set));
                answer.infrastructure_machine_template_patch =
                    Some(whole(&request.desired.infrastructure_machine_template));
                answer.bootstrap_config_template_patch = Some(whole(&request.desired.bootstrap_config_template));
            }
            answer
        }
    };
    let update = move |request: UpdateMachineRequest| {
        let machine = &request.desired.machine;
        let (name, version) = (machine.metadata.name.clone().unwrap(), machine.spec.version.clone());
        let is_new = updated.lock().unwrap().insert(name.clone(), request).is_none();
        let nodes = Api::<Node>::all(workload.get().unwrap().clone());
        async move {
            if is_new {
                return UpdateMachineResponse::blocked(1, "the kubelet restarts");
            }
            let patch = json!({ "status": { "nodeInfo": { "kubeletVersion": version } } });
            let sent = nodes
                .patch_status(&name, &PatchParams::default(), &ApiPatch::Merge(&patch))
                .await;
            sent.map_or_else(
                |error| UpdateMachineResponse::failure(error.to_string()),
                |_| UpdateMachineResponse::success(),
            )
        }
    };
    let can_one = |request: CanUpdateMachineRequest| async move {
        let mut answer = CanUpdateMachineResponse::success();
        let machine = serde_json::to_value(&request.desired.machine).unwrap();
        answer.machine_patch = Some(json_patch(&machine));
        answer.infrastructure_machine_patch = Some(json_patch(&request.desired.infrastructure_machine));
        answer.bootstrap_config_patch = Some(json_patch(&request.desired.bootstrap_config));
        answer
    };
    Extension::new()
        .handle(CanUpdateMachineSet, "can-update", can)
        .unwrap()
        .handle(CanUpdateMachine, "can-update-one", can_one)
        .unwrap()
        .handle(UpdateMachine, "update", update)
        .unwrap()
}

/// Templates of Machines of this size, and a MachineDeployment of three that refers to them.
fn workers(cluster: &str, size: &str, version: &str, strategy: &Value) -> [Value; 3] {
    let name = format!("md-{size}");
    let template = |group: &str, kind: &str, spec: Value| {
        json!({
            "apiVersion": format!("{group}/v1beta2"), "kind": kind,
            "metadata": { "name": name, "namespace": NAMESPACE },
            "spec": { "template": { "spec": spec } },
        })
    };
    let labels = json!({ "nodeRegistration": { "kubeletExtraArgs": [{ "name": "node-labels", "value": format!("size={size}") }] } });
    let delay = json!({ "startupDuration": if size == "small" { "0s" } else { "1s" } });
    [
        template(
            INFRASTRUCTURE,
            "DevMachineTemplate",
            json!({ "backend": { "inMemory": { "vm": { "provisioning": delay } } } }),
        ),
        template(
            BOOTSTRAP,
            "KubeadmConfigTemplate",
            json!({ "joinConfiguration": labels }),
        ),
        json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment",
            "metadata": { "name": "md", "namespace": NAMESPACE },
            "spec": {
                "clusterName": cluster, "replicas": 3, "selector": { "matchLabels": {} },
                "rollout": { "strategy": { "type": "RollingUpdate", "rollingUpdate": strategy } },
                "template": { "spec": {
                    "clusterName": cluster, "version": version,
                    "bootstrap": { "configRef": { "apiGroup": BOOTSTRAP, "kind": "KubeadmConfigTemplate", "name": name } },
                    "infrastructureRef": { "apiGroup": INFRASTRUCTURE, "kind": "DevMachineTemplate", "name": name },
                } },
            },
        }),
    ]
}

/// Waits until the deployment is complete, with one set.
async fn complete(env: &Env) -> MachineDeployment {
    let key = ObjectKey::new(NAMESPACE, "md");
    let is_complete = |found: &MachineDeployment| {
        let Some(status) = &found.status else { return false };
        let counts = [
            status.replicas,
            status.ready_replicas,
            status.available_replicas,
            status.up_to_date_replicas,
        ];
        counts.iter().all(|found| *found == Some(3)) && status.observed_generation == found.metadata.generation
    };
    let found = env.wait_for::<MachineDeployment>(&key, "complete", is_complete).await;
    let one = |all: &[MachineSet]| all.iter().filter(|set| is_of_deployment(set)).count() == 1;
    env.wait_all::<MachineSet>("one", one).await;
    found
}

/// Whether a set is one of the deployment, and none of the cluster's topology.
fn is_of_deployment(set: &MachineSet) -> bool {
    let labels = set.metadata.labels.as_ref().unwrap();
    labels.get("cluster.x-k8s.io/deployment-name").map(String::as_str) == Some("md")
}

fn message_of(deployment: &MachineDeployment, type_: &str) -> String {
    let all = deployment.status.iter().flat_map(|status| &status.conditions);
    let found = all.into_iter().find(|condition| condition.type_ == type_);
    found.map(|condition| condition.message.clone()).unwrap_or_default()
}

/// The uids of the worker Machines, by name.
async fn workers_of(env: &Env) -> BTreeMap<String, Machine> {
    let all = env.list::<Machine>().await.into_iter();
    all.filter(|machine| {
        machine
            .metadata
            .labels
            .as_ref()
            .unwrap()
            .contains_key("cluster.x-k8s.io/deployment-name")
    })
    .map(|machine| (machine.metadata.uid.clone().unwrap(), machine))
    .collect()
}

async fn site(name: &str) -> (Env, Served, Mood, Updated) {
    let env = Env::start().await;
    let (mood, updated, client) = (Mood::default(), Updated::default(), Arc::new(OnceLock::new()));
    let served = Served::start(extension(mood.clone(), Arc::clone(&updated), client.clone())).await;
    env.apply(&served.config("updater")).await;
    config(&env, "discovered", is_discovered).await;
    env.apply_yaml(CLASS).await;
    let cluster = ClusterOf::new(name, 1, 0);
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    client.set(workload(&env, &cluster).await).ok().unwrap();
    (env, served, mood, updated)
}

async fn apply(env: &Env, objects: &[Value]) {
    for object in objects {
        env.apply(object).await;
    }
}

fn has(metadata: &ObjectMeta, annotation: &str) -> bool {
    let all = metadata.annotations.as_ref();
    all.is_some_and(|all| all.contains_key(annotation))
}

/// No mark of an update is left anywhere.
async fn is_clean(env: &Env) {
    for object in env.all().await.into_values() {
        let text = serde_json::to_string(&object["metadata"]["annotations"]).unwrap();
        let kind = object["kind"].as_str().unwrap_or_default();
        let of_us = ["Machine", "MachineSet", "DevMachine", "KubeadmConfig"].contains(&kind);
        assert!(
            !of_us || !text.contains(MARKS) && !text.contains("pending-hooks"),
            "{object:#}"
        );
    }
}

// Rows 88, 107 to 111, 159 (SuccessfulStartInPlaceUpdate): every Machine stays, and becomes what a new one would be.
#[tokio::test]
async fn the_machines_of_a_deployment_are_updated_in_place() {
    let (env, _served, _, updated) = site("moved").await;
    let strategy = json!({ "maxSurge": 0, "maxUnavailable": 1 });
    apply(&env, &workers("moved", "small", "v1.35.0", &strategy)).await;
    complete(&env).await;
    let before = workers_of(&env).await;
    let life = env.record("MachineDeployment", "md").await;

    apply(&env, &workers("moved", "large", "v1.35.1", &strategy)).await;
    let found = complete(&env).await;
    let after = workers_of(&env).await;
    assert_eq!(
        before.keys().collect::<Vec<_>>(),
        after.keys().collect::<Vec<_>>(),
        "nothing is replaced"
    );
    let sets = env.list::<MachineSet>().await;
    let set = sets.iter().find(|set| is_of_deployment(set)).unwrap();
    for machine in after.values() {
        let (metadata, name) = (&machine.metadata, machine.metadata.name.clone().unwrap());
        assert_eq!(machine.spec.version.as_deref(), Some("v1.35.1"));
        let owners = metadata.owner_references.as_ref().unwrap();
        assert_eq!(owners.len(), 1, "{owners:?}");
        assert_eq!(owners[0].uid, *set.metadata.uid.as_ref().unwrap());
        let labels = metadata.labels.as_ref().unwrap();
        let hash = "machine-template-hash";
        assert_eq!(labels[hash], set.metadata.labels.as_ref().unwrap()[hash]);
        assert_eq!(
            labels["cluster.x-k8s.io/set-name"],
            *set.metadata.name.as_ref().unwrap()
        );
        for (kind, path, value) in [
            (
                "DevMachine",
                "/spec/backend/inMemory/vm/provisioning/startupDuration",
                json!("1s"),
            ),
            (
                "KubeadmConfig",
                "/spec/joinConfiguration/nodeRegistration/kubeletExtraArgs/0/value",
                json!("size=large"),
            ),
        ] {
            let object = serde_json::to_value(env.dynamic(kind).get(&name).await.unwrap()).unwrap();
            assert_eq!(object.pointer(path), Some(&value), "{object:#}");
            let metadata = &object["metadata"];
            assert_eq!(metadata["annotations"]["cluster.x-k8s.io/cloned-from-name"], "md-large");
            assert_eq!(metadata["labels"][hash], labels[hash].as_str());
            assert_eq!(metadata["ownerReferences"][0]["kind"], "Machine", "{metadata:#}");
        }
        let asked = updated.lock().unwrap()[&name].desired.clone();
        assert_eq!(asked.machine.spec.version.as_deref(), Some("v1.35.1"));
        assert_eq!(asked.infrastructure_machine["metadata"]["name"], name.as_str());
    }
    assert!(
        life.versions()
            .iter()
            .all(|version| version.status()["replicas"] != json!(4)
                && version.status()["availableReplicas"]
                    .as_i64()
                    .is_none_or(|available| available >= 2)),
        "never more than one at a time"
    );
    assert_eq!(found.status.unwrap().phase.as_deref(), Some("Running"));
    is_clean(&env).await;
    let events: Api<Event> = Api::namespaced(env.client().clone(), NAMESPACE);
    let events = events.list(&ListParams::default()).await.unwrap();
    let started: BTreeSet<_> = (events.items.into_iter())
        .filter(|event| event.reason.as_deref() == Some("SuccessfulStartInPlaceUpdate"))
        .filter_map(|event| event.involved_object.uid)
        .collect();
    assert_eq!(started, after.into_keys().collect());
    // At rest nothing is written.
    env.rest().await;
    let writes = env.writes_by_kind();
    env.prod("again").await;
    assert_eq!(writes, env.writes_by_kind());
    env.stop().await;
}

// Row 109: without a Machine that may be missing, one more is made first, and only one.
#[tokio::test]
async fn one_machine_is_made_when_none_may_be_missing() {
    let (env, _served, ..) = site("surge").await;
    let strategy = json!({ "maxSurge": 2, "maxUnavailable": 0 });
    apply(&env, &workers("surge", "small", "v1.35.0", &strategy)).await;
    complete(&env).await;
    let before = workers_of(&env).await;
    apply(&env, &workers("surge", "large", "v1.35.0", &strategy)).await;
    complete(&env).await;
    let after = workers_of(&env).await;
    let stayed = after.keys().filter(|uid| before.contains_key(*uid)).count();
    assert_eq!(stayed, 2);
    is_clean(&env).await;
    env.stop().await;
}

// Rows 107, 108 and the faults: an extension that fails, and one that can change nothing.
#[tokio::test]
async fn a_rollout_waits_for_an_extension_that_fails_and_replaces_what_it_cannot_update() {
    let (env, _served, mood, updated) = site("cannot").await;
    let strategy = json!({ "maxSurge": 1, "maxUnavailable": 0 });
    apply(&env, &workers("cannot", "small", "v1.35.0", &strategy)).await;
    complete(&env).await;
    let before = workers_of(&env).await;
    mood.set(Mood::BROKEN);
    apply(&env, &workers("cannot", "large", "v1.35.0", &strategy)).await;
    let key = ObjectKey::new(NAMESPACE, "md");
    let says = |found: &MachineDeployment| {
        let message = message_of(found, "RollingOut");
        message.contains("it cannot be told whether Machines of MachineSet md-")
            && message.contains("the inventory is down")
    };
    env.wait_for::<MachineDeployment>(&key, "waiting", says).await;
    assert_eq!(
        workers_of(&env).await.into_keys().collect::<Vec<_>>(),
        before.keys().cloned().collect::<Vec<_>>()
    );
    mood.set(Mood::NOTHING);
    complete(&env).await;
    let after = workers_of(&env).await;
    assert!(after.keys().all(|uid| !before.contains_key(uid)), "all are replaced");
    assert!(updated.lock().unwrap().is_empty());
    env.stop().await;
}

// Row 111, CL-082: every step can be the last one of a process.
#[tokio::test]
async fn an_update_goes_on_after_a_restart_in_every_step() {
    let (mut env, _served, ..) = site("again").await;
    let strategy = json!({ "maxSurge": 0, "maxUnavailable": 1 });
    apply(&env, &workers("again", "small", "v1.35.0", &strategy)).await;
    complete(&env).await;
    let before = workers_of(&env).await;
    apply(&env, &workers("again", "large", "v1.35.1", &strategy)).await;
    // Each wait begins where the process has ended, so no step passes unseen.
    for step in [MOVE_MACHINES_TO_MACHINE_SET, ACKNOWLEDGED_MOVE] {
        let sets = |all: &[MachineSet]| all.iter().any(|set| has(&set.metadata, step));
        env.wait_all::<MachineSet>(step, sets).await;
        env = env.restart().await;
    }
    for step in [PENDING_ACKNOWLEDGE_MOVE, PENDING_HOOKS] {
        let machines = |all: &[Machine]| all.iter().any(|machine| has(&machine.metadata, step));
        env.wait_all::<Machine>(step, machines).await;
        env = env.restart().await;
    }
    complete(&env).await;
    let after = workers_of(&env).await;
    assert_eq!(
        before.keys().collect::<Vec<_>>(),
        after.keys().collect::<Vec<_>>(),
        "nothing is replaced"
    );
    is_clean(&env).await;
    env.stop().await;
}

// Rows 111, 376: a control plane without room for one more Machine keeps its Machines, and etcd its members.
#[tokio::test]
async fn the_machines_of_a_control_plane_are_updated_in_place() {
    let env = Env::start().await;
    let client = Arc::new(OnceLock::new());
    let served = Served::start(extension(Mood::default(), Updated::default(), client.clone())).await;
    env.apply(&served.config("updater")).await;
    config(&env, "discovered", is_discovered).await;
    env.apply_yaml(CLASS).await;
    let cluster = ClusterOf::new("planes", 3, 0);
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    client.set(workload(&env, &cluster).await).ok().unwrap();
    let names = |machines: Vec<Machine>| -> BTreeMap<_, _> {
        machines
            .into_iter()
            .map(|machine| (machine.metadata.uid.clone(), machine))
            .collect()
    };
    let before = names(env.list().await);
    let plane = env.list::<KubeadmControlPlane>().await.remove(0).metadata.name.unwrap();
    let no_surge = json!({ "spec": { "rollout": { "strategy": { "rollingUpdate": { "maxSurge": 0 } } } } });
    env.merge("KubeadmControlPlane", &plane, &no_surge).await;

    let cluster = cluster.version("v1.35.1");
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    let after = names(env.list().await);
    assert_eq!(
        before.keys().collect::<Vec<_>>(),
        after.keys().collect::<Vec<_>>(),
        "nothing is replaced"
    );
    for machine in after.values() {
        assert_eq!(machine.spec.version.as_deref(), Some("v1.35.1"));
        let name = machine.metadata.name.clone().unwrap();
        let config = serde_json::to_value(env.dynamic("KubeadmConfig").get(&name).await.unwrap()).unwrap();
        assert!(
            config["spec"]["joinConfiguration"]["controlPlane"].is_object(),
            "{config:#}"
        );
        assert!(config["spec"].get("initConfiguration").is_none(), "{config:#}");
        assert_eq!(config["metadata"]["ownerReferences"][0]["kind"], "Machine");
    }
    is_clean(&env).await;
    env.rest().await;
    let writes = env.writes_by_kind();
    env.prod("again").await;
    assert_eq!(writes, env.writes_by_kind());
    env.stop().await;
}

/// Gives KubeadmConfigs and DevMachines the managers that Cluster API before v1.12 left: one that made the whole object, and another one that
/// applied labels and annotations.
async fn made_early(env: &Env) {
    for machine in env.list::<Machine>().await {
        let name = machine.metadata.name.unwrap();
        for kind in ["KubeadmConfig", "DevMachine"] {
            let object = serde_json::to_value(env.dynamic(kind).get(&name).await.unwrap()).unwrap();
            let mut managed = object["metadata"]["managedFields"].as_array().unwrap().clone();
            let of_control_plane = |entry: &&mut Value| entry["manager"] == "capi-kubeadmcontrolplane";
            let applied = managed.iter_mut().find(of_control_plane).unwrap();
            let mut made = applied.clone();
            made["manager"] = json!("manager");
            made["operation"] = json!("Update");
            assert!(applied["fieldsV1"].as_object_mut().unwrap().remove("f:spec").is_some());
            managed.push(made);
            let version = &object["metadata"]["resourceVersion"];
            let patch = json!({ "metadata": { "resourceVersion": version, "managedFields": managed } });
            env.merge(kind, &name, &patch).await;
        }
    }
}

#[tokio::test]
async fn a_field_of_an_object_that_an_early_release_made_is_removed() {
    let env = Env::start().await;
    let client = Arc::new(OnceLock::new());
    let served = Served::start(extension(Mood::default(), Updated::default(), client.clone())).await;
    env.apply(&served.config("updater")).await;
    config(&env, "discovered", is_discovered).await;
    let cluster = ByHand::new("early", 3, 0).managed();
    let apply = async |commands: Value| {
        for mut object in cluster.objects() {
            if object["kind"] == "KubeadmControlPlane" {
                object["spec"]["rollout"]["strategy"] =
                    json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 0 } });
                let settings = object["spec"]["kubeadmConfigSpec"].as_object_mut().unwrap();
                settings.extend(commands.as_object().unwrap().clone());
            }
            env.apply(&object).await;
        }
    };
    apply(json!({ "preKubeadmCommands": ["one"], "postKubeadmCommands": ["last"] })).await;
    cluster.wait_running(&env).await;
    client.set(workload(&env, cluster.shape()).await).ok().unwrap();
    let uids = async || -> BTreeSet<_> {
        let machines = env.list::<Machine>().await.into_iter();
        machines.map(|machine| machine.metadata.uid).collect()
    };
    let before = uids().await;
    made_early(&env).await;

    // The first update takes the specification over, and the second one takes a field out of it.
    for commands in [
        json!({ "preKubeadmCommands": ["two"], "postKubeadmCommands": ["last"] }),
        json!({ "preKubeadmCommands": ["two"] }),
    ] {
        apply(commands.clone()).await;
        for machine in env.list::<Machine>().await {
            let key = ObjectKey::new(NAMESPACE, machine.metadata.name.unwrap());
            let is_right = |config: &KubeadmConfig| {
                let config = serde_json::to_value(config).unwrap();
                let has = |field: &str| config["spec"][field] == commands[field];
                has("preKubeadmCommands") && has("postKubeadmCommands")
            };
            env.wait_for::<KubeadmConfig>(&key, "updated", is_right).await;
        }
        cluster.wait_running(&env).await;
    }
    assert_eq!(uids().await, before, "nothing is replaced");
    env.stop().await;
}
