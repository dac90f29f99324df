//! MachineSets of their own: preflight checks, interrupted creations, adoption, replacement.

use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass_api::core::{Cluster, Machine, MachineDeployment, MachineSet};
use windlass_api::kind::Conditioned as _;
use windlass_api_ext::infrastructure::DevMachineTemplate;
use windlass_api_kubeadm::controlplane::KubeadmControlPlane;
use windlass_testkit::faults::{Fault, Faults};

use crate::env::{Env, api, dev_machines, has, play, template};

fn set(name: &str, replicas: i32) -> Value {
    json!({
        "metadata": { "name": name, "labels": { "cluster.x-k8s.io/cluster-name": "c" } },
        "spec": { "clusterName": "c", "replicas": replicas, "selector": { "matchLabels": { "role": "w" } },
            "template": template() },
    })
}

fn available(all: &[MachineSet], replicas: i32) -> bool {
    all.iter().all(|set| {
        set.status
            .as_ref()
            .is_some_and(|status| status.available_replicas == Some(replicas))
    })
}

#[tokio::test]
async fn a_set_of_its_own_belongs_to_its_cluster() {
    let env = Env::start().await;
    env.create::<MachineSet>(set("s", 1)).await;
    let sets = env
        .until::<MachineSet>("a Machine is available", |all| available(all, 1))
        .await;
    assert_eq!(sets[0].owner_references()[0].kind, "Cluster");
    let templates = env.list::<DevMachineTemplate>().await;
    let infra = templates
        .iter()
        .find(|template| template.name_any() == "infra")
        .unwrap();
    assert_eq!(infra.owner_references()[0].kind, "Cluster");
}

#[tokio::test]
async fn an_interrupted_creation_is_completed() {
    let env = Env::empty().await;
    let made = env.create::<MachineSet>(set("s", 1)).await;
    // As if we had been stopped after the Machine.
    env.create::<Machine>(json!({
        "metadata": { "name": "s-half", "labels": { "role": "w", "cluster.x-k8s.io/cluster-name": "c" },
            "finalizers": ["machine.cluster.x-k8s.io"],
            "ownerReferences": [{ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineSet", "name": "s",
                "uid": made.uid(), "controller": true, "blockOwnerDeletion": true }] },
        "spec": { "clusterName": "c",
            "bootstrap": { "configRef": {
                "apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": "s-half" } },
            "infrastructureRef": {
                "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": "s-half" } },
    }))
    .await;
    env.run_controllers();
    let clones = env
        .until_in(&dev_machines(&env.client), "the DevMachine is there", |all| {
            !all.is_empty()
        })
        .await;
    assert_eq!((clones.len(), clones[0].name_any().as_str()), (1, "s-half"));
    assert_eq!(env.list::<Machine>().await.len(), 1);
}

