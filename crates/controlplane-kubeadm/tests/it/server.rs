//! The controller against an API server of the test's own. What the other controllers and a provider would do is played here, as simply
//! as possible; the workload cluster is a fake.

use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt, TryStreamExt, stream};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use serde_json::{Value, json};
use windlass_api::core::v1beta2::Machine;
use windlass_api_ext::infrastructure::v1beta2::{DevMachine, DevMachineTemplate};
use windlass_api_kubeadm::bootstrap::v1beta2::KubeadmConfig;
use windlass_api_kubeadm::controlplane::v1beta2::KubeadmControlPlane;
use windlass_controller_runtime::Runtime;
use windlass_controlplane_kubeadm::ControlPlaneController;
use windlass_controlplane_kubeadm::names::{CERTIFICATES_EXPIRY, PRE_TERMINATE_HOOK};
use windlass_controlplane_kubeadm::workload::testing::FakeWorkload;
use windlass_meta::{Clock, SystemClock};
use windlass_runtime_client::{Callable, Extensions};
use windlass_testkit::{Server, keys};

use crate::play::{Machinist, cluster_key, leave, list, make_cluster, objects, register, run_pods, versions};

const PATIENCE: Duration = Duration::from_mins(3);
/// The client of the controller.
pub(crate) const CONTROLLER: &str = "controller";

pub(crate) struct World {
    pub(crate) server: Server,
    client: Client,
    pub(crate) fake: FakeWorkload,
    pub(crate) kit: Runtime,
}

impl Drop for World {
    fn drop(&mut self) {
        self.kit.cx().tasks().stop();
    }
}

/// Waits until an object is as it should be; tells what it is like when it never is.
pub(crate) async fn wait_for(api: &Api<DynamicObject>, name: &str, what: &str, good: impl Fn(&Value) -> bool) -> Value {
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let mut events = watcher(api.clone(), config).applied_objects().boxed();
    let mut last = Value::Null;
    let waiting = async {
        while let Some(object) = events.next().await {
            let Ok(object) = object else { continue };
            last = serde_json::to_value(object).unwrap();
            if good(&last) {
                return;
            }
        }
    };
    let result = tokio::time::timeout(PATIENCE, waiting).await;
    assert!(result.is_ok(), "{name} never is {what}: {last:#}");
    last
}

impl World {
    pub(crate) async fn start(replicas: i32) -> Self {
        Self::start_at(SystemClock, replicas, Value::Null).await
    }

    /// Starts with other fields in the spec of the control plane.
    pub(crate) async fn start_with(replicas: i32, spec: Value) -> Self {
        Self::begin(SystemClock, replicas, spec).await
    }

    /// The same where objects can be stored that admission refuses.
    pub(crate) async fn start_unadmitted(replicas: i32, spec: Value) -> Self {
        Self::on(Server::without_admission().await, SystemClock, replicas, spec).await
    }

    /// Starts with a clock, and `spec.rollout` of the control plane.
    pub(crate) async fn start_at(clock: impl Clock + 'static, replicas: i32, rollout: Value) -> Self {
        Self::begin(clock, replicas, json!({ "rollout": rollout })).await
    }

    async fn begin(clock: impl Clock + 'static, replicas: i32, spec: Value) -> Self {
        Self::on(Server::with_definitions().await, clock, replicas, spec).await
    }

    async fn on(server: Server, clock: impl Clock + 'static, replicas: i32, spec: Value) -> Self {
        let client = server.client("test");
        let fake = FakeWorkload::default();
        let kit = Runtime::builder(server.client(CONTROLLER)).clock(clock).build();
        let world = Self {
            server,
            client,
            fake,
            kit,
        };
        let mut own = json!({ "replicas": replicas });
        own.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        make_cluster(&world.client, own).await;
        world.run();
        world
    }

