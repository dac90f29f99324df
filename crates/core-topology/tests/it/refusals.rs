//! Webhooks of a provider that refuse a change, or do not answer: what waits for it, and what goes on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use windlass_controller_runtime::{Metrics, transport};
use windlass_fake_providers::{HookServer, Say};
use windlass_testkit::faults::{Fault, Faults};

use crate::env::{Env, Hook, condition};

const ENTRY: &str = "topology.cluster.x-k8s.io/deployment-name";
const OWNED: &str = "topology.cluster.x-k8s.io/owned";
const STEP: &str = "topology.internal.cluster.x-k8s.io/upgrade-step";
const GROUP: &str = "infrastructure.cluster.x-k8s.io";
/// The worker sets of the example.
const BIG: &str = "big-pool-of-machines-1";
const SMALL: &str = "small-pool-of-machines-1";
const WINDOWS: &str = "microsoft-1";

/// What the provider says about a request; nothing allows it.
type Rule = Box<dyn Fn(&Value) -> Option<Say> + Send>;

/// A managed Cluster whose provider has a webhook.
struct World {
    env: Env,
    hooks: HookServer,
    rule: Arc<Mutex<Option<Rule>>>,
}

/// Whether a request is about a template of the worker set, or of the control plane if none is named.
fn is_of(request: &Value, worker_set: Option<&str>) -> bool {
    let labels = &request["object"]["metadata"]["labels"];
    request["kind"]["kind"] == "VSphereMachineTemplate"
        && labels.get(OWNED).is_some()
        && labels.get(ENTRY).and_then(Value::as_str) == worker_set
}

fn is_dry_run(request: &Value) -> bool {
    request["dryRun"] == true && request["operation"] == "UPDATE"
}

fn denial(code: u16, reason: &str, message: &str) -> Say {
    Say::Review(json!({"allowed": false, "status": {"code": code, "reason": reason, "message": message}}))
}

fn running(version: &str) -> Value {
    json!({
        "versions": [{"version": version, "replicas": 3}], "replicas": 3, "upToDateReplicas": 3,
        "readyReplicas": 3, "availableReplicas": 3,
    })
}

fn version(deployment: &Value) -> &str {
    deployment["spec"]["template"]["spec"]["version"].as_str().unwrap()
}

fn template(deployment: &Value) -> &str {
    let reference = &deployment["spec"]["template"]["spec"]["infrastructureRef"];
    reference["name"].as_str().unwrap()
}

impl World {
    async fn start() -> Self {
        Self::with(Env::start().await).await
    }

    async fn with(env: Env) -> Self {
        let rule: Arc<Mutex<Option<Rule>>> = Arc::default();
        let asked = rule.clone();
        let hooks = HookServer::start(move |_, request| {
            let rule = asked.lock().unwrap();
            rule.as_ref().and_then(|rule| rule(request)).unwrap_or_else(Say::yes)
        })
        .await;
        let resources = [
            (GROUP, "vspheremachinetemplates"),
            (GROUP, "vsphereclusters"),
            ("cluster.x-k8s.io", "machinedeployments"),
        ];
        let operations = ["CREATE", "UPDATE", "DELETE"];
        env.configure(Hook::Validating, hooks.config("/"), &operations, &resources)
            .await;
        env.apply_example().await;
        env.wait("the webhook", async || {
            let probe = json!({"apiVersion": format!("{GROUP}/v1beta1"), "kind": "VSphereMachineTemplate",
                "metadata": {"name": "probe", "namespace": "bar"}});
            let params = PatchParams {
                dry_run: true,
                ..PatchParams::apply("user").force()
            };
            let api = env.api("VSphereMachineTemplate");
            api.patch("probe", &params, &Patch::Apply(&probe)).await.unwrap();
            hooks
                .requests()
                .iter()
                .any(|request| request["name"] == "probe")
                .then_some(())
        })
        .await;
        let world = Self { env, hooks, rule };
        world.control_plane_runs("v1.31.1").await;
        world
    }

    fn says(&self, rule: impl Fn(&Value) -> Option<Say> + Send + 'static) {
        *self.rule.lock().unwrap() = Some(Box::new(rule));
    }

    fn allows_everything(&self) {
        *self.rule.lock().unwrap() = None;
    }

