//! The decisions, situation by situation.

mod authorities;
mod content;
mod lock;
mod status;
mod tokens;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::{Value, json};
use windlass_api::core::v1beta2::{Cluster, Machine};
use windlass_cluster_cache::{GracePeriods, Outage, Workload};
use windlass_controller_runtime::{ReconcileError, Seen};
use windlass_kubeadm::SecretReference;
use windlass_pki::{Certificate, KeyAlgorithm, KeyMaterial, PrivateKey, Purpose};

use super::super::observed::{Lock, Material, References, ReleasedLocks, SetBy, declared_version, lock, pins_set_by};
use super::super::owner::ConfigOwner;
use super::super::status::{Done, Failure, status};
use super::*;

const NOW: &str = "2026-11-21T10:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn object<T: serde::de::DeserializeOwned>(yaml: &str) -> T {
    serde_saphyr::from_str(yaml).unwrap()
}

/// A config, its Machine and its Cluster, and what else was seen; changed by each test to what it is about.
struct World {
    config: Value,
    machine: Value,
    cluster: Value,
    seen: Observed,
}

fn world(control_plane: bool, spec: &str) -> World {
    let mut machine = json!({
        "metadata": {"name": "m1", "namespace": "default", "uid": "machine-uid", "labels": {}},
        "spec": {
            "clusterName": "demo", "version": "v1.35.0",
            "bootstrap": {"configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": "m1"}},
            "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": "m1"},
        },
    });
    if control_plane {
        machine["metadata"]["labels"]["cluster.x-k8s.io/control-plane"] = "".into();
    }
    let material = KeyMaterial::generate(
        Purpose::ClusterCa,
        PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap(),
        10,
        now(),
    )
    .unwrap();
    let purposes = if control_plane {
        Purpose::CONTROL_PLANE.to_vec()
    } else {
        vec![Purpose::ClusterCa]
    };
    World {
        config: json!({
            "metadata": {"name": "m1", "namespace": "default", "uid": "config-uid", "generation": 1},
            "spec": serde_saphyr::from_str::<Value>(spec).unwrap(),
        }),
        machine,
        cluster: json!({
            "metadata": {"name": "demo", "namespace": "default", "uid": "cluster-uid"},
            "spec": {
                "controlPlaneEndpoint": {"host": "10.0.0.1", "port": 6443},
                "controlPlaneRef": {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "cp"},
                "clusterNetwork": {"serviceDomain": "cluster.local", "pods": {"cidrBlocks": ["10.1.0.0/16", "fd00::/48"]}},
            },
            "status": {"initialization": {"infrastructureProvisioned": true, "controlPlaneInitialized": true}},
        }),
        seen: Observed {
            config: Arc::default(),
            owner: Seen::NotFound,
            cluster: Seen::NotFound,
            data_secret: Seen::NotFound,
            lock: Some(Seen::NotFound),
            material: Some(Material {
                certificates: purposes
                    .into_iter()
                    .map(|purpose| (purpose, Seen::Found(material.clone())))
                    .collect(),
                rotation: None,
                references: References::default(),
                control_plane_version: Seen::NotFound,
            }),
            connection: Some(Workload::Up(())),
            token_expires: None,
            pins_set_by: Some(Seen::Found(SetBy::User)),
            fresh_token: Token::parse("abcdef.0123456789abcdef").unwrap(),
            token_ttl: SignedDuration::from_mins(15),
        },
    }
}

impl World {
    fn before_init(mut self) -> Self {
        self.cluster["status"]["initialization"] = json!({"infrastructureProvisioned": true});
        self
    }