/// A Cluster whose control plane is not there yet.
async fn before_its_control_plane() -> Env {
    let env = Env::empty().await;
    env.create::<KubeadmControlPlane>(json!({
        "metadata": { "name": "cp", "labels": { "cluster.x-k8s.io/cluster-name": "c" } },
        "spec": { "version": "v1.35.0", "replicas": 1,
            "machineTemplate": { "spec": { "infrastructureRef": {
                "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachineTemplate", "name": "infra" } } } },
    }))
    .await;
    let reference = json!({ "apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "cp" });
    env.patch::<Cluster>("c", json!({ "spec": { "controlPlaneRef": reference } }))
        .await;
    env
}

// Row 80: the option of the manager.
#[tokio::test]
async fn only_the_checks_of_the_manager_keep_machines_from_being_made() {
    let env = before_its_control_plane().await;
    env.run_with_checks("KubeadmVersionSkew,KubernetesVersionSkew".parse().unwrap());
    env.run_machines();
    env.create::<MachineSet>(set("s", 1)).await;
    env.until::<MachineSet>("a Machine is available", |all| available(all, 1))
        .await;
}

#[tokio::test]
async fn machines_wait_for_the_control_plane() {
    let env = before_its_control_plane().await;
    env.run_controllers();
    env.run_machines();
    env.create::<MachineSet>(set("s", 1)).await;
    let message = "Scaling up from 0 to 1 replicas is blocked because:\n* KubeadmControlPlane default/cp is provisioning (\"ControlPlaneIsStable\" preflight check failed)";
    env.until::<MachineSet>("it says what it waits for", |all| {
        all.iter()
            .flat_map(windlass_api::kind::Conditioned::conditions)
            .any(|have| have.type_ == "ScalingUp" && have.message == message)
    })
    .await;
    assert_eq!(env.list::<Machine>().await.len(), 0);
    let status = json!({ "status": { "versions": [{ "version": "v1.35.0", "replicas": 1 }] } });
    let planes = api::<KubeadmControlPlane>(&env.client);
    planes
        .patch_status("cp", &PatchParams::default(), &Patch::Merge(&status))
        .await
        .unwrap();
    env.until::<MachineSet>("a Machine is available", |all| available(all, 1))
        .await;
}

#[tokio::test]
async fn a_machine_without_a_controller_is_adopted() {
    let env = Env::start().await;
    env.create::<Machine>(json!({
        "metadata": { "name": "orphan", "labels": { "role": "w", "cluster.x-k8s.io/cluster-name": "c" } },
        "spec": { "clusterName": "c", "bootstrap": { "dataSecretName": "data" },
            "infrastructureRef": {
                "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": "orphan" } },
    }))
    .await;
    env.create::<MachineSet>(set("s", 1)).await;
    let machines = env
        .until::<Machine>("it is adopted", |all| {
            all.iter().all(|machine| !machine.owner_references().is_empty())
        })
        .await;
    assert_eq!((machines.len(), machines[0].name_any().as_str()), (1, "orphan"));
    assert_eq!(machines[0].owner_references()[0].kind, "MachineSet");
}

/// A Machine that a user made, with an infrastructure machine of another name.
async fn machine_of_a_user(env: &Env, name: &str, more: Value) {
    let mut spec = json!({ "clusterName": "c", "bootstrap": { "dataSecretName": "data" } });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    env.create::<Machine>(json!({
        "metadata": { "name": name, "labels": { "role": "w", "cluster.x-k8s.io/cluster-name": "c" } },
        "spec": spec,
    }))
    .await;
}

#[tokio::test]
async fn what_a_machine_of_a_user_or_of_a_backup_refers_to_is_not_made() {
    let env = Env::empty().await;
    env.run_controllers();
    let reference =
        |name: &str| json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": name });
    machine_of_a_user(&env, "byhand", json!({ "infrastructureRef": reference("vm-a") })).await;
    let restored = json!({ "infrastructureRef": reference("restored"), "providerID": "dev:////restored" });
    machine_of_a_user(&env, "restored", restored).await;
    env.create::<MachineSet>(set("s", 3)).await;
    env.until::<Machine>("all belong to the set", |all| {
        all.len() == 3 && all.iter().all(|machine| !machine.owner_references().is_empty())
    })
    .await;
    env.silence().await;
    let made: Vec<String> = dev_machines(&env.client)
        .list(&kube::api::ListParams::default())
        .await
        .unwrap()
        .iter()
        .map(kube::ResourceExt::name_any)
        .collect();
    assert_eq!(made.len(), 1, "{made:?}");
    assert!(made[0].starts_with("s-"), "{made:?}");
}

/// A set makes some Machines at a time: it goes on until all are there, and a number that was a mistake is taken back.
#[tokio::test]
async fn any_number_of_replicas_is_made_in_steps() {
    let env = Env::start().await;
    env.create::<MachineSet>(set("s", 1_000_000)).await;
    env.until::<Machine>("there are some Machines", |all| all.len() > 60)
        .await;
    env.patch::<MachineSet>("s", json!({ "spec": { "replicas": 2 } })).await;
    env.until::<Machine>("there are two Machines", |all| all.len() == 2)
        .await;
}

#[tokio::test]
async fn a_machine_on_its_way_out_is_adopted_and_counts_until_it_is_gone() {
    let env = Env::empty().await;
    env.create::<Machine>(json!({
        "metadata": { "name": "orphan", "finalizers": ["example.com/hold"],
            "labels": { "role": "w", "cluster.x-k8s.io/cluster-name": "c" } },
        "spec": { "clusterName": "c", "bootstrap": { "dataSecretName": "data" },
            "infrastructureRef": {
                "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": "orphan" } },
    }))
    .await;
    let machines: Api<Machine> = api(&env.client);
    machines.delete("orphan", &DeleteParams::default()).await.unwrap();
    env.create::<MachineSet>(set("s", 1)).await;
    env.run_controllers();
    env.until::<Machine>("it is adopted", |all| {
        all.iter().all(|machine| !machine.owner_references().is_empty())
    })
    .await;
    env.quiet().await;
    assert_eq!(env.list::<Machine>().await.len(), 1, "nothing is made beside it");
    env.patch::<Machine>("orphan", json!({ "metadata": { "finalizers": null } }))
        .await;
    env.until::<Machine>("it is replaced", |all| all.len() == 1 && all[0].name_any() != "orphan")
        .await;
}

/// A MachineSet with this number of replicas and healthy Machines `a`, `b` and so on. No controller runs yet.
async fn healthy(env: &Env, replicas: i32, machines: &[&str]) {
    let made = env.create::<MachineSet>(set("s", replicas)).await;
    for name in machines {
        let machine = env
            .create::<Machine>(json!({
                "metadata": { "name": name, "finalizers": ["example.com/hold"],
                    "labels": { "role": "w", "cluster.x-k8s.io/cluster-name": "c" },
                    "ownerReferences": [{ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineSet", "name": "s",
                        "uid": made.uid(), "controller": true, "blockOwnerDeletion": true }] },
                "spec": member(name),
            }))
            .await;
        play(&api(&env.client), &machine).await;
    }
}

/// A Machine of that MachineSet that has lost its owner reference.
async fn orphan(env: &Env, name: &str, annotations: Value) {
    env.create::<Machine>(json!({
        "metadata": { "name": name, "finalizers": ["example.com/hold"], "annotations": annotations,
            "labels": { "role": "w", "cluster.x-k8s.io/cluster-name": "c" } },
        "spec": member(name),
    }))
    .await;
}

fn member(name: &str) -> Value {
    json!({ "clusterName": "c", "bootstrap": { "dataSecretName": "data" }, "providerID": format!("dev:////{name}"),
        "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": name } })
}

/// The Machines that are not being deleted.
async fn staying(env: &Env) -> Vec<String> {
    let mut all = env.list::<Machine>().await;
    all.retain(|machine| machine.metadata.deletion_timestamp.is_none());
    all.iter().map(kube::ResourceExt::name_any).collect()
}

fn is_adopted(all: &[Machine], name: &str) -> bool {
    let mut all = all.iter();
    all.any(|machine| machine.name_any() == name && !machine.owner_references().is_empty())
}

#[tokio::test]
async fn an_adopted_machine_on_its_way_out_costs_no_healthy_one() {
    let env = Env::empty().await;
    healthy(&env, 3, &["a", "b", "c"]).await;
    orphan(&env, "z", json!({})).await;
    let machines: Api<Machine> = api(&env.client);
    machines.delete("z", &DeleteParams::default()).await.unwrap();
    env.run_controllers();
    env.until::<Machine>("it is adopted", |all| is_adopted(all, "z")).await;
    env.silence().await;
    assert_eq!(staying(&env).await, ["a", "b", "c"]);
}

#[tokio::test]
async fn an_adopted_machine_that_is_marked_to_go_first_goes_first() {
    let env = Env::empty().await;
    healthy(&env, 3, &["a", "b", "c"]).await;
    orphan(&env, "z", json!({ "cluster.x-k8s.io/delete-machine": "" })).await;
    env.run_controllers();
    env.until::<Machine>("it goes", |all| {
        all.iter()
            .any(|machine| machine.name_any() == "z" && machine.metadata.deletion_timestamp.is_some())
    })
    .await;
    env.silence().await;
    assert_eq!(staying(&env).await, ["a", "b", "c"]);
}

#[tokio::test]
async fn a_machine_that_cannot_be_adopted_costs_no_healthy_one() {
    let faults =
        Faults::when(|seen| (seen.is_write() && seen.path.contains("/machines/z?")).then_some(Fault::Refused(403)));
    let env = Env::with(&faults).await;
    healthy(&env, 3, &["a", "b", "c", "d"]).await;
    orphan(&env, "z", json!({})).await;
    env.run_controllers();
    env.until::<Machine>("one is deleted", |all| {
        all.iter().any(|machine| machine.metadata.deletion_timestamp.is_some())
    })
    .await;
    env.silence().await;
    assert_eq!(staying(&env).await, ["b", "c", "d", "z"]);
    assert!(!faults.injected().is_empty());
    env.event("s", "FailedAdopt", "Failed to adopt Machine \"z\": ").await;
}

#[tokio::test]
async fn a_machine_on_its_way_out_is_none_of_the_replicas_that_are_left_out() {
    let env = Env::empty().await;
    healthy(&env, 1, &["a"]).await;
    let bounds = json!({
        "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size": "1",
        "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size": "5",
    });
    let patch = json!({ "metadata": { "annotations": bounds }, "spec": { "replicas": null } });
    env.patch::<MachineSet>("s", patch).await;
    orphan(&env, "z", json!({})).await;
    let machines: Api<Machine> = api(&env.client);
    machines.delete("z", &DeleteParams::default()).await.unwrap();
    env.run_controllers();
    let sets = env
        .until::<MachineSet>("it has replicas", |all| {
            all.iter().all(|set| set.spec.replicas.is_some())
        })
        .await;
    assert_eq!(sets[0].spec.replicas, Some(1));
}

#[tokio::test]
async fn a_machine_that_is_said_to_be_unhealthy_is_replaced() {
    let env = Env::start().await;
    env.create::<MachineSet>(set("s", 2)).await;
    env.until::<MachineSet>("two Machines are available", |all| available(all, 2))
        .await;
    let sick = env.list::<Machine>().await[0].clone();
    let condition = |type_: &str| {
        json!({ "type": type_, "status": "False", "reason": "R", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z" })
    };
    let status = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": { "name": sick.name_any() },
        "status": { "conditions": [condition("HealthCheckSucceeded"), condition("OwnerRemediated")] },
    });
    let params = PatchParams::apply("judge").force();
    api::<Machine>(&env.client)
        .patch_status(&sick.name_any(), &params, &Patch::Apply(&status))
        .await
        .unwrap();
    let machines = env
        .until::<Machine>("it is replaced", |all| {
            all.len() == 2
                && all
                    .iter()
                    .all(|machine| machine.uid() != sick.uid() && has(machine, "Available", "True"))
        })
        .await;
    assert!(
        machines
            .iter()
            .all(|machine| machine.conditions().iter().all(|have| have.type_ != "OwnerRemediated"))
    );
}

// Row 78: objects that Cluster API before v1.12 has made, with an update by the field manager of Go programs.
#[tokio::test]
async fn labels_that_leave_a_template_leave_objects_of_earlier_releases() {
    let env = Env::empty().await;
    let mut owner = set("s", 1);
    owner["spec"]["template"]["metadata"]["labels"]["team"] = json!("a");
    let owner = env.create::<MachineSet>(owner).await;
    let labels = json!({ "cluster.x-k8s.io/cluster-name": "c", "role": "w", "team": "a" });
    let machine = env
        .create::<Machine>(json!({
            "metadata": { "name": "s-old", "labels": labels, "ownerReferences": [{
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineSet", "name": "s",
                "uid": owner.metadata.uid, "controller": true, "blockOwnerDeletion": true }] },
            "spec": {
                "clusterName": "c", "version": "v1.35.0",
                "bootstrap": { "dataSecretName": "data" },
                "infrastructureRef": {
                    "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": "s-old" } },
        }))
        .await;
    let made = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DevMachine",
        "metadata": { "name": "s-old", "labels": labels, "ownerReferences": [{
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": "s-old",
            "uid": machine.metadata.uid, "controller": true, "blockOwnerDeletion": true }] },
        "spec": { "backend": { "inMemory": {} } },
    });
    let by = PostParams {
        field_manager: Some("manager".to_owned()),
        ..PostParams::default()
    };
    let dev_machines = dev_machines(&env.client);
    dev_machines
        .create(&by, &serde_json::from_value(made).unwrap())
        .await
        .unwrap();
    env.run_controllers();
    let label = |object: &DynamicObject, key: &str| object.labels().get(key).cloned();
    env.until_in(&dev_machines, "it has the labels of its set", |all| {
        all.iter().any(|one| label(one, "cluster.x-k8s.io/set-name").is_some())
    })
    .await;
    let patch = json!({ "spec": { "template": { "metadata": { "labels": { "team": null } } } } });
    env.patch::<MachineSet>("s", patch).await;
    let all = env
        .until_in(&dev_machines, "the label is gone", |all| {
            all.iter().all(|one| label(one, "team").is_none())
        })
        .await;
    assert_eq!(label(&all[0], "role").as_deref(), Some("w"));
}

