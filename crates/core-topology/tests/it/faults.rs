//! What is missing or wrong is named on the Cluster, and repaired by events alone.

use serde_json::{Value, json};
use windlass_controller_runtime::{Metrics, transport};
use windlass_testkit::faults::{Fault, Faults};

use crate::env::{Env, VSPHERE, cluster, condition, documents};

/// The kinds of the objects that are made for the Cluster, and how many of each.
const COUNTS: [(&str, usize); 6] = [
    ("VSphereCluster", 1),
    ("KubeadmControlPlane", 1),
    ("VSphereMachineTemplate", 4),
    ("KubeadmConfigTemplate", 3),
    ("MachineDeployment", 3),
    ("MachineHealthCheck", 4),
];

async fn message(env: &Env, part: &str) -> String {
    env.wait(&format!("a message with {part:?}"), async || {
        let cluster = env.get("Cluster", "foo").await?;
        let condition = condition(&cluster, "TopologyReconciled")?;
        let text = condition["message"].as_str()?.to_owned();
        text.contains(part).then_some(text)
    })
    .await
}

// TO-092, TO-188, TO-208, TO-238: the Cluster first, then the class, then its templates.
#[tokio::test]
async fn any_order_of_creation_works() {
    let env = Env::start().await;
    env.apply(cluster()).await;
    message(&env, "ClusterClass bar/mixed does not exist").await;
    let (class, templates): (Vec<Value>, Vec<Value>) = documents(VSPHERE)
        .into_iter()
        .partition(|o| o["kind"] == "ClusterClass");
    for object in class {
        env.apply(object).await;
    }
    message(&env, "vsphere-prod-cluster-template does not exist").await;
    for object in templates {
        env.apply(object).await;
    }
    env.reconciled("ReconcileSucceeded").await;
    env.stop().await;
}

// TO-094, TO-118, TO-143, TO-173, TO-318
#[tokio::test]
async fn bad_variables_and_patches_change_nothing_and_are_named() {
    let env = Env::start_unadmitted().await;
    env.apply_example().await;
    let before = env.generated("VSphereCluster").await[0]["metadata"]["resourceVersion"].clone();
    let class = |required: bool, path: &str| {
        json!({"spec": {
            "variables": [{"name": "server", "required": required, "schema": {"openAPIV3Schema": {"type": "string"}}}],
            "patches": [{"name": "server", "definitions": [{
                "selector": {
                    "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "VSphereClusterTemplate",
                    "matchResources": {"infrastructureCluster": true},
                },
                "jsonPatches": [{"op": "replace", "path": path, "valueFrom": {"variable": "server"}}],
            }]}],
        }})
    };
    env.merge("ClusterClass", "mixed", class(true, "/spec/template/spec/server"))
        .await;
    message(&env, "required variable \"server\" must be set").await;
    env.merge("ClusterClass", "mixed", class(false, "/spec/template/spec/server"))
        .await;
    message(&env, "variable \"server\" has no value").await;
    env.merge("ClusterClass", "mixed", class(false, "/spec/template/spec/nope"))
        .await;
    let variables = json!([{"name": "server", "value": "other.example.com"}]);
    env.merge(
        "Cluster",
        "foo",
        json!({"spec": {"topology": {"variables": variables}}}),
    )
    .await;
    message(&env, "cannot change /spec/template/spec/nope of VSphereClusterTemplate").await;
    assert_eq!(
        env.generated("VSphereCluster").await[0]["metadata"]["resourceVersion"],
        before
    );

    env.merge("ClusterClass", "mixed", class(true, "/spec/template/spec/server"))
        .await;
    env.reconciled("ReconcileSucceeded").await;
    let changed = env
        .wait("the variable's value", async || {
            let all = env.generated("VSphereCluster").await;
            (all[0]["spec"]["server"] == "other.example.com").then_some(all[0].clone())
        })
        .await;
    assert_ne!(changed["metadata"]["resourceVersion"], before);
    env.stop().await;
}

#[tokio::test]
async fn a_change_by_hand_and_a_deleted_object_are_repaired() {
    let env = Env::start().await;
    env.apply_example().await;
    let name = env.generated("MachineDeployment").await[0]["metadata"]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    env.merge("MachineDeployment", &name, json!({"spec": {"replicas": 9}}))
        .await;
    env.wait("the replicas", async || {
        let md = env.get("MachineDeployment", &name).await?;
        (md["spec"]["replicas"] != 9).then_some(())
    })
    .await;
    env.delete("MachineHealthCheck", &name).await;
    env.wait("the health check", async || env.get("MachineHealthCheck", &name).await)
        .await;
    env.stop().await;
}