    fn standalone(mut self) -> Self {
        self.cluster["spec"].as_object_mut().unwrap().remove("controlPlaneRef");
        self
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn done(mut self) -> Self {
        self.config["status"] = json!({"dataSecretName": "m1", "initialization": {"dataSecretCreated": true}});
        self.seen.data_secret = Seen::Found(Arc::new(secret(&json!([owner("config-uid")]))));
        self
    }

    fn observed(mut self) -> Observed {
        self.seen.config = Arc::new(serde_json::from_value(self.config).unwrap());
        let machine = serde_json::from_value::<Machine>(self.machine).unwrap();
        self.seen.owner = Seen::Found(ConfigOwner::Machine(Arc::new(machine)));
        self.seen.cluster = Seen::Found(Arc::new(serde_json::from_value::<Cluster>(self.cluster).unwrap()));
        self.seen
    }

    fn material(&mut self) -> &mut Material {
        self.seen.material.as_mut().unwrap()
    }

    fn plan(self) -> Plan {
        planned(&self.observed(), &Moment::at(now()))
    }
}

/// The plan, when nothing has to be asked.
fn planned(seen: &Observed, now: &Moment) -> Plan {
    match plan(seen, now) {
        Decision::Plan(plan) => plan,
        Decision::Ask(question) => panic!("asks for {question:?}"),
    }
}

fn down(why: &str) -> Workload<()> {
    Workload::Down(Outage {
        since: now(),
        last_success: None,
        why: why.to_owned(),
        grace: GracePeriods::default(),
    })
}

fn why(plan: &Plan) -> Option<&str> {
    plan.blocked.as_ref().map(|blocked| blocked.message.as_str())
}

fn owner(uid: &str) -> Value {
    json!({
        "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfig", "name": "m1", "uid": uid,
        "controller": true,
    })
}

fn secret(owners: &Value) -> Secret {
    serde_json::from_value(json!({
        "metadata": {
            "name": "m1", "namespace": "default", "uid": "secret-uid", "ownerReferences": owners,
            "creationTimestamp": NOW,
        },
        "data": {"value": "eA=="},
    }))
    .unwrap()
}

/// The names of the actions, in order.
fn names(plan: &Plan) -> Vec<&'static str> {
    plan.actions
        .iter()
        .map(|action| match action {
            Action::TakeLock { stale: None, .. } => "take lock",
            Action::TakeLock { stale: Some(_), .. } => "take over lock",
            Action::ReleaseLock { .. } => "release lock",
            Action::GenerateCertificates(_) => "generate certificates",
            Action::CreateToken { .. } => "create token",
            Action::ExtendToken { .. } => "extend token",
            Action::ApplySpec(_) => "apply spec",
            Action::CreateData(_) => "create data",
            Action::ReplaceData { .. } => "replace data",
            Action::AdoptData { .. } => "adopt data",
        })
        .collect()
}

fn waits(plan: &Plan, part: &str) {
    let Verdict::NotAvailable(lack) = &plan.data else {
        panic!("{plan:?} does not wait");
    };
    assert!(lack.message.contains(part), "{:?} lacks {part:?}", lack.message);
    assert_eq!(plan.data_secret_name, None);
}

/// The cloud-config in the planned Secret.
fn data(plan: &Plan) -> String {
    let content = plan.actions.iter().find_map(|action| match action {
        Action::CreateData(content) | Action::ReplaceData { content, .. } => Some(content),
        _ => None,
    });
    let value = &content.unwrap().0["data"]["value"];
    let bytes: k8s_openapi::ByteString = serde_json::from_value(value.clone()).unwrap();
    String::from_utf8(bytes.0).unwrap()
}

const INIT: &str = "{initConfiguration: {nodeRegistration: {criSocket: x}}}";
const WORKER: &str = "{joinConfiguration: {nodeRegistration: {criSocket: x}}}";
const WITH_TOKEN: &str = "{joinConfiguration: {discovery: {bootstrapToken: {token: zzzzzz.0123456789abcdef, apiServerEndpoint: 'e:1', caCertHashes: [h]}}}}";
const JOIN_CONTROL_PLANE: &str = "{joinConfiguration: {controlPlane: {}}, clusterConfiguration: {imageRepository: r}}";

#[test]
fn everything_waits_for_the_infrastructure_of_the_cluster() {
    for (control_plane, spec) in [(true, INIT), (false, WORKER)] {
        let plan = world(control_plane, spec)
            .with(|world| world.cluster["status"] = json!({}))
            .plan();
        assert_eq!(names(&plan), [""; 0]);
        waits(&plan, "status.initialization.infrastructureProvisioned");
    }
}

/// Users bring authorities of their own while the infrastructure is made.
#[test]
fn without_a_control_plane_object_keys_wait_for_the_infrastructure() {
    let without_key = |world: &mut World| {
        world.material().certificates.insert(Purpose::EtcdCa, Seen::NotFound);
    };
    let plan = world(true, INIT)
        .standalone()
        .with(without_key)
        .with(|world| world.cluster["status"] = json!({}))
        .plan();
    assert_eq!(names(&plan), [""; 0]);
    waits(&plan, "infrastructureProvisioned");
    let plan = world(true, INIT).standalone().before_init().with(without_key).plan();
    assert_eq!(names(&plan), ["take lock", "generate certificates"]);
    assert!(matches!(&plan.actions[1], Action::GenerateCertificates(purposes) if purposes == &[Purpose::EtcdCa]));
}

