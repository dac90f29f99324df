use proptest::prelude::*;
use serde_json::{Value, json};
use windlass_api_operator::{ProviderObject, management, operator};

use super::*;

/// A provider with a sidecar, an init container, and Services that refer to its ports by number and by name.
fn provider() -> Vec<Value> {
    vec![
        deployment(
            "capx-controller-manager",
            &json!([
                {
                    "name": "kube-rbac-proxy", "image": "proxy:v1", "args": ["--v=10"],
                },
                {
                    "name": "manager", "image": "registry.k8s.io/x/controller:v1",
                    "args": ["--leader-elect", "--diagnostics-address=:8443", "--insecure-diagnostics=false", "--v=2"],
                    "env": [{"name": "KEPT", "value": "1"}, {"name": "REPLACED", "value": "2"}],
                    "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "500m"}},
                    "ports": [
                        {"containerPort": 9443, "name": "webhook-server"},
                        {"containerPort": 9440, "name": "healthz"},
                        {"containerPort": 8443, "name": "metrics"},
                    ],
                    "livenessProbe": {"httpGet": {"path": "/healthz", "port": "healthz"}},
                    "readinessProbe": {"httpGet": {"path": "/readyz", "port": 9440}},
                    "volumeMounts": [{"mountPath": "/tmp/k8s-webhook-server/serving-certs", "name": "cert"}],
                },
            ]),
        ),
        service("webhook", &json!({"port": 443, "targetPort": 9443})),
        service("by-name", &json!({"port": 443, "targetPort": "webhook-server"})),
        service("metrics", &json!({"port": 8443})),
    ]
}

fn deployment(name: &str, containers: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"namespace": "ns", "name": name},
        "spec": {
            "replicas": 2,
            "template": {
                "metadata": {"labels": {"control-plane": name}},
                "spec": {
                    "containers": containers,
                    "initContainers": [{"name": "prepare", "image": "prepare:v1"}],
                    "serviceAccountName": "manager",
                    "tolerations": [{"key": "a"}],
                },
            },
        },
    })
}

fn service(name: &str, port: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"namespace": "ns", "name": name},
        "spec": {"selector": {"control-plane": "capx-controller-manager"}, "ports": [port]},
    })
}

fn today(spec: &Value) -> Declared {
    let object: operator::InfrastructureProvider = serde_json::from_value(json!({
        "apiVersion": "operator.cluster.x-k8s.io/v1alpha2", "kind": "InfrastructureProvider",
        "metadata": {"namespace": "ns", "name": "x"}, "spec": spec,
    }))
    .unwrap();
    object.declared().unwrap()
}

fn proposed(spec: &Value) -> Declared {
    let object: management::InfrastructureProvider = serde_json::from_value(json!({
        "apiVersion": "management.cluster.x-k8s.io/v1alpha1", "kind": "InfrastructureProvider",
        "metadata": {"namespace": "ns", "name": "x"}, "spec": spec,
    }))
    .unwrap();
    object.declared().unwrap()
}

/// Applies settings twice: the second time must not change anything.
fn applied(mut objects: Vec<Value>, declared: &Declared) -> (Vec<Value>, Vec<Note>) {
    let notes = customize(&mut objects, declared).unwrap();
    let once = objects.clone();
    customize(&mut objects, declared).unwrap();
    assert_eq!(objects, once, "a second time");
    (objects, notes)
}

fn container<'v>(object: &'v Value, name: &str) -> &'v Value {
    object.pointer(&container_path(object, name).unwrap()).unwrap()
}

fn args_of(object: &Value, name: &str) -> Vec<String> {
    arguments(object, name).unwrap().list().to_vec()
}

/// The manager's arguments after settings of a manager were applied to a provider without any.
fn flags_for(declared: &Declared) -> Vec<String> {
    let bare = vec![deployment("capx-controller-manager", &json!([{"name": "manager"}]))];
    args_of(&applied(bare, declared).0[0], "manager")
}

fn refused(declared: &Declared) -> String {
    customize(&mut provider(), declared).unwrap_err().to_string()
}

