//! What holds a Machine that is being deleted: Pods that may not go, volumes that are still attached, a Node that cannot be reached. Each
//! is waited for as long as the Machine allows, and the Machine says what it waits for.

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Event, Node, PersistentVolume, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_api::core::Machine;
use windlass_api_ext::infrastructure::DevMachine;
use windlass_infra_dev::Trouble;
use windlass_meta::ObjectKey;
use windlass_testkit::wait::until;
use windlass_testkit::{CLASS, ClusterOf, Env, NAMESPACE};

use super::dark::{cut, mend};
use crate::life::workload;

/// A cluster with one worker, and what runs on it.
struct Site {
    env: Env,
    cluster: ClusterOf,
    client: Client,
    machine: String,
    node: String,
}

/// The cluster, with these limits for the deletion of its workers.
fn limited(cluster: &ClusterOf, deletion: &Value) -> Value {
    let mut object = cluster.object();
    object["spec"]["topology"]["workers"]["machineDeployments"][0]["deletion"] = deletion.clone();
    object
}

impl Site {
    async fn start(name: &str) -> Self {
        Self::start_with(name, &json!({ "nodeDeletionTimeoutSeconds": 10 })).await
    }

    /// With these limits for the deletion of workers.
    async fn start_with(name: &str, deletion: &Value) -> Self {
        let env = Env::start().await;
        let cluster = ClusterOf::new(name, 1, 1);
        env.apply_yaml(CLASS).await;
        env.apply(&limited(&cluster, deletion)).await;
        cluster.wait_running(&env).await;
        env.rest().await;
        let machines = env.list::<Machine>().await;
        let worker = cluster.machines(&machines, false)[0];
        let machine = worker.metadata.name.clone().unwrap();
        let node = worker.status.clone().unwrap().node_ref.unwrap().name;
        let client = workload(&env, &cluster).await;
        Self {
            env,
            cluster,
            client,
            machine,
            node,
        }
    }

    /// With a second worker, which has a host that does not join. This worker is the one of the tests.
    async fn start_with_absent(name: &str) -> Self {
        let mut site = Self::start(name).await;
        let key = site.cluster.key();
        site.env.cloud().trouble_next(&key, Trouble::JoinHangs);
        site.cluster = site.cluster.workers(2);
        site.cluster.apply(&site.env).await;
        let has_host = |machine: &Machine| {
            let status = machine.status.as_ref();
            machine.spec.provider_id.is_some() && status.is_none_or(|status| status.node_ref.is_none())
        };
        let found = site
            .env
            .wait_all::<Machine>("a host without a Node", |all| all.iter().any(has_host));
        let absent = found.await.into_iter().find(has_host).unwrap();
        site.machine = absent.metadata.name.unwrap();
        site.node.clone_from(&site.machine);
        site.env.rest().await;
        site
    }

    async fn delete(&self) {
        self.env.delete("Machine", &self.machine).await;
    }

    /// Waits until the Machine is gone, and its host.
    async fn wait_machine_gone(&self) {
        let is_it = |machine: &Machine| machine.metadata.name.as_deref() == Some(&self.machine);
        self.env.wait_all::<Machine>("gone", |all| !all.iter().any(is_it)).await;
        assert!(!self.has_host(), "the host is left");
    }

    /// Whether the host of the Machine is there.
    fn has_host(&self) -> bool {
        self.env
            .cloud()
            .machines(&self.cluster.key())
            .contains_key(&self.machine)
    }

    /// Changes the limits of the deletion where they are declared: those of a Machine follow, also while it is being deleted.
    async fn allow(&self, deletion: Value) {
        self.env.apply(&limited(&self.cluster, &deletion)).await;
    }

    /// Lets the controller look again: it looks at Pods and volumes by time.
    async fn prod(&self, touch: &str) {
        let patch = json!({ "metadata": { "annotations": { "test.windlass.dev/touch": touch } } });
        self.env.merge("Machine", &self.machine, &patch).await;
    }