    async fn control_plane(&self) -> Value {
        self.env.generated("KubeadmControlPlane").await.remove(0)
    }

    async fn control_plane_runs(&self, version: &str) {
        let found = self.control_plane().await;
        let name = found["metadata"]["name"].as_str().unwrap();
        self.env.status("KubeadmControlPlane", name, running(version)).await;
    }

    async fn deployment(&self, worker_set: &str) -> Option<Value> {
        let all = self.env.generated("MachineDeployment").await;
        all.into_iter()
            .find(|one| one["metadata"]["labels"][ENTRY] == worker_set)
    }

    async fn waits_for(&self, worker_set: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        self.env
            .wait(what, async || self.deployment(worker_set).await.filter(&is_so))
            .await
    }

    /// The Cluster's topology with a change.
    async fn topology(&self, change: impl FnOnce(&mut Value)) {
        let cluster = self.env.get("Cluster", "foo").await.unwrap();
        let mut topology = cluster["spec"]["topology"].clone();
        change(&mut topology);
        self.env
            .merge("Cluster", "foo", json!({"spec": {"topology": topology}}))
            .await;
    }

    async fn change_template(&self, name: &str, cpus: u32) {
        let patch = json!({"spec": {"template": {"spec": {"numCPUs": cpus}}}});
        self.env.merge("VSphereMachineTemplate", name, patch).await;
    }

    /// Waits until the topology is reported as failed, for this reason. Until then this must hold.
    async fn fails(&self, why: &str, mut holds: impl AsyncFnMut()) -> String {
        self.env
            .wait(&format!("a failure for {why:?}"), async || {
                holds().await;
                let cluster = self.env.get("Cluster", "foo").await?;
                let found = condition(&cluster, "TopologyReconciled")?;
                let message = found["message"].as_str()?;
                (found["reason"] == "ReconcileFailed" && message.contains(why)).then(|| message.to_owned())
            })
            .await
    }

    /// An upgrade whose control plane is done, with a change of the template of the last worker set.
    async fn upgrade_workers(&self) {
        self.topology(|topology| topology["version"] = "v1.32.0".into()).await;
        self.env
            .wait("the control plane's version", async || {
                (self.control_plane().await["spec"]["version"] == "v1.32.0").then_some(())
            })
            .await;
        self.change_template("windows-vsphere-template", 16).await;
        self.control_plane_runs("v1.32.0").await;
    }

    async fn cpus(&self, name: &str) -> Option<Value> {
        let found = self.env.get("VSphereMachineTemplate", name).await?;
        Some(found["spec"]["template"]["spec"]["numCPUs"].clone())
    }

    async fn stop(self) {
        self.env.stop().await;
    }
}

// A webhook chooses the code of its answers: an object that it misses, or a conflict that it has, is not the template's.
#[tokio::test]
async fn a_denial_that_looks_like_a_missing_template_holds_the_version_back() {
    for (code, reason, why) in [
        (404, "NotFound", "secrets \"credentials\" not found"),
        (409, "Conflict", "the zone is being changed"),
    ] {
        let world = World::start().await;
        world.says(move |request| {
            let is_refused = is_of(request, Some(WINDOWS)) && is_dry_run(request);
            is_refused.then(|| denial(code, reason, why))
        });
        let before = world.deployment(WINDOWS).await.unwrap();
        world.upgrade_workers().await;
        let message = world
            .fails(why, async || {
                let now = world.deployment(WINDOWS).await.unwrap();
                assert_eq!(now["spec"], before["spec"], "no version without its template");
            })
            .await;
        assert!(message.contains(template(&before)), "{message}");
        world
            .waits_for(SMALL, "the others", |one| version(one) == "v1.32.0")
            .await;

        // It is tried again without an event.
        world.allows_everything();
        let after = world
            .waits_for(WINDOWS, "the version", |one| version(one) == "v1.32.0")
            .await;
        assert_ne!(template(&after), template(&before));
        assert_eq!(world.cpus(template(&after)).await, Some(json!(16)));
        world.env.reconciled("ReconcileSucceeded").await;
        world.stop().await;
    }
}

