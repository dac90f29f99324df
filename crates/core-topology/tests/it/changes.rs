//! Changes of class and topology: what is changed in place, what is replaced, and what stays.

use std::collections::BTreeMap;

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::env::{Env, cluster, condition, documents, example, founding_cluster, name};

const BIG: &str = "big-pool-of-machines-1";
const SMALL: &str = "small-pool-of-machines-1";
const WINDOWS: &str = "microsoft-1";
const MADE: [&str; 6] = [
    "VSphereCluster",
    "KubeadmControlPlane",
    "VSphereMachineTemplate",
    "KubeadmConfigTemplate",
    "MachineDeployment",
    "MachineHealthCheck",
];

/// The uids of everything that was made for a Cluster, by kind and name.
async fn made(env: &Env, cluster: &str) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for kind in MADE {
        for object in env.generated(kind).await {
            if object["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"] == cluster {
                all.insert(format!("{kind}/{}", name(&object)), object["metadata"]["uid"].clone());
            }
        }
    }
    all
}

/// The kinds of objects that went, and of those that came; both sorted.
fn exchanged(before: &BTreeMap<String, Value>, after: &BTreeMap<String, Value>) -> (Vec<String>, Vec<String>) {
    let only = |some: &BTreeMap<String, Value>, others: &BTreeMap<String, Value>| {
        let only = some.iter().filter(|(name, uid)| others.get(*name) != Some(*uid));
        only.map(|(name, _)| name.split('/').next().unwrap().to_owned())
            .collect()
    };
    (only(before, after), only(after, before))
}

/// As many templates of Machines that went, and that came. Those of worker sets stay here, as no MachineSet ends.
fn templates(gone: usize, come: usize) -> (Vec<String>, Vec<String>) {
    let kinds = |n| vec!["VSphereMachineTemplate".to_owned(); n];
    (kinds(gone), kinds(come))
}

/// A copy of a template of the class under another name.
async fn copy(env: &Env, kind: &str, of: &str, as_name: &str, change: impl FnOnce(&mut Value)) {
    let mut template = documents(crate::env::VSPHERE)
        .into_iter()
        .find(|object| object["kind"] == kind && name(object) == of)
        .unwrap();
    template["metadata"]["name"] = as_name.into();
    change(&mut template["spec"]["template"]["spec"]);
    env.apply(template).await;
}

/// Changes the class, and waits until its controller has seen it.
async fn change_class(env: &Env, change: impl FnOnce(&mut Value)) {
    let mut class = env.get("ClusterClass", "mixed").await.unwrap();
    change(&mut class["spec"]);
    env.merge("ClusterClass", "mixed", json!({"spec": class["spec"]})).await;
}

async fn json_patch(env: &Env, patch: Value) {
    let patch: Patch<Value> = Patch::Json(serde_json::from_value(patch).unwrap());
    let api = env.api("Cluster");
    api.patch("foo", &PatchParams::default(), &patch).await.unwrap();
}

fn two() -> Value {
    let mut two = cluster();
    two["metadata"]["name"] = "two".into();
    two["spec"]["topology"]["workers"]["machineDeployments"] =
        json!([{"class": "linux-worker", "name": "md", "replicas": 2}]);
    two
}

async fn start() -> Env {
    let env = Env::start().await;
    env.apply_example().await;
    env.apply(two()).await;
    env.wait("the other Cluster", async || {
        let two = env.get("Cluster", "two").await?;
        (condition(&two, "TopologyReconciled")?["status"] == "True").then_some(())
    })
    .await;
    env
}

fn control_plane_of(all: &[Value], cluster: &str) -> Value {
    let is_of = |object: &&Value| object["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"] == cluster;
    all.iter().find(is_of).unwrap().clone()
}

/// Names another template for the Machines of the control plane and of Linux workers.
fn machines_of_class(name: &str) -> impl FnOnce(&mut Value) {
    let name = name.to_owned();
    move |spec| {
        spec["controlPlane"]["machineInfrastructure"]["templateRef"]["name"] = name.as_str().into();
        spec["workers"]["machineDeployments"][0]["infrastructure"]["templateRef"]["name"] = name.into();
    }
}