#[test]
fn every_setting_has_its_flag() {
    // OP-022, OP-023, OP-025..OP-030, OP-032..OP-036, OP-039, OP-040, OP-042..OP-044, OP-075, OP-212, OP-214
    let check = |field: &str, value: Value, expect: &[&str]| {
        // "a.b.c" -> {"a": {"b": {"c": value}}}
        let nested = field.rsplit('.').fold(value, |inner, name| json!({name: inner}));
        let mut nested = nested;
        if let Some(election) = nested.get_mut("leaderElection").and_then(Value::as_object_mut) {
            election.entry("leaderElect").or_insert(json!(true));
        }
        let mut expect: Vec<&str> = expect.to_vec();
        if field.starts_with("leaderElection.") && field != "leaderElection.leaderElect" {
            expect.insert(0, "--leader-elect=true");
        }
        assert_eq!(flags_for(&proposed(&json!({"manager": nested}))), expect, "{field}");
    };
    check(
        "profilerAddress",
        json!("localhost:6060"),
        &["--profiler-address=localhost:6060"],
    );
    check("maxConcurrentReconciles", json!(3), &["--max-concurrent-reconciles=3"]);
    check("verbosity", json!(5), &["--v=5"]);
    check("debug", json!(true), &["--profiler-address=localhost:6060", "--v=5"]);
    check(
        "featureGates",
        json!({"B": false, "A": true}),
        &["--feature-gates=A=true,B=false"],
    );
    check("syncPeriod", json!("11m"), &["--sync-period=11m0s"]);
    check("syncPeriod", json!("660s"), &["--sync-period=11m0s"]);
    check("leaderElection.leaderElect", json!(true), &["--leader-elect=true"]);
    check("leaderElection.leaderElect", json!(false), &["--leader-elect=false"]);
    check(
        "leaderElection.leaseDuration",
        json!("15s"),
        &["--leader-elect-lease-duration=15s"],
    );
    check(
        "leaderElection.renewDeadline",
        json!("10s"),
        &["--leader-elect-renew-deadline=10s"],
    );
    check(
        "leaderElection.retryPeriod",
        json!("2s"),
        &["--leader-elect-retry-period=2s"],
    );
    check(
        "leaderElection.resourceLock",
        json!("leases"),
        &["--leader-elect-resource-lock=leases"],
    );
    check(
        "leaderElection.resourceName",
        json!("lock"),
        &["--leader-election-id=lock"],
    );
    check(
        "leaderElection.resourceNamespace",
        json!("there"),
        &["--leader-election-namespace=there"],
    );
    check("metrics.bindAddress", json!(":8181"), &["--metrics-bind-addr=:8181"]);
    check("metrics.bindAddress", json!("0"), &["--metrics-bind-addr=0"]);
    check(
        "health.healthProbeBindAddress",
        json!(":9441"),
        &["--health-addr=:9441"],
    );
    check("webhook.port", json!(9444), &["--webhook-port=9444"]);
    check("webhook.host", json!("localhost"), &["--webhook-host=localhost"]);
    check("webhook.certDir", json!("/certs"), &["--webhook-cert-dir=/certs"]);
    // These reach no flag: OP-024, OP-038, OP-039.
    check("cacheNamespace", json!("foo"), &[]);
    check("gracefulShutDown", json!("30s"), &[]);
    check("health.livenessEndpointName", json!("alive"), &[]);
}

#[test]
fn settings_of_todays_api_have_their_flags() {
    let check = |manager: Value, expect: &[&str]| assert_eq!(flags_for(&today(&json!({"manager": manager}))), expect);
    check(
        json!({"metrics": {"diagnosticsAddress": ":8444"}}),
        &["--diagnostics-address=:8444"],
    );
    check(
        json!({"metrics": {"insecureDiagnostics": true}}),
        &["--insecure-diagnostics=true"],
    );
    check(json!({"metrics": {"insecureDiagnostics": false}}), &[]);
    check(
        json!({"controller": {"groupKindConcurrency": {"AWSCluster.infrastructure.cluster.x-k8s.io": 12, "machine": 3}}}),
        &["--awscluster-concurrency=12", "--machine-concurrency=3"],
    );
    check(
        json!({"additionalArgs": {"--b": "2", "a": "1", "namespace": "x"}}),
        &["--b=2", "--a=1"],
    );
    check(
        json!({"controller": {"recoverPanic": true, "cacheSyncTimeout": 5}}),
        &[],
    );
    // The default that the schema sets counts as unset: OP-182.
    check(json!({"verbosity": 1}), &[]);
    check(json!({"verbosity": 0}), &["--v=0"]);
}

