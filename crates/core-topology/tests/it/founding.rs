//! The founding proposal's own class and Cluster, with vSphere kinds that no controller implements: every object in full.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::env::{Env, VSPHERE, condition, documents, founding_cluster, is_random, name};

const OWNED: &str = "topology.cluster.x-k8s.io/owned";
const MADE: [&str; 6] = [
    "VSphereCluster",
    "KubeadmControlPlane",
    "VSphereMachineTemplate",
    "KubeadmConfigTemplate",
    "MachineDeployment",
    "MachineHealthCheck",
];

/// Names without what is random about them.
fn steady(value: &Value) -> Value {
    match value {
        Value::String(text) => match text.rsplit_once('-') {
            Some((base, suffix)) if text.starts_with("foo-") && is_random(suffix) => json!(format!("{base}-*")),
            _ => value.clone(),
        },
        Value::Array(all) => all.iter().map(steady).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), steady(value))).collect(),
        other => other.clone(),
    }
}

/// What the topology controller answers for: no server-set field, no status, no finalizer of another controller.
fn told(object: &Value) -> Value {
    let metadata = &object["metadata"];
    let owner = |owner: &Value| {
        let text = |field: &str| owner[field].as_str().unwrap();
        let role = if owner["controller"] == true {
            ", its controller"
        } else {
            ""
        };
        json!(format!("{}/{}{role}", text("kind"), text("name")))
    };
    let owners: Vec<Value> = metadata["ownerReferences"]
        .as_array()
        .into_iter()
        .flatten()
        .map(owner)
        .collect();
    let mut annotations = metadata["annotations"].as_object().cloned().unwrap_or_default();
    // The deployment controller counts its revisions here.
    annotations.remove("machinedeployment.clusters.x-k8s.io/revision");
    steady(&json!({
        "kind": object["kind"], "name": metadata["name"], "labels": metadata["labels"], "annotations": annotations,
        "owners": owners, "spec": object["spec"],
    }))
}

/// Waits until all objects of the Cluster have an owner reference to it, from any controller.
async fn settled(env: &Env) {
    env.wait("owner references of all", async || {
        for kind in MADE {
            let all = env.generated(kind).await;
            let owned = |o: &Value| o["metadata"]["ownerReferences"][0]["kind"] == "Cluster";
            if all.is_empty() || !all.iter().all(owned) {
                return None;
            }
        }
        Some(())
    })
    .await;
}

async fn come_up() -> Env {
    let env = Env::start_everything().await;
    for object in documents(VSPHERE) {
        env.apply(object).await;
    }
    env.apply(founding_cluster()).await;
    env.reconciled("ReconcileSucceeded").await;
    settled(&env).await;
    env
}

// TO-002, TO-028, TO-055, TO-067, TO-244, TO-245, TO-246, TO-247, TO-248, TO-249, TO-251, TO-253, TO-255,
// TO-271, TO-272, TO-273, TO-275, TO-282, TO-283, TO-284, TO-285, TO-286, TO-287, TO-340, TO-341, TO-344, TO-345,
// TO-346, TO-382, TO-383: from one Cluster of 20 lines to 16 objects, field by field.
#[tokio::test]
async fn the_example_gives_exactly_these_objects() {
    let env = come_up().await;
    let mut text = String::new();
    for kind in MADE {
        let mut all: Vec<Value> = env.generated(kind).await.iter().map(told).collect();
        all.sort_by_key(|object| object["name"].to_string());
        for object in all {
            let _ = writeln!(text, "---\n{}", serde_saphyr::to_string(&object).unwrap().trim_end());
        }
    }
    let cluster = env.get("Cluster", "foo").await.unwrap();
    let references = json!({
        "kind": "Cluster", "labels": cluster["metadata"]["labels"],
        "infrastructureRef": cluster["spec"]["infrastructureRef"],
        "controlPlaneRef": cluster["spec"]["controlPlaneRef"],
    });
    let _ = writeln!(
        text,
        "---\n{}",
        serde_saphyr::to_string(&steady(&references)).unwrap().trim_end()
    );
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/founding/objects.yaml");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    for (number, (have, want)) in text.lines().zip(expected.lines()).enumerate() {
        assert_eq!(have, want, "line {} of objects.yaml", number + 1);
    }
    assert_eq!(
        text.lines().count(),
        expected.lines().count(),
        "one of both says more:\n{text}"
    );
    env.stop().await;
}