// Neither is a code of anything else between the controller and the template.
#[tokio::test]
async fn a_code_alone_is_no_template_that_is_gone() {
    for code in [404, 409] {
        let refuses = Arc::new(AtomicBool::new(false));
        let (switch, client) = (refuses.clone(), Metrics::new());
        let faults = Faults::when(move |request| {
            let is_dry_run = request.path.contains("/vspheremachinetemplates/") && request.path.contains("dryRun=All");
            (is_dry_run && switch.load(Ordering::SeqCst)).then_some(Fault::Refused(code))
        });
        let env =
            Env::start_behind(|server| transport::in_process(faults.wrap(server.service("topology")), &client)).await;
        let world = World::with(env).await;
        let before = world.deployment(WINDOWS).await.unwrap();
        refuses.store(true, Ordering::SeqCst);
        world.change_template("windows-vsphere-template", 16).await;
        world.fails("a fault that the test asked for", async || {}).await;
        world
            .topology(|topology| {
                let sets = topology["workers"]["machineDeployments"].as_array_mut().unwrap();
                sets[1]["replicas"] = 7.into();
                sets[2]["replicas"] = 9.into();
            })
            .await;
        let is_scaled = |one: &Value| one["spec"]["replicas"] == 7;
        world
            .waits_for(SMALL, "replicas of another worker set", is_scaled)
            .await;
        world.fails("a fault that the test asked for", async || {}).await;
        assert_eq!(world.deployment(WINDOWS).await.unwrap()["spec"], before["spec"]);
        refuses.store(false, Ordering::SeqCst);
        let after = world
            .waits_for(WINDOWS, "the rest", |one| one["spec"]["replicas"] == 9)
            .await;
        assert_eq!(world.cpus(template(&after)).await, Some(json!(16)));
        world.stop().await;
    }
}

#[tokio::test]
async fn a_template_that_is_being_deleted_is_replaced_when_it_would_change() {
    let world = World::start().await;
    let before = world.deployment(WINDOWS).await.unwrap();
    let (kind, old) = ("VSphereMachineTemplate", template(&before));
    let finalizers = |finalizers: Value| json!({"metadata": {"finalizers": finalizers}});
    world.env.merge(kind, old, finalizers(json!(["x.io/hold"]))).await;
    world.env.delete(kind, old).await;
    world.change_template("windows-vsphere-template", 16).await;
    world
        .topology(|topology| topology["workers"]["machineDeployments"][2]["replicas"] = 9.into())
        .await;
    let is_scaled = |one: &Value| one["spec"]["replicas"] == 9;
    let after = world.waits_for(WINDOWS, "replicas", is_scaled).await;
    assert_ne!(template(&after), old);
    assert_eq!(world.cpus(template(&after)).await, Some(json!(16)));
    world.env.merge(kind, old, finalizers(json!(null))).await;
    world.env.reconciled("ReconcileSucceeded").await;
    world.stop().await;
}

// The template goes while its dry run is under way.
#[tokio::test]
async fn a_version_waits_for_a_template_that_is_gone_to_be_made_again() {
    let world = World::start().await;
    let api = world.env.api("VSphereMachineTemplate");
    world.says(move |request| {
        if !is_of(request, Some(WINDOWS)) || !is_dry_run(request) {
            return None;
        }
        let (api, name) = (api.clone(), request["name"].as_str()?.to_owned());
        Some(Say::Later(Box::pin(async move {
            // Only the first dry run finds it.
            let _ = api.delete(&name, &DeleteParams::default()).await;
            Say::yes()
        })))
    });
    let before = world.deployment(WINDOWS).await.unwrap();
    let uid = |template: &Value| template["metadata"]["uid"].clone();
    let old = world
        .env
        .get("VSphereMachineTemplate", template(&before))
        .await
        .unwrap();
    let earlier = world.hooks.requests().len();
    world.upgrade_workers().await;
    let after = world
        .waits_for(WINDOWS, "the version", |one| version(one) == "v1.32.0")
        .await;
    // Writes of the worker set and of its template, in order.
    let requests = world.hooks.requests();
    let mut writes = requests.iter().skip(earlier).filter(|request| {
        let is_template = is_of(request, Some(WINDOWS)) && request["operation"] == "CREATE";
        let is_version = request["name"] == before["metadata"]["name"] && version(&request["object"]) == "v1.32.0";
        request["dryRun"] != true && (is_template || is_version)
    });
    assert_eq!(writes.next().unwrap()["kind"]["kind"], "VSphereMachineTemplate");
    let used = world.env.get("VSphereMachineTemplate", template(&after)).await.unwrap();
    assert_ne!(uid(&used), uid(&old));
    assert_eq!(used["spec"]["template"]["spec"]["numCPUs"], 16);
    world.env.reconciled("ReconcileSucceeded").await;
    world.stop().await;
}