    /// Waits until the condition Deleting has a reason and a message that contains these lines.
    async fn says(&self, reason: &str, lines: &[&str]) {
        let key = ObjectKey::new(NAMESPACE, self.machine.as_str());
        let what = format!("deleting, {reason}: {lines:?}");
        let is_right = |machine: &Machine| {
            let mut all = machine.status.iter().flat_map(|status| &status.conditions);
            all.any(|condition| {
                let text: Vec<&str> = condition.message.lines().collect();
                condition.type_ == "Deleting"
                    && condition.reason == reason
                    && lines.iter().all(|line| text.contains(line))
            })
        };
        self.env.wait_for::<Machine>(&key, &what, is_right).await;
    }

    async fn wait_gone(&self) {
        self.wait_machine_gone().await;
        let nodes: Api<Node> = Api::all(self.client.clone());
        assert!(nodes.get_opt(&self.node).await.unwrap().is_none(), "the Node is left");
    }

    /// Waits until there is an event with this reason, whose message contains `text`.
    async fn event(&self, reason: &str, text: &str) {
        let is_it = |event: &Event| {
            event.involved_object.name.as_deref() == Some(&self.machine)
                && event.reason.as_deref() == Some(reason)
                && event.message.as_deref().is_some_and(|message| message.contains(text))
        };
        let what = format!("an event {reason}: {text}");
        self.env.wait_all::<Event>(&what, |all| all.iter().any(is_it)).await;
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), "default")
    }

    /// Runs a Pod on the Node. Without a kubelet a Pod would be gone at once when it is deleted: a finalizer holds it.
    async fn pod(&self, name: &str, metadata: Value) {
        let mut pod = json!({
            "metadata": metadata,
            "spec": { "nodeName": self.node, "containers": [{ "name": "c", "image": "i" }] },
        });
        pod["metadata"]["name"] = json!(name);
        pod["metadata"]["finalizers"] = json!([HOLD]);
        let status = json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] });
        put(&self.pods(), pod, Some(status)).await;
    }

    async fn get(&self, pod: &str) -> Pod {
        self.pods().get(pod).await.unwrap()
    }

    /// Ends a Pod that is being deleted.
    async fn end(&self, pod: &str) {
        let patch = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
        let sent = self.pods().patch(pod, &PatchParams::default(), &patch).await;
        sent.unwrap();
    }

    /// Attaches a volume of a claim to the Node.
    async fn attach(&self, volume: &str, claim: &str) {
        let pv = json!({
            "metadata": { "name": volume },
            "spec": {
                "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"],
                "csi": { "driver": "csi.test", "volumeHandle": volume },
                "claimRef": { "kind": "PersistentVolumeClaim", "namespace": "default", "name": claim },
            },
        });
        put(&Api::<PersistentVolume>::all(self.client.clone()), pv, None).await;
        let attachment = json!({
            "metadata": { "name": volume },
            "spec": { "attacher": "csi.test", "nodeName": self.node, "source": { "persistentVolumeName": volume } },
        });
        let attachments: Api<VolumeAttachment> = Api::all(self.client.clone());
        put(&attachments, attachment, Some(json!({ "attached": true }))).await;
    }

    async fn detach(&self, volume: &str) {
        let attachments: Api<VolumeAttachment> = Api::all(self.client.clone());
        let patch = Patch::Merge(json!({ "status": { "attached": false } }));
        let sent = attachments.patch_status(volume, &PatchParams::default(), &patch).await;
        sent.unwrap();
    }

    /// The kubelet of the Node stops to report.
    async fn silence(&self) {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let mut node = nodes.get(&self.node).await.unwrap();
        let conditions = node.status.as_mut().unwrap().conditions.as_mut().unwrap();
        for condition in conditions {
            "Unknown".clone_into(&mut condition.status);
        }
        let patch = Patch::Merge(json!({ "status": { "conditions": node.status.unwrap().conditions } }));
        let sent = nodes.patch_status(&self.node, &PatchParams::default(), &patch).await;
        sent.unwrap();
    }

    async fn stop(self) {
        self.env.stop().await;
    }
}

