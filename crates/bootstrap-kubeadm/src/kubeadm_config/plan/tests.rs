//! The decisions, situation by situation.

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
fn the_first_control_plane_machine_makes_the_cluster() {
    let plan = world(true, INIT).before_init().plan();
    assert_eq!(names(&plan), ["take lock", "apply spec", "create data"]);
    let Action::TakeLock { object, .. } = &plan.actions[0] else {
        panic!("{plan:?}");
    };
    assert_eq!(
        **object,
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": "demo-lock", "namespace": "default", "labels": {"cluster.x-k8s.io/cluster-name": "demo"},
                "ownerReferences": [
                    {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "demo", "uid": "cluster-uid"},
                ],
            },
            "data": {"lock-information": r#"{"machineName":"m1"}"#},
        })
    );
    let Action::ApplySpec(spec) = &plan.actions[1] else {
        panic!("{plan:?}");
    };
    assert_eq!(
        spec["spec"],
        json!({"clusterConfiguration": {"controlPlaneEndpoint": "10.0.0.1:6443"}})
    );
    let text = data(&plan);
    for part in [
        "kubeadm init",
        "controlPlaneEndpoint: 10.0.0.1:6443",
        "podSubnet: 10.1.0.0/16,fd00::/48",
        "kubernetesVersion: v1.35.0",
        "path: /etc/kubernetes/pki/etcd/ca.key",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    assert_eq!(plan.data, Verdict::Available);
    assert_eq!(plan.certificates, Verdict::Available);
    assert_eq!(plan.requeue, None);
}

#[test]
fn the_data_secret_is_complete_when_it_is_created() {
    let plan = world(true, INIT).before_init().plan();
    let Some(Action::CreateData(Hidden(secret))) = plan.actions.last() else {
        panic!("{plan:?}");
    };
    assert_eq!(secret["type"], "cluster.x-k8s.io/secret");
    assert_eq!(
        secret["metadata"],
        json!({
            "name": "m1", "namespace": "default", "labels": {"cluster.x-k8s.io/cluster-name": "demo"},
            "ownerReferences": [owner("config-uid")],
        })
    );
    assert_eq!(secret["data"]["format"], "Y2xvdWQtY29uZmln");
    assert!(
        !format!("{plan:?}").contains("PRIVATE"),
        "a plan in a log shows no keys"
    );
}