// A value that the provider refuses, and a webhook that is down.
#[tokio::test]
async fn a_worker_template_that_is_refused_stops_its_worker_set_alone() {
    for (answer, why) in [
        (200, "denied the request: no such size"),
        (500, "failed calling webhook"),
    ] {
        let world = World::start().await;
        world.says(move |request| {
            let is_refused = is_of(request, Some(WINDOWS)) && is_dry_run(request);
            is_refused.then(|| match answer {
                200 => denial(403, "Forbidden", "no such size"),
                code => Say::Raw(code, "down".to_owned()),
            })
        });
        let before = world.deployment(WINDOWS).await.unwrap();
        world.change_template("windows-vsphere-template", 16).await;
        let message = world.fails(why, async || {}).await;
        assert!(message.contains(template(&before)), "{message}");

        world
            .topology(|topology| {
                topology["controlPlane"]["replicas"] = 5.into();
                let sets = topology["workers"]["machineDeployments"].as_array_mut().unwrap();
                sets[1]["replicas"] = 7.into();
                sets[2]["replicas"] = 9.into();
                sets[2]["healthCheck"] = json!({"checks": {"nodeStartupTimeoutSeconds": 30}});
                sets.push(json!({"class": "linux-worker", "name": "extra", "replicas": 1}));
                sets.remove(0);
            })
            .await;
        world
            .waits_for(SMALL, "replicas of another worker set", |one| {
                one["spec"]["replicas"] == 7
            })
            .await;
        world.waits_for("extra", "a new worker set", |_| true).await;
        world
            .env
            .wait("control plane, removed worker set and health check", async || {
                let check = before["metadata"]["name"].as_str()?;
                let check = world.env.get("MachineHealthCheck", check).await?;
                let removed = world.deployment(BIG).await;
                let is_removed = removed.is_none_or(|set| !set["metadata"]["deletionTimestamp"].is_null());
                let is_scaled = world.control_plane().await["spec"]["replicas"] == 5;
                let is_checked = check["spec"]["checks"]["nodeStartupTimeoutSeconds"] == 30;
                (is_removed && is_scaled && is_checked).then_some(())
            })
            .await;
        world.fails(why, async || {}).await;
        let waiting = world.deployment(WINDOWS).await.unwrap();
        assert_eq!(waiting["spec"], before["spec"], "the worker set waits for its template");

        world.allows_everything();
        let after = world
            .waits_for(WINDOWS, "the rest", |one| one["spec"]["replicas"] == 9)
            .await;
        assert_eq!(world.cpus(template(&after)).await, Some(json!(16)));
        world.env.reconciled("ReconcileSucceeded").await;
        world.stop().await;
    }
}

// The dry run of a change is allowed, and the new template is not: some providers check new templates only.
#[tokio::test]
async fn a_new_worker_template_that_is_refused_stops_its_worker_set_alone() {
    let world = World::start().await;
    world.says(|request| {
        let is_refused = is_of(request, Some(BIG)) && request["operation"] == "CREATE";
        is_refused.then(|| denial(403, "Forbidden", "no such size"))
    });
    let before = world.deployment(BIG).await.unwrap();
    world.change_template("linux-vsphere-template", 16).await;
    world
        .topology(|topology| topology["workers"]["machineDeployments"][2]["replicas"] = 9.into())
        .await;
    world.fails("no such size", async || {}).await;
    world
        .waits_for(WINDOWS, "replicas", |one| one["spec"]["replicas"] == 9)
        .await;
    let small = world.deployment(SMALL).await.unwrap();
    assert_eq!(world.cpus(template(&small)).await, Some(json!(16)));
    assert_eq!(world.deployment(BIG).await.unwrap()["spec"], before["spec"]);

    world.allows_everything();
    let changed = |one: &Value| template(one) != template(&before);
    world.waits_for(BIG, "the new template", changed).await;
    world.env.reconciled("ReconcileSucceeded").await;
    world.stop().await;
}

