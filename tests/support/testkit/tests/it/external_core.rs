//! All controllers but the infrastructure provider on externally managed infrastructure: Cluster, control plane, Machines and
//! topology wait for it, use it and release it, independent of its writer.

mod classes;
mod view;

use std::collections::BTreeMap;

use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use windlass_api::core::Machine;
use windlass_manager::registry::kinds::KINDS;
use windlass_testkit::{ByHand, CLASS, ClusterOf, Env, ExternalSystem, NAMESPACE, reserved_port};

use self::view::{
    HOST, MANAGED_BY, at_endpoint, at_infrastructure, cluster_says, condition, get, list, message, rests, wait,
};

// EX-012, EX-040, EX-047, EX-055, EX-056, CL-102: an external system that writes one field after the other, slowly: no controller
// reconciles without an event, each object reports what is missing, and the last write starts the machines.
#[tokio::test]
async fn everything_waits_for_the_external_system_and_says_for_what() {
    let env = Env::start().await;
    let cluster = ByHand::new("slow", 1, 1);
    let system = ExternalSystem::new(&env);
    system.create(&cluster).await;
    cluster.apply_rest(&env).await;
    let flag = "DevCluster slow: status.initialization.provisioned is false";
    cluster_says(&env, &cluster, "InfrastructureReady", flag).await;
    at_infrastructure(&env, &cluster).await;

    system
        .merge("slow", &json!({"spec": {"controlPlaneEndpoint": {"host": HOST}}}))
        .await;
    let words = format!("{flag}, spec.controlPlaneEndpoint.port is not set");
    let object = cluster_says(&env, &cluster, "InfrastructureReady", &words).await;
    assert_eq!(condition(&object, "InfrastructureReady")["status"], "False");
    at_infrastructure(&env, &cluster).await;

    system.set_provisioned("slow").await;
    let words = "Control plane not yet initialized\nCluster spec.controlPlaneEndpoint is not set, DevCluster slow: \
        spec.controlPlaneEndpoint.port is not set";
    let object = cluster_says(&env, &cluster, "ControlPlaneInitialized", words).await;
    assert_eq!(object["status"]["initialization"]["infrastructureProvisioned"], true);
    at_endpoint(&env, &cluster).await;

    system.set_endpoint("slow", HOST, reserved_port()).await;
    cluster.wait_running(&env).await;
    env.stop().await;
}

/// A kind of infrastructure that our controllers do not know.
fn definition() -> Value {
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "terraclusters.infrastructure.example.org", "labels": {"cluster.x-k8s.io/v1beta2": "v1"}},
        "spec": {
            "group": "infrastructure.example.org", "scope": "Namespaced",
            "names": {"kind": "TerraCluster", "listKind": "TerraClusterList", "plural": "terraclusters", "singular": "terracluster"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}},
            }],
        },
    })
}

async fn terra(env: &Env) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let definitions: Api<DynamicObject> = Api::all_with(env.client().clone(), &ApiResource::from_gvk(&gvk));
    let definition = serde_json::from_value(definition()).unwrap();
    definitions.create(&PostParams::default(), &definition).await.unwrap();
    let gvk = GroupVersionKind::gvk("infrastructure.example.org", "v1", "TerraCluster");
    Api::namespaced_with(env.client().clone(), NAMESPACE, &ApiResource::from_gvk(&gvk))
}

/// The number of writes by controllers to objects of the kind, by verb.
fn writes_to_terra(env: &Env) -> BTreeMap<String, u64> {
    let writes = env.writes_by_kind().into_iter();
    writes.filter(|(what, _)| what.contains("terraclusters")).collect()
}