/// Control plane and infrastructure.
async fn changes_in_place(env: &Env, of_first: &Value, two: &Value) {
    // The control plane, in place: fields that come, and go again; those of others stay.
    let by_hand = json!({"metadata": {"labels": {"by": "hand"}}, "spec": {"kubeadmConfigSpec": {"verbosity": 4}}});
    env.merge("KubeadmControlPlane", name(of_first), by_hand).await;
    let kind = "KubeadmControlPlaneTemplate";
    let arguments = json!([{"name": "v", "value": "4"}]);
    copy(env, kind, "vsphere-prod-cluster-template-kcp", "other-kcp", |spec| {
        spec["kubeadmConfigSpec"] = json!({"clusterConfiguration": {"apiServer": {"extraArgs": arguments}}});
    })
    .await;
    change_class(env, |spec| {
        spec["controlPlane"]["templateRef"]["name"] = "other-kcp".into();
    })
    .await;
    for control_plane in [of_first, two] {
        let expected = json!({
            "metadata": {"annotations": {"cluster.x-k8s.io/cloned-from-name": "other-kcp"}},
            "spec": {"kubeadmConfigSpec": {"preKubeadmCommands": null,
                "clusterConfiguration": {"apiServer": {"extraArgs": arguments}}}},
        });
        env.becomes(kind.trim_end_matches("Template"), name(control_plane), expected)
            .await;
    }
    let kept = env.get("KubeadmControlPlane", name(of_first)).await.unwrap();
    assert_eq!(
        (
            &kept["metadata"]["labels"]["by"],
            &kept["spec"]["kubeadmConfigSpec"]["verbosity"]
        ),
        (&json!("hand"), &json!(4))
    );

    // The infrastructure, in place.
    let kind = "VSphereClusterTemplate";
    copy(env, kind, "vsphere-prod-cluster-template", "other", |spec| {
        spec["thumbprint"] = "AA".into();
    })
    .await;
    change_class(env, |spec| {
        spec["infrastructure"]["templateRef"]["name"] = "other".into();
    })
    .await;
    for infrastructure in env.generated("VSphereCluster").await {
        env.becomes(
            "VSphereCluster",
            name(&infrastructure),
            json!({"spec": {"thumbprint": "AA"}}),
        )
        .await;
    }
}

type Made = BTreeMap<String, Value>;

/// Templates of Machines that change.
async fn are_replaced(env: &Env, first: &(Made, Made), control_plane: &str) {
    // Templates of another content are replaced, and nothing else.
    copy(
        env,
        "VSphereMachineTemplate",
        "linux-vsphere-template",
        "larger",
        |spec| spec["numCPUs"] = 16.into(),
    )
    .await;
    change_class(env, machines_of_class("larger")).await;
    env.wait("the replaced templates", async || {
        let one = exchanged(&first.0, &made(env, "foo").await);
        let two = exchanged(&first.1, &made(env, "two").await);
        (one == templates(1, 3) && two == templates(1, 2)).then_some(())
    })
    .await;
    let kept = env.get("KubeadmControlPlane", control_plane).await.unwrap();
    let template = &kept["spec"]["machineTemplate"]["spec"]["infrastructureRef"]["name"];
    let template = env
        .get("VSphereMachineTemplate", template.as_str().unwrap())
        .await
        .unwrap();
    assert_eq!(template["spec"]["template"]["spec"]["numCPUs"], 16);
    // The same change within the template.
    let second = made(env, "two").await;
    env.merge(
        "VSphereMachineTemplate",
        "larger",
        json!({"spec": {"template": {"spec": {"numCPUs": 32}}}}),
    )
    .await;
    env.wait("the templates replaced once more", async || {
        (exchanged(&second, &made(env, "two").await) == templates(1, 2)).then_some(())
    })
    .await;
    // The same change by a patch gives the same object.
    let third = made(env, "two").await;
    change_class(env, |spec| {
        spec["patches"] = json!([{"name": "cpus", "definitions": [{
            "selector": {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "VSphereMachineTemplate",
                "matchResources": {"machineDeploymentClass": {"names": ["linux-worker"]}}},
            "jsonPatches": [{"op": "replace", "path": "/spec/template/spec/numCPUs", "value": 64}],
        }]}]);
    })
    .await;
    env.wait("the template of the workers replaced by a patch", async || {
        (exchanged(&third, &made(env, "two").await) == templates(0, 1)).then_some(())
    })
    .await;
}