#[test]
fn every_field_of_the_table_is_tested_by_its_name() {
    let fields: BTreeSet<&str> = FLAG_FIELDS.into_iter().collect();
    assert_eq!(
        flags::FLAGS.iter().map(|flag| flag.field).collect::<BTreeSet<_>>(),
        fields
    );
    // No flag has two meanings.
    let names: Vec<&str> = flags::FLAGS.iter().flat_map(flags::Flag::names).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
}

const FLAG_FIELDS: [&str; 20] = [
    "profilerAddress",
    "maxConcurrentReconciles",
    "verbosity",
    "featureGates",
    "syncPeriod",
    "leaderElection.leaderElect",
    "leaderElection.leaseDuration",
    "leaderElection.renewDeadline",
    "leaderElection.retryPeriod",
    "leaderElection.resourceLock",
    "leaderElection.resourceName",
    "leaderElection.resourceNamespace",
    "metrics.bindAddress",
    "metrics.diagnosticsAddress",
    "metrics.insecureDiagnostics",
    "health.healthProbeBindAddress",
    "webhook.port",
    "webhook.host",
    "webhook.certDir",
    "gracefulShutDown",
];

#[test]
fn nothing_set_changes_nothing() {
    // OP-009, OP-015, OP-031, OP-045, OP-177, OP-182, OP-212
    for declared in [
        today(&json!({})),
        proposed(&json!({})),
        today(&json!({"manager": {}, "deployment": {}})),
    ] {
        let (objects, notes) = applied(provider(), &declared);
        assert_eq!(objects, provider());
        assert_eq!(notes, []);
    }
}

#[test]
fn a_flag_keeps_the_name_that_the_manager_has_for_it() {
    // OP-027: managers without --v, and OP-040 for managers that know diagnostics only.
    let check = |before: &[&str], manager: Value, after: &[&str]| {
        let objects = vec![deployment("capx", &json!([{"name": "manager", "args": before}]))];
        let (objects, _) = applied(objects, &today(&json!({"manager": manager})));
        assert_eq!(args_of(&objects[0], "manager"), after, "{before:?}");
    };
    check(&["--verbosity=1"], json!({"verbosity": 3}), &["--verbosity=3"]);
    check(&["--v=1", "--verbosity=2"], json!({"verbosity": 3}), &["--v=3"]);
    check(&["-v=1"], json!({"verbosity": 3}), &["-v=3"]);
    let metrics = json!({"metrics": {"bindAddress": ":1"}});
    check(&["--metrics-addr=:2"], metrics.clone(), &["--metrics-addr=:1"]);
    check(
        &["--diagnostics-address=:2"],
        metrics.clone(),
        &["--diagnostics-address=:1"],
    );
    check(
        &["--diagnostics-address=:2", "--metrics-bind-addr=:3"],
        metrics,
        &["--diagnostics-address=:2", "--metrics-bind-addr=:1"],
    );
    check(
        &["--diagnostics-address=:2"],
        json!({"metrics": {"bindAddress": ":1", "diagnosticsAddress": ":4"}}),
        &["--diagnostics-address=:4"],
    );
    check(
        &["--health-probe-bind-address=:1"],
        json!({"health": {"healthProbeBindAddress": ":2"}}),
        &["--health-probe-bind-address=:2"],
    );
    check(
        &["--insecure-diagnostics"],
        json!({"metrics": {"insecureDiagnostics": false}}),
        &["--insecure-diagnostics=false"],
    );
    check(
        &["--graceful-shutdown-timeout=1s"],
        json!({"gracefulShutDown": "0s"}),
        &["--graceful-shutdown-timeout=0s"],
    );
}

