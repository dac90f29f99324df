//! Everything but the infrastructure provider on infrastructure that somebody else manages: Cluster, control plane, Machines and
//! topology wait for it, live on it and leave it, and know nothing of who writes it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use windlass_api::core::{Cluster, Machine};
use windlass_suite::controllers::CONTROLLERS;
use windlass_suite::kinds::KINDS;
use windlass_testkit::wait::{self, TIMEOUT};
use windlass_testkit::{ByHand, CLASS, ClusterOf, Env, ExternalSystem, NAMESPACE, free_port};

const MANAGED_BY: &str = "cluster.x-k8s.io/managed-by";
const HOST: &str = "127.0.0.1";
const CLASS_OF_EXTERNAL: &str = include_str!("../../../../examples/externally-managed/clusterclass.yaml");
const CLUSTER_WITH_CLASS: &str = include_str!("../../../../examples/externally-managed/cluster-with-class.yaml");

/// Words of a status are held back no longer than this: whoever does nothing for so long waits for an event.
const HELD_BACK: Duration = Duration::from_secs(4);

/// What the controllers did so far: writes, and looks by controller.
fn work(env: &Env) -> (BTreeMap<String, u64>, Vec<u64>) {
    let looks = CONTROLLERS
        .iter()
        .map(|one| env.metric("controller_runtime_reconcile_total", one.name).to_bits());
    (env.writes_by_kind(), looks.collect())
}

/// How many objects are being looked at: making keys takes a while.
fn busy(env: &Env) -> bool {
    let active = |name| env.metric("controller_runtime_active_workers", name) > 0.0;
    CONTROLLERS.iter().any(|one| active(one.name))
}

/// Waits until nobody writes and nobody even looks any more.
async fn rests(env: &Env) {
    let begun = Instant::now();
    let (mut before, mut since) = (work(env), Instant::now());
    let mut looks = tokio::time::interval(Duration::from_millis(50));
    while since.elapsed() < HELD_BACK {
        looks.tick().await;
        let now = work(env);
        if now != before || busy(env) {
            assert!(begun.elapsed() < 2 * TIMEOUT, "still at work: {before:?} -> {now:?}");
            (before, since) = (now, Instant::now());
        }
    }
}

/// An object of one of our kinds, once it is as it should be.
async fn wait(env: &Env, kind: &str, name: &str, what: &str, is_right: impl Fn(&Value) -> bool) -> Value {
    let entry = KINDS.iter().find(|entry| entry.kind == kind).unwrap();
    let gvk = GroupVersionKind::gvk(entry.group, entry.version, entry.kind);
    let resource = ApiResource::from_gvk_with_plural(&gvk, entry.plural);
    let value = |object: &DynamicObject| serde_json::to_value(object).unwrap();
    let found = wait::until(env.dynamic(kind), resource, Some(name), |all| {
        all.first().is_some_and(|object| is_right(&value(object)))
    });
    match found.await {
        Some(all) => value(&all[0]),
        None => panic!("{kind} {name} is never {what}: {}", env.explain().await),
    }
}

/// An object of one of our kinds.
async fn get(env: &Env, kind: &str, name: &str) -> Value {
    serde_json::to_value(env.dynamic(kind).get(name).await.unwrap()).unwrap()
}

async fn list(env: &Env, kind: &str) -> Vec<Value> {
    let all = env.dynamic(kind).list(&ListParams::default()).await.unwrap();
    let values = all
        .items
        .into_iter()
        .map(|object| serde_json::to_value(object).unwrap());
    values.collect()
}

fn condition<'a>(object: &'a Value, type_: &str) -> &'a Value {
    let mut all = object["status"]["conditions"].as_array().into_iter().flatten();
    all.find(|one| one["type"] == type_).unwrap_or(&Value::Null)
}

fn message<'a>(object: &'a Value, type_: &str) -> &'a str {
    condition(object, type_)["message"].as_str().unwrap_or_default()
}