// EX-004, EX-005, EX-006, EX-009, EX-050, EX-057, EX-058, EX-060, EX-063, EX-067, EX-095, CL-063: a whole life on infrastructure of a
// kind that no controller knows. Its owner provisions it, workers come and go, and its owner removes it last.
#[tokio::test]
async fn a_cluster_lives_on_a_kind_that_has_no_controller() {
    let env = Env::start().await;
    let terra = terra(&env).await;
    let cluster = ByHand::new("live", 1, 1);
    for mut object in cluster.objects() {
        match object["kind"].as_str().unwrap() {
            "DevCluster" => continue,
            "Cluster" => {
                object["spec"]["infrastructureRef"] =
                    json!({"apiGroup": "infrastructure.example.org", "kind": "TerraCluster", "name": "live"});
            }
            _ => {}
        }
        env.apply(&object).await;
    }
    cluster_says(&env, &cluster, "InfrastructureReady", "TerraCluster does not exist").await;
    let object = json!({
        "apiVersion": "infrastructure.example.org/v1", "kind": "TerraCluster",
        "metadata": {"name": "live", "annotations": {(MANAGED_BY): "terraform"}, "finalizers": ["example.org/teardown"]},
        "spec": {"vpc": "vpc-1", "controlPlaneEndpoint": {"host": HOST, "port": reserved_port()}},
    });
    let object = serde_json::from_value(object).unwrap();
    terra.create(&PostParams::default(), &object).await.unwrap();
    let waits = "TerraCluster live: status.initialization.provisioned is false";
    cluster_says(&env, &cluster, "InfrastructureReady", waits).await;
    at_infrastructure(&env, &cluster).await;

    let status = json!({"status": {"initialization": {"provisioned": true},
        "failureDomains": [{"name": "zone-a", "controlPlane": true}]}});
    let params = PatchParams::default();
    terra
        .patch_status("live", &params, &Patch::Merge(&status))
        .await
        .unwrap();
    cluster.wait_running(&env).await;
    let object = get(&env, "Cluster", "live").await;
    assert_eq!(
        object["status"]["failureDomains"],
        json!([{"name": "zone-a", "controlPlane": true}])
    );
    let one = BTreeMap::from([("apply terraclusters".to_owned(), 1)]);
    assert_eq!(writes_to_terra(&env), one, "adopted, and nothing else");

    let scale = async |workers: usize| {
        let cluster = cluster.clone().workers(workers);
        env.merge(
            "MachineDeployment",
            "live-workers",
            &json!({"spec": {"replicas": workers}}),
        )
        .await;
        cluster.wait_running(&env).await;
    };
    scale(0).await;
    scale(3).await;
    assert_eq!(writes_to_terra(&env), one);
    let live = serde_json::to_value(terra.get("live").await.unwrap()).unwrap();
    assert_eq!(live["spec"]["vpc"], "vpc-1");

    env.delete("Cluster", "live").await;
    let held = "Waiting for TerraCluster live to be deleted, it is held by finalizer example.org/teardown";
    cluster_says(&env, &cluster, "Deleting", held).await;
    assert!(
        list(&env, "Machine").await.is_empty(),
        "the infrastructure is asked last"
    );
    let free = json!({"metadata": {"finalizers": null}});
    terra.patch("live", &params, &Patch::Merge(&free)).await.unwrap();
    env.wait_gone("live").await;
    assert!(terra.list(&ListParams::default()).await.unwrap().items.is_empty());
    let both = BTreeMap::from([
        ("apply terraclusters".to_owned(), 1),
        ("delete terraclusters".to_owned(), 1),
    ]);
    assert_eq!(writes_to_terra(&env), both);
    env.stop().await;
}