#[test]
fn fields_of_the_manager_outweigh_arguments() {
    // OP-181, OP-182, OP-183, OP-210, OP-211
    let check = |manager: Value, args: Value, flag: &str, expect: Option<&str>| {
        let spec = json!({"manager": manager, "deployment": {"containers": [{"name": "manager", "args": args}]}});
        let (objects, _) = applied(provider(), &proposed(&spec));
        let arguments = arguments(&objects[0], "manager").unwrap();
        assert_eq!(arguments.get(flag).as_deref(), expect, "{flag}");
        assert!(arguments.all(flag).len() <= 1);
    };
    check(
        json!({"syncPeriod": "5m"}),
        json!({"--sync-period": "1h"}),
        "sync-period",
        Some("5m0s"),
    );
    check(json!({"verbosity": 3}), json!({"v": "4"}), "v", Some("3"));
    check(json!({}), json!({"v": "4"}), "v", Some("4"));
    check(
        json!({"featureGates": {"B": true}}),
        json!({"feature-gates": "A=true"}),
        "feature-gates",
        Some("B=true"),
    );
    check(
        json!({"maxConcurrentReconciles": 3}),
        json!({"awscluster-concurrency": "12"}),
        "awscluster-concurrency",
        Some("12"),
    );
    check(
        json!({"maxConcurrentReconciles": 3}),
        json!({"awscluster-concurrency": "12"}),
        "max-concurrent-reconciles",
        Some("3"),
    );
    check(
        json!({"maxConcurrentReconciles": 3}),
        json!({"max-concurrent-reconciles": "9"}),
        "max-concurrent-reconciles",
        Some("3"),
    );
    // OP-209
    check(
        json!({}),
        json!({"awscluster-concurrency": "12"}),
        "max-concurrent-reconciles",
        None,
    );
}

#[test]
fn todays_api_puts_gates_over_those_that_are_there() {
    let check = |before: &[&str], args: Value, expect: &str| {
        let objects = vec![deployment("capx", &json!([{"name": "manager", "args": before}]))];
        let spec = json!({
            "manager": {"featureGates": {"B": true, "C": false}},
            "deployment": {"containers": [{"name": "manager", "args": args}]},
        });
        let (objects, _) = applied(objects, &today(&spec));
        assert_eq!(args_of(&objects[0], "manager"), [format!("--feature-gates={expect}")]);
    };
    check(&[], json!({}), "B=true,C=false");
    check(&["--feature-gates=Z=true,C=true"], json!({}), "B=true,C=false,Z=true");
    check(
        &["--feature-gates=Z=true", "--feature-gates", "Y=false"],
        json!({}),
        "B=true,C=false,Y=false,Z=true",
    );
    check(
        &["--feature-gates=Z=true"],
        json!({"feature-gates": "X=true"}),
        "B=true,C=false,X=true",
    );
}

#[test]
fn debugging_outweighs_everything_and_keeps_what_was_declared() {
    // OP-028, OP-208, OP-226
    let spec = |debug: bool| {
        proposed(&json!({
            "manager": {"debug": debug, "verbosity": 2, "profilerAddress": ":1"},
            "deployment": {"containers": [{"name": "manager", "args": {"v": "9"}}]},
        }))
    };
    let (objects, notes) = applied(provider(), &spec(true));
    let args = arguments(&objects[0], "manager").unwrap();
    assert_eq!(args.get("v").as_deref(), Some("5"));
    assert_eq!(args.get("profiler-address").as_deref(), Some("localhost:6060"));
    let ignored: Vec<&str> = notes
        .iter()
        .filter(|note| note.ignored)
        .map(|note| note.field.as_str())
        .collect();
    assert_eq!(ignored, ["spec.manager.verbosity", "spec.manager.profilerAddress"]);
    let (objects, _) = applied(provider(), &spec(false));
    assert_eq!(
        arguments(&objects[0], "manager").unwrap().get("v").as_deref(),
        Some("2")
    );
}