/// Stores an object of a workload cluster, and its status.
pub(super) async fn put<K>(api: &Api<K>, object: Value, status: Option<Value>)
where
    K: kube::Resource<DynamicType = ()> + Clone + Serialize + DeserializeOwned + std::fmt::Debug,
{
    let name = object["metadata"]["name"].as_str().unwrap().to_owned();
    let object: K = serde_json::from_value(object).unwrap();
    api.create(&kube::api::PostParams::default(), &object).await.unwrap();
    if let Some(status) = status {
        let patch = Patch::Merge(json!({ "status": status }));
        api.patch_status(&name, &PatchParams::default(), &patch).await.unwrap();
    }
}

/// Access to objects in the namespace `default` of the workload cluster.
fn in_default<K>(client: &Client) -> Api<K>
where
    K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    Api::namespaced(client.clone(), "default")
}

/// The default time for the deletion of a Node.
const NODE_DELETION_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);
/// A finalizer that no controller removes.
pub(super) const HOLD: &str = "test.windlass.dev/hold";
const TERMINATING: &str = "deletionTimestamp set, but still not removed from the Node";

async fn budget(site: &Site) {
    let budget = json!({
        "metadata": { "name": "web" },
        "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": "web" } } },
    });
    let status = json!({
        "observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1,
    });
    put(&in_default::<PodDisruptionBudget>(&site.client), budget, Some(status)).await;
}

#[tokio::test]
async fn a_disruption_budget_holds_a_machine_until_its_limit_and_is_named() {
    let site = Site::start("budget").await;
    budget(&site).await;
    site.pod("web", json!({ "labels": { "app": "web" } })).await;
    site.delete().await;
    let refused = "* Pod default/web: cannot evict pod as it would violate the pod's disruption budget. The disruption budget web needs 1 healthy pods and has 1 currently";
    site.says("DrainingNode", &[refused]).await;
    assert!(site.get("web").await.metadata.deletion_timestamp.is_none());
    // A limit that is set now counts from the beginning of the drain.
    site.allow(json!({ "nodeDrainTimeoutSeconds": 1 })).await;
    site.wait_gone().await;
    site.stop().await;
}