// TO-028, TO-251, TO-285, TO-326: every reference leads to the copy of its own place, and no copy is without one.
#[tokio::test]
async fn every_reference_leads_to_a_copy_of_its_own() {
    let env = come_up().await;
    let mut used: Vec<(String, String)> = Vec::new();
    let control_plane = env.generated("KubeadmControlPlane").await.remove(0);
    let mut refer = |reference: &Value| {
        let text = |field: &str| reference[field].as_str().unwrap().to_owned();
        used.push((text("kind"), text("name")));
    };
    refer(&control_plane["spec"]["machineTemplate"]["spec"]["infrastructureRef"]);
    for deployment in env.generated("MachineDeployment").await {
        let spec = &deployment["spec"]["template"]["spec"];
        refer(&spec["infrastructureRef"]);
        refer(&spec["bootstrap"]["configRef"]);
        let entry = &deployment["metadata"]["labels"]["topology.cluster.x-k8s.io/deployment-name"];
        for reference in [&spec["infrastructureRef"], &spec["bootstrap"]["configRef"]] {
            let kind = reference["kind"].as_str().unwrap();
            let copy = env.get(kind, reference["name"].as_str().unwrap()).await.unwrap();
            assert_eq!(
                &copy["metadata"]["labels"]["topology.cluster.x-k8s.io/deployment-name"],
                entry
            );
            let template = copy["metadata"]["annotations"]["cluster.x-k8s.io/cloned-from-name"]
                .as_str()
                .unwrap();
            let original = env.get(kind, template).await.unwrap();
            assert_eq!(copy["spec"], original["spec"], "{kind} {template}");
        }
    }
    let mut copies = Vec::new();
    for kind in ["VSphereMachineTemplate", "KubeadmConfigTemplate"] {
        copies.extend(
            env.generated(kind)
                .await
                .iter()
                .map(|copy| (kind.to_owned(), name(copy).to_owned())),
        );
    }
    used.sort();
    copies.sort();
    assert_eq!(used, copies);
    env.stop().await;
}

// TO-055, TO-285: what the provider of the older contract says is understood, and its Machines are cloned from the copy.
#[tokio::test]
async fn a_provider_that_answers_gets_its_first_machine() {
    let env = come_up().await;
    let infrastructure = env.generated("VSphereCluster").await.remove(0);
    let endpoint = json!({"spec": {"controlPlaneEndpoint": {"host": "10.0.0.1", "port": 6443}}});
    env.merge("VSphereCluster", name(&infrastructure), endpoint).await;
    env.status("VSphereCluster", name(&infrastructure), json!({"ready": true}))
        .await;
    let machine = env
        .wait("the first VSphereMachine", async || {
            env.list("VSphereMachine").await.pop()
        })
        .await;
    let metadata = &machine["metadata"];
    assert_eq!(metadata["labels"]["cluster.x-k8s.io/control-plane"], "");
    assert_eq!(metadata["labels"][OWNED], "");
    let copy = metadata["annotations"]["cluster.x-k8s.io/cloned-from-name"]
        .as_str()
        .unwrap();
    let copy = env.get("VSphereMachineTemplate", copy).await.unwrap();
    assert_eq!(machine["spec"], copy["spec"]["template"]["spec"]);
    assert_eq!(
        copy["metadata"]["annotations"]["cluster.x-k8s.io/cloned-from-name"],
        "linux-vsphere-template"
    );
    let cluster = env
        .wait("the endpoint", async || {
            let cluster = env.get("Cluster", "foo").await?;
            (cluster["spec"]["controlPlaneEndpoint"]["host"] == "10.0.0.1").then_some(cluster)
        })
        .await;
    assert_eq!(condition(&cluster, "TopologyReconciled").unwrap()["status"], "True");
    env.stop().await;
}

// TO-051: as printed, labels stand beside metadata: a strict client is refused, a lenient one loses them.
#[tokio::test]
async fn labels_outside_of_metadata_are_refused_or_dropped() {
    let env = Env::start().await;
    let mut printed = founding_cluster();
    let topology = &mut printed["spec"]["topology"];
    topology["controlPlane"] = json!({"replicas": 3, "labels": {}, "annotations": {}});
    let entry = &mut topology["workers"]["machineDeployments"][0];
    entry.as_object_mut().unwrap().remove("metadata");
    entry["labels"] = json!({"custom-label": "production"});
    let answer = env.refused(&printed).await;
    for field in [
        "spec.topology.controlPlane.annotations",
        "spec.topology.controlPlane.labels",
        "spec.topology.workers.machineDeployments[0].labels",
    ] {
        assert!(answer.contains(field), "{field} is not named in {answer}");
    }
    for object in documents(VSPHERE) {
        env.apply(object).await;
    }
    env.create(&printed, "Ignore").await.unwrap();
    env.reconciled("ReconcileSucceeded").await;
    for deployment in env.generated("MachineDeployment").await {
        assert!(deployment["metadata"]["labels"].get("custom-label").is_none());
    }
    env.stop().await;
}