#[test]
fn only_one_machine_makes_the_cluster() {
    let lock = |machine: &str, holder_exists| {
        Seen::Found(Lock {
            machine: machine.to_owned(),
            holder_exists,
            uid: "lock-uid".to_owned(),
        })
    };
    let check = |lock: Seen<Lock>, want: &[&str]| {
        let plan = world(true, INIT)
            .before_init()
            .with(|world| world.seen.lock = Some(lock))
            .plan();
        assert_eq!(names(&plan), want);
        plan
    };
    check(lock("m1", true), &["apply spec", "create data"]);
    check(lock("gone", false), &["take over lock", "apply spec", "create data"]);
    waits(&check(lock("other", true), &[]), "control plane to be initialized");
    let plan = check(Seen::Failed("no answer".to_owned()), &[]);
    assert!(why(&plan).unwrap().contains("no answer"));
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

#[test]
fn a_control_plane_machine_without_kubeadm_settings_makes_the_cluster() {
    for spec in ["{}", "{files: [{path: /a, content: b}]}", "{preKubeadmCommands: [a]}"] {
        let plan = world(true, spec).before_init().plan();
        assert_eq!(names(&plan), ["take lock", "apply spec", "create data"], "{spec}");
        assert!(data(&plan).contains("kubeadm init"), "{spec}");
        // Once there is a cluster, such a machine joins; a worker never makes one.
        assert!(data(&world(true, spec).plan()).contains("kubeadm join"), "{spec}");
        waits(
            &world(false, spec).before_init().plan(),
            "control plane to be initialized",
        );
    }
    let none = world(true, "{}").before_init().with(|world| {
        world.config.as_object_mut().unwrap().remove("spec");
    });
    assert_eq!(names(&none.plan()), ["take lock", "apply spec", "create data"]);
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
fn a_worker_joins_with_a_token_of_its_own() {
    let plan = world(false, WORKER).plan();
    assert_eq!(names(&plan), ["create token", "apply spec", "create data"]);
    assert!(
        matches!(&plan.actions[0], Action::CreateToken { expires, .. } if *expires == now() + SignedDuration::from_mins(15))
    );
    let Action::ApplySpec(spec) = &plan.actions[1] else {
        panic!("{plan:?}");
    };
    let discovery = &spec["spec"]["joinConfiguration"]["discovery"]["bootstrapToken"];
    assert_eq!(discovery["apiServerEndpoint"], "10.0.0.1:6443");
    assert_eq!(discovery["token"], "abcdef.0123456789abcdef");
    assert!(discovery["caCertHashes"][0].as_str().unwrap().starts_with("sha256:"));
    assert_eq!(spec["metadata"]["uid"], "config-uid");
    let text = data(&plan);
    assert!(
        text.contains("kubeadm join") && text.contains("key: node.cluster.x-k8s.io/uninitialized"),
        "{text}"
    );
    assert!(
        !text.contains("PRIVATE KEY") && !text.contains("/etc/kubernetes/pki"),
        "{text}"
    );
    assert_eq!(plan.requeue, Some(Duration::from_mins(5)));
}

#[test]
fn a_joining_control_plane_machine_gets_the_keys_and_no_taint_of_workers() {
    let plan = world(true, JOIN_CONTROL_PLANE).plan();
    assert_eq!(names(&plan), ["create token", "apply spec", "create data"]);
    let text = data(&plan);
    assert!(
        text.contains("/etc/kubernetes/pki/sa.key") && text.contains("localAPIEndpoint"),
        "{text}"
    );
    assert!(!text.contains("uninitialized"), "{text}");
}

#[test]
fn the_authority_is_pinned_also_where_it_may_be_skipped() {
    let spec = "{joinConfiguration: {discovery: {bootstrapToken: {unsafeSkipCAVerification: true}}}}";
    let text = data(&world(false, spec).plan());
    assert!(text.contains("unsafeSkipCAVerification: true"), "{text}");
    assert!(text.contains("caCertHashes:") && text.contains("- sha256:"), "{text}");
}

#[test]
fn the_format_of_the_spec_is_that_of_the_secret() {
    let config =
        "ignition: {containerLinuxConfig: {additionalConfig: 'storage: {files: [{path: /a}]}', strict: STRICT}}";
    let spec = |kind: &str, strict: &str| {
        let config = config.replace("STRICT", strict);
        format!("{{{kind}: {{nodeRegistration: {{criSocket: x}}}}, format: ignition, {config}}}")
    };
    for (control_plane, kind, command) in [
        (false, "joinConfiguration", "kubeadm%20join"),
        (true, "joinConfiguration", "kubeadm%20join"),
        (true, "initConfiguration", "kubeadm%20init"),
    ] {
        let world = world(control_plane, &spec(kind, "false"));
        let is_init = kind == "initConfiguration";
        let plan = if is_init {
            world.before_init().plan()
        } else {
            world.plan()
        };
        let document: Value = serde_json::from_str(&data(&plan)).unwrap();
        assert_eq!(document["ignition"]["version"], "2.3.0");
        let files = document["storage"]["files"].as_array().unwrap();
        let has = |path: &str, part: &str| {
            let source = |file: &Value| {
                file["contents"]["source"]
                    .as_str()
                    .is_some_and(|source| source.contains(part))
            };
            files.iter().any(|file| file["path"] == path && source(file))
        };
        assert!(has("/etc/kubeadm.sh", command), "{files:?}");
        assert!(has("/a", "data:,"));
        assert_eq!(has("/etc/kubernetes/pki/ca.key", "PRIVATE%20KEY"), control_plane);
        let content = plan.actions.iter().find_map(|action| match action {
            Action::CreateData(content) => Some(&content.0),
            _ => None,
        });
        let format: k8s_openapi::ByteString =
            serde_json::from_value(content.unwrap()["data"]["format"].clone()).unwrap();
        assert_eq!(format.0, b"ignition");
        assert!(format!("{:?}", plan.notes).contains("additionalConfig: storage.files[0].mode: the mode is unset"));
    }
    let strict = world(false, &spec("joinConfiguration", "true")).plan();
    assert_eq!(names(&strict), [""; 0]);
    waits(
        &strict,
        "spec.ignition.containerLinuxConfig.additionalConfig: storage.files[0].mode",
    );
}

#[test]
fn the_token_that_the_spec_has_is_used() {
    let plan = world(false, WITH_TOKEN)
        .with(|world| world.seen.connection = Some(down("down")))
        .plan();
    assert_eq!(names(&plan), ["create data"]);
    assert!(data(&plan).contains("zzzzzz.0123456789abcdef"));
}

#[test]
fn a_file_that_describes_the_cluster_needs_no_token() {
    let plan = world(
        false,
        "{joinConfiguration: {discovery: {file: {kubeConfigPath: /k, kubeConfig: {user: {exec: {command: c}}}}}}}",
    )
    .plan();
    assert_eq!(names(&plan), ["create data"]);
    let text = data(&plan);
    assert!(
        text.contains("path: /k") && text.contains("server: https://10.0.0.1:6443"),
        "{text}"
    );
    assert_eq!(plan.requeue, None);
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

#[test]
fn a_worker_that_is_configured_as_control_plane_is_an_error() {
    let plan = world(false, "{joinConfiguration: {controlPlane: {}}}").plan();
    waits(&plan, "the Machine is a worker");
    assert!(plan.blocked.is_some());
    assert_eq!(names(&plan), [""; 0]);
}

#[test]
fn what_cannot_be_rendered_writes_nothing() {
    let spec = "{joinConfiguration: {}, files: [{path: /a, contentFrom: {secret: {name: s, key: k}}}]}";
    let plan = world(false, spec).plan();
    assert_eq!(names(&plan), [""; 0]);
    waits(&plan, "spec.files[0].contentFrom.secret: Secret s");
    let found = world(false, spec)
        .with(|world| {
            let reference = SecretReference {
                name: "s".to_owned(),
                key: "k".to_owned(),
            };
            world.material().references = References(BTreeMap::from([(reference, b"content of a".to_vec())]));
        })
        .plan();
    assert!(data(&found).contains("content of a"));
}

#[test]
fn a_data_secret_that_is_there_is_kept_adopted_or_refused() {
    let check = |owners: Value, want: &[&str]| {
        let plan = world(true, INIT)
            .before_init()
            .with(|world| {
                world.config["spec"]["clusterConfiguration"] = json!({"controlPlaneEndpoint": "e:1"});
                world.seen.lock = Some(Seen::Found(Lock {
                    machine: "m1".to_owned(),
                    holder_exists: true,
                    uid: "u".to_owned(),
                }));
                world.seen.data_secret = Seen::Found(Arc::new(secret(&owners)));
            })
            .plan();
        assert_eq!(names(&plan), want);
        plan
    };
    check(json!([owner("config-uid")]), &[]);
    check(json!([owner("uid-before-restore")]), &["replace data"]);
    check(json!([]), &["replace data"]);
    let foreign = json!([{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": true}]);
    waits(&check(foreign, &["release lock"]), "Secret m1 is controlled by Pod p");
}

#[test]
fn a_status_lost_in_a_restore_is_rebuilt_from_the_machine() {
    let seen = world(false, WORKER)
        .with(|world| world.machine["spec"]["bootstrap"]["dataSecretName"] = "kept".into())
        .observed();
    let plan = planned(&seen, &Moment::at(now()));
    assert_eq!(names(&plan), [""; 0]);
    let status = status(&seen, &plan, &Done::default(), &Moment::at(now())).unwrap();
    assert_eq!(status["dataSecretName"], "kept");
    assert_eq!(status["initialization"], json!({"dataSecretCreated": true}));
}

#[test]
fn a_data_secret_that_lost_its_owner_is_taken_back() {
    let planned = |joined: bool, owners: &Value| {
        let world = world(false, "{}").done().with(|w| {
            if joined {
                w.machine["status"] = json!({"nodeRef": {"name": "n"}});
            }
            w.seen.data_secret = Seen::Found(Arc::new(secret(owners)));
        });
        world.plan()
    };
    let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "backup", "uid": "b"});
    for joined in [false, true] {
        assert_eq!(names(&planned(joined, &json!([owner("config-uid"), other]))), [""; 0]);
        let mut older = owner("config-uid");
        older["apiVersion"] = "bootstrap.cluster.x-k8s.io/v1beta1".into();
        for lost in [
            json!([]),
            json!([other]),
            json!([owner("before-the-restore"), other]),
            json!([older]),
        ] {
            let plan = planned(joined, &lost);
            let [Action::AdoptData { secret, owners }] = plan.actions.as_slice() else {
                panic!("{lost}: {plan:?}");
            };
            assert_eq!(secret.uid.as_deref(), Some("secret-uid"));
            let kept = lost.as_array().unwrap().contains(&other);
            assert_eq!(owners.len(), if kept { 2 } else { 1 }, "{owners:?}");
            let ours = owners.last().unwrap();
            assert_eq!((ours.uid.as_str(), ours.controller), ("config-uid", Some(true)));
            assert_eq!(ours.api_version, "bootstrap.cluster.x-k8s.io/v1beta2");
        }
        let foreign =
            json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "d", "controller": true}]);
        let plan = planned(joined, &foreign);
        assert!(
            plan.actions.is_empty() && why(&plan).unwrap().contains("Deployment d"),
            "{plan:?}"
        );
    }
    // A status that is rebuilt after a restore takes the Secret back, too.
    let restored = world(false, "{}").with(|w| {
        w.machine["spec"]["bootstrap"]["dataSecretName"] = "m1".into();
        w.seen.data_secret = Seen::Found(Arc::new(secret(&json!([owner("before-the-restore")]))));
    });
    assert_eq!(names(&restored.plan()), ["adopt data"]);
}

#[test]
fn the_lock_is_given_back_by_its_holder() {
    let held = |machine: &str| {
        let machine = machine.to_owned();
        world(true, INIT)
            .done()
            .with(|world| {
                world.seen.lock = Some(Seen::Found(Lock {
                    machine,
                    holder_exists: true,
                    uid: "lock-uid".to_owned(),
                }));
            })
            .plan()
    };
    assert_eq!(
        held("m1").actions,
        [Action::ReleaseLock {
            key: ObjectKey::new("default", "demo-lock"),
            uid: "lock-uid".to_owned()
        }]
    );
    assert_eq!(held("m2").actions, []);
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

#[test]
fn a_token_lives_until_its_machine_has_joined() {
    let at = |after: i64| Seen::Found(minutes(after));
    let early = Moment::at(minutes(2));
    let plan = planned(&worker(None, false), &early);
    assert_eq!((names(&plan), plan.requeue), (vec![], None));
    assert_eq!(early.next_deadline(), Some(minutes(5)));
    let extended = later(5, Some(at(15)), false);
    assert_eq!(names(&extended), ["extend token"]);
    assert!(matches!(&extended.actions[0], Action::ExtendToken { expires, .. } if *expires == minutes(20)));
    assert_eq!(extended.requeue, Some(Duration::from_mins(5)));
    let fresh = Moment::at(minutes(6));
    let plan = planned(&worker(Some(at(20)), false), &fresh);
    assert_eq!((names(&plan), plan.requeue), (vec![], Some(Duration::from_mins(5))));
    // It stops being fresh before it is looked at again. No reconcile is scheduled for that.
    assert_eq!(fresh.next_deadline(), None);
    let joined = Moment::at(minutes(5));
    let plan = planned(&worker(None, true), &joined);
    assert_eq!(
        (names(&plan), plan.requeue, joined.next_deadline()),
        (vec![], None, None)
    );
    let unread = later(5, Some(Seen::Failed("x".to_owned())), false);
    // The backoff after a failed read does not outgrow the life of the token.
    assert!(unread.blocked.is_some());
    assert_eq!(unread.requeue, Some(Duration::from_mins(5)));
    let leaving = world(false, WITH_TOKEN)
        .done()
        .with(|world| world.machine["metadata"]["deletionTimestamp"] = NOW.into())
        .plan();
    assert_eq!((names(&leaving), leaving.requeue), (vec![], None));
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
fn the_token_of_a_pool_is_replaced_at_half_of_its_life() {
    let at = |after: i64| Some(Seen::Found(minutes(after)));
    // Until all its machines have joined, it is extended.
    assert_eq!(
        names(&planned(&of_pool(at(8), 1), &Moment::at(minutes(5)))),
        ["extend token"]
    );
    let early = Moment::at(minutes(5));
    let plan = planned(&of_pool(at(15), 2), &early);
    assert_eq!((names(&plan), plan.requeue), (vec![], Some(Duration::from_mins(5))));
    let half = minutes(15) - SignedDuration::from_mins(15) / 2;
    assert_eq!(early.next_deadline(), Some(half));
    let rotated = planned(&of_pool(at(15), 2), &Moment::at(half));
    assert_eq!(names(&rotated), ["create token", "replace data", "apply spec"]);
    let gone = planned(&of_pool(Some(Seen::NotFound), 2), &Moment::at(minutes(5)));
    assert_eq!(names(&gone), ["create token", "replace data", "apply spec"]);
    let mut unknown = of_pool(None, 2);
    unknown.token_expires = Some(Workload::NotTried("no attempt".to_owned()));
    assert_eq!(names(&planned(&unknown, &Moment::at(half))), Vec::<&str>::new());
}

#[test]
fn the_data_of_a_pool_is_made_again_when_it_is_lost() {
    let mut seen = of_pool(Some(Seen::Found(minutes(15))), 2);
    seen.data_secret = Seen::NotFound;
    let plan = planned(&seen, &Moment::at(minutes(1)));
    assert_eq!(names(&plan), ["create token", "create data", "apply spec"]);
    // Also where no token is needed.
    let mut config = (*seen.config).clone();
    let file = json!({"joinConfiguration": {"discovery": {"file": {"kubeConfigPath": "/etc/discovery"}}}});
    config.spec = serde_json::from_value(file).unwrap();
    seen.config = Arc::new(config);
    seen.token_expires = None;
    assert_eq!(names(&planned(&seen, &Moment::at(minutes(1)))), ["create data"]);
}

#[test]
fn data_of_another_object_is_not_replaced() {
    let mut seen = of_pool(Some(Seen::NotFound), 2);
    let other = json!([{"apiVersion": "v1", "kind": "Other", "name": "x", "uid": "u", "controller": true}]);
    seen.data_secret = Seen::Found(Arc::new(secret(&other)));
    let plan = planned(&seen, &Moment::at(minutes(5)));
    assert_eq!(names(&plan), Vec::<&str>::new());
    assert!(plan.blocked.unwrap().message.contains("controlled by Other x"));
}

#[test]
fn a_token_in_a_cluster_that_does_not_answer_is_neither_extended_nor_replaced() {
    for unknown in [
        Workload::NotTried("no attempt".to_owned()),
        down("no answer").map(|()| Seen::NotFound),
    ] {
        let mut seen = worker(None, false);
        seen.token_expires = Some(unknown);
        let plan = planned(&seen, &Moment::at(minutes(5)));
        assert_eq!((names(&plan), &plan.blocked), (vec![], &None));
        assert_eq!(plan.requeue, Some(Duration::from_mins(5)));
        assert_eq!(plan.data, Verdict::Available);
    }
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
fn a_machine_whose_data_cannot_be_made_does_not_keep_the_init_lock() {
    const BROKEN: &str = "{files: [{path: /a, content: '{{', contentFormat: Template}]}";
    let held = Lock {
        machine: "m1".to_owned(),
        holder_exists: true,
        uid: "lock-uid".to_owned(),
    };
    let planned = |lock: Seen<Lock>| {
        let world = world(true, BROKEN).standalone().before_init();
        world.with(|world| world.seen.lock = Some(lock)).plan()
    };
    let plan = planned(Seen::Found(held.clone()));
    assert_eq!(names(&plan), ["release lock"]);
    assert!(why(&plan).is_some());
    assert_eq!(names(&planned(Seen::NotFound)), [""; 0]);
    // A damaged Secret is an obstacle, too; one that is still to come is not.
    let with = |ca: Seen<KeyMaterial>| {
        let world = world(true, INIT).before_init().with(|world| {
            world.seen.lock = Some(Seen::Found(held.clone()));
            world.material().certificates.insert(Purpose::ClusterCa, ca);
        });
        world.plan()
    };
    assert_eq!(names(&with(Seen::Failed("damaged".to_owned()))), ["release lock"]);
    assert_eq!(names(&with(Seen::NotFound)), [""; 0]);
    // The others are not told when the lock is gone.
    let other = Lock {
        machine: "other".to_owned(),
        ..held
    };
    assert_eq!(planned(Seen::Found(other)).requeue, Some(Duration::from_secs(30)));
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
fn data_that_waits_to_be_made_again_keeps_the_timer_of_its_token() {
    let mut seen = worker(Some(Seen::NotFound), false);
    seen.material
        .as_mut()
        .unwrap()
        .certificates
        .insert(Purpose::ClusterCa, Seen::NotFound);
    let plan = planned(&seen, &Moment::at(minutes(5)));
    assert_eq!(names(&plan), [""; 0]);
    assert_eq!(plan.requeue, Some(Duration::from_mins(5)));
}

#[test]
fn a_lock_that_is_gone_is_not_looked_for_again() {
    let released = ReleasedLocks::default();
    let seen = world(true, INIT).done().observed();
    let cluster = seen.cluster.found().unwrap();
    let held = Seen::Found(Lock {
        machine: "other".to_owned(),
        holder_exists: true,
        uid: "u".to_owned(),
    });
    released.found(cluster, &held, |_| true);
    released.found(cluster, &Seen::Failed("no answer".to_owned()), |_| true);
    assert!(!released.has(cluster));
    released.found(cluster, &Seen::NotFound, |_| true);
    assert!(released.has(cluster));
    // A Cluster of the same name that comes later has a lock of its own, and one that is not initialized may need it.
    let change = |edit: &dyn Fn(&mut Cluster)| {
        let mut other = Cluster::clone(cluster);
        edit(&mut other);
        other
    };
    assert!(!released.has(&change(&|other| other.metadata.uid = Some("later".to_owned()))));
    let before = change(&|other| other.status = None);
    assert!(!released.has(&before));
    released.found(&before, &Seen::NotFound, |_| false);
    assert!(
        released.has(cluster),
        "only what is found of an initialized Cluster counts"
    );
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
fn an_init_lock_that_cannot_be_read_is_neither_taken_over_nor_forgotten() {
    let key = ObjectKey::new("default", "demo-lock");
    let map =
        |data: Value| serde_json::from_value::<ConfigMap>(json!({"metadata": {"uid": "u"}, "data": data})).unwrap();
    let read = |data: Value| lock(&key, map(data), |machine| machine == "m1");
    let found = read(json!({"lock-information": r#"{"machineName":"m1"}"#}));
    assert!(matches!(
        found,
        Seen::Found(Lock {
            holder_exists: true,
            ..
        })
    ));
    let damaged = read(json!({"lock-information": "{"}));
    assert!(damaged.failure().unwrap().contains("default/demo-lock"), "{damaged:?}");
    let taking = world(true, INIT)
        .before_init()
        .with(|world| world.seen.lock = Some(damaged.clone()))
        .plan();
    assert_eq!(names(&taking), [""; 0]);
    assert!(why(&taking).unwrap().contains("Failed to read the init lock"));
    // After its data was made, the Machine tries again to give the lock back.
    let giving = world(true, INIT)
        .done()
        .with(|world| world.seen.lock = Some(damaged))
        .plan();
    assert_eq!((names(&giving), &giving.data), (vec![], &Verdict::Available));
    assert!(why(&giving).unwrap().contains("Failed to read the init lock"));
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

#[test]
fn a_token_that_vanished_is_replaced_with_the_data() {
    let plan = later(5, Some(Seen::NotFound), false);
    assert_eq!(names(&plan), ["create token", "replace data", "apply spec"]);
    assert!(data(&plan).contains("abcdef.0123456789abcdef"));
    assert_eq!(plan.data, Verdict::Available);
}

#[test]
fn there_is_no_status_without_a_machine_or_while_deleting() {
    let mut seen = world(false, WORKER).observed();
    seen.owner = Seen::NotFound;
    let orphan = planned(&seen, &Moment::at(now()));
    assert!(orphan.silent && orphan.actions.is_empty());
    assert_eq!(status(&seen, &orphan, &Done::default(), &Moment::at(now())), None);
    let deleting = world(false, WORKER)
        .with(|world| world.config["metadata"]["deletionTimestamp"] = NOW.into())
        .plan();
    assert!(deleting.silent && deleting.actions.is_empty());
}

fn told(seen: &Observed, done: &Done) -> Option<Value> {
    let now = Moment::at(now());
    status(seen, &planned(seen, &now), done, &now)
}

fn check_status(seen: &Observed, done: &Done, want: &str) {
    let got = told(seen, done).unwrap();
    assert_eq!(got, object::<Value>(want), "{got:#}");
}

#[test]
fn a_finished_config_says_what_recorded_ones_say() {
    let done = Done {
        generation: Some(2),
        ..Done::default()
    };
    check_status(
        &world(false, WORKER).observed(),
        &done,
        "
conditions:
- {type: Ready, status: 'True', reason: Ready, message: '', observedGeneration: 2, lastTransitionTime: '2026-11-21T10:00:00Z'}
- {type: CertificatesAvailable, status: 'True', reason: Available, message: '', observedGeneration: 2, lastTransitionTime: '2026-11-21T10:00:00Z'}
- {type: DataSecretAvailable, status: 'True', reason: Available, message: '', observedGeneration: 2, lastTransitionTime: '2026-11-21T10:00:00Z'}
observedGeneration: 2
dataSecretName: m1
initialization: {dataSecretCreated: true}
deprecated:
  v1beta1:
    conditions:
    - {type: Ready, status: 'True', lastTransitionTime: '2026-11-21T10:00:00Z'}
    - {type: CertificatesAvailable, status: 'True', lastTransitionTime: '2026-11-21T10:00:00Z'}
    - {type: DataSecretAvailable, status: 'True', lastTransitionTime: '2026-11-21T10:00:00Z'}
",
    );
}

#[test]
fn a_waiting_worker_says_what_recorded_ones_say() {
    check_status(
        &world(false, WORKER).before_init().observed(),
        &Done::default(),
        "
conditions:
- type: Ready
  status: 'False'
  reason: NotReady
  message: \"* DataSecretAvailable: Waiting for Cluster control plane to be initialized\\n* CertificatesAvailable: Condition not yet reported\"
  observedGeneration: 1
  lastTransitionTime: '2026-11-21T10:00:00Z'
- type: DataSecretAvailable
  status: 'False'
  reason: NotAvailable
  message: Waiting for Cluster control plane to be initialized
  observedGeneration: 1
  lastTransitionTime: '2026-11-21T10:00:00Z'
observedGeneration: 1
deprecated:
  v1beta1:
    conditions:
    - {type: Ready, status: 'False', reason: WaitingForControlPlaneAvailable, severity: Info, lastTransitionTime: '2026-11-21T10:00:00Z'}
    - {type: DataSecretAvailable, status: 'False', reason: WaitingForControlPlaneAvailable, severity: Info, lastTransitionTime: '2026-11-21T10:00:00Z'}
",
    );
}

#[test]
fn a_status_that_was_applied_is_not_changed_by_looking_again() {
    let seen = world(false, WORKER).before_init().observed();
    let now = Moment::at(now());
    let first = status(&seen, &planned(&seen, &now), &Done::default(), &now).unwrap();
    let again = world(false, WORKER)
        .before_init()
        .with(|world| world.config["status"] = first.clone())
        .observed();
    let later = Moment::at(minutes(1));
    assert_eq!(
        status(&again, &planned(&again, &later), &Done::default(), &later).unwrap(),
        first
    );
}

#[test]
fn a_failed_write_is_a_condition_but_never_takes_data_back() {
    let failed = |lost_lock| Done {
        failed: Some(Failure {
            action: 0,
            lost_lock,
            error: ReconcileError::new("Remote", "failed to create the token: no answer"),
        }),
        ..Done::default()
    };
    let seen = world(false, WORKER).observed();
    let status = told(&seen, &failed(false)).unwrap();
    let message = status["conditions"][2]["message"].as_str().unwrap();
    assert_eq!(message, "failed to create the token: no answer");
    assert_eq!(status["deprecated"]["v1beta1"]["conditions"][0]["severity"], "Warning");
    assert!(status.get("dataSecretName").is_none());

    let lost = world(true, INIT).before_init().observed();
    let status = told(&lost, &failed(true)).unwrap();
    assert_eq!(
        status["conditions"][2]["message"],
        "Waiting for Cluster control plane to be initialized"
    );

    let finished = world(false, WORKER).done().observed();
    let status = told(&finished, &failed(false)).unwrap();
    assert_eq!(status["dataSecretName"], "m1");
    assert_eq!(status["conditions"][0]["status"], "True");
}

#[test]
fn an_external_etcd_brings_its_own_files() {
    let spec = "{clusterConfiguration: {certificatesDir: /pki, etcd: {external: {endpoints: ['https://e:2379'], caFile: /e/ca.crt, certFile: /e/c.crt, keyFile: /e/c.key}}}}";
    let plan = world(true, spec)
        .before_init()
        .with(|world| {
            let material = KeyMaterial {
                crt: "CLIENT".to_owned(),
                key: "CLIENT KEY".to_owned(),
            };
            world
                .material()
                .certificates
                .insert(Purpose::ApiServerEtcdClient, Seen::Found(material));
        })
        .plan();
    let text = data(&plan);
    for path in ["/pki/ca.crt", "/e/ca.crt", "/e/c.crt", "/e/c.key", "/pki/sa.key"] {
        assert!(
            text.contains(&format!("path: {path}\n")),
            "{path} is missing in\n{text}"
        );
    }
    assert!(!text.contains("/pki/etcd"), "{text}");
}

/// While authorities are rotated, machines trust the old and the new one; controller managers, which read no bundle, sign with one.
#[test]
fn during_a_rotation_machines_trust_both_authorities_and_their_data_tells_of_which_it_was_made() {
    let pair = || {
        let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
        KeyMaterial::generate(Purpose::ClusterCa, key, 10, now()).unwrap()
    };
    let (old, new) = (pair(), pair());
    let both = KeyMaterial {
        crt: format!("{}{}", new.crt, old.crt),
        key: new.key.clone(),
    };
    let rotated = |control_plane: bool, stage: Option<&str>, authority: &KeyMaterial| {
        let (stage, authority) = (stage.map(str::to_owned), authority.clone());
        let world = world(control_plane, "{joinConfiguration: {}}").with(|world| {
            world.material().rotation = stage;
            let all = &mut world.material().certificates;
            all.insert(Purpose::ClusterCa, Seen::Found(authority));
        });
        let plan = world.plan();
        let content = plan.actions.iter().find_map(|action| match action {
            Action::CreateData(content) => Some(content.0.clone()),
            _ => None,
        });
        let mark = content.unwrap()["metadata"]["annotations"]["windlass.dev/authorities"].clone();
        (data(&plan), mark)
    };
    let pin = |material: &KeyMaterial| Certificate::from_pem(&material.crt).unwrap().public_key_pin();
    for control_plane in [true, false] {
        let (text, mark) = rotated(control_plane, Some("Completing"), &both);
        assert!(text.contains(&pin(&old)) && text.contains(&pin(&new)), "{text}");
        assert_eq!(
            text.contains("/etc/kubernetes/pki/signing-ca.crt"),
            control_plane,
            "{text}"
        );
        // API servers of before show certificates of the old one, when the new one signs already.
        let joins_by_bundle = |text: &str| {
            let command = "kubeadm join phase control-plane-prepare kubeconfig --config /run/kubeadm/kubeadm-join-config.yaml && sed";
            let has = [
                command,
                "- control-plane-prepare/kubeconfig",
                "(base64 < /etc/kubernetes/pki/ca.crt |",
            ]
            .map(|part| text.contains(part));
            assert!(has == [has[0]; 3], "{has:?} {text}");
            has[0]
        };
        assert_eq!(joins_by_bundle(&text), control_plane);
        for stage in ["Preparing", "Renewing"] {
            assert!(!joins_by_bundle(&rotated(control_plane, Some(stage), &both).0));
        }
        assert_eq!(joins_by_bundle(&rotated(control_plane, None, &both).0), control_plane);
        assert!(!joins_by_bundle(&rotated(control_plane, None, &new).0));
        let (_, other) = rotated(control_plane, Some("Renewing"), &both);
        assert!(mark.is_string() && other.is_string() && mark != other, "{mark} {other}");
        // Afterwards everything is as before.
        let (text, mark) = rotated(control_plane, None, &new);
        assert!(mark.is_null() && !text.contains("signing-ca.crt"), "{mark} {text}");
    }
}

fn authority() -> KeyMaterial {
    let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
    KeyMaterial::generate(Purpose::ClusterCa, key, 10, now()).unwrap()
}

fn pin(authority: &KeyMaterial) -> String {
    Certificate::from_pem(&authority.crt).unwrap().public_key_pin()
}

/// The first signs.
fn bundle(signer: &KeyMaterial, other: &KeyMaterial) -> KeyMaterial {
    KeyMaterial {
        crt: format!("{}{}", signer.crt, other.crt),
        key: signer.key.clone(),
    }
}

/// What was seen, with these pins in the spec and this authority of the cluster.
fn pinned(mut seen: Observed, pins: &[String], set_by: SetBy, authority: &KeyMaterial) -> Observed {
    let mut config = (*seen.config).clone();
    let join = config.spec.as_mut().unwrap().join_configuration.as_mut().unwrap();
    let discovery = join.discovery.as_mut().unwrap().bootstrap_token.as_mut().unwrap();
    discovery.ca_cert_hashes = pins.to_vec();
    seen.config = Arc::new(config);
    seen.pins_set_by = Some(Seen::Found(set_by));
    let certificates = &mut seen.material.as_mut().unwrap().certificates;
    certificates.insert(Purpose::ClusterCa, Seen::Found(authority.clone()));
    seen
}

/// The pins and the token that a plan writes to the spec.
fn applied(plan: &Plan) -> (Vec<String>, String) {
    let discovery = plan.actions.iter().find_map(|action| match action {
        Action::ApplySpec(object) => Some(&object["spec"]["joinConfiguration"]["discovery"]["bootstrapToken"]),
        _ => None,
    });
    let discovery = discovery.unwrap();
    let pins = serde_json::from_value(discovery["caCertHashes"].clone()).unwrap();
    (pins, discovery["token"].as_str().unwrap().to_owned())
}

#[test]
fn the_data_of_a_pool_follows_the_authority_of_its_cluster() {
    let (old, new) = (authority(), authority());
    let (before, after) = (vec![pin(&old)], vec![pin(&new)]);
    let both = [pin(&old), pin(&new)];
    let early = Moment::at(minutes(1));
    // Before all its machines have joined, and afterwards.
    for nodes in [1, 2] {
        let planned = |pins: &[String], authority: &KeyMaterial| {
            planned(
                &pinned(of_pool(None, nodes), pins, SetBy::Controller, authority),
                &early,
            )
        };
        let made_again = |pins: &[String], authority: &KeyMaterial, want: &[String], gone: Option<&String>| {
            let plan = planned(pins, authority);
            // The token goes on.
            assert_eq!(names(&plan), ["replace data", "apply spec"]);
            assert_eq!(applied(&plan), (want.to_vec(), "zzzzzz.0123456789abcdef".to_owned()));
            let text = data(&plan);
            assert!(want.iter().all(|pin| text.contains(pin)), "{text}");
            assert!(gone.is_none_or(|pin| !text.contains(pin)), "{text}");
        };
        assert_eq!(names(&planned(&before, &old)), [""; 0]);
        made_again(&before, &bundle(&old, &new), &both, None);
        // Once written, and when the other one signs, nothing is done.
        for authority in [bundle(&old, &new), bundle(&new, &old)] {
            assert_eq!(names(&planned(&both, &authority)), [""; 0]);
        }
        made_again(&both, &new, &after, Some(&before[0]));
        // Also for one that missed the time in between.
        made_again(&before, &new, &after, Some(&before[0]));
        assert_eq!(names(&planned(&after, &new)), [""; 0]);
    }
    let mut down_meanwhile = pinned(of_pool(None, 2), &both, SetBy::Controller, &new);
    down_meanwhile.connection = Some(down("no answer"));
    assert_eq!(names(&planned(&down_meanwhile, &early)), ["replace data", "apply spec"]);
    let mut leaving = pinned(of_pool(None, 2), &before, SetBy::Controller, &new);
    if let Seen::Found(ConfigOwner::Pool(pool)) = &mut leaving.owner {
        let gone = Some(serde_json::from_value(NOW.into()).unwrap());
        Arc::make_mut(pool).metadata.deletion_timestamp = gone;
    }
    assert_eq!(names(&planned(&leaving, &early)), [""; 0]);
}

#[test]
fn another_token_comes_with_the_pins_of_the_authority_as_it_is_then() {
    let (old, new) = (authority(), authority());
    let due = Moment::at(minutes(5));
    let gone = || Some(Seen::NotFound);
    for seen in [of_pool(gone(), 2), of_pool(gone(), 1), worker(gone(), false)] {
        let plan = planned(&pinned(seen, &[pin(&old)], SetBy::Controller, &new), &due);
        assert_eq!(names(&plan), ["create token", "replace data", "apply spec"]);
        assert_eq!(applied(&plan), (vec![pin(&new)], "abcdef.0123456789abcdef".to_owned()));
        let text = data(&plan);
        assert!(text.contains(&pin(&new)) && !text.contains(&pin(&old)), "{text}");
    }
    let mut lost = pinned(of_pool(None, 2), &[pin(&old)], SetBy::Controller, &new);
    lost.data_secret = Seen::NotFound;
    let plan = planned(&lost, &due);
    assert_eq!(names(&plan), ["create token", "create data", "apply spec"]);
    assert_eq!(applied(&plan).0, [pin(&new)]);
}

#[test]
fn the_data_of_a_machine_does_not_follow_the_authority() {
    let (old, new) = (authority(), authority());
    for joined in [false, true] {
        let seen = pinned(worker(None, joined), &[pin(&old)], SetBy::Controller, &new);
        assert_eq!(names(&planned(&seen, &Moment::at(minutes(1)))), [""; 0]);
    }
}

#[test]
fn pins_of_a_user_stay() {
    let (old, new) = (authority(), authority());
    let says_so = |plan: &Plan| format!("{:?}", plan.notes).contains("no pin of the certificate that signs");
    let quiet = |authority: &KeyMaterial| {
        let seen = pinned(of_pool(None, 2), &[pin(&old)], SetBy::User, authority);
        let plan = planned(&seen, &Moment::at(minutes(1)));
        assert_eq!(names(&plan), [""; 0]);
        says_so(&plan)
    };
    assert!(!quiet(&old));
    assert!(!quiet(&bundle(&old, &new)));
    assert!(quiet(&bundle(&new, &old)));
    assert!(quiet(&new));
    // Also beside another token, and when data is made for the first time.
    let seen = pinned(of_pool(Some(Seen::NotFound), 2), &[pin(&old)], SetBy::User, &new);
    let plan = planned(&seen, &Moment::at(minutes(5)));
    assert_eq!(names(&plan), ["create token", "replace data", "apply spec"]);
    assert_eq!(applied(&plan).0, [pin(&old)]);
    let first = pinned(world(false, WITH_TOKEN).observed(), &[pin(&old)], SetBy::User, &new);
    let plan = planned(&first, &Moment::at(now()));
    assert_eq!(names(&plan), ["create data"]);
    assert!(data(&plan).contains(&pin(&old)) && says_so(&plan), "{plan:?}");
}

/// The data goes with the spec: were the pins in the spec changed alone, the data would keep the old ones.
#[test]
fn pins_of_data_that_is_there_do_not_change_with_a_lost_status() {
    let (old, new) = (authority(), authority());
    let planned = |secret: Seen<Arc<Secret>>| {
        let mut seen = pinned(of_pool(None, 2), &[pin(&old)], SetBy::Controller, &new);
        Arc::make_mut(&mut seen.config).status = None;
        seen.data_secret = secret;
        planned(&seen, &Moment::at(minutes(1)))
    };
    let owned_by = |uid: &str| Seen::Found(Arc::new(secret(&json!([owner(uid)]))));
    let kept = planned(owned_by("config-uid"));
    assert_eq!((names(&kept), &kept.data), (vec![], &Verdict::Available));
    for (secret, write) in [
        (Seen::NotFound, "create data"),
        (owned_by("before-the-restore"), "replace data"),
    ] {
        let plan = planned(secret);
        assert_eq!(names(&plan), ["apply spec", write]);
        assert!(data(&plan).contains(&pin(&new)) && applied(&plan).0 == [pin(&new)]);
    }
}

#[test]
fn who_set_the_pins_is_asked_only_where_they_differ() {
    let (old, new) = (authority(), authority());
    let ask = |pins: &[String], seen: Observed, after: i64| {
        let mut seen = pinned(seen, pins, SetBy::User, &new);
        seen.pins_set_by = None;
        match plan(&seen, &Moment::at(minutes(after))) {
            Decision::Ask(question) => question,
            Decision::Plan(_) => Question::default(),
        }
    };
    let nothing = Question::default();
    let pins = Question { pins: true, ..nothing };
    for (set, want) in [([pin(&new)], nothing), ([pin(&old)], pins)] {
        assert_eq!(ask(&set, of_pool(None, 2), 1), want);
        assert_eq!(ask(&set, world(false, WITH_TOKEN).observed(), 0), want);
        assert_eq!(ask(&set, worker(Some(Seen::NotFound), false), 5), want);
        // Not for a Machine whose data stays as it is.
        assert_eq!(ask(&set, worker(None, false), 1), nothing);
        assert_eq!(ask(&set, worker(None, true), 5), nothing);
    }
    assert_eq!(ask(&[], world(false, WITH_TOKEN).observed(), 0), nothing);
    // A pool looks at the authority all the time.
    let mut seen = of_pool(None, 2);
    (seen.material, seen.connection, seen.pins_set_by) = (None, None, None);
    let Decision::Ask(question) = plan(&seen, &Moment::at(minutes(1))) else {
        panic!("asks for nothing");
    };
    let (material, connection) = (true, true);
    assert_eq!(
        question,
        Question {
            material,
            connection,
            ..nothing
        }
    );
}

#[test]
fn pins_whose_manager_cannot_be_read_are_kept_and_looked_at_again() {
    let (old, new) = (authority(), authority());
    let unread = |seen: Observed, after: i64| {
        let mut seen = pinned(seen, &[pin(&old)], SetBy::User, &new);
        seen.pins_set_by = Some(Seen::Failed("no answer".to_owned()));
        planned(&seen, &Moment::at(minutes(after)))
    };
    for plan in [
        unread(of_pool(None, 2), 1),
        unread(of_pool(Some(Seen::NotFound), 2), 5),
        unread(world(false, WITH_TOKEN).observed(), 0),
    ] {
        assert_eq!(names(&plan), [""; 0]);
        assert!(
            why(&plan)
                .unwrap()
                .contains("who set the pins of the authority: no answer")
        );
    }
    // An object that has changed meanwhile wakes the controller.
    let mut changed = pinned(of_pool(None, 2), &[pin(&old)], SetBy::User, &new);
    changed.pins_set_by = Some(Seen::NotFound);
    let plan = planned(&changed, &Moment::at(minutes(1)));
    assert_eq!((names(&plan), why(&plan)), (vec![], None));
}

#[test]
fn managed_fields_tell_whose_pins_are() {
    let entry = |manager: &str, operation: &str, field: &str| {
        json!({"manager": manager, "operation": operation, "fieldsV1": {"f:spec": {"f:joinConfiguration": {"f:discovery": {
            "f:bootstrapToken": {field: {}}}}}}})
    };
    let pins = |manager: &str, operation: &str| entry(manager, operation, "f:caCertHashes");
    let check = |entries: &[Value], want: SetBy| {
        let object = json!({"metadata": {"managedFields": entries}});
        assert_eq!(pins_set_by(&object), want, "{object}");
    };
    let (ours, classic) = (pins("cabpk-manager", "Apply"), pins("manager", "Update"));
    let token_of_user = entry("kubectl", "Apply", "f:token");
    check(std::slice::from_ref(&ours), SetBy::Controller);
    check(
        &[ours.clone(), classic.clone(), token_of_user.clone()],
        SetBy::Controller,
    );
    check(&[classic], SetBy::Controller);
    check(&[pins("cabpk-manager", "Update")], SetBy::Controller);
    check(&[pins("manager", "Apply")], SetBy::User);
    check(&[ours, pins("kubectl", "Apply")], SetBy::User);
    check(&[pins("capi-topology", "Apply")], SetBy::User);
    check(&[token_of_user], SetBy::User);
    assert_eq!(pins_set_by(&json!({"metadata": {}})), SetBy::User);
}