// A denial with the code of a missing object is no deletion.
#[tokio::test]
async fn a_worker_set_whose_deletion_is_denied_is_deleted_later() {
    let world = World::start().await;
    let name = world.deployment(BIG).await.unwrap()["metadata"]["name"].clone();
    world.says(move |request| {
        let is_refused = request["operation"] == "DELETE" && request["name"] == name;
        is_refused.then(|| denial(404, "NotFound", "secrets \"credentials\" not found"))
    });
    world
        .topology(|topology| {
            let sets = topology["workers"]["machineDeployments"].as_array_mut().unwrap();
            sets[2]["replicas"] = 9.into();
            sets.remove(0);
        })
        .await;
    world.fails("secrets \"credentials\" not found", async || {}).await;
    let is_scaled = |one: &Value| one["spec"]["replicas"] == 9;
    world
        .waits_for(WINDOWS, "replicas of another worker set", is_scaled)
        .await;
    let kept = world.deployment(BIG).await.unwrap();
    assert!(kept["metadata"]["deletionTimestamp"].is_null());
    world.allows_everything();
    world
        .env
        .wait("the deletion", async || {
            let kept = world.deployment(BIG).await;
            kept.is_none_or(|kept| !kept["metadata"]["deletionTimestamp"].is_null())
                .then_some(())
        })
        .await;
    world.env.reconciled("ReconcileSucceeded").await;
    world.stop().await;
}

/// An upgrade with changes of all templates.
async fn upgrade_with_changes(world: &World) {
    let server = json!({"spec": {"template": {"spec": {"server": "other.example.com"}}}});
    world
        .env
        .merge("VSphereClusterTemplate", "vsphere-prod-cluster-template", server)
        .await;
    world.change_template("linux-vsphere-template", 16).await;
    world
        .topology(|topology| {
            topology["version"] = "v1.32.0".into();
            topology["workers"]["machineDeployments"][2]["replicas"] = 9.into();
        })
        .await;
}

/// The versions, replicas and templates of control plane and workers, and what the Cluster says to them about the upgrade.
async fn state(world: &World) -> Vec<Value> {
    let mut all = vec![world.control_plane().await["spec"].clone()];
    for worker_set in [BIG, SMALL, WINDOWS] {
        all.push(world.deployment(worker_set).await.unwrap()["spec"].clone());
    }
    let cluster = world.env.get("Cluster", "foo").await.unwrap();
    let annotations = cluster["metadata"].get("annotations");
    all.push(annotations.and_then(|all| all.get(STEP)).cloned().unwrap_or_default());
    all
}

/// The upgrade goes on without an event.
async fn goes_on(world: &World) {
    world.allows_everything();
    world
        .env
        .wait("the upgrade of the control plane", async || {
            let control_plane = world.control_plane().await;
            let cluster = world.env.get("Cluster", "foo").await?;
            let is_new = control_plane["spec"]["version"] == "v1.32.0";
            (is_new && cluster["metadata"]["annotations"][STEP] == "v1.32.0").then_some(())
        })
        .await;
    world.control_plane_runs("v1.32.0").await;
    world.env.reconciled("ReconcileSucceeded").await;
    for worker_set in [BIG, SMALL, WINDOWS] {
        assert_eq!(version(&world.deployment(worker_set).await.unwrap()), "v1.32.0");
    }
}

#[tokio::test]
async fn a_control_plane_template_that_is_refused_stops_control_plane_and_workers() {
    let world = World::start().await;
    world.says(|request| {
        let is_refused = is_of(request, None) && is_dry_run(request);
        is_refused.then(|| denial(403, "Forbidden", "no such size"))
    });
    let before = state(&world).await;
    upgrade_with_changes(&world).await;
    world
        .env
        .wait("the infrastructure cluster", async || {
            let infrastructure = world.env.generated("VSphereCluster").await.remove(0);
            (infrastructure["spec"]["server"] == "other.example.com").then_some(())
        })
        .await;
    // It is about the version, too.
    world
        .env
        .wait("a report on the upgrade", async || {
            let cluster = world.env.get("Cluster", "foo").await?;
            let found = condition(&cluster, "TopologyReconciled")?;
            let is_now = found["observedGeneration"] == cluster["metadata"]["generation"];
            let plan = &cluster["status"]["controlPlane"]["upgradePlan"];
            (is_now && *plan == json!([{"version": "v1.32.0"}])).then_some(())
        })
        .await;
    world.fails("no such size", async || {}).await;
    assert_eq!(state(&world).await, before);
    goes_on(&world).await;
    world.stop().await;
}