#[test]
fn workers_and_joining_control_plane_machines_wait_until_there_is_a_cluster() {
    for (control_plane, spec) in [(false, WORKER), (true, "{joinConfiguration: {controlPlane: {}}}")] {
        let plan = world(control_plane, spec).before_init().plan();
        assert_eq!(names(&plan), [""; 0]);
        waits(&plan, "Waiting for Cluster control plane to be initialized");
        assert_eq!(plan.certificates, Verdict::Keep);
        assert_eq!(plan.blocked, None);
    }
}

// EX-047, EX-055: half an endpoint is none, and the wait for it is no failure.
#[test]
fn a_machine_that_joins_waits_for_both_parts_of_the_endpoint() {
    for endpoint in [json!(null), json!({"host": "10.0.0.1"}), json!({"port": 6443})] {
        let plan = world(false, WORKER)
            .with(|world| world.cluster["spec"]["controlPlaneEndpoint"] = endpoint.clone())
            .plan();
        assert_eq!(names(&plan), [""; 0], "{endpoint}");
        let waits_for =
            "Waiting for Cluster spec.controlPlaneEndpoint.host and spec.controlPlaneEndpoint.port to be set";
        waits(&plan, waits_for);
        assert_eq!((plan.blocked, plan.requeue), (None, None));
    }
}

#[test]
fn without_a_connection_no_token_can_be_made() {
    let plan = world(false, WORKER)
        .with(|world| world.seen.connection = Some(Workload::NotTried("kubeconfig is missing".to_owned())))
        .plan();
    assert_eq!(names(&plan), [""; 0]);
    waits(&plan, "kubeconfig is missing");
}

#[test]
fn missing_and_damaged_certificates_are_distinguished() {
    let missing = world(true, INIT)
        .before_init()
        .with(|world| {
            world
                .material()
                .certificates
                .insert(Purpose::ServiceAccount, Seen::NotFound);
        })
        .plan();
    assert_eq!(names(&missing), ["take lock"]);
    assert!(matches!(&missing.certificates, Verdict::InternalError(lack) if lack.message.contains("demo-sa")));
    assert_eq!(missing.blocked, None);
    let damaged = world(false, WORKER)
        .with(|world| {
            world
                .material()
                .certificates
                .insert(Purpose::ClusterCa, Seen::Failed("no tls.crt".to_owned()));
        })
        .plan();
    assert_eq!(why(&damaged), Some("no tls.crt"));
}

/// A worker whose data was made at [`NOW`].
fn worker(expires: Option<Seen<Timestamp>>, joined: bool) -> Observed {
    world(false, WITH_TOKEN)
        .done()
        .with(|world| {
            if joined {
                world.machine["status"] = json!({"nodeRef": {"name": "n"}});
            }
            world.seen.token_expires = expires.map(Workload::Up);
        })
        .observed()
}

fn minutes(minutes: i64) -> Timestamp {
    now() + SignedDuration::from_mins(minutes)
}

/// [`worker`], looked at `after` minutes later.
fn later(after: i64, expires: Option<Seen<Timestamp>>, joined: bool) -> Plan {
    planned(&worker(expires, joined), &Moment::at(minutes(after)))
}

/// The config of a MachinePool whose data was made at [`NOW`].
fn of_pool(expires: Option<Seen<Timestamp>>, nodes: usize) -> Observed {
    let mut seen = worker(expires, false);
    let nodes: Vec<Value> = (0..nodes).map(|number| json!({"name": format!("n{number}")})).collect();
    let pool = json!({
        "metadata": {"name": "mp", "namespace": "default", "uid": "pool-uid"},
        "spec": {"clusterName": "demo", "replicas": 2, "template": {"spec": {
            "clusterName": "demo", "version": "v1.35.0", "bootstrap": {},
            "infrastructureRef": {"apiGroup": "i", "kind": "DevMachinePool", "name": "mp"},
        }}},
        "status": {"nodeRefs": nodes},
    });
    seen.owner = Seen::Found(ConfigOwner::Pool(Arc::new(serde_json::from_value(pool).unwrap())));
    seen
}

#[test]
fn a_control_plane_object_that_is_not_there_yet_has_an_unknown_version() {
    let key = ObjectKey::new("default", "cp");
    let read = |object: Seen<Value>| declared_version("KubeadmControlPlane", &key, object);
    let missing = read(Seen::NotFound);
    assert!(
        missing.failure().unwrap().contains("default/cp does not exist"),
        "{missing:?}"
    );
    let version = |spec: Value| read(Seen::Found(json!({"spec": spec}))).found().cloned();
    assert_eq!(
        version(json!({"version": "v1.35.0-rc.1+a"})).as_deref(),
        Some("v1.35.0-rc.1+a")
    );
    assert_eq!(version(json!({"version": ""})), None);
    assert_eq!(version(json!({})), None);
}