    fn run(&self) {
        let clusters = std::sync::Arc::new(self.fake.clone());
        let extensions = Extensions::new(&self.kit.cx(), None, Callable::default());
        self.kit
            .start(vec![ControlPlaneController::entry(clusters, keys(), extensions)]);
        let clock = Arc::clone(self.kit.cx().clock());
        tokio::spawn(play(self.client.clone(), self.fake.clone(), clock));
    }

    pub(crate) fn api<K>(&self) -> Api<DynamicObject>
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        objects::<K>(&self.client)
    }

    pub(crate) async fn list<K>(&self) -> Vec<Value>
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        list::<K>(&self.client).await
    }

    pub(crate) async fn settled(&self, replicas: i64, version: &str) -> Value {
        let what = format!("at {replicas} replicas of {version}");
        wait_for(&self.api::<KubeadmControlPlane>(), "cp", &what, |plane| {
            let status = &plane["status"];
            let counts = ["replicas", "readyReplicas", "availableReplicas", "upToDateReplicas"];
            let healthy = status["conditions"].as_array().is_some_and(|all| {
                ["Available", "EtcdClusterHealthy", "ControlPlaneComponentsHealthy"]
                    .iter()
                    .all(|kind| all.iter().any(|c| c["type"] == *kind && c["status"] == "True"))
            });
            healthy
                && counts.iter().all(|c| status[*c] == replicas)
                && status["versions"].as_array().is_some_and(|v| v.len() == 1)
                && status["version"] == version
        })
        .await
    }
}

/// Plays Machine controller, bootstrap and infrastructure provider: each event moves its Machine one step on.
async fn play(client: Client, fake: FakeWorkload, clock: Arc<dyn Clock>) {
    let machinist = Machinist::new(&client);
    let configs: Api<KubeadmConfig> = Api::namespaced(client.clone(), "default");
    let names: Vec<std::pin::Pin<Box<dyn Stream<Item = String> + Send>>> =
        vec![names(machinist.0.clone()).boxed(), names(configs.clone()).boxed()];
    let mut names = stream::select_all(names);
    while let Some(name) = names.next().await {
        if let Ok(Some(machine)) = machinist.0.get_opt(&name).await
            && let Err(error) = step(&machinist, &configs, (&fake, &*clock), &machine).await
        {
            // Changed or gone in the meantime: there is another event for that.
            tracing::debug!(%error, "step");
        }
    }
}

fn names<K>(api: Api<K>) -> impl Stream<Item = String> + Send
where
    K: kube::Resource<DynamicType = ()> + Clone + serde::de::DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    watcher(api, watcher::Config::default())
        .default_backoff()
        .applied_objects()
        .map_ok(|o| o.meta().name.clone().unwrap_or_default())
        .filter_map(|name| async { name.ok() })
}

async fn step(
    machinist: &Machinist,
    configs: &Api<KubeadmConfig>,
    (fake, clock): (&FakeWorkload, &dyn Clock),
    machine: &Machine,
) -> kube::Result<()> {
    let name = machine.metadata.name.clone().unwrap();
    let status = machine.status.clone().unwrap_or_default();
    if machine.metadata.deletion_timestamp.is_some() {
        let annotations = machine.metadata.annotations.clone().unwrap_or_default();
        if annotations.contains_key(PRE_TERMINATE_HOOK) {
            if status.conditions.iter().any(|c| c.type_ == "Deleting") {
                return Ok(());
            }
            return machinist.hold(&name).await;
        }
        leave(fake, &name);
        return machinist.let_go(&name).await;
    }
    let Some(config) = configs.get_opt(&name).await? else {
        return Ok(());
    };
    let annotations = config.metadata.annotations.unwrap_or_default();
    if let (Some(expiry), None) = (annotations.get(CERTIFICATES_EXPIRY), status.certificates_expiry_date) {
        machinist.certify(&name, expiry).await?;
    }
    if machine.spec.provider_id.is_none() {
        return machinist.identify(&name).await;
    }
    if status.node_ref.is_none() {
        join(fake, &name, clock.now());
        machinist.link(&name).await?;
        fake.changed(&cluster_key());
    }
    Ok(())
}

