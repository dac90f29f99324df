//! What the bootstrap data is made of, and when.

use super::*;

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
fn the_kubeconfig_that_the_spec_describes_replaces_a_file_of_the_user() {
    let plan = world(
        false,
        "{joinConfiguration: {discovery: {file: {kubeConfigPath: /k, kubeConfig: {user: {exec: {command: c}}}}}},
          files: [{path: /k, content: of the user}]}",
    )
    .plan();
    let text = data(&plan);
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("no {part} in {text}"));
    assert!(at("of the user") < at("server: https://10.0.0.1:6443"), "{text}");
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