/// Waits until a condition of the Cluster says this.
async fn cluster_says(env: &Env, cluster: &ByHand, type_: &str, words: &str) -> Value {
    let says = |object: &Cluster| message(&serde_json::to_value(object).unwrap(), type_) == words;
    let found = env
        .wait_for::<Cluster>(&cluster.key(), &format!("{type_}: {words}"), says)
        .await;
    serde_json::to_value(found).unwrap()
}

/// Nothing of the cluster has begun, every object says what it waits for, and nobody looks without an event.
async fn waits_for_infrastructure(env: &Env, cluster: &ByHand, control_plane_waits: &str, worker_waits: &str) {
    let object = get(env, "Cluster", cluster.name()).await;
    assert_eq!(object["status"]["phase"], "Provisioning");
    let name = format!("{}-control-plane", cluster.name());
    for type_ in ["EtcdClusterHealthy", "ControlPlaneComponentsHealthy"] {
        let is_right = |object: &Value| message(object, type_) == control_plane_waits;
        wait(env, "KubeadmControlPlane", &name, control_plane_waits, is_right).await;
    }
    rests(env).await;
    for set in list(env, "MachineSet").await {
        let blocked = message(&set, "ScalingUp");
        let waits = format!(
            "KubeadmControlPlane {NAMESPACE}/{}-control-plane is provisioning",
            cluster.name()
        );
        assert!(blocked.contains(&waits), "{blocked}");
    }
    let machines = list(env, "Machine").await;
    for machine in &machines {
        assert_eq!(machine["status"]["phase"], "Pending");
        assert_eq!(machine["spec"].get("providerID"), None);
        let bootstrap = message(machine, "BootstrapConfigReady");
        assert!(bootstrap.contains(worker_waits), "{bootstrap}");
    }
    for config in list(env, "KubeadmConfig").await {
        assert_eq!(config["status"].get("dataSecretName"), None);
        assert!(message(&config, "DataSecretAvailable").contains(worker_waits));
    }
    for machine in list(env, "DevMachine").await {
        let status = &machine["status"];
        assert_eq!(status["initialization"].get("provisioned"), None, "{machine}");
        let ready = condition(&machine, "Ready");
        assert_eq!(ready["status"], "False", "{machine}");
    }
    for kind in [
        "Cluster",
        "KubeadmControlPlane",
        "KubeadmConfig",
        "Machine",
        "MachineSet",
        "MachineDeployment",
        "DevMachine",
    ] {
        for object in list(env, kind).await {
            for one in object["status"]["conditions"].as_array().into_iter().flatten() {
                let reason = one["reason"].as_str().unwrap();
                // That nothing answers yet is v1.14's way to wait for a first answer.
                let waits = ["InspectionFailed", "ProbeFailed"].contains(&reason);
                let bad = reason == "InternalError" || reason.contains("Failed");
                assert!(!bad || waits, "{kind} says {one}");
            }
        }
    }
}

async fn at_infrastructure(env: &Env, cluster: &ByHand) {
    waits_for_infrastructure(
        env,
        cluster,
        "Waiting for Cluster status.initialization.infrastructureProvisioned to be true",
        "Waiting for Cluster status.initialization.infrastructureProvisioned to be true",
    )
    .await;
}

async fn at_endpoint(env: &Env, cluster: &ByHand) {
    waits_for_infrastructure(
        env,
        cluster,
        "Waiting for Cluster spec.controlPlaneEndpoint.host and spec.controlPlaneEndpoint.port to be set",
        "Waiting for Cluster control plane to be initialized",
    )
    .await;
}

// EX-012, EX-040, EX-047, EX-055, EX-056: an external system that writes one field after the other, and takes its time: nobody
// looks without an event, everybody says what is missing, and the last write starts the machines.
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

    system.set_endpoint("slow", HOST, free_port()).await;
    cluster.wait_running(&env).await;
    env.stop().await;
}

/// A kind of infrastructure that nothing of ours has ever heard of.
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

/// How often controllers wrote objects of the kind, by verb.
fn writes_to_terra(env: &Env) -> BTreeMap<String, u64> {
    let writes = env.writes_by_kind().into_iter();
    writes.filter(|(what, _)| what.contains("terraclusters")).collect()
}