// TO-002, TO-035, TO-066, TO-067, TO-174, TO-195, TO-202, TO-236, TO-260, TO-261, TO-263, TO-264, TO-291, TO-293, TO-297, TO-298, TO-299, TO-320,
// TO-356, TO-359, TO-361, TO-367, TO-368, TO-369: field by field of the class, with two Clusters that it is used by.
#[tokio::test]
async fn a_change_of_the_class_reaches_all_of_its_clusters() {
    let env = start().await;
    let first = (made(&env, "foo").await, made(&env, "two").await);
    let control_planes = env.generated("KubeadmControlPlane").await;
    let (foo, two) = (
        control_plane_of(&control_planes, "foo"),
        control_plane_of(&control_planes, "two"),
    );

    changes_in_place(&env, &foo, &two).await;

    // Labels, and what Machines have of their own without a rollout.
    change_class(&env, |spec| {
        spec["controlPlane"]["metadata"] = json!({"labels": {"team": "a"}});
        let worker = &mut spec["workers"]["machineDeployments"][0];
        worker["metadata"] = json!({"labels": {"team": "a"}});
        worker["minReadySeconds"] = 9.into();
        worker["deletion"] = json!({"nodeDrainTimeoutSeconds": 60});
    })
    .await;
    for entry in [BIG, SMALL, "md"] {
        let deployment = env.deployment(entry).await;
        let expected = json!({
            "metadata": {"labels": {"team": "a"}},
            "spec": {"template": {"metadata": {"labels": {"team": "a"}},
                "spec": {"minReadySeconds": 9, "deletion": {"nodeDrainTimeoutSeconds": 60}}}},
        });
        env.becomes("MachineDeployment", name(&deployment), expected).await;
    }
    // A template of the same content, for control plane and workers, in place.
    copy(&env, "VSphereMachineTemplate", "linux-vsphere-template", "same", |_| {}).await;
    change_class(&env, machines_of_class("same")).await;
    env.wait("copies that are from the other template", async || {
        let all = env.generated("VSphereMachineTemplate").await;
        let from = |one: &&Value| one["metadata"]["annotations"]["cluster.x-k8s.io/cloned-from-name"] == "same";
        (all.iter().filter(from).count() == 5).then_some(())
    })
    .await;
    // A worker class that no one uses.
    change_class(&env, |spec| {
        let mut another = spec["workers"]["machineDeployments"][1].clone();
        another["class"] = "another".into();
        spec["workers"]["machineDeployments"]
            .as_array_mut()
            .unwrap()
            .push(another);
    })
    .await;
    env.merge(
        "Cluster",
        "foo",
        json!({"spec": {"availabilityGates": [{"conditionType": "seen"}]}}),
    )
    .await;
    env.reconciled("ReconcileSucceeded").await;
    assert_eq!(
        (made(&env, "foo").await, made(&env, "two").await),
        first,
        "all of it was done in place"
    );

    are_replaced(&env, &first, name(&foo)).await;
    let events = env.list("Event").await;
    for reason in ["TopologyCreate", "TopologyUpdate", "TopologyDelete"] {
        assert!(
            events
                .iter()
                .any(|event| event["reason"] == reason && event["involvedObject"]["kind"] == "Cluster"),
            "{reason}"
        );
    }
    env.stop().await;
}

// TO-043, TO-055, TO-195, TO-227, TO-228, TO-234, TO-262, TO-290, TO-358, TO-372, TO-373, TO-374
#[tokio::test]
async fn worker_sets_are_scaled_added_renamed_and_removed_and_the_class_is_changed() {
    let env = Env::start().await;
    env.apply_example().await;
    let replicas = |entry: &'static str, n: u32| (entry, json!({"spec": {"replicas": n}}));
    json_patch(
        &env,
        json!([
            {"op": "replace", "path": "/spec/topology/workers/machineDeployments/0/replicas", "value": 6},
            {"op": "replace", "path": "/spec/topology/workers/machineDeployments/1/replicas", "value": 2},
            {"op": "replace", "path": "/spec/topology/workers/machineDeployments/2/replicas", "value": 4},
            {"op": "replace", "path": "/spec/topology/controlPlane/replicas", "value": 5},
        ]),
    )
    .await;
    for (entry, expected) in [replicas(BIG, 6), replicas(SMALL, 2), replicas(WINDOWS, 4)] {
        env.becomes("MachineDeployment", name(&env.deployment(entry).await), expected)
            .await;
    }
    let control_plane = env.generated("KubeadmControlPlane").await.remove(0);
    env.becomes(
        "KubeadmControlPlane",
        name(&control_plane),
        json!({"spec": {"replicas": 5}}),
    )
    .await;
    json_patch(
        &env,
        json!([{"op": "add", "path": "/spec/topology/workers/machineDeployments/-",
            "value": {"class": "linux-worker", "name": "second", "replicas": 1}}]),
    )
    .await;
    env.wait("the added worker set", async || {
        env.of_entry("MachineDeployment", "second").await.pop()
    })
    .await;
    // Another name is another worker set.
    json_patch(
        &env,
        json!([{"op": "replace", "path": "/spec/topology/workers/machineDeployments/3/name", "value": "third"}]),
    )
    .await;
    env.wait("the renamed worker set", async || {
        let old = env.of_entry("MachineDeployment", "second").await;
        let is_going = old.iter().all(|one| !one["metadata"]["deletionTimestamp"].is_null());
        let checks = env.list("MachineHealthCheck").await.len();
        (is_going && checks == 5 && !env.of_entry("MachineDeployment", "third").await.is_empty()).then_some(())
    })
    .await;
    env.reconciled("ReconcileSucceeded").await;

    // A class of the same content under another name changes no object.
    let before = made(&env, "foo").await;
    let mut class = example(|class| class["metadata"]["name"] = "copy".into())
        .pop()
        .unwrap();
    class["spec"]["workers"]["machineDeployments"]
        .as_array_mut()
        .unwrap()
        .reverse();
    env.apply(class).await;
    env.wait("the other class", async || {
        let class = env.get("ClusterClass", "copy").await?;
        (class["status"]["observedGeneration"] == class["metadata"]["generation"]).then_some(())
    })
    .await;
    json_patch(
        &env,
        json!([{"op": "replace", "path": "/spec/topology/classRef/name", "value": "copy"}]),
    )
    .await;
    let cluster = env.reconciled("ReconcileSucceeded").await;
    assert_eq!(made(&env, "foo").await, before);
    // What the controller owns of the Cluster.
    let managers = cluster["metadata"]["managedFields"].as_array().unwrap();
    let mut owned: Vec<String> = Vec::new();
    for entry in managers.iter().filter(|entry| {
        let manager = entry["manager"].as_str().unwrap();
        entry["subresource"].is_null() && manager.starts_with("capi-")
    }) {
        let keys = |value: &Value| {
            value
                .as_object()
                .into_iter()
                .flatten()
                .map(|(key, _)| key.clone())
                .collect::<Vec<_>>()
        };
        owned.extend(keys(&entry["fieldsV1"]["f:metadata"]["f:labels"]));
        owned.extend(keys(&entry["fieldsV1"]["f:spec"]));
    }
    owned.retain(|key| key != ".");
    owned.sort();
    owned.dedup();
    assert_eq!(
        owned,
        [
            "f:cluster.x-k8s.io/cluster-name",
            "f:controlPlaneRef",
            "f:infrastructureRef",
            "f:topology.cluster.x-k8s.io/owned"
        ]
    );
    env.stop().await;
}