#[tokio::test]
async fn pods_are_evicted_and_waited_for_but_not_those_that_stay_with_the_node() {
    let site = Site::start("pods").await;
    let owned = |set: &str, uid: &str| json!([{ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": set, "uid": uid, "controller": true }]);
    let template =
        json!({ "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [{ "name": "c", "image": "i" }] } });
    let agent = json!({
        "metadata": { "name": "agent" },
        "spec": { "selector": { "matchLabels": { "a": "b" } }, "template": template },
    });
    let sets = in_default::<DaemonSet>(&site.client);
    put(&sets, agent, None).await;
    let uid = sets.get("agent").await.unwrap().metadata.uid.unwrap();
    site.pod("agent", json!({ "ownerReferences": owned("agent", &uid) }))
        .await;
    site.pod("orphan", json!({ "ownerReferences": owned("gone", "lost") }))
        .await;
    site.pod(
        "job",
        json!({ "labels": { "cluster.x-k8s.io/drain": "wait-completed" } }),
    )
    .await;
    site.pod("kept", json!({ "labels": { "cluster.x-k8s.io/drain": "skip" } }))
        .await;
    site.pod("web", json!({})).await;
    site.delete().await;
    let lines = [
        format!("* Pods default/orphan, default/web: {TERMINATING}"),
        "* Pod default/job: waiting for completion".to_owned(),
    ];
    site.says("DrainingNode", &lines.each_ref().map(String::as_str)).await;
    for stays in ["agent", "job", "kept"] {
        assert!(site.get(stays).await.metadata.deletion_timestamp.is_none(), "{stays}");
    }
    let nodes: Api<Node> = Api::all(site.client.clone());
    let node = nodes.get(&site.node).await.unwrap();
    assert_eq!(node.spec.unwrap().unschedulable, Some(true));

    site.end("orphan").await;
    site.end("web").await;
    site.prod("ended").await;
    site.says("DrainingNode", &[&lines[1]]).await;
    let done = Patch::Merge(json!({ "status": { "phase": "Succeeded" } }));
    let sent = site.pods().patch_status("job", &PatchParams::default(), &done).await;
    sent.unwrap();
    site.prod("completed").await;
    site.wait_gone().await;
    site.event("SuccessfulDrainNode", &site.node).await;
    site.stop().await;
}

fn drain_rule(name: &str, drain: &Value, pods: Value) -> Value {
    let mut rule = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDrainRule",
        "metadata": { "namespace": NAMESPACE, "name": name }, "spec": { "drain": drain },
    });
    if !pods.is_null() {
        rule["spec"]["pods"] = pods;
    }
    rule
}

#[tokio::test]
async fn rules_say_which_pods_are_drained_and_in_which_order() {
    let site = Site::start("rules").await;
    let app = |name: &str| json!({ "matchLabels": { "app": name } });
    let of = |name: &str| json!([{ "selector": app(name) }]);
    let mut others = drain_rule("a-others", &json!({ "behavior": "Skip" }), Value::Null);
    others["spec"]["machines"] = json!([{ "clusterSelector": { "matchLabels": { "is": "another" } } }]);
    let in_default = json!({ "matchLabels": { "kubernetes.io/metadata.name": "default" } });
    let by_namespace = json!([{ "selector": app("agent"), "namespaceSelector": in_default }]);
    let elsewhere =
        json!([{ "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": "kube-system" } } }]);
    for rule in [
        others,
        drain_rule("agents", &json!({ "behavior": "Skip" }), by_namespace),
        drain_rule("database", &json!({ "behavior": "Drain", "order": 10 }), of("database")),
        drain_rule("elsewhere", &json!({ "behavior": "WaitCompleted" }), elsewhere),
    ] {
        site.env.apply(&rule).await;
    }
    for name in ["agent", "database", "web"] {
        site.pod(name, json!({ "labels": { "app": name } })).await;
    }
    site.delete().await;
    let lines = [
        format!("* Pod default/web: {TERMINATING}"),
        "After above Pods have been removed from the Node, the following Pods will be evicted: default/database"
            .to_owned(),
    ];
    site.says("DrainingNode", &lines.each_ref().map(String::as_str)).await;
    for stays in ["agent", "database"] {
        assert!(site.get(stays).await.metadata.deletion_timestamp.is_none(), "{stays}");
    }
    // The next have their turn when those before are gone.
    site.end("web").await;
    site.prod("ended").await;
    let database = format!("* Pod default/database: {TERMINATING}");
    site.says("DrainingNode", &[&database]).await;
    assert!(site.get("agent").await.metadata.deletion_timestamp.is_none());
    site.end("database").await;
    site.prod("ended as well").await;
    site.wait_gone().await;
    site.stop().await;
}

#[tokio::test]
async fn a_drain_that_waits_follows_its_rules() {
    let site = Site::start("follows").await;
    let waits = drain_rule("all", &json!({ "behavior": "WaitCompleted" }), Value::Null);
    site.env.apply(&waits).await;
    site.pod("job", json!({})).await;
    site.delete().await;
    site.says("DrainingNode", &["* Pod default/job: waiting for completion"])
        .await;
    let skips = drain_rule("all", &json!({ "behavior": "Skip" }), Value::Null);
    let begun = std::time::Instant::now();
    site.env.apply(&skips).await;
    site.wait_gone().await;
    assert!(
        begun.elapsed() < std::time::Duration::from_secs(15),
        "{:?}",
        begun.elapsed()
    );
    assert!(site.get("job").await.metadata.deletion_timestamp.is_none());
    site.stop().await;
}

#[tokio::test]
async fn an_unreachable_node_is_waited_for_neither_by_its_pods_nor_by_its_volumes() {
    let site = Site::start("silent").await;
    site.pod("web", json!({})).await;
    site.attach("data", "data").await;
    site.silence().await;
    site.delete().await;
    site.wait_gone().await;
    // Its Pod was evicted all the same.
    assert!(site.get("web").await.metadata.deletion_timestamp.is_some());
    site.stop().await;
}

#[tokio::test]
async fn volumes_are_waited_for_until_they_are_detached() {
    let site = Site::start("volumes").await;
    let claim = json!({ "labels": { "cluster.x-k8s.io/drain": "skip" } });
    site.attach("data", "data").await;
    site.attach("logs", "logs").await;
    site.delete().await;
    let line = "* PersistentVolumeClaims: default/data, default/logs";
    site.says("WaitingForVolumeDetach", &[line]).await;
    // The volume of a Pod that stays is not waited for.
    let mut pod = json!({
        "metadata": claim,
        "spec": {
            "nodeName": site.node, "containers": [{ "name": "c", "image": "i" }],
            "volumes": [{ "name": "logs", "persistentVolumeClaim": { "claimName": "logs" } }],
        },
    });
    pod["metadata"]["name"] = json!("kept");
    put(&site.pods(), pod, None).await;
    site.prod("kept").await;
    site.says("WaitingForVolumeDetach", &["* PersistentVolumeClaims: default/data"])
        .await;
    site.detach("data").await;
    site.prod("detached").await;
    site.wait_gone().await;
    site.event("NodeVolumesDetached", &site.node).await;
    site.stop().await;
}

#[tokio::test]
async fn volumes_are_waited_for_no_longer_than_the_machine_allows() {
    let site = Site::start("detach").await;
    site.attach("data", "data").await;
    site.delete().await;
    site.says("WaitingForVolumeDetach", &["* PersistentVolumeClaims: default/data"])
        .await;
    site.allow(json!({ "nodeVolumeDetachTimeoutSeconds": 1 })).await;
    site.wait_gone().await;
    site.stop().await;
}

#[tokio::test]
async fn without_a_connection_a_drain_waits_and_says_so() {
    let site = Site::start("cut").await;
    site.pod("web", json!({})).await;
    cut(&site.env, &site.cluster).await;
    site.delete().await;
    let failed = "Error draining Node, please check controller logs for errors";
    site.says("DrainingNode", &[failed]).await;
    site.event("FailedDrainNode", "connection to the workload cluster is down")
        .await;
    mend(&site.env, &site.cluster).await;
    let evicted = until(site.pods(), Some("web"), |all| {
        all.iter().any(|pod| pod.metadata.deletion_timestamp.is_some())
    });
    assert!(evicted.await.is_some(), "the Pod was never evicted");
    site.end("web").await;
    site.prod("ended").await;
    site.wait_gone().await;
    site.stop().await;
}

const NO_LIMIT: &str = "Waiting for the workload cluster to tell whether the Machine has a Node: set spec.deletion.nodeDrainTimeoutSeconds for a limit";

#[tokio::test]
async fn a_host_that_joins_while_the_connection_is_lost_is_drained() {
    let site = Site::start_with_absent("joins").await;
    // The connection does not count as lost yet.
    site.env.cloud().disconnect(&site.cluster.key()).await;
    let recovered = site.env.cloud().recover(&site.cluster.key(), &site.machine).await;
    recovered.unwrap();
    let key = ObjectKey::new(NAMESPACE, site.machine.as_str());
    let has_joined = |host: &DevMachine| {
        let mut conditions = host.status.iter().flat_map(|status| &status.conditions);
        conditions.any(|condition| condition.type_ == "NodeProvisioned" && condition.status == "True")
    };
    site.env.wait_for::<DevMachine>(&key, "joined", has_joined).await;
    site.delete().await;
    site.says("DrainingNode", &[NO_LIMIT]).await;
    site.event("FailedDrainNode", "connection to the workload cluster is down")
        .await;
    site.env.rest().await;
    assert!(site.has_host(), "it went undrained");
    mend(&site.env, &site.cluster).await;
    site.wait_gone().await;
    site.event("SuccessfulDrainNode", &site.node).await;
    site.stop().await;
}

#[tokio::test]
async fn a_host_that_never_joined_is_kept_no_longer_than_its_machine_allows() {
    let site = Site::start_with_absent("absent").await;
    cut(&site.env, &site.cluster).await;
    site.delete().await;
    site.says("DrainingNode", &[NO_LIMIT]).await;
    site.env.rest().await;
    assert!(site.has_host(), "it may have joined");
    site.allow(json!({ "nodeDrainTimeoutSeconds": 1 })).await;
    let volumes = NO_LIMIT.replace("nodeDrain", "nodeVolumeDetach");
    site.says("WaitingForVolumeDetach", &[&volumes]).await;
    site.allow(json!({ "nodeDrainTimeoutSeconds": 1, "nodeVolumeDetachTimeoutSeconds": 1 }))
        .await;
    site.wait_machine_gone().await;
    site.stop().await;
}

/// A webhook of the workload cluster that is asked before a Node is deleted, and does not answer: the deletion is refused.
async fn refuse_the_next_deletion_of_a_node(site: &Site) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    let hook = json!({
        "metadata": { "name": "refuses" },
        "webhooks": [{
            "name": "refuses.test.io", "clientConfig": { "url": url }, "failurePolicy": "Fail", "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["nodes"] }],
        }],
    });
    let hooks: Api<ValidatingWebhookConfiguration> = Api::all(site.client.clone());
    put(&hooks, hook, None).await;
    tokio::spawn(async move {
        // The connection is closed at once, and the listener with it.
        listener.accept().await.unwrap();
        let gone = hooks.delete("refuses", &kube::api::DeleteParams::default()).await;
        gone.unwrap();
    });
}