// TO-259: the parts of a pass are done in this order.
#[tokio::test]
async fn an_infrastructure_cluster_that_is_refused_stops_control_plane_and_workers() {
    let world = World::start().await;
    world.says(|request| {
        let is_refused = request["kind"]["kind"] == "VSphereCluster" && request["operation"] == "UPDATE";
        is_refused.then(|| denial(403, "Forbidden", "server is immutable"))
    });
    let before = state(&world).await;
    upgrade_with_changes(&world).await;
    world
        .env
        .wait("a report on the upgrade", async || {
            let cluster = world.env.get("Cluster", "foo").await?;
            let found = condition(&cluster, "TopologyReconciled")?;
            let is_now = found["observedGeneration"] == cluster["metadata"]["generation"];
            let plan = &cluster["status"]["controlPlane"]["upgradePlan"];
            (is_now && *plan == json!([{"version": "v1.32.0"}])).then_some(())
        })
        .await;
    world.fails("server is immutable", async || {}).await;
    assert_eq!(state(&world).await, before);
    goes_on(&world).await;
    world.stop().await;
}

// TO-257, TO-319: what was made for a step that is refused goes again, and each attempt fails with the same words, so that the condition does
// not change.
#[tokio::test]
async fn a_worker_set_that_is_refused_leaves_no_template_and_the_same_words() {
    let world = World::start().await;
    world.says(|request| {
        let is_refused = request["kind"]["kind"] == "MachineDeployment"
            && (request["operation"] == "CREATE" || is_changed(request, WINDOWS));
        is_refused.then(|| denial(403, "Forbidden", "no more worker sets"))
    });
    let before = world.deployment(WINDOWS).await.unwrap();
    world.change_template("windows-vsphere-template", 16).await;
    world
        .topology(|topology| {
            let sets = topology["workers"]["machineDeployments"].as_array_mut().unwrap();
            sets.push(json!({"class": "linux-worker", "name": "extra", "replicas": 1}));
        })
        .await;
    // Names of new objects are derived, so they are the same in each attempt.
    let said = world.fails("foo-extra-", async || {}).await;
    assert_eq!(said.matches("no more worker sets").count(), 2, "{said}");
    let version = async || {
        let cluster = world.env.get("Cluster", "foo").await.unwrap();
        cluster["metadata"]["resourceVersion"].clone()
    };
    let (seen, attempts) = (version().await, || {
        let requests = world.hooks.requests();
        let is_new =
            |request: &&Value| request["kind"]["kind"] == "MachineDeployment" && request["operation"] == "CREATE";
        requests.iter().filter(is_new).count()
    });
    let first = attempts();
    world
        .env
        .wait("three more attempts", async || (attempts() >= first + 3).then_some(()))
        .await;
    assert_eq!(version().await, seen, "the condition does not change");
    world
        .env
        .wait("no template of what was refused", async || {
            let mut of_extra = world.env.of_entry("VSphereMachineTemplate", "extra").await;
            of_extra.extend(world.env.of_entry("KubeadmConfigTemplate", "extra").await);
            let of_windows = world.env.of_entry("VSphereMachineTemplate", WINDOWS).await;
            (of_extra.is_empty() && of_windows.len() == 1).then_some(())
        })
        .await;
    let kept = world.deployment(WINDOWS).await.unwrap();
    assert_eq!(template(&kept), template(&before));
    assert!(world.cpus(template(&before)).await.is_some());

    world.allows_everything();
    world.waits_for("extra", "the new worker set", |_| true).await;
    let after = world
        .waits_for(WINDOWS, "the new template", |one| template(one) != template(&before))
        .await;
    assert_eq!(world.cpus(template(&after)).await, Some(json!(16)));
    world.env.reconciled("ReconcileSucceeded").await;
    world.stop().await;
}

/// Whether a request changes the template of a worker set.
fn is_changed(request: &Value, worker_set: &str) -> bool {
    request["operation"] == "UPDATE"
        && request["object"]["metadata"]["labels"][ENTRY] == worker_set
        && template(&request["object"]) != template(&request["oldObject"])
}