#[test]
fn a_control_plane_machine_does_not_join_without_the_keys() {
    let planned = |control_plane: bool, spec: &str, purpose: Purpose| {
        let world = world(control_plane, spec).with(|world| {
            if let Some(Seen::Found(material)) = world.material().certificates.get_mut(&purpose) {
                material.key.clear();
            }
        });
        world.plan()
    };
    let plan = planned(true, JOIN_CONTROL_PLANE, Purpose::ClusterCa);
    assert_eq!(names(&plan), [""; 0]);
    assert!(
        why(&plan).unwrap().contains("missing key data: Secrets demo-ca"),
        "{plan:?}"
    );
    assert!(matches!(plan.certificates, Verdict::InternalError(_)));
    // The authority of an etcd elsewhere has no key here, and workers need none.
    let external = "{joinConfiguration: {controlPlane: {}}, clusterConfiguration: {etcd: {external: {endpoints: [e], caFile: /ca, certFile: /c, keyFile: /k}}}}";
    assert!(why(&planned(true, external, Purpose::EtcdCa)).is_none());
    assert!(why(&planned(false, WORKER, Purpose::ClusterCa)).is_none());
}

#[test]
fn a_machine_that_finds_its_cluster_by_itself_waits_for_no_endpoint() {
    let joins = |spec: &str| {
        let world = world(false, spec).with(|world| world.cluster["spec"]["controlPlaneEndpoint"] = json!(null));
        world.plan().data == Verdict::Available
    };
    assert!(joins(WITH_TOKEN));
    assert!(joins("{joinConfiguration: {discovery: {file: {kubeConfigPath: /k}}}}"));
    let file = |cluster: &str| {
        format!(
            "{{joinConfiguration: {{discovery: {{file: {{kubeConfigPath: /k, kubeConfig: {{cluster: {cluster}, user: {{}}}}}}}}}}}}"
        )
    };
    assert!(joins(&file("{server: 'https://e:1'}")));
    assert!(!joins(&file("{tlsServerName: e}")));
    assert!(!joins(
        "{joinConfiguration: {discovery: {bootstrapToken: {token: zzzzzz.0123456789abcdef}}}}"
    ));
}

#[test]
fn plans_ask_only_for_what_their_situation_needs() {
    let ask = |world: World, after: i64| {
        let mut seen = world.observed();
        (seen.lock, seen.material, seen.connection, seen.token_expires) = (None, None, None, None);
        match plan(&seen, &Moment::at(minutes(after))) {
            Decision::Ask(question) => question,
            Decision::Plan(_) => Question::default(),
        }
    };
    let nothing = Question::default();
    let (lock, material) = (true, true);
    let init = Question {
        lock,
        material,
        ..nothing
    };
    assert_eq!(ask(world(true, INIT).before_init(), 0), init);
    let connection = true;
    let join = Question {
        material,
        connection,
        ..nothing
    };
    assert_eq!(ask(world(false, WORKER), 0), join);
    assert_eq!(ask(world(false, WORKER).before_init(), 0), nothing);
    // The lock is looked for by Machines that may hold it, the token once it is due.
    assert_eq!(ask(world(true, INIT).done(), 0), Question { lock, ..nothing });
    let joined = "{clusterConfiguration: {}, joinConfiguration: {discovery: {bootstrapToken: {token: zzzzzz.0123456789abcdef}}}}";
    assert_eq!(ask(world(true, joined).done(), 0), nothing);
    assert_eq!(ask(world(false, WITH_TOKEN).done(), 4), nothing);
    let token = true;
    assert_eq!(
        ask(world(false, WITH_TOKEN).done(), 5),
        Question {
            material,
            token,
            ..nothing
        }
    );
}

#[test]
fn a_template_is_not_rendered_while_its_version_cannot_be_read() {
    let spec = "{joinConfiguration: {}, files: [{path: /a, content: a, contentFormat: Template}]}";
    let plan = world(false, spec)
        .with(|world| world.material().control_plane_version = Seen::Failed("no answer".to_owned()))
        .plan();
    assert_eq!(names(&plan), [""; 0]);
    waits(&plan, "no answer");
    assert!(plan.blocked.is_some());
}