#[test]
fn flags_are_for_the_manager_alone() {
    // OP-185, OP-213
    let (objects, notes) = applied(
        provider(),
        &today(&json!({
            "manager": {"verbosity": 5},
            "deployment": {"containers": [{"name": "kube-rbac-proxy", "args": {"--unknown": "x=y"}}]},
        })),
    );
    assert_eq!(args_of(&objects[0], "kube-rbac-proxy"), ["--v=10", "--unknown=x=y"]);
    assert!(args_of(&objects[0], "manager").contains(&"--v=5".to_owned()));
    assert_eq!(
        notes.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [
            "spec.deployment.containers[0].args[--unknown]: added --unknown \
             (container kube-rbac-proxy of Deployment ns/capx-controller-manager)",
            "spec.manager.verbosity: set --v=5 (container manager of Deployment ns/capx-controller-manager)",
        ]
    );
}

#[test]
fn providers_watch_all_namespaces() {
    // OP-038, OP-184, OP-215
    let check = |before: &[&str], spec: Value| {
        let objects = vec![deployment("capx", &json!([{"name": "manager", "args": before}]))];
        let (objects, notes) = applied(objects, &proposed(&spec));
        assert_eq!(args_of(&objects[0], "manager"), ["--v=1"], "{before:?}");
        assert_eq!(notes.len(), 1, "{notes:?}");
    };
    check(&["--v=1", "--namespace=foo"], json!({}));
    check(&["--namespace", "foo", "--v=1"], json!({}));
    check(&["--v=1"], json!({"manager": {"cacheNamespace": "foo"}}));
    for key in ["namespace", "--namespace"] {
        check(
            &["--v=1"],
            json!({"deployment": {"containers": [{"name": "manager", "args": {key: "foo"}}]}}),
        );
    }
}

#[test]
fn settings_of_pods_replace() {
    // OP-045..OP-049, OP-187
    let affinity = json!({"nodeAffinity": {}});
    let (objects, _) = applied(
        provider(),
        &today(&json!({"deployment": {
            "replicas": 0,
            "nodeSelector": {"a": "b"},
            "tolerations": [{"key": "b", "operator": "Exists"}],
            "affinity": affinity,
            "serviceAccountName": "other",
            "imagePullSecrets": [{"name": "s"}],
        }})),
    );
    let spec = &objects[0]["spec"];
    let pod = &spec["template"]["spec"];
    assert_eq!(spec["replicas"], 0);
    assert_eq!(pod["nodeSelector"], json!({"a": "b"}));
    assert_eq!(pod["tolerations"], json!([{"key": "b", "operator": "Exists"}]));
    assert_eq!(pod["affinity"], affinity);
    assert_eq!(pod["serviceAccountName"], "other");
    assert_eq!(pod["imagePullSecrets"], json!([{"name": "s"}]));
    assert_eq!(
        pod["containers"],
        provider()[0]["spec"]["template"]["spec"]["containers"]
    );
}