// A set of a MachineDeployment that is gone, or whose reference to it was lost, has no other owner than its Cluster.
#[tokio::test]
async fn a_cluster_takes_sets_without_an_owner_with_it() {
    let env = Env::empty().await;
    env.run_controllers();
    let mut lost = set("s", 1);
    lost["metadata"]["labels"]["cluster.x-k8s.io/deployment-name"] = json!("gone");
    env.create::<MachineSet>(lost).await;
    env.run_clusters_and_machines();
    env.until::<Machine>("it has a Machine", |all| all.len() == 1).await;
    assert_eq!(env.list::<MachineSet>().await[0].owner_references(), []);
    // A Cluster that its controller has not seen goes at once.
    let is_kept = |all: &[Cluster]| all.iter().all(|cluster| !cluster.finalizers().is_empty());
    env.until::<Cluster>("it has its finalizer", is_kept).await;
    let clusters = api::<Cluster>(&env.client);
    clusters.delete("c", &DeleteParams::default()).await.unwrap();
    env.until::<MachineSet>("the set goes", <[_]>::is_empty).await;
    env.until::<Cluster>("the Cluster goes", <[_]>::is_empty).await;
}

// UpToDate compares the set with its MachineDeployment, and comes with the set's reference to it.
#[tokio::test]
async fn machines_of_an_adopted_set_are_compared_with_its_deployment() {
    let env = Env::empty().await;
    let reference = |kind: &str, name: &str, uid: Option<String>| json!([{ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind, "name": name, "uid": uid, "controller": true }]);
    let mut lost = set("s", 1);
    lost["metadata"]["labels"]["cluster.x-k8s.io/deployment-name"] = json!("md");
    let lost = env.create::<MachineSet>(lost).await;
    env.deployment(1).await;
    let deployment = env.list::<MachineDeployment>().await.remove(0);
    let mut machine = template();
    machine["metadata"] = json!({ "name": "m", "labels": { "role": "w", "cluster.x-k8s.io/cluster-name": "c" },
        "ownerReferences": reference("MachineSet", "s", lost.uid()) });
    env.create::<Machine>(machine).await;
    env.run_clusters_and_machines();
    let says = |all: &[Machine], status: &str, type_: &str| all.iter().any(|machine| has(machine, type_, status));
    env.until::<Machine>("it was looked at", |all| says(all, "False", "Ready"))
        .await;
    env.quiet().await;
    assert!(!says(&env.list::<Machine>().await, "True", "UpToDate"));
    let owners = reference("MachineDeployment", &deployment.name_any(), deployment.uid());
    env.patch::<MachineSet>("s", json!({ "metadata": { "ownerReferences": owners } }))
        .await;
    env.until::<Machine>("it is up to date", |all| says(all, "True", "UpToDate"))
        .await;
}