// TO-068, TO-200, TO-242, TO-318, TO-362: what cannot be seen at admission is named on the Cluster, and changes nothing.
#[tokio::test]
async fn objects_of_others_and_refused_changes_are_named() {
    let env = Env::start().await;
    env.apply_example().await;
    let says = async |cluster: &str, part: &str| {
        env.wait(&format!("a message with {part:?}"), async || {
            let found = env.get("Cluster", cluster).await?;
            let found = condition(&found, "TopologyReconciled")?;
            (found["status"] == "False" && found["message"].as_str()?.contains(part)).then_some(())
        })
        .await;
    };
    // The webhook of the control plane refuses some changes, whose words are shown.
    let control_plane = env.generated("KubeadmControlPlane").await.remove(0);
    let template = "vsphere-prod-cluster-template-kcp";
    copy(&env, "KubeadmControlPlaneTemplate", template, "other", |spec| {
        spec["kubeadmConfigSpec"]["clusterConfiguration"] = json!({"certificatesDir": "/elsewhere"});
    })
    .await;
    change_class(&env, |spec| {
        spec["controlPlane"]["templateRef"]["name"] = "other".into();
    })
    .await;
    says("foo", "cannot be modified").await;
    let kept = env.get("KubeadmControlPlane", name(&control_plane)).await.unwrap();
    assert_eq!(kept["spec"], control_plane["spec"]);
    change_class(&env, |spec| {
        spec["controlPlane"]["templateRef"]["name"] = template.into();
    })
    .await;
    env.wait("the end of the refusal", async || {
        let cluster = env.get("Cluster", "foo").await?;
        (condition(&cluster, "TopologyReconciled")?["status"] == "True").then_some(())
    })
    .await;

    // An object without the label is not ours.
    let owned = |label: Value| json!({"metadata": {"labels": {"topology.cluster.x-k8s.io/owned": label}}});
    env.merge("KubeadmControlPlane", name(&control_plane), owned(Value::Null))
        .await;
    says("foo", "not topology owned").await;
    env.merge("KubeadmControlPlane", name(&control_plane), owned(json!("")))
        .await;
    env.wait("the end of it", async || {
        let cluster = env.get("Cluster", "foo").await?;
        (condition(&cluster, "TopologyReconciled")?["status"] == "True").then_some(())
    })
    .await;
    env.apply(json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "VSphereCluster",
        "metadata": {"name": "foreign", "namespace": "bar"},
    }))
    .await;
    let mut with_foreign = founding_cluster();
    with_foreign["metadata"]["name"] = "with-foreign".into();
    with_foreign["spec"]["infrastructureRef"] =
        json!({"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "VSphereCluster", "name": "foreign"});
    env.apply(with_foreign).await;
    says("with-foreign", "not topology owned").await;
    assert!(made(&env, "with-foreign").await.is_empty());
    env.stop().await;
}
