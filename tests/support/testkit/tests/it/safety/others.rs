//! Objects that other programs and people make, in their own order and without what our controllers would write.

use k8s_openapi::api::autoscaling::v1::Scale;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use windlass_api::core::{Cluster, Machine, MachineDeployment};
use windlass_meta::ObjectKey;
use windlass_testkit::{CLASS, ClusterOf, Env, Kind, NAMESPACE};

use super::lost::pause;
use super::{hosts, running};

const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";
const BOOTSTRAP: &str = "bootstrap.cluster.x-k8s.io";

/// Workers as a Git repository has them: templates and a MachineDeployment, with no label of their Cluster anywhere.
fn workers(cluster: &str, name: &str, replicas: Option<i32>) -> Vec<Value> {
    let metadata = json!({"name": name, "namespace": NAMESPACE});
    let object = |group: &str, kind: &str, spec: Value| {
        json!({
            "apiVersion": format!("{group}/v1beta2"), "kind": kind, "metadata": metadata,
            "spec": {"template": {"spec": spec}},
        })
    };
    let registration = json!({"nodeRegistration": {"criSocket": "unix:///run/containerd/containerd.sock"}});
    let mut deployment = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment", "metadata": metadata,
        "spec": {
            "clusterName": cluster,
            "replicas": replicas,
            "selector": {"matchLabels": {}},
            "template": {"spec": {
                "clusterName": cluster, "version": "v1.35.0",
                "bootstrap": {"configRef": {"apiGroup": BOOTSTRAP, "kind": "KubeadmConfigTemplate", "name": name}},
                "infrastructureRef": {"apiGroup": INFRASTRUCTURE, "kind": "DevMachineTemplate", "name": name},
            }},
        },
    });
    if replicas.is_none() {
        deployment["spec"].as_object_mut().unwrap().remove("replicas");
    }
    vec![
        object(
            INFRASTRUCTURE,
            "DevMachineTemplate",
            json!({"backend": {"inMemory": {}}}),
        ),
        object(
            BOOTSTRAP,
            "KubeadmConfigTemplate",
            json!({"joinConfiguration": registration}),
        ),
        deployment,
    ]
}

/// What a GitOps tool does every few minutes.
async fn sync(env: &Env, manifests: &[Value]) {
    for manifest in manifests {
        let kind = manifest["kind"].as_str().unwrap_or_default();
        let name = manifest["metadata"]["name"].as_str().unwrap_or_default();
        let parameters = PatchParams::apply("gitops").force();
        let sent = env
            .dynamic(kind)
            .patch(name, &parameters, &Patch::Apply(manifest))
            .await;
        sent.unwrap_or_else(|error| panic!("cannot apply {kind} {name}: {error}"));
    }
}

async fn has_machines(env: &Env, deployment: &str, count: i32) -> MachineDeployment {
    let key = ObjectKey::new(NAMESPACE, deployment);
    env.wait_for::<MachineDeployment>(&key, &format!("with {count} Machines"), |found| {
        let Some(status) = &found.status else { return false };
        let counts = [
            status.replicas,
            status.ready_replicas,
            status.available_replicas,
            status.up_to_date_replicas,
        ];
        counts.iter().all(|found| *found == Some(count)) && status.observed_generation == found.metadata.generation
    })
    .await
}

#[tokio::test]
async fn workers_of_a_git_repository_need_no_labels_and_are_written_by_one_hand() {
    let env = Env::start().await;
    let cluster = ClusterOf::new("git", 1, 0);
    running(&env, &cluster).await;
    let manifests = workers("git", "from-git", Some(2));
    sync(&env, &manifests).await;
    let deployment = has_machines(&env, "from-git", 2).await;
    let labels = deployment.metadata.labels.unwrap_or_default();
    assert_eq!(
        labels.get("cluster.x-k8s.io/cluster-name").map(String::as_str),
        Some("git")
    );
    env.wait_for::<Cluster>(&cluster.key(), "counting the workers", |cluster| {
        let workers = cluster.status.as_ref().and_then(|status| status.workers.as_ref());
        workers.and_then(|workers| workers.available_replicas) == Some(2)
    })
    .await;
    env.rest().await;
    // The next syncs find nothing to change, and change nothing.
    let (before, machines) = (env.all().await, hosts(&env).await);
    for _ in 0..2 {
        sync(&env, &manifests).await;
        env.rest().await;
    }
    // A real API server notes a new time for the manager: admission completes the selector only after it has compared what is applied.
    let ignored: &[&str] = match env.server().kind() {
        Kind::Real => &["metadata.resourceVersion"],
        Kind::Embedded | Kind::Socket => &[],
    };
    let found = windlass_testkit::rest::differences(&before, &env.all().await, ignored);
    assert!(
        found.is_empty(),
        "changed by a sync without changes:\n{}",
        found.join("\n")
    );
    assert_eq!(hosts(&env).await, machines);
    env.delete("Cluster", "git").await;
    env.wait_gone("git").await;
    assert!(
        env.list::<MachineDeployment>().await.is_empty(),
        "it goes with its Cluster"
    );
    env.stop().await;
}