// EX-004, EX-005, EX-006, EX-009, EX-050, EX-057, EX-058, EX-060, EX-063, EX-067, EX-095: a whole life on infrastructure of a kind
// that no controller knows. Its owner brings it up, workers come and go, the owner tears it down last.
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
        "spec": {"vpc": "vpc-1", "controlPlaneEndpoint": {"host": HOST, "port": free_port()}},
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

// The external side deletes its object while machines run: the Cluster says so, nobody makes it again, machines go on and more of
// them come, and the Cluster can still be deleted.
#[tokio::test]
async fn machines_go_on_when_the_external_object_is_gone() {
    let env = Env::start().await;
    let cluster = ByHand::new("orphan", 1, 1);
    let system = ExternalSystem::new(&env);
    system.create(&cluster).await;
    system.provision("orphan", HOST, free_port()).await;
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
    assert!(list(&env, "DevCluster").await.is_empty(), "nobody makes it again");
    let object = get(&env, "Cluster", "orphan").await;
    assert_eq!(object["status"]["phase"], "Provisioned");
    env.delete("Cluster", "orphan").await;
    env.wait_gone("orphan").await;
    env.stop().await;
}

// EX-011, EX-013, EX-039, EX-058, EX-096: no annotation comes by itself, and one on anything but an InfraCluster means nothing.
#[tokio::test]
async fn the_annotation_means_nothing_on_any_other_kind() {
    let env = Env::start().await;
    env.apply_yaml(CLASS).await;
    let stored = env.stored().await;
    let cluster = ClusterOf::new("plain", 1, 1);
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    let mark = json!({"metadata": {"annotations": {(MANAGED_BY): "somebody"}}});
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

// EX-064, EX-065: a Cluster of a class with the annotation in its template, from nothing to nothing: what the external system
// writes beside the template's fields stays, and what is deleted is the object.
#[tokio::test]
async fn a_cluster_of_an_external_class_lives_and_goes() {
    let env = Env::start().await;
    env.apply_yaml(CLASS_OF_EXTERNAL).await;
    let stored = env.stored().await;
    let mut object: Value = serde_saphyr::from_str(CLUSTER_WITH_CLASS).unwrap();
    object["metadata"]["name"] = json!("classy");
    object["spec"]["topology"]["controlPlane"]["replicas"] = json!(1);
    object["spec"]["topology"]["workers"]["machineDeployments"][0]["replicas"] = json!(1);
    env.apply(&object).await;
    let cluster = ClusterOf::new("classy", 1, 1);
    let named = env
        .wait_for::<Cluster>(&cluster.key(), "it names its infrastructure", |cluster| {
            cluster.spec.infrastructure_ref.is_some()
        })
        .await;
    let name = named.spec.infrastructure_ref.unwrap().name;
    let infrastructure = wait(&env, "DevCluster", &name, "there", |_| true).await;
    assert_eq!(infrastructure["metadata"]["annotations"][MANAGED_BY], "terraform");
    let system = ExternalSystem::new(&env);
    system
        .merge(
            &name,
            &json!({"metadata": {"annotations": {"terraform.io/run": "1"}, "labels": {"net": "n1"}}}),
        )
        .await;
    system.provision(&name, HOST, free_port()).await;
    cluster.wait_running(&env).await;
    let cluster = cluster.version("v1.36.0");
    env.merge(
        "Cluster",
        "classy",
        &json!({"spec": {"topology": {"version": "v1.36.0"}}}),
    )
    .await;
    cluster.wait_running(&env).await;
    let after = get(&env, "DevCluster", &name).await;
    assert_eq!(after["metadata"]["annotations"]["terraform.io/run"], "1");
    assert_eq!(after["metadata"]["labels"]["net"], "n1");
    let written = after["metadata"]["managedFields"].as_array().unwrap().iter();
    let managers: Vec<&str> = written.map(|entry| entry["manager"].as_str().unwrap()).collect();
    assert!(
        managers
            .iter()
            .all(|manager| ["terraform", "capi-topology", "capi-manager"].contains(manager)),
        "{managers:?}"
    );
    env.delete("Cluster", "classy").await;
    env.wait_gone("classy").await;
    assert_eq!(env.stored().await, stored);
    env.stop().await;
}

/// Objects as another management cluster gets them: without status and without anything that the server gave them.
fn stripped(mut object: Value) -> Value {
    object.as_object_mut().unwrap().remove("status");
    let metadata = object["metadata"].as_object_mut().unwrap();
    for given in [
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "managedFields",
    ] {
        metadata.remove(given);
    }
    object
}

/// Moves all objects of our kinds, owners before what they own, with their owner references rewritten.
async fn move_all(from: &Env, to: &Env) {
    let mut left = Vec::new();
    for kind in KINDS {
        left.extend(list(from, kind.kind).await);
    }
    let mut uids: BTreeMap<String, Value> = BTreeMap::new();
    while !left.is_empty() {
        let known = |object: &Value| {
            let owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
            owners
                .into_iter()
                .all(|owner| uids.contains_key(owner["uid"].as_str().unwrap()))
        };
        let (now, later): (Vec<Value>, Vec<Value>) = left.into_iter().partition(known);
        assert!(!now.is_empty(), "an owner is missing: {later:?}");
        for object in now {
            let old = object["metadata"]["uid"].as_str().unwrap().to_owned();
            let mut new = stripped(object);
            for owner in new["metadata"]["ownerReferences"].as_array_mut().into_iter().flatten() {
                owner["uid"] = uids[owner["uid"].as_str().unwrap()].clone();
            }
            let api = to.dynamic(new["kind"].as_str().unwrap());
            let new = serde_json::from_value(new).unwrap();
            let created = api.create(&PostParams::default(), &new).await.unwrap();
            uids.insert(old, json!(created.metadata.uid));
        }
        left = later;
    }
}

// EX-066: annotation, spec and owner references travel to another management cluster, the status does not: there the Cluster waits
// until the external system has written it.
#[tokio::test]
async fn a_moved_cluster_waits_until_its_status_is_written_there() {
    let source = Env::start().await;
    let mut cluster = ByHand::new("moved", 1, 1);
    let system = ExternalSystem::new(&source);
    system.create(&cluster).await;
    // Without a control plane nothing runs yet that would have to be moved with it.
    for mut object in cluster.objects() {
        match object["kind"].as_str().unwrap() {
            "KubeadmControlPlane" | "DevCluster" => continue,
            "Cluster" => drop(object["spec"].as_object_mut().unwrap().remove("controlPlaneRef")),
            _ => {}
        }
        source.apply(&object).await;
    }
    let port = free_port();
    system.provision("moved", HOST, port).await;
    let provisioned = |cluster: &Cluster| {
        let status = cluster.status.as_ref();
        let done = status.and_then(|status| status.initialization.as_ref());
        done.and_then(|done| done.infrastructure_provisioned) == Some(true)
            && cluster.spec.control_plane_endpoint.is_some()
    };
    source
        .wait_for::<Cluster>(&cluster.key(), "provisioned", provisioned)
        .await;
    source
        .wait_all::<Machine>("a worker", |machines| machines.len() == 1)
        .await;
    source
        .merge("Cluster", "moved", &json!({"spec": {"paused": true}}))
        .await;
    rests(&source).await;

    let target = Env::start().await;
    move_all(&source, &target).await;
    rests(&target).await;
    let paused = get(&target, "Cluster", "moved").await;
    assert_eq!(
        paused["status"].get("initialization"),
        None,
        "a paused Cluster takes nothing over"
    );
    target
        .merge("Cluster", "moved", &json!({"spec": {"paused": false}}))
        .await;
    let waits = "DevCluster moved: status.initialization.provisioned is false";
    cluster_says(&target, &cluster, "InfrastructureReady", waits).await;
    rests(&target).await;
    let object = get(&target, "Cluster", "moved").await;
    assert_eq!(object["status"]["phase"], "Provisioning");
    assert_eq!(
        object["spec"]["controlPlaneEndpoint"],
        json!({"host": HOST, "port": port})
    );
    let infrastructure = get(&target, "DevCluster", "moved").await;
    assert_eq!(infrastructure["metadata"]["annotations"][MANAGED_BY], "terraform");
    assert_eq!(infrastructure["spec"]["controlPlaneEndpoint"]["port"], port);
    assert_eq!(infrastructure.get("status"), None);
    assert_eq!(
        infrastructure["metadata"]["ownerReferences"][0]["uid"],
        object["metadata"]["uid"]
    );
    let before = get(&source, "DevCluster", "moved").await;
    assert_ne!(infrastructure["metadata"]["uid"], before["metadata"]["uid"]);
    for config in list(&target, "KubeadmConfig").await {
        let waits = "Waiting for Cluster status.initialization.infrastructureProvisioned to be true";
        assert_eq!(message(&config, "DataSecretAvailable"), waits);
    }

    // The external system writes there what it wrote here, and the control plane may come.
    source.stop().await;
    let system = ExternalSystem::new(&target);
    system.set_provisioned("moved").await;
    target
        .wait_for::<Cluster>(&cluster.key(), "provisioned", provisioned)
        .await;
    cluster = cluster.workers(1);
    cluster.apply_rest(&target).await;
    cluster.wait_running(&target).await;
    target.stop().await;
}

// What a Machine refers to may come long after it, made by somebody who knows nothing of the Machine.
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

// EX-065, EX-079: a class that loses the annotation cannot take it from its clusters: the Cluster repeats what admission says,
// attempts become rare, and nothing is lost.
#[tokio::test]
async fn a_class_cannot_take_the_annotation_away() {
    let env = Env::start().await;
    env.apply_yaml(CLASS_OF_EXTERNAL).await;
    let mut object: Value = serde_saphyr::from_str(CLUSTER_WITH_CLASS).unwrap();
    object["metadata"]["name"] = json!("kept");
    env.apply(&object).await;
    let key = ClusterOf::new("kept", 1, 1).key();
    let named = env
        .wait_for::<Cluster>(&key, "it names its infrastructure", |cluster| {
            cluster.spec.infrastructure_ref.is_some()
        })
        .await;
    let name = named.spec.infrastructure_ref.unwrap().name;
    wait(&env, "DevCluster", &name, "there", |_| true).await;
    let annotation = |value: Value| json!({"spec": {"template": {"metadata": {"annotations": {(MANAGED_BY): value}}}}});
    env.merge("DevClusterTemplate", "externally-managed", &annotation(Value::Null))
        .await;
    let refused = |object: &Value| {
        let condition = condition(object, "TopologyReconciled");
        let words = "removal of externally managed annotation is not allowed";
        condition["status"] == "False"
            && condition["message"]
                .as_str()
                .is_some_and(|message| message.contains(words))
    };
    let cluster = wait(&env, "Cluster", "kept", "refused", refused).await;
    assert!(message(&cluster, "TopologyReconciled").contains(&name));
    let attempts = || env.writes_to("DevCluster", &name).values().sum::<u64>();
    let (begun, mut last, mut since) = (Instant::now(), attempts(), Instant::now());
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    while since.elapsed() < Duration::from_secs(1) {
        looks.tick().await;
        if attempts() != last {
            assert!(begun.elapsed() < TIMEOUT, "{last} attempts");
            (last, since) = (attempts(), Instant::now());
        }
    }
    assert!(last < 40, "{last} attempts");
    let infrastructure = get(&env, "DevCluster", &name).await;
    assert_eq!(infrastructure["metadata"]["annotations"][MANAGED_BY], "terraform");
    env.merge(
        "DevClusterTemplate",
        "externally-managed",
        &annotation(json!("terraform")),
    )
    .await;
    let good = |object: &Value| condition(object, "TopologyReconciled")["status"] == "True";
    wait(&env, "Cluster", "kept", "good again", good).await;
    env.stop().await;
}