#[tokio::test]
async fn a_node_whose_deletion_is_refused_once_after_the_default_limit_is_deleted() {
    let site = Site::start_with("refused", &json!({ "nodeDrainTimeoutSeconds": 600 })).await;
    let hold = |finalizers: Value| json!({ "metadata": { "finalizers": finalizers } });
    let machine = site.env.dynamic("Machine").get(&site.machine).await.unwrap();
    let config = machine.data["spec"]["bootstrap"]["configRef"]["name"].as_str().unwrap();
    site.env.merge("KubeadmConfig", config, &hold(json!([HOLD]))).await;
    site.delete().await;
    let waits = format!("Waiting for KubeadmConfig {config} to be deleted, it is held by finalizer {HOLD}");
    site.says("WaitingForBootstrapDeletion", &[&waits]).await;
    // The limit counts from the deletion of the Machine.
    let begun = std::time::Instant::now();
    let mut looks = windlass_testkit::wait::looks();
    while begun.elapsed() <= NODE_DELETION_TIMEOUT {
        looks.tick().await;
    }
    refuse_the_next_deletion_of_a_node(&site).await;
    site.env.merge("KubeadmConfig", config, &hold(Value::Null)).await;
    site.wait_gone().await;
    site.stop().await;
}

#[tokio::test]
async fn a_node_that_cannot_be_deleted_keeps_its_machine() {
    let site = Site::start_with("late", &json!({ "nodeDeletionTimeoutSeconds": 0 })).await;
    let hold = |finalizers: Value| json!({ "metadata": { "finalizers": finalizers } });
    let machine = site.env.dynamic("Machine").get(&site.machine).await.unwrap();
    let config = machine.data["spec"]["bootstrap"]["configRef"]["name"].as_str().unwrap();
    site.env.merge("KubeadmConfig", config, &hold(json!([HOLD]))).await;
    site.delete().await;
    let waits = format!("Waiting for KubeadmConfig {config} to be deleted, it is held by finalizer {HOLD}");
    site.says("WaitingForBootstrapDeletion", &[&waits]).await;
    cut(&site.env, &site.cluster).await;
    site.env.merge("KubeadmConfig", config, &hold(Value::Null)).await;
    let failed = "Error deleting Node, please check controller logs for errors";
    site.says("DeletingNode", &[failed]).await;
    site.event("FailedDeleteNode", "connection to the workload cluster is down")
        .await;
    mend(&site.env, &site.cluster).await;
    site.wait_gone().await;
    site.stop().await;
}