#[test]
fn settings_of_containers_are_applied() {
    // OP-050..OP-054, OP-170, OP-172, OP-176..OP-178
    let spec = json!({"deployment": {"containers": [
        {
            "name": "manager",
            "image": {"repository": "gcr.io/myregistry", "tag": "v2"},
            "env": [
                {"name": "REPLACED", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                {"name": "NEW", "value": "3"},
            ],
            "resources": {"limits": {"cpu": "100m", "memory": "30Mi"}},
        },
        {"name": "prepare", "image": {"repository": "mirror"}},
    ]}});
    let (objects, notes) = applied(provider(), &proposed(&spec));
    let manager = container(&objects[0], "manager");
    assert_eq!(manager["image"], "gcr.io/myregistry/controller:v2");
    assert_eq!(
        manager["env"],
        json!([
            {"name": "KEPT", "value": "1"},
            {"name": "REPLACED", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
            {"name": "NEW", "value": "3"},
        ])
    );
    assert_eq!(
        manager["resources"],
        json!({"limits": {"cpu": "100m", "memory": "30Mi"}})
    );
    assert_eq!(manager["args"], container(&provider()[0], "manager")["args"]);
    assert_eq!(container(&objects[0], "prepare")["image"], "mirror/prepare:v1");
    assert_eq!(
        container(&objects[0], "kube-rbac-proxy"),
        container(&provider()[0], "kube-rbac-proxy")
    );
    // OP-224: names of variables are reported, values are not.
    let told = notes.iter().map(ToString::to_string).collect::<String>();
    assert!(told.contains("env[NEW]") && !told.contains("\"3\""), "{told}");
    let whole = json!({"deployment": {"containers": [
        {"name": "manager", "imageUrl": "a/b@sha256:00", "command": ["/run"]},
    ]}});
    let (objects, _) = applied(provider(), &today(&whole));
    assert_eq!(container(&objects[0], "manager")["image"], "a/b@sha256:00");
    assert_eq!(container(&objects[0], "manager")["command"], json!(["/run"]));
}

#[test]
fn ports_and_probes_follow() {
    // OP-043, OP-044
    let (objects, _) = applied(
        provider(),
        &today(&json!({"manager": {
            "webhook": {"port": 9444, "certDir": "/certs/"},
            "health": {
                "healthProbeBindAddress": "0.0.0.0:9441",
                "livenessEndpointName": "alive",
                "readinessEndpointName": "/ready",
            },
            "metrics": {"diagnosticsAddress": "[::]:8444"},
        }})),
    );
    let manager = container(&objects[0], "manager");
    assert_eq!(
        manager["ports"],
        json!([
            {"containerPort": 9444, "name": "webhook-server"},
            {"containerPort": 9441, "name": "healthz"},
            {"containerPort": 8444, "name": "metrics"},
        ])
    );
    assert_eq!(
        manager["livenessProbe"]["httpGet"],
        json!({"path": "/alive", "port": "healthz"})
    );
    assert_eq!(
        manager["readinessProbe"]["httpGet"],
        json!({"path": "/ready", "port": 9441})
    );
    assert_eq!(manager["volumeMounts"][0]["mountPath"], "/certs/");
    let port = |nth: usize| objects[nth]["spec"]["ports"][0].clone();
    assert_eq!(port(1), json!({"port": 443, "targetPort": 9444}));
    assert_eq!(port(2), json!({"port": 443, "targetPort": "webhook-server"}));
    assert_eq!(port(3), json!({"port": 8443, "targetPort": 8444}));
    // Flags in arguments are handled as well.
    let spec = json!({"deployment": {"containers": [{"name": "manager", "args": {"webhook-port": "9445"}}]}});
    let (objects, _) = applied(provider(), &today(&spec));
    assert_eq!(objects[1]["spec"]["ports"][0]["targetPort"], 9445);
    // Without an endpoint for probes, there must be none.
    let (objects, _) = applied(
        provider(),
        &today(&json!({"manager": {"health": {"healthProbeBindAddress": "0"}}})),
    );
    assert_eq!(container(&objects[0], "manager").get("readinessProbe"), None);
    // Two ports may be swapped.
    let spec = json!({"manager": {"webhook": {"port": 9440}, "health": {"healthProbeBindAddress": ":9443"}}});
    let (objects, _) = applied(provider(), &today(&spec));
    let manager = container(&objects[0], "manager");
    assert_eq!(
        [
            &manager["ports"][0]["containerPort"],
            &manager["ports"][1]["containerPort"]
        ],
        [9440, 9443]
    );
    assert_eq!(manager["readinessProbe"]["httpGet"]["port"], 9443);
    assert_eq!(objects[1]["spec"]["ports"][0]["targetPort"], 9440);
    // Services of others stay as they are.
    let mut other = provider();
    other[1]["spec"]["selector"] = json!({"control-plane": "other"});
    let (objects, _) = applied(other.clone(), &today(&json!({"manager": {"webhook": {"port": 9444}}})));
    assert_eq!(objects[1], other[1]);
}

#[test]
fn what_is_not_there_is_not_made() {
    // Settings do not add ports, probes and mounts that a container lacks.
    let bare = vec![
        deployment("capx-controller-manager", &json!([{"name": "manager"}])),
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "ns", "name": "headless"},
            "spec": {"selector": {"control-plane": "capx-controller-manager"}},
        }),
    ];
    let spec = json!({"manager": {"webhook": {"port": 1, "certDir": "/c"}, "health": {"healthProbeBindAddress": "0"}}});
    let (objects, _) = applied(bare.clone(), &today(&spec));
    let args = json!(["--health-addr=0", "--webhook-port=1", "--webhook-cert-dir=/c"]);
    assert_eq!(
        container(&objects[0], "manager"),
        &json!({"name": "manager", "args": args})
    );
    assert_eq!(objects[1], bare[1]);
}