fn patched_class(change: impl FnOnce(&mut Value)) -> Value {
    let mut class = documents(VSPHERE)
        .into_iter()
        .find(|object| object["kind"] == "ClusterClass")
        .unwrap();
    class["spec"]["variables"] = json!([
        {"name": "region", "required": true, "schema": {"openAPIV3Schema": {"type": "string"}}},
        {"name": "controlPlaneMachineType", "required": false,
            "schema": {"openAPIV3Schema": {"type": "string", "default": "small"}}},
    ]);
    class["spec"]["patches"] = json!([{"name": "region", "definitions": [{
        "selector": {
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "VSphereClusterTemplate",
            "matchResources": {"infrastructureCluster": true},
        },
        "jsonPatches": [{"op": "replace", "path": "/spec/template/spec/server", "valueFrom": {"variable": "region"}}],
    }]}]);
    change(&mut class);
    class
}

// TO-003, TO-046, TO-079, TO-127: what the proposal's third and fourth example leave out is asked for by name.
#[tokio::test]
async fn what_the_examples_leave_out_is_asked_for() {
    let env = Env::start().await;
    let without = |class: Value, field: &'static str| (class, field);
    let cases = [
        without(
            patched_class(|class| {
                class["spec"]["variables"][1]
                    .as_object_mut()
                    .unwrap()
                    .remove("required");
            }),
            "spec.variables[1].required",
        ),
        without(
            patched_class(|class| {
                let selector = &mut class["spec"]["patches"][0]["definitions"][0]["selector"];
                selector.as_object_mut().unwrap().remove("matchResources");
            }),
            "spec.patches[0].definitions[0].selector.matchResources",
        ),
        without(
            patched_class(|class| {
                class["spec"].as_object_mut().unwrap().remove("infrastructure");
            }),
            "spec.infrastructure",
        ),
        without(
            {
                let mut cluster = founding_cluster();
                cluster["spec"]["topology"].as_object_mut().unwrap().remove("version");
                cluster
            },
            "spec.topology.version",
        ),
    ];
    for (object, field) in cases {
        let answer = env.refused(&object).await;
        assert!(
            answer.contains(&format!("{field}: Required value")),
            "{field}: {answer}"
        );
    }
    env.stop().await;
}

// TO-134, TO-142: typographic quotes in a path, and a variable that no class defines, end as words on the Cluster.
#[tokio::test]
async fn a_patch_as_printed_is_named_on_the_cluster() {
    let env = Env::start_unadmitted().await;
    let patch = |class: &mut Value| class["spec"]["patches"][0]["definitions"][0]["jsonPatches"][0].clone();
    let mut quoted = Value::Null;
    let class = patched_class(|class| {
        quoted = patch(class);
        quoted["path"] = json!("\u{201c}/spec/template/spec/server\u{201d}");
        class["spec"]["patches"][0]["definitions"][0]["jsonPatches"][0] = quoted.clone();
    });
    for object in documents(VSPHERE)
        .into_iter()
        .filter(|object| object["kind"] != "ClusterClass")
    {
        env.apply(object).await;
    }
    env.apply(class).await;
    let mut cluster = founding_cluster();
    cluster["spec"]["topology"]["variables"] = json!([{"name": "region", "value": "us-east-1"}]);
    env.apply(cluster).await;
    says(&env, "server\u{201d}").await;
    let class = patched_class(|class| {
        let mut undefined = patch(class);
        undefined["valueFrom"] = json!({"variable": "machineType"});
        class["spec"]["patches"][0]["definitions"][0]["jsonPatches"][0] = undefined;
    });
    env.apply(class).await;
    says(&env, "machineType").await;
    env.apply(patched_class(|_| {})).await;
    env.reconciled("ReconcileSucceeded").await;
    let infrastructure = env.generated("VSphereCluster").await.remove(0);
    assert_eq!(infrastructure["spec"]["server"], "us-east-1");
    env.stop().await;
}

async fn says(env: &Env, part: &str) {
    env.wait(&format!("words about {part}"), async || {
        let cluster = env.get("Cluster", "foo").await?;
        let found = condition(&cluster, "TopologyReconciled")?;
        (found["status"] == "False" && found["message"].as_str()?.contains(part)).then_some(())
    })
    .await;
}
