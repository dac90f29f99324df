//! A machine that takes long to boot: its token and its data wait for it, however long.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass_api::core::v1beta2::{Cluster, Machine};
use windlass_api_kubeadm::bootstrap::KubeadmConfig;
use windlass_bootstrap_kubeadm::{OnChange, TokenTtl, WorkloadClusters};
use windlass_cluster_cache::Workload;
use windlass_controller_runtime::{ObjectKey, Runtime};
use windlass_meta::{Clock, FakeClock};
use windlass_pki::{KeyAlgorithm, KeyMaterial, KeyPool, PrivateKey, Purpose};
use windlass_testkit::{Kind, Server};

const CONTROLLER: &str = "controller";

/// One workload cluster that always answers.
struct Connected(kube::Client);

impl WorkloadClusters for Connected {
    fn workload(&self, _: &ObjectKey) -> Workload<kube::Client> {
        Workload::Up(self.0.clone())
    }

    fn on_change(&self, _: OnChange) {}
}

struct World {
    management: Server,
    workload: Server,
    clock: FakeClock,
    kit: Runtime,
}

impl Drop for World {
    fn drop(&mut self) {
        self.kit.cx().tasks().stop();
    }
}

fn resource<K>(client: &kube::Client) -> Api<DynamicObject>
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
{
    Api::namespaced_with(client.clone(), "default", &ApiResource::erase::<K>(&()))
}

async fn create<K>(client: &kube::Client, object: Value)
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
{
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    let created = resource::<K>(client).create(&PostParams::default(), &object).await;
    created.unwrap();
}

/// The writes of the controller.
fn writes(server: &Server) -> BTreeMap<String, u64> {
    let ours = server
        .counters()
        .of(|write| write.agent == CONTROLLER && write.resource != "events");
    let mut writes = BTreeMap::new();
    for (write, count) in ours {
        *writes.entry(format!("{} {}", write.verb, write.resource)).or_default() += count;
    }
    writes
}

impl World {
    async fn start(tokens: TokenTtl) -> Self {
        let management = Server::with_definitions().await;
        let workload = Server::start().await;
        let clock = FakeClock::new(Timestamp::now());
        let kit = Runtime::builder(management.client(CONTROLLER))
            .clock(clock.clone())
            .build();
        let world = Self {
            management,
            workload,
            clock,
            kit,
        };
        world.objects().await;
        let keys = KeyPool::new(1, KeyAlgorithm::EcdsaP256, 0);
        let clusters = Arc::new(Connected(world.workload.client(CONTROLLER)));
        world
            .kit
            .start(vec![windlass_bootstrap_kubeadm::entry(clusters, keys, tokens)]);
        world
    }

    fn client(&self) -> kube::Client {
        self.management.client("test")
    }

    /// A cluster that is there, and a worker that is to join it.
    async fn objects(&self) {
        let client = self.client();
        let cluster = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": { "name": "demo" },
            "spec": {
                "controlPlaneEndpoint": { "host": "127.0.0.1", "port": 6443 },
                "controlPlaneRef": {
                    "apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "cp",
                },
            },
        });
        create::<Cluster>(&client, cluster).await;
        let status = json!({ "status": { "initialization": {
            "infrastructureProvisioned": true, "controlPlaneInitialized": true,
        } } });
        self.status::<Cluster>("demo", status).await;
        let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
        let ca = KeyMaterial::generate(Purpose::ClusterCa, key, 3650, self.clock.now()).unwrap();
        // A user's own: it has no owner.
        let mut secret = Purpose::ClusterCa.secret("default", "demo", &Value::Null, &ca.data());
        secret["metadata"]["ownerReferences"] = json!([]);
        create::<Secret>(&client, secret).await;
        let config = json!({
            "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfig",
            "metadata": { "name": "m", "labels": { "cluster.x-k8s.io/cluster-name": "demo" } },
            "spec": { "joinConfiguration": { "nodeRegistration": { "criSocket": "unix:///run/c.sock" } } },
        });
        create::<KubeadmConfig>(&client, config).await;
        let machine = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "metadata": { "name": "m", "labels": { "cluster.x-k8s.io/cluster-name": "demo" } },
            "spec": {
                "clusterName": "demo", "version": "v1.35.0",
                "bootstrap": { "configRef": {
                    "apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": "m",
                } },
                "infrastructureRef": {
                    "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": "m",
                },
            },
        });
        create::<Machine>(&client, machine).await;
    }

    async fn status<K>(&self, name: &str, status: Value)
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        let api = resource::<K>(&self.client());
        let (params, patch) = (PatchParams::default(), Patch::Merge(status));
        api.patch_status(name, &params, &patch).await.unwrap();
    }

    /// Waits for an object to be as it should.
    async fn until<K>(&self, what: &str, is_right: impl Fn(&Value) -> bool)
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        let api = resource::<K>(&self.client());
        let mut last = Value::Null;
        let looking = async {
            while !is_right(&last) {
                tokio::time::sleep(Duration::from_millis(2)).await;
                let found = api.get_opt("m").await.unwrap();
                last = found.map_or(Value::Null, |object| serde_json::to_value(object).unwrap());
            }
        };
        let found = tokio::time::timeout(Duration::from_mins(1), looking).await;
        assert!(found.is_ok(), "m is never {what}: {last:#}");
    }

    /// The ends of the tokens in the workload cluster.
    async fn tokens(&self) -> Vec<Timestamp> {
        let secrets: Api<Secret> = Api::namespaced(self.workload.client("test"), "kube-system");
        let tokens = secrets.list(&ListParams::default()).await.unwrap().items.into_iter();
        let tokens = tokens.filter(|secret| secret.type_.as_deref() == Some("bootstrap.kubernetes.io/token"));
        let end = |secret: Secret| String::from_utf8(secret.data.unwrap()["expiration"].0.clone()).unwrap();
        tokens.map(|secret| end(secret).parse().unwrap()).collect()
    }

    /// Moves the clock and all timers, and waits until nothing happens for a moment.
    async fn pass(&self, time: Duration) {
        self.clock.advance(SignedDuration::try_from(time).unwrap());
        tokio::time::pause();
        tokio::time::advance(time).await;
        tokio::time::resume();
        self.rests().await;
    }

    async fn rests(&self) {
        let now = || {
            let metrics = self.kit.metrics();
            let results = ["success", "requeue_after", "error"];
            let reconciles: u64 = results.iter().map(|r| metrics.reconciles("kubeadmconfig", r)).sum();
            (reconciles, writes(&self.management), writes(&self.workload))
        };
        let (mut last, mut same) = (now(), 0);
        while same < 10 {
            tokio::time::sleep(Duration::from_millis(2)).await;
            let now = now();
            same = if now == last { same + 1 } else { 0 };
            last = now;
        }
    }
}