#[tokio::test]
async fn a_paused_cluster_that_comes_first_starts_with_all_that_came_after() {
    let env = Env::start().await;
    let cluster = ClusterOf::new("early", 1, 1);
    let mut object = cluster.object();
    object["spec"]["paused"] = true.into();
    env.apply(&object).await;
    env.apply_yaml(CLASS).await;
    sync(&env, &workers("early", "late", Some(1))).await;
    env.rest().await;
    assert!(hosts(&env).await.is_empty(), "a paused cluster has no Machines yet");
    pause(&env, &cluster, false).await;
    has_machines(&env, "late", 1).await;
    env.wait_all::<Machine>("one of each", |machines| {
        let runs =
            |machine: &Machine| machine.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
        machines.len() == 3 && machines.iter().all(runs)
    })
    .await;
    env.stop().await;
}

/// What `kubectl scale` sends.
async fn scale(env: &Env, kind: &str, name: &str, replicas: i32) {
    let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
    let sent = env
        .dynamic(kind)
        .patch_scale(name, &PatchParams::default(), &patch)
        .await;
    sent.unwrap_or_else(|error| panic!("cannot scale {kind} {name}: {error}"));
}

/// What an autoscaler reads.
async fn scale_of(env: &Env, kind: &str, name: &str) -> Scale {
    let read = env.dynamic(kind).get_scale(name).await;
    read.unwrap_or_else(|error| panic!("cannot read the scale of {kind} {name}: {error}"))
}

#[tokio::test]
async fn kubectl_scale_counts_and_is_kept() {
    let env = Env::start().await;
    let cluster = ClusterOf::new("scaled", 1, 0);
    running(&env, &cluster).await;
    sync(&env, &workers("scaled", "md", Some(1))).await;
    has_machines(&env, "md", 1).await;
    scale(&env, "MachineDeployment", "md", 3).await;
    has_machines(&env, "md", 3).await;
    scale(&env, "MachineDeployment", "md", 2).await;
    has_machines(&env, "md", 2).await;
    env.rest().await;
    let found = scale_of(&env, "MachineDeployment", "md").await;
    assert_eq!(found.spec.and_then(|spec| spec.replicas), Some(2));
    let status = found.status.unwrap_or_default();
    assert_eq!(status.replicas, 2);
    let selector = status.selector.unwrap_or_default();
    let selected = kube::api::ListParams::default().labels(&selector);
    let machines: Vec<DynamicObject> = env.dynamic("Machine").list(&selected).await.unwrap().items;
    assert_eq!(machines.len(), 2, "{selector}");
    env.stop().await;
}

/// A DevCluster with this owner.
fn dev_cluster(name: &str, owner: &Value) -> Value {
    json!({
        "apiVersion": format!("{INFRASTRUCTURE}/v1beta2"), "kind": "DevCluster",
        "metadata": {
            "name": name, "namespace": NAMESPACE, "labels": {"cluster.x-k8s.io/cluster-name": name},
            "ownerReferences": if owner.is_null() { json!([]) } else { json!([owner]) },
        },
        "spec": {"backend": {"inMemory": {}}},
    })
}