#[test]
fn the_declaration_outweighs_overrides_of_images() {
    // OP-068, OP-175
    let mut objects = provider();
    let meta = crate::images::ImageMeta {
        repository: Some("mirror".to_owned()),
        ..crate::images::ImageMeta::default()
    };
    let overrides = crate::images::Overrides([("all".to_owned(), meta)].into());
    crate::images::override_images(&mut objects, "infrastructure-x", &overrides).unwrap();
    let spec = json!({"deployment": {"containers": [{"name": "manager", "image": {"repository": "own"}}]}});
    let (objects, _) = applied(objects, &proposed(&spec));
    assert_eq!(container(&objects[0], "manager")["image"], "own/controller:v1");
    assert_eq!(container(&objects[0], "kube-rbac-proxy")["image"], "mirror/proxy:v1");
}

#[test]
fn settings_find_their_deployments() {
    // OP-185, and spec.additionalDeployments
    let several = |names: &[&str], container: &str| -> Vec<Value> {
        names
            .iter()
            .map(|name| deployment(name, &json!([{"name": container}])))
            .collect()
    };
    let with_v5 = |objects: &[Value], spec: Value| -> Vec<String> {
        let (objects, _) = applied(objects.to_vec(), &today(&spec));
        let hit = |object: &&Value| object.to_string().contains("--v=5");
        objects
            .iter()
            .filter(hit)
            .map(|object| plain_name(object).to_owned())
            .collect()
    };
    let v5 = json!({"verbosity": 5});
    let main = json!({"manager": v5});
    assert_eq!(with_v5(&several(&["any"], "manager"), main.clone()), ["any"]);
    assert_eq!(with_v5(&several(&["any"], "single"), main.clone()), ["any"]);
    let two = several(
        &["capz-controller-manager", "azureserviceoperator-controller-manager"],
        "manager",
    );
    assert_eq!(with_v5(&two, main.clone()), ["capz-controller-manager"]);
    assert_eq!(with_v5(&several(&["a", "b"], "manager"), main), ["a", "b"]);
    let additional = json!({"additionalDeployments": {"azureserviceoperator-controller-manager": {
        "manager": v5, "deployment": {"replicas": 3},
    }}});
    assert_eq!(
        with_v5(&two, additional.clone()),
        ["azureserviceoperator-controller-manager"]
    );
    let (objects, _) = applied(two, &today(&additional));
    assert_eq!(
        [&objects[0]["spec"]["replicas"], &objects[1]["spec"]["replicas"]],
        [2, 3]
    );
    // OP-170: a container that only another Deployment has is found there.
    let mut two = several(&["capz-controller-manager", "other"], "manager");
    two[1] = deployment("other", &json!([{"name": "special", "image": "a:v1"}]));
    let spec = json!({"deployment": {"containers": [{"name": "special", "imageUrl": "b:v1"}]}});
    assert_eq!(container(&applied(two, &today(&spec)).0[1], "special")["image"], "b:v1");
}