/// The workload cluster has one more control plane node.
fn join(fake: &FakeWorkload, name: &str, now: Timestamp) {
    if fake.state().nodes.iter().any(|n| n.name == name) {
        return;
    }
    register(fake, name, now);
    run_pods(fake, name);
    fake.etcd.join(name);
    fake.state().expiry = now + SignedDuration::from_hours(24 * 365);
}

/// Managers of an object with what they own of it.
fn managers(object: &Value) -> Vec<(&str, &Value)> {
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    let entries = entries.iter();
    entries
        .map(|e| (e["manager"].as_str().unwrap(), &e["fieldsV1"]))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_control_plane_is_made_upgraded_and_deleted() {
    let world = World::start(3).await;
    let plane = world.settled(3, "v1.35.0").await;
    assert_eq!(plane["status"]["initialization"]["controlPlaneInitialized"], true);
    assert_eq!(
        plane["metadata"]["finalizers"],
        json!(["kubeadm.controlplane.cluster.x-k8s.io"])
    );

    secrets_are_as_recorded(&world, &plane).await;
    machines_are_as_recorded(&world, &plane).await;

    // Once what only changes words is written too, waking it changes nothing: what is settled is left alone.
    let metrics = world.kit.metrics();
    let reconciles = || {
        metrics.reconciles("kubeadmcontrolplane", "success")
            + metrics.reconciles("kubeadmcontrolplane", "requeue_after")
    };
    let quiet = async {
        let mut unchanged = 0;
        while unchanged < 3 {
            let (before, seen) = (versions(&world.client).await, reconciles());
            world.fake.changed(&cluster_key());
            while reconciles() == seen {
                tokio::task::yield_now().await;
            }
            let same = versions(&world.client).await == before;
            unchanged = if same { unchanged + 1 } else { 0 };
        }
    };
    tokio::time::timeout(PATIENCE, quiet).await.unwrap();

    let api = world.api::<KubeadmControlPlane>();
    let patch = json!({ "spec": { "version": "v1.36.0" } });
    api.patch("cp", &PatchParams::default(), &Patch::Merge(patch))
        .await
        .unwrap();
    world.settled(3, "v1.36.0").await;
    assert_eq!(world.fake.etcd.state().members.len(), 3);
    assert_eq!(world.fake.state().kubeadm_version.as_deref(), Some("v1.36.0"));

    api.delete("cp", &DeleteParams::default()).await.unwrap();
    let gone = kube::runtime::wait::await_condition(api.clone(), "cp", |plane: Option<&DynamicObject>| plane.is_none());
    tokio::time::timeout(PATIENCE, gone)
        .await
        .expect("deleted in time")
        .unwrap();
    assert!(world.list::<Machine>().await.is_empty());
}

/// An authority that a user puts back has no owner that could wake the control plane.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authority_that_comes_back_ends_the_wait_for_it() {
    let world = World::start(1).await;
    world.settled(1, "v1.35.0").await;
    let secrets = world.api::<Secret>();
    let mut lost = secrets.get("demo-ca").await.unwrap();
    for name in ["demo-ca", "demo-kubeconfig"] {
        secrets.delete(name, &DeleteParams::default()).await.unwrap();
    }
    let plane = world.api::<KubeadmControlPlane>();
    wait_for(&plane, "cp", "without its authority", |plane| {
        let conditions = plane["status"]["conditions"].as_array().unwrap();
        conditions
            .iter()
            .any(|c| c["type"] == "CertificatesAvailable" && c["status"] != "True")
    })
    .await;
    lost.metadata = kube::core::ObjectMeta {
        name: lost.metadata.name,
        labels: lost.metadata.labels,
        ..kube::core::ObjectMeta::default()
    };
    secrets.create(&PostParams::default(), &lost).await.unwrap();
    wait_for(&secrets, "demo-kubeconfig", "made again", |_| true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_lost_its_labels_stays_and_keeps_its_member() {
    let world = World::start(3).await;
    world.settled(3, "v1.35.0").await;
    let machines = world.api::<Machine>();
    let mut names: Vec<String> = world.list::<Machine>().await.iter().map(name_of).collect();
    names.sort();
    let lost = Patch::Merge(json!({ "metadata": { "labels": null } }));
    machines.patch(&names[0], &PatchParams::default(), &lost).await.unwrap();
    wait_for(&machines, &names[0], "labelled again", |machine| {
        let labels = machine["metadata"]["labels"].as_object();
        labels.is_some_and(|labels| labels.len() == 3)
    })
    .await;
    world.settled(3, "v1.35.0").await;
    let mut after: Vec<String> = world.list::<Machine>().await.iter().map(name_of).collect();
    after.sort();
    assert_eq!(after, names);
    let mut members: Vec<String> = world.fake.etcd.state().members.iter().map(|m| m.name.clone()).collect();
    members.sort();
    assert_eq!(members, names);
}

fn name_of(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap().to_owned()
}

async fn secrets_are_as_recorded(world: &World, plane: &Value) {
    let mut secrets = world.list::<Secret>().await;
    // On a real server, webhooks have their certificate in a Secret beside.
    secrets.retain(|secret| secret["metadata"]["name"] != "windlass-webhook-certificate");
    let mut names: Vec<_> = secrets
        .iter()
        .map(|s| s["metadata"]["name"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(
        names,
        ["demo-ca", "demo-etcd", "demo-kubeconfig", "demo-proxy", "demo-sa"]
    );
    for secret in &secrets {
        assert_eq!(secret["type"], "cluster.x-k8s.io/secret");
        assert_eq!(
            secret["metadata"]["labels"],
            json!({ "cluster.x-k8s.io/cluster-name": "demo" })
        );
        let owner = &secret["metadata"]["ownerReferences"][0];
        assert_eq!(owner["uid"], plane["metadata"]["uid"]);
        assert_eq!(owner["controller"], true);
        let keys: Vec<_> = secret["data"].as_object().unwrap().keys().collect();
        if secret["metadata"]["name"] == "demo-kubeconfig" {
            assert_eq!(keys, ["value"]);
        } else {
            assert_eq!(keys, ["tls.crt", "tls.key"]);
        }
    }
}

async fn machines_are_as_recorded(world: &World, plane: &Value) {
    let machines = world.list::<Machine>().await;
    let template = &world.list::<DevMachineTemplate>().await[0];
    assert_eq!(template["metadata"]["ownerReferences"][0]["kind"], "Cluster");
    let mut of_init = 0;
    for machine in &machines {
        let name = machine["metadata"]["name"].as_str().unwrap();
        let owners = |object: &Value| {
            let owners = object["metadata"]["ownerReferences"].as_array().unwrap();
            let owners = owners.iter();
            owners.map(|o| o["uid"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(owners(machine), [plane["metadata"]["uid"].clone()]);
        let config = named(world.list::<KubeadmConfig>().await, name);
        let infra = named(world.list::<DevMachine>().await, name);
        for object in [&config, &infra] {
            assert_eq!(owners(object), [machine["metadata"]["uid"].clone()]);
            assert_eq!(object["metadata"]["labels"], machine["metadata"]["labels"]);
            let managers = managers(object);
            let of = |name: &str| managers.iter().find(|(manager, _)| *manager == name).unwrap().1;
            assert!(of("capi-kubeadmcontrolplane")["f:spec"].is_object());
            // One write makes all of it.
            assert!(of("capi-kubeadmcontrolplane")["f:metadata"]["f:labels"].is_object());
        }
        of_init += usize::from(config["spec"]["joinConfiguration"].is_null());
    }
    assert_eq!((machines.len(), of_init), (3, 1));
}

fn named(objects: Vec<Value>, name: &str) -> Value {
    let mut objects = objects.into_iter();
    objects.find(|o| o["metadata"]["name"] == name).unwrap()
}
