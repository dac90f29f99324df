//! A managed Cluster from creation to the removal of a worker set.

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::env::{Env, SILENCE, condition};

fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap().to_owned()
}

async fn deployment(env: &Env, entry: &str) -> Value {
    let all = env.generated("MachineDeployment").await;
    let label = "topology.cluster.x-k8s.io/deployment-name";
    all.into_iter()
        .find(|md| md["metadata"]["labels"][label] == entry)
        .unwrap()
}

// TO-001, TO-005, TO-006, TO-032, TO-070, TO-119, TO-248, TO-288, TO-289: the proposal's example, with a provider
// that is nothing but definitions.
#[tokio::test]
async fn the_proposals_example_comes_up_with_a_provider_that_is_only_definitions() {
    let env = Env::start().await;
    env.apply_example().await;
    for (kind, count) in [
        ("VSphereCluster", 1),
        ("KubeadmControlPlane", 1),
        ("VSphereMachineTemplate", 4),
        ("KubeadmConfigTemplate", 3),
        ("MachineDeployment", 3),
        ("MachineHealthCheck", 4),
    ] {
        assert_eq!(env.generated(kind).await.len(), count, "{kind}");
    }
    let cluster = env.reconciled("ReconcileSucceeded").await;
    let infrastructure = env.generated("VSphereCluster").await.remove(0);
    assert_eq!(
        cluster["spec"]["infrastructureRef"]["name"],
        infrastructure["metadata"]["name"]
    );
    assert_eq!(cluster["metadata"]["labels"]["topology.cluster.x-k8s.io/owned"], "");
    assert_eq!(infrastructure["spec"], json!({"server": "vcenter.example.com"}));
    let control_plane = env.generated("KubeadmControlPlane").await.remove(0);
    assert_eq!(
        cluster["spec"]["controlPlaneRef"]["name"],
        control_plane["metadata"]["name"]
    );
    let manager = control_plane["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .find(|m| m["manager"] == "capi-topology")
        .unwrap();
    assert_eq!(manager["operation"], "Apply");
    assert!(manager["fieldsV1"]["f:spec"].get("f:version").is_some());

    let class = env.get("ClusterClass", "mixed").await.unwrap();
    assert_eq!(class["status"]["observedGeneration"], class["metadata"]["generation"]);
    assert_eq!(condition(&class, "VariablesReady").unwrap()["status"], "True");
    assert_eq!(condition(&class, "RefVersionsUpToDate").unwrap()["status"], "True");
    let template = env
        .get("VSphereMachineTemplate", "linux-vsphere-template")
        .await
        .unwrap();
    assert_eq!(template["metadata"]["ownerReferences"][0]["kind"], "ClusterClass");
    assert_eq!(template["metadata"]["ownerReferences"].as_array().unwrap().len(), 1);
    env.stop().await;
}

// TO-266: reconciling again writes nothing.
#[tokio::test]
async fn a_settled_cluster_is_not_written_again() {
    let env = Env::start().await;
    env.apply_example().await;
    let md = deployment(&env, "microsoft-1").await;
    env.wait("the finalizers", async || {
        let all = env.generated("MachineDeployment").await;
        let done = |md: &Value| md["metadata"].get("finalizers").is_some();
        all.iter().all(done).then_some(())
    })
    .await;
    // An annotation wakes the controllers and asks for nothing.
    env.merge("Cluster", "foo", json!({"metadata": {"annotations": {"touched": "1"}}}))
        .await;
    env.merge(
        "Cluster",
        "foo",
        json!({"spec": {"availabilityGates": [{"conditionType": "x"}]}}),
    )
    .await;
    env.reconciled("ReconcileSucceeded").await;
    let after = deployment(&env, "microsoft-1").await;
    assert_eq!(md["metadata"]["generation"], after["metadata"]["generation"]);
    let writes = env.server.counters().writes();
    env.merge("Cluster", "foo", json!({"metadata": {"annotations": {"touched": "2"}}}))
        .await;
    env.merge("Cluster", "foo", json!({"metadata": {"annotations": {"touched": "3"}}}))
        .await;
    env.wait("quiet", async || {
        (env.server.counters().writes() >= writes + 2).then_some(())
    })
    .await;
    // Longer than any write is held back.
    tokio::time::sleep(SILENCE).await;
    assert_eq!(env.server.counters().writes(), writes + 2);
    env.stop().await;
}

// TO-238, TO-263, TO-297, TO-298, TO-300, TO-301: a template of the class is changed in place, then a label.
#[tokio::test]
async fn changes_of_templates_arrive_by_events() {
    let env = Env::start().await;
    env.apply_example().await;
    let before = deployment(&env, "microsoft-1").await;
    let reference = |md: &Value| md["spec"]["template"]["spec"]["infrastructureRef"]["name"].clone();
    let patch = json!({"spec": {"template": {"spec": {"template": "windows-2"}}}});
    env.merge("VSphereMachineTemplate", "windows-vsphere-template", patch)
        .await;
    let after = env
        .wait("another template", async || {
            let md = deployment(&env, "microsoft-1").await;
            (reference(&md) != reference(&before)).then_some(md)
        })
        .await;
    let new = env
        .get("VSphereMachineTemplate", reference(&after).as_str().unwrap())
        .await
        .unwrap();
    assert_eq!(new["spec"]["template"]["spec"]["template"], "windows-2");

    let patch = json!({"metadata": {"labels": {"team": "a"}}});
    env.merge("VSphereMachineTemplate", "windows-vsphere-template", patch)
        .await;
    env.wait("the label", async || {
        let template = env
            .get("VSphereMachineTemplate", reference(&after).as_str().unwrap())
            .await?;
        (template["metadata"]["labels"]["team"] == "a").then_some(())
    })
    .await;
    assert_eq!(reference(&deployment(&env, "microsoft-1").await), reference(&after));
    env.stop().await;
}

// TO-262, TO-300, TO-315: an entry goes, and with it everything that was made for it.
#[tokio::test]
async fn a_removed_entry_takes_its_objects_along() {
    let env = Env::start().await;
    env.apply_example().await;
    let mut cluster = crate::env::cluster();
    cluster["spec"]["topology"]["workers"]["machineDeployments"]
        .as_array_mut()
        .unwrap()
        .remove(2);
    env.apply(cluster).await;
    env.wait("two worker sets", async || {
        // No controller of MachineDeployments runs here that would let them go.
        for deployment in env.generated("MachineDeployment").await {
            let meta = &deployment["metadata"];
            let mut kept = meta["finalizers"].as_array().cloned().unwrap_or_default();
            let held = kept.iter().position(|f| f == "cluster.x-k8s.io/machinedeployment");
            if let Some(held) = held.filter(|_| !meta["deletionTimestamp"].is_null()) {
                kept.remove(held);
                let seen = &meta["resourceVersion"];
                let patch = Patch::Merge(json!({ "metadata": { "finalizers": kept, "resourceVersion": seen } }));
                let api = env.api("MachineDeployment");
                // Refused when the topology controller was quicker with its own finalizer; then we look again.
                let _ = api.patch(&name(&deployment), &PatchParams::default(), &patch).await;
            }
        }
        let counts = [
            env.generated("MachineDeployment").await.len(),
            env.generated("MachineHealthCheck").await.len(),
            env.generated("KubeadmConfigTemplate").await.len(),
            env.generated("VSphereMachineTemplate").await.len(),
        ];
        (counts == [2, 3, 2, 3]).then_some(())
    })
    .await;
    assert!(
        env.get("VSphereMachineTemplate", "windows-vsphere-template")
            .await
            .is_some()
    );
    env.stop().await;
}

// TO-303, TO-304, TO-306, TO-307, TO-317
#[tokio::test]
async fn an_upgrade_goes_through_control_plane_and_workers() {
    let env = Env::start().await;
    env.apply_example().await;
    let control_plane = name(&env.generated("KubeadmControlPlane").await[0]);
    let running = |version: &str| {
        json!({
            "versions": [{"version": version, "replicas": 3}], "replicas": 3, "upToDateReplicas": 3,
            "readyReplicas": 3, "availableReplicas": 3,
        })
    };
    env.status("KubeadmControlPlane", &control_plane, running("v1.31.1"))
        .await;
    env.merge("Cluster", "foo", json!({"spec": {"topology": {"version": "v1.32.0"}}}))
        .await;
    let cluster = env.reconciled("ClusterUpgrading").await;
    assert_eq!(
        cluster["metadata"]["annotations"]["topology.internal.cluster.x-k8s.io/upgrade-step"],
        "v1.32.0"
    );
    env.wait("the control plane's version", async || {
        let found = env.get("KubeadmControlPlane", &control_plane).await?;
        (found["spec"]["version"] == "v1.32.0").then_some(())
    })
    .await;
    let old = |md: &Value| md["spec"]["template"]["spec"]["version"] == "v1.31.1";
    assert!(env.generated("MachineDeployment").await.iter().all(old));
    // Some providers report no patch.
    env.status("KubeadmControlPlane", &control_plane, running("1.31")).await;
    env.quiet().await;
    assert!(env.generated("MachineDeployment").await.iter().all(old));

    // Without Machines a worker set is upgraded as soon as its turn comes: one after another, in order.
    env.status("KubeadmControlPlane", &control_plane, running("v1.32.0"))
        .await;
    env.reconciled("ReconcileSucceeded").await;
    assert!(!env.generated("MachineDeployment").await.iter().any(old));
    env.wait("the end of the step", async || {
        let cluster = env.get("Cluster", "foo").await?;
        let step = "topology.internal.cluster.x-k8s.io/upgrade-step";
        let annotations = cluster["metadata"].get("annotations");
        annotations.is_none_or(|a| a.get(step).is_none()).then_some(())
    })
    .await;
    env.stop().await;
}
