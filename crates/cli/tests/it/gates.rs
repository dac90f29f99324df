//! `--feature-gates`: what is turned off is refused, and does not run.

use serde_json::{Value, json};
use windlass_api::core::{Cluster, MachineDeployment, MachinePool};
use windlass_testkit::wait::{TIMEOUT, looks};
use windlass_testkit::{CLASS, ClusterOf, NAMESPACE, Objects, reserved_port};

use crate::secrets::metrics;
use crate::support::{Up, objects, run};

const CORE: &str = "cluster.x-k8s.io/v1beta2";

/// Asserts that a write is refused with these words.
async fn is_refused(objects: &Objects, object: &Value, words: &str) {
    let kind = &object["kind"];
    match objects.try_apply(object).await {
        Ok(stored) => panic!("{kind} was stored: {stored}"),
        Err(error) => assert!(error.to_string().contains(words), "{kind}: {error}"),
    }
}

fn class() -> Value {
    let documents = serde_saphyr::from_multiple::<Value>(CLASS).unwrap();
    documents
        .into_iter()
        .find(|object| object["kind"] == "ClusterClass")
        .unwrap()
}

fn extension() -> Value {
    json!({
        "apiVersion": "runtime.cluster.x-k8s.io/v1beta2", "kind": "ExtensionConfig", "metadata": {"name": "guard"},
        "spec": {"clientConfig": {"url": "https://127.0.0.1:1"}},
    })
}

/// The defaults of v1.14.
#[tokio::test]
async fn without_alpha_features_their_objects_and_fields_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let scraped = format!("127.0.0.1:{}", reserved_port());
    let up = Up::start(
        folder.path(),
        &[
            "--feature-gates",
            "AllAlpha=false",
            "--machine-concurrency=7",
            "--insecure-diagnostics",
            "--diagnostics-address",
            &scraped,
        ],
    );
    let all = objects(folder.path()).await;
    let words = "can be set only if the ClusterTopology feature flag is enabled";
    is_refused(&all, &class(), &format!("spec: Forbidden: {words}")).await;
    // The class is not looked at, which does not exist.
    let with_topology = ClusterOf::new("a", 1, 1).object();
    is_refused(&all, &with_topology, &format!("spec.topology: Forbidden: {words}")).await;
    let sdk = "spec: Forbidden: can be set only if the RuntimeSDK feature flag is enabled";
    is_refused(&all, &extension(), sdk).await;
    let machine = |taints: Value| {
        let mut machine = json!({
            "apiVersion": CORE, "kind": "Machine", "metadata": {"name": "m", "namespace": NAMESPACE},
            "spec": {
                "clusterName": "c", "bootstrap": {"dataSecretName": "s"},
                "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": "m"},
            },
        });
        if !taints.is_null() {
            machine["spec"]["taints"] = taints;
        }
        machine
    };
    let taint = json!([{"key": "a.b/c", "effect": "NoSchedule", "propagation": "Always"}]);
    let disabled = "spec.taints: Forbidden: taints are not allowed to be set when the feature gate MachineTaintPropagation is disabled";
    is_refused(&all, &machine(taint), disabled).await;
    all.apply(&machine(Value::Null)).await;
    // Features that are beta stay.
    let pool = json!({
        "apiVersion": CORE, "kind": "MachinePool", "metadata": {"name": "p", "namespace": NAMESPACE},
        "spec": {"clusterName": "c", "template": {"spec": {
            "clusterName": "c", "bootstrap": {"dataSecretName": "s"},
            "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachinePool", "name": "p"},
        }}},
    });
    all.apply(&pool).await;
    let workers = |text: &str, controller: &str| {
        let series = format!("controller_runtime_max_concurrent_reconciles{{controller=\"{controller}\"}} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&series));
        line.map(|number| number.parse::<u32>().unwrap())
    };
    // Until a controller has started, it has none.
    let expected = [("machine", 7), ("cluster", 100), ("machinepool", 10)];
    let started = async {
        let mut looks = looks();
        loop {
            looks.tick().await;
            let text = metrics(&scraped);
            if expected
                .iter()
                .all(|(name, number)| workers(&text, name) == Some(*number))
            {
                break text;
            }
        }
    };
    let text = tokio::time::timeout(TIMEOUT, started).await.unwrap();
    for off in [
        "clusterclass",
        "topology/cluster",
        "topology/classrollout",
        "extensionconfig",
    ] {
        assert_eq!(workers(&text, off), None, "{off}");
    }
    up.interrupt().went_well();
}