// CL-042, CL-043, CL-052, CL-054, CL-088: nothing is done for infrastructure without a Cluster as its owner, or whose Cluster does not
// exist. Garbage collection leaves these owners, as it cannot look them up: their kind or version is not served.
#[tokio::test]
async fn infrastructure_waits_for_its_cluster() {
    let env = Env::start().await;
    let owner =
        |version: &str| json!({"apiVersion": version, "kind": "Cluster", "name": "ghost", "uid": "of-another-time"});
    for (name, owner) in [
        ("alone", Value::Null),
        ("foreign", owner("x.io/v1")),
        ("ghost", owner("cluster.x-k8s.io/v1alpha3")),
    ] {
        env.apply(&dev_cluster(name, &owner)).await;
    }
    running(&env, &ClusterOf::new("busy", 1, 0)).await;
    let stored = async |name: &str| {
        let found = env.dynamic("DevCluster").get(name).await;
        serde_json::to_value(found.unwrap()).unwrap()
    };
    for name in ["alone", "foreign"] {
        let found = stored(name).await;
        assert_eq!(found["metadata"].get("finalizers"), None, "{found:#}");
        assert_eq!(found.get("status"), None, "{found:#}");
        assert_eq!(found["spec"].get("controlPlaneEndpoint"), None, "{found:#}");
    }
    assert_eq!(stored("ghost").await["spec"].get("controlPlaneEndpoint"), None);

    env.apply(&json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": "ghost", "namespace": NAMESPACE},
        "spec": {"infrastructureRef": {"apiGroup": INFRASTRUCTURE, "kind": "DevCluster", "name": "ghost"}},
    }))
    .await;
    let key = ObjectKey::new(NAMESPACE, "ghost");
    env.wait_for::<Cluster>(&key, "with an endpoint", |cluster| {
        cluster.spec.control_plane_endpoint.is_some()
    })
    .await;
    let found = stored("ghost").await;
    let owners = found["metadata"]["ownerReferences"].as_array().unwrap();
    assert_eq!(
        (owners.len(), &owners[0]["apiVersion"]),
        (1, &json!("cluster.x-k8s.io/v1beta2"))
    );
    env.delete("Cluster", "ghost").await;
    env.wait_gone("ghost").await;
    env.stop().await;
}

// A worker set of a topology is handed over to an autoscaler by leaving its replicas out: no Machine goes, the autoscaler's number
// stays, and its scale can be read all the time.
#[tokio::test]
async fn a_topology_hands_replicas_over_to_an_autoscaler() {
    let env = Env::start().await;
    let cluster = ClusterOf::new("auto", 1, 3);
    running(&env, &cluster).await;
    let before = hosts(&env).await;
    let name = env.list::<MachineDeployment>().await[0]
        .metadata
        .name
        .clone()
        .unwrap_or_default();
    let bounds = json!({
        "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size": "1",
        "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size": "5",
    });
    let mut object = cluster.object();
    let entry = &mut object["spec"]["topology"]["workers"]["machineDeployments"][0];
    entry.as_object_mut().unwrap().remove("replicas");
    entry["metadata"]["annotations"] = bounds;
    env.apply(&object).await;
    let key = ObjectKey::new(NAMESPACE, name.as_str());
    env.wait_for::<MachineDeployment>(&key, "whose replicas no topology sets", |found| {
        let fields = found.metadata.managed_fields.iter().flatten();
        let mut of_topology = fields.filter(|one| one.manager.as_deref() == Some("capi-topology"));
        let sets = |value: &Value| value["f:spec"].get("f:replicas").is_some();
        found.spec.replicas == Some(3)
            && !of_topology.any(|one| one.fields_v1.as_ref().is_some_and(|fields| sets(&fields.0)))
    })
    .await;
    env.rest().await;
    assert_eq!(hosts(&env).await, before);
    let read = async || {
        scale_of(&env, "MachineDeployment", &name)
            .await
            .spec
            .and_then(|spec| spec.replicas)
    };
    assert_eq!(read().await, Some(3));
    scale(&env, "MachineDeployment", &name, 2).await;
    has_machines(&env, &name, 2).await;
    // Anything that makes the topology look again.
    object["spec"]["topology"]["controlPlane"]["metadata"] = json!({"labels": {"looked": "again"}});
    env.apply(&object).await;
    env.rest().await;
    assert_eq!(read().await, Some(2));
    has_machines(&env, &name, 2).await;
    env.stop().await;
}