// An infrastructure cluster that the Cluster has used is not made again, because that would be another cluster.
#[tokio::test]
async fn a_lost_infrastructure_cluster_is_reported_and_not_made_again() {
    let env = Env::start().await;
    env.apply_example().await;
    let mut lost = env.generated("VSphereCluster").await.remove(0);
    let name = lost["metadata"]["name"].as_str().unwrap().to_owned();
    let used = json!({"initialization": {"infrastructureProvisioned": true}});
    env.status("Cluster", "foo", used).await;
    env.wait("the status", async || {
        let cluster = env.get("Cluster", "foo").await?;
        (cluster["status"]["initialization"]["infrastructureProvisioned"] == true).then_some(())
    })
    .await;
    env.delete("VSphereCluster", &name).await;
    message(
        &env,
        &format!("VSphereCluster bar/{name} does not exist, and the Cluster has used it"),
    )
    .await;
    assert!(env.get("VSphereCluster", &name).await.is_none());

    for of_server in [
        "uid",
        "resourceVersion",
        "managedFields",
        "creationTimestamp",
        "generation",
    ] {
        lost["metadata"].as_object_mut().unwrap().remove(of_server);
    }
    env.create(&lost, "Ignore").await.unwrap();
    env.reconciled("ReconcileSucceeded").await;
    env.stop().await;
}

// TO-314
#[tokio::test]
async fn a_cluster_that_is_being_deleted_is_left_alone() {
    let env = Env::start().await;
    env.apply_example().await;
    env.merge("Cluster", "foo", json!({"metadata": {"finalizers": ["x.io/hold"]}}))
        .await;
    env.delete("Cluster", "foo").await;
    let cluster = env.reconciled("Deleting").await;
    assert_eq!(
        condition(&cluster, "TopologyReconciled").unwrap()["message"],
        "Cluster is deleting"
    );
    let name = env.generated("MachineHealthCheck").await[0]["metadata"]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    env.quiet().await;
    env.delete("MachineHealthCheck", &name).await;
    env.merge("Cluster", "foo", json!({"metadata": {"annotations": {"touched": "1"}}}))
        .await;
    env.quiet().await;
    assert!(env.get("MachineHealthCheck", &name).await.is_none());
    env.stop().await;
}

/// The topology controllers in a process that dies at its `n`th write.
async fn dying_at_write(n: usize) -> Env {
    let faults = Faults::dying_at_write(n);
    let behind = faults.clone();
    let env = Env::start_behind(move |server| {
        transport::in_process(behind.wrap(server.service("topology")), &Metrics::new())
    })
    .await;
    for object in documents(VSPHERE) {
        env.apply(object).await;
    }
    env.apply(cluster()).await;
    faults.died().await;
    env
}

// TO-250
#[tokio::test]
async fn a_process_that_dies_in_the_middle_of_the_creation_leaves_no_double() {
    for n in (1..=30).step_by(4) {
        let mut env = dying_at_write(n).await;
        env.restart().await;
        env.reconciled("ReconcileSucceeded").await;
        for (kind, count) in COUNTS {
            assert_eq!(env.generated(kind).await.len(), count, "{kind} after {n} writes");
        }
        env.stop().await;
    }
}

// TO-250: the process that takes over finds every object that was made before.
#[tokio::test]
async fn another_process_makes_nothing_twice() {
    let mut env = Env::start().await;
    for object in documents(VSPHERE) {
        env.apply(object).await;
    }
    env.apply(cluster()).await;
    // In the middle of the creation, wherever that happens to be.
    env.restart().await;
    env.reconciled("ReconcileSucceeded").await;
    env.restart().await;
    env.merge(
        "Cluster",
        "foo",
        json!({"spec": {"availabilityGates": [{"conditionType": "x"}]}}),
    )
    .await;
    env.reconciled("ReconcileSucceeded").await;
    for (kind, count) in COUNTS {
        assert_eq!(env.generated(kind).await.len(), count, "{kind}");
    }
    env.stop().await;
}