// TO-165
#[tokio::test]
async fn without_the_runtime_sdk_classes_have_no_external_patches() {
    let folder = tempfile::tempdir().unwrap();
    let external = || {
        let mut class = class();
        class["spec"]["patches"] =
            json!([{"name": "images", "external": {"generatePatchesExtension": "images.guard"}}]);
        class
    };
    // Stored while the gate was on: its Clusters cannot be reconciled, and what does not change can be written.
    let up = Up::start(folder.path(), &[]);
    let before = objects(folder.path()).await;
    before.apply_yaml(CLASS).await;
    let mut other = external();
    other["metadata"]["name"] = json!("stored");
    before.apply(&other).await;
    up.interrupt().went_well();

    let up = Up::start(folder.path(), &["--feature-gates=RuntimeSDK=false"]);
    let all = objects(folder.path()).await;
    let words = "spec.patches[0].external: Forbidden: patch.external can be used only if the RuntimeSDK feature flag is enabled";
    is_refused(&all, &external(), words).await;
    other["metadata"]["labels"] = json!({"team": "a"});
    all.apply(&other).await;
    let cluster = ClusterOf::new("waits", 1, 1);
    let mut object = cluster.object();
    object["spec"]["topology"]["classRef"]["name"] = json!("stored");
    all.apply(&object).await;
    let says = |cluster: &Cluster| {
        let mut conditions = cluster.status.iter().flat_map(|status| &status.conditions);
        conditions.any(|one| one.type_ == "TopologyReconciled" && one.message.contains("a feature gate is off"))
    };
    all.wait_for::<Cluster>(&cluster.key(), "the gate is named", says).await;
    // A class without extensions works.
    let plain = ClusterOf::new("runs", 1, 1);
    all.apply(&plain.object()).await;
    plain.wait_running(&all).await;
    up.interrupt().went_well();
}

// TO-061
#[tokio::test]
async fn without_machine_pools_a_topology_says_why_they_are_missing() {
    let folder = tempfile::tempdir().unwrap();
    let up = Up::start(folder.path(), &["--feature-gates=MachinePool=false"]);
    let all = objects(folder.path()).await;
    all.apply_yaml(CLASS).await;
    let template = |api: &str, kind: &str, name: &str| json!({"apiVersion": api, "kind": kind, "name": name});
    let infrastructure = "infrastructure.cluster.x-k8s.io/v1beta2";
    all.apply(&json!({
        "apiVersion": infrastructure, "kind": "DevMachinePoolTemplate", "metadata": {"name": "pool", "namespace": NAMESPACE},
        "spec": {"template": {"spec": {"backend": {"inMemory": {}}}}},
    }))
    .await;
    let bootstrap = template(
        "bootstrap.cluster.x-k8s.io/v1beta2",
        "KubeadmConfigTemplate",
        "quick-start-default-worker",
    );
    let pool_class = json!({
        "class": "pool", "bootstrap": {"templateRef": bootstrap},
        "infrastructure": {"templateRef": template(infrastructure, "DevMachinePoolTemplate", "pool")},
    });
    all.merge(
        "ClusterClass",
        "quick-start",
        &json!({"spec": {"workers": {"machinePools": [pool_class]}}}),
    )
    .await;
    let cluster = ClusterOf::new("pooled", 1, 1);
    let mut object = cluster.object();
    object["spec"]["topology"]["workers"]["machinePools"] = json!([{"class": "pool", "name": "mp", "replicas": 1}]);
    all.apply(&object).await;
    let says = |cluster: &Cluster| {
        let mut conditions = cluster.status.iter().flat_map(|status| &status.conditions);
        conditions.any(|one| {
            one.type_ == "TopologyReconciled"
                && one.status == "False"
                && one
                    .message
                    .contains("can be set only if the MachinePool feature flag is enabled")
        })
    };
    all.wait_for::<Cluster>(&cluster.key(), "the refusal is shown", says)
        .await;
    assert_eq!(all.list::<MachinePool>().await.len(), 0);
    // The rest of the topology is there.
    all.wait_all::<MachineDeployment>("its MachineDeployment", |all| all.len() == 1)
        .await;
    up.interrupt().went_well();
}

#[test]
fn a_wrong_gate_ends_the_start_with_what_is_expected() {
    let folder = tempfile::tempdir().unwrap();
    for (gates, words) in [
        ("Nothing=true", "has no feature gate \"Nothing\""),
        ("MachinePool", "MachinePool=true or MachinePool=false is expected"),
        ("PriorityQueue=true", "PriorityQueue can only be false"),
    ] {
        let data = folder.path().join("data").display().to_string();
        let finished = run(folder.path(), &["up", "--data-dir", &data, "--feature-gates", gates]);
        assert_eq!(finished.code, Some(2), "{finished:?}");
        assert!(
            finished.stderr.contains("--feature-gates: ") && finished.stderr.contains(words),
            "{finished:?}"
        );
        assert!(!folder.path().join("data").exists(), "nothing is begun");
    }
}