// CL-015: the external system deletes its object while machines run: the Cluster reports it, no controller creates it again, machines
// keep running and can be added, and the Cluster can still be deleted.
#[tokio::test]
async fn machines_go_on_when_the_external_object_is_gone() {
    let env = Env::start().await;
    let cluster = ByHand::new("orphan", 1, 1);
    let system = ExternalSystem::new(&env);
    system.create(&cluster).await;
    system.provision("orphan", HOST, reserved_port()).await;
    cluster.apply_rest(&env).await;
    cluster.wait_running(&env).await;
    let before: Vec<_> = env
        .list::<Machine>()
        .await
        .into_iter()
        .map(|machine| machine.metadata.uid)
        .collect();
    env.dynamic("DevCluster")
        .delete("orphan", &DeleteParams::default())
        .await
        .unwrap();
    let gone = "DevCluster has been deleted while the cluster still exists";
    let object = cluster_says(&env, &cluster, "InfrastructureReady", gone).await;
    assert_eq!(condition(&object, "InfrastructureReady")["reason"], "ObjectDeleted");
    env.merge("MachineDeployment", "orphan-workers", &json!({"spec": {"replicas": 2}}))
        .await;
    let grown = |machines: &[Machine]| {
        let running = |machine: &Machine| {
            machine
                .status
                .as_ref()
                .is_some_and(|s| s.phase.as_deref() == Some("Running"))
        };
        machines.len() == 3 && machines.iter().all(running)
    };
    let machines = env.wait_all::<Machine>("three machines that run", grown).await;
    assert!(
        before
            .iter()
            .all(|uid| machines.iter().any(|machine| machine.metadata.uid == *uid))
    );
    assert!(
        list(&env, "DevCluster").await.is_empty(),
        "no controller creates it again"
    );
    let object = get(&env, "Cluster", "orphan").await;
    assert_eq!(object["status"]["phase"], "Provisioned");
    env.delete("Cluster", "orphan").await;
    env.wait_gone("orphan").await;
    env.stop().await;
}

// EX-011, EX-013, EX-039, EX-058, EX-096: no controller adds the annotation, and on objects other than an InfraCluster it has no
// effect.
#[tokio::test]
async fn the_annotation_means_nothing_on_any_other_kind() {
    let env = Env::start().await;
    env.apply_yaml(CLASS).await;
    let stored = env.stored().await;
    let cluster = ClusterOf::new("plain", 1, 1);
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    let mark = json!({"metadata": {"annotations": {(MANAGED_BY): "other"}}});
    let mut marked = Vec::new();
    for kind in KINDS {
        for object in list(&env, kind.kind).await {
            let annotations = &object["metadata"]["annotations"];
            assert_eq!(annotations.get(MANAGED_BY), None, "{object}");
            if !kind.kind.starts_with("DevCluster") {
                marked.push((kind.kind, object["metadata"]["name"].as_str().unwrap().to_owned()));
            }
        }
    }
    for (kind, name) in &marked {
        env.merge(kind, name, &mark).await;
    }
    let marked = marked.len();
    assert!(marked > 10, "{marked} objects");
    let cluster = cluster.workers(2);
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    let worker = cluster.machines(&env.list::<Machine>().await, false)[0]
        .metadata
        .name
        .clone();
    env.delete("Machine", &worker.unwrap()).await;
    let cluster = cluster.version("v1.36.0");
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    env.delete("Cluster", "plain").await;
    env.wait_gone("plain").await;
    assert_eq!(env.stored().await, stored);
    env.stop().await;
}

// The objects that a Machine refers to may come long after it, created by a client that does not know the Machine.
#[tokio::test]
async fn a_machine_may_come_before_its_infrastructure() {
    let env = Env::start().await;
    let cluster = ByHand::new("late", 0, 0);
    env.apply(&cluster.object("Cluster")).await;
    let machine = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": {"name": "m", "namespace": NAMESPACE},
        "spec": {"clusterName": "late", "version": "v1.35.0", "bootstrap": {"dataSecretName": "data"},
            "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": "m"}},
    });
    env.apply(&machine).await;
    let missing = |object: &Value| message(object, "InfrastructureReady") == "DevMachine does not exist";
    wait(&env, "Machine", "m", "without its infrastructure", missing).await;
    rests(&env).await;
    let infrastructure = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DevMachine", "metadata": {"name": "m", "namespace": NAMESPACE},
        "spec": {"backend": {"inMemory": {}}},
    });
    env.apply(&infrastructure).await;
    let owned = |object: &Value| object["metadata"]["ownerReferences"][0]["kind"] == "Machine";
    wait(&env, "DevMachine", "m", "the Machine's", owned).await;
    env.stop().await;
}