#[tokio::test]
async fn a_machine_that_boots_late_finds_its_token_and_its_data() {
    let why = "requests to other processes time out while the timers of this one move";
    if Kind::leaves_out(&[Kind::Embedded], why) {
        return;
    }
    let world = World::start(TokenTtl::default()).await;
    world
        .until::<KubeadmConfig>("ready", |config| config["status"]["dataSecretName"] == "m")
        .await;
    world.rests().await;
    let (made, used) = (writes(&world.management), writes(&world.workload));
    assert_eq!(world.tokens().await.len(), 1);
    assert_eq!(used, BTreeMap::from([("create secrets".to_owned(), 1)]));
    for minute in 0..180 {
        world.pass(Duration::from_mins(1)).await;
        let now = world.clock.now();
        let tokens = world.tokens().await;
        assert!(
            tokens.len() == 1 && tokens[0] > now,
            "minute {minute}: {tokens:?} at {now}"
        );
    }
    // The token is extended each third of its life, and never before a sixth is over. Nothing else is written.
    let extended = writes(&world.workload)["patch secrets"];
    assert!((30..=72).contains(&extended), "{extended}");
    assert_eq!(writes(&world.management), made);

    // Data whose owner is lost belongs to its KubeadmConfig again, without another event.
    let lost = Patch::Merge(json!({ "metadata": { "ownerReferences": null } }));
    let secrets: Api<Secret> = Api::namespaced(world.client(), "default");
    secrets.patch("m", &PatchParams::default(), &lost).await.unwrap();
    world
        .until::<Secret>("owned again", |secret| {
            secret["metadata"]["ownerReferences"][0]["kind"] == "KubeadmConfig"
        })
        .await;
    world.rests().await;

    // Once the machine has joined, its token ends.
    world
        .status::<Machine>("m", json!({ "status": { "nodeRef": { "name": "m" } } }))
        .await;
    world.rests().await;
    let before = (writes(&world.management), writes(&world.workload));
    for _ in 0..40 {
        world.pass(Duration::from_hours(13)).await;
    }
    assert_eq!((writes(&world.management), writes(&world.workload)), before);
    assert!(world.tokens().await[0] < world.clock.now());
}

#[tokio::test]
async fn a_token_lives_as_long_as_chosen() {
    let why = "requests to other processes time out while the timers of this one move";
    if Kind::leaves_out(&[Kind::Embedded], why) {
        return;
    }
    let day = Duration::from_hours(24);
    let world = World::start(TokenTtl::new(day).unwrap()).await;
    let ready = |config: &Value| config["status"]["dataSecretName"] == "m";
    world.until::<KubeadmConfig>("ready", ready).await;
    world.rests().await;
    let life = || async { world.tokens().await[0].duration_since(world.clock.now()).unsigned_abs() };
    let first = life().await;
    assert!(
        first > Duration::from_hours(23) && first < Duration::from_hours(25),
        "{first:?}"
    );
    // It is extended after a third of its life, not before.
    world.pass(Duration::from_hours(7)).await;
    assert_eq!(writes(&world.workload).get("patch secrets"), None);
    for _ in 0..3 {
        world.pass(Duration::from_hours(7)).await;
        assert!(life().await > Duration::from_hours(8));
    }
    assert!(writes(&world.workload)["patch secrets"] <= 3);
}