#[tokio::test]
async fn a_template_that_is_refused_keeps_no_other_one_without_an_owner() {
    let templates = || documents(VSPHERE).into_iter().filter(|o| o["kind"] != "ClusterClass");
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap().to_owned();
    let ends = [templates().next().unwrap(), templates().next_back().unwrap()];
    for refused in ends.iter().map(name) {
        let path = format!("/{refused}?fieldManager=capi-clusterclass&");
        let faults = Faults::when(move |request| request.path.contains(&path).then_some(Fault::Refused(422)));
        let behind = faults.clone();
        let env = Env::start_behind(move |server| {
            transport::in_process(behind.wrap(server.service("topology")), &Metrics::new())
        })
        .await;
        for object in documents(VSPHERE) {
            env.apply(object).await;
        }
        for template in templates().filter(|template| name(template) != refused) {
            let (kind, name) = (template["kind"].as_str().unwrap(), name(&template));
            env.wait(&format!("the owner of {kind} {name}"), async || {
                let stored = env.get(kind, &name).await?;
                stored["metadata"]["ownerReferences"].is_array().then_some(())
            })
            .await;
        }
        assert!(!faults.injected().is_empty(), "{refused} was refused");
        env.stop().await;
    }
}

/// Two writers of a condition take its fields from each other, and a restart would write who owns them.
async fn leaves_paused_to_the_cluster_controller(env: &Env) {
    let cluster = env.get("Cluster", "foo").await.unwrap();
    let entries = cluster["metadata"]["managedFields"].as_array().unwrap();
    let ours: Vec<_> = entries
        .iter()
        .filter(|entry| entry["manager"].as_str().unwrap().starts_with("capi-topology-status"))
        .map(|entry| &entry["fieldsV1"]["f:status"]["f:conditions"])
        .collect();
    assert!(
        ours.iter()
            .any(|owned| owned[r#"k:{"type":"TopologyReconciled"}"#].is_object()),
        "{entries:?}"
    );
    assert!(
        ours.iter().all(|owned| owned[r#"k:{"type":"Paused"}"#].is_null()),
        "{entries:?}"
    );
}

// TO-317: what v1.14 says about a paused Cluster.
#[tokio::test]
async fn a_paused_cluster_says_that_its_topology_is_not_reconciled() {
    let env = Env::start().await;
    env.apply_example().await;
    env.merge("Cluster", "foo", json!({"spec": {"paused": true}})).await;
    let cluster = env.reconciled("Paused").await;
    let condition = condition(&cluster, "TopologyReconciled").unwrap();
    assert_eq!(condition["status"], "False");
    assert_eq!(condition["message"], "Cluster spec.paused is set to true");
    leaves_paused_to_the_cluster_controller(&env).await;
    env.merge("Cluster", "foo", json!({"spec": {"paused": false}})).await;
    env.reconciled("ReconcileSucceeded").await;
    leaves_paused_to_the_cluster_controller(&env).await;
    env.stop().await;
}

#[tokio::test]
async fn a_class_that_is_being_deleted_is_named_and_destroys_nothing() {
    let env = Env::start_unadmitted().await;
    env.apply_example().await;
    let before = env.generated("MachineDeployment").await;
    let keeps = json!({"metadata": {"finalizers": ["x.io/keeps"]}});
    env.merge("ClusterClass", "mixed", keeps).await;
    env.delete("ClusterClass", "mixed").await;
    message(&env, "ClusterClass bar/mixed is being deleted").await;
    assert_eq!(env.generated("MachineDeployment").await, before);
    env.merge("ClusterClass", "mixed", json!({"metadata": {"finalizers": null}}))
        .await;
    message(&env, "ClusterClass bar/mixed does not exist").await;
    assert_eq!(env.generated("MachineDeployment").await, before);
    env.stop().await;
}

// The Machines of a control plane that is going still need their template.
#[tokio::test]
async fn a_control_plane_that_is_being_deleted_keeps_its_template() {
    let env = Env::start().await;
    env.apply_example().await;
    let control_plane = env.generated("KubeadmControlPlane").await.remove(0);
    let name = control_plane["metadata"]["name"].as_str().unwrap();
    let template = &control_plane["spec"]["machineTemplate"]["spec"]["infrastructureRef"]["name"];
    let template = template.as_str().unwrap();
    let before = env.get("VSphereMachineTemplate", template).await.unwrap();
    let hold = json!({"metadata": {"finalizers": ["x.io/hold"]}});
    env.merge("KubeadmControlPlane", name, hold).await;
    env.delete("KubeadmControlPlane", name).await;
    let patch = json!({"spec": {"template": {"spec": {"numCPUs": 16}}}});
    env.merge("VSphereMachineTemplate", "linux-vsphere-template", patch)
        .await;
    // Workers come after the control plane.
    env.wait("new templates of the workers", async || {
        let all = env.generated("VSphereMachineTemplate").await;
        let new = all
            .iter()
            .filter(|template| template["spec"]["template"]["spec"]["numCPUs"] == 16);
        (new.count() >= 2).then_some(())
    })
    .await;
    env.quiet().await;
    let after = env.get("VSphereMachineTemplate", template).await;
    assert_eq!(
        after.map(|after| after["metadata"]["uid"].clone()),
        Some(before["metadata"]["uid"].clone())
    );
    env.merge("KubeadmControlPlane", name, json!({"metadata": {"finalizers": null}}))
        .await;
    env.wait("another control plane", async || {
        let all = env.generated("KubeadmControlPlane").await;
        all.iter()
            .any(|new| new["metadata"]["uid"] != control_plane["metadata"]["uid"])
            .then_some(())
    })
    .await;
    env.stop().await;
}

// A backup that brings the Cluster back before its infrastructure, with a new uid and without a status.
#[tokio::test]
async fn a_restored_cluster_waits_for_its_infrastructure() {
    let env = Env::start().await;
    for object in documents(VSPHERE) {
        env.apply(object).await;
    }
    let mut restored = cluster();
    restored["spec"]["infrastructureRef"] = json!({
        "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "VSphereCluster", "name": "foo-x7k2p",
    });
    env.apply(restored).await;
    message(
        &env,
        "VSphereCluster bar/foo-x7k2p does not exist, and its name was not given to this Cluster",
    )
    .await;
    assert!(env.generated("VSphereCluster").await.is_empty());
    env.apply(json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "VSphereCluster",
        "metadata": {
            "name": "foo-x7k2p", "namespace": "bar",
            "labels": {"cluster.x-k8s.io/cluster-name": "foo", "topology.cluster.x-k8s.io/owned": ""},
        },
    }))
    .await;
    env.reconciled("ReconcileSucceeded").await;
    assert_eq!(env.generated("VSphereCluster").await.len(), 1);
    env.stop().await;
}

/// The Warning events about the Cluster that have this in their text.
async fn warnings(env: &Env, part: &str) -> Vec<Value> {
    let all = env.list("Event").await;
    let told = |event: &&Value| {
        event["type"] == "Warning"
            && event["involvedObject"]["kind"] == "Cluster"
            && event["message"].as_str().is_some_and(|text| text.contains(part))
    };
    all.iter().filter(told).cloned().collect()
}

// What stops a topology is a condition, and one Warning event for those who look at events.
#[tokio::test]
async fn an_obstacle_is_one_warning_event() {
    let env = Env::start_unadmitted().await;
    env.apply(cluster()).await;
    let part = "ClusterClass bar/mixed does not exist";
    message(&env, part).await;
    let first = env
        .wait("the event", async || {
            let found = warnings(&env, part).await;
            (!found.is_empty()).then_some(found)
        })
        .await;
    assert_eq!(
        (first.len(), &first[0]["reason"]),
        (1, &json!("TopologyReconcileFailed"))
    );
    for object in documents(VSPHERE) {
        env.apply(object).await;
    }
    env.reconciled("ReconcileSucceeded").await;
    // The class was new when the Cluster met it, which is no obstacle.
    assert_eq!(warnings(&env, "observedGeneration").await, Vec::<Value>::new());
    let class = json!({"spec": {"topology": {"workers": {"machineDeployments": [{"class": "none", "name": "x"}]}}}});
    env.merge("Cluster", "foo", class).await;
    let part = "MachineDeployment class \"none\" does not exist";
    message(&env, part).await;
    env.wait("the event", async || {
        (warnings(&env, part).await.len() == 1).then_some(())
    })
    .await;
    assert_eq!(
        warnings(&env, "mixed does not exist").await.len(),
        1,
        "it is not repeated"
    );
    env.stop().await;
}