#[test]
fn missing_names_are_reported_with_the_existing_ones() {
    // OP-050
    let check = |declared: Declared, expect: &str| assert_eq!(refused(&declared), expect);
    check(
        today(&json!({"deployment": {"containers": [{"name": "foo"}]}})),
        "spec.deployment.containers[0].name: there is no container \"foo\"; there are \
         kube-rbac-proxy, manager, prepare in Deployment ns/capx-controller-manager",
    );
    check(
        today(&json!({"additionalDeployments": {"foo": {}}})),
        "spec.additionalDeployments: the provider has no Deployment \"foo\"; it has capx-controller-manager",
    );
    let mut objects = vec![deployment("capx", &json!([{"name": "a"}, {"name": "b"}]))];
    let error = customize(&mut objects, &today(&json!({"manager": {"verbosity": 5}}))).unwrap_err();
    assert_eq!(
        error.to_string(),
        "spec.manager: Deployment ns/capx has no container \"manager\", so it is not known which one is meant; \
         it has a, b, prepare"
    );
    let spec = json!({"additionalDeployments": {"capx": {"deployment": {"containers": [{"name": "foo"}]}}}});
    assert!(customize(&mut objects, &today(&spec)).unwrap_err().to_string().starts_with(
        "spec.additionalDeployments[capx].deployment.containers[0].name: there is no container \"foo\"; there are a, b, prepare"
    ));
    let odd = vec![deployment("capx", &json!([{"name": "manager", "args": ["--v", 5]}]))];
    let error = customize(&mut odd.clone(), &today(&json!({}))).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("argument 1 of container manager is not text"),
        "{error}"
    );
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    let check = |spec: Value, expect: &str| {
        let error = refused(&today(&spec));
        assert!(error.contains(expect), "{error}");
    };
    let args = |args: Value| json!({"deployment": {"containers": [{"name": "manager", "args": args}]}});
    // OP-180
    check(
        args(json!({"foo": "1", "--foo": "2"})),
        "containers[0].args[foo]: is the same flag as \"--foo\"",
    );
    check(
        args(json!({"foo=1": "2"})),
        "containers[0].args[foo=1]: is not the name of a flag",
    );
    check(
        json!({"manager": {"verbosity": 3, "additionalArgs": {"--v": "4"}}}),
        "spec.manager.additionalArgs[--v]: is the flag of spec.manager.verbosity",
    );
    check(
        json!({"deployment": {"containers": [{"name": "manager", "imageUrl": "a b"}]}}),
        "spec.deployment.containers[0].image: \"a b\" is not an image",
    );
    // OP-180: duplicates are reported once.
    let (objects, _) = applied(provider(), &today(&args(json!({"foo": "1", "--foo": "1"}))));
    let foos = args_of(&objects[0], "manager")
        .into_iter()
        .filter(|arg| arg.contains("foo"))
        .collect::<Vec<_>>();
    assert_eq!(foos, ["--foo=1"]);
}

#[test]
fn a_lease_that_is_renewed_too_late_is_refused() {
    // OP-034, OP-037
    let mut declared = proposed(&json!({"manager": {"leaderElection": {
        "leaderElect": true, "leaseDuration": "15s", "renewDeadline": "15s",
    }}}));
    assert!(customize(&mut provider(), &declared).is_ok());
    declared.manager.leader_election.as_mut().unwrap().renew_deadline = "20s".parse().ok();
    assert!(refused(&declared).starts_with("spec.manager.leaderElection.renewDeadline: 20s is longer"));
}

proptest! {
    /// OP-029, OP-179: applying settings again changes nothing, whatever the provider's files and the settings are.
    #[test]
    fn applying_twice_is_applying_once(
        before in proptest::collection::vec("--(v|verbosity|metrics-addr|diagnostics-address|health-addr|webhook-port|feature-gates|leader-elect|namespace|a)(=(:?[1-9]00|A=true|true))?|[1-9]|--", 0..6),
        args in proptest::collection::btree_map("(--)?(a|b|v|webhook-port|namespace|feature-gates)", "[1-9]00|A=true", 0..3),
        verbosity in proptest::option::of(2..4_i64),
        port in proptest::option::of(9443..9446_i64),
        address in proptest::option::of("(:9[1-3]00|0|x)"),
        gates in proptest::collection::btree_map("[A-C]", any::<bool>(), 0..3),
    ) {
        let mut objects = provider();
        objects[0]["spec"]["template"]["spec"]["containers"][1]["args"] = json!(before);
        let spec = json!({
            "manager": {
                "verbosity": verbosity, "featureGates": gates, "webhook": {"port": port},
                "health": {"healthProbeBindAddress": address}, "metrics": {"bindAddress": address},
            },
            "deployment": {"containers": [{"name": "manager", "args": args}]},
        });
        for declared in [today(&spec), proposed(&spec)] {
            let mut once = objects.clone();
            // The same flag with two values is refused.
            if customize(&mut once, &declared).is_err() { continue; }
            let mut twice = once.clone();
            customize(&mut twice, &declared).unwrap();
            prop_assert_eq!(twice, once);
        }
    }
}
