//! `management.cluster.x-k8s.io/v1alpha1`.

use serde_json::{Value, json};
use windlass_api::crd::crd;
use windlass_api::kind::ApiKind;
use windlass_api_operator::management::{
    BootstrapProvider, ControlPlaneProvider, CoreProvider, InfrastructureProvider,
};
use windlass_api_operator::{Api, Fetch, ImageOverride, ProviderObject, ProviderType};
use windlass_cel::review;
use windlass_meta::GoDuration;
use windlass_schema::{Patterns, Reviewing};

use crate::server::{refusals, stored};

type Kind = InfrastructureProvider;

fn provider(spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "management.cluster.x-k8s.io/v1alpha1",
        "kind": "InfrastructureProvider",
        "metadata": {"name": "aws", "namespace": "capa-system", "uid": "u", "generation": 3},
    });
    object["spec"] = spec;
    object
}

fn accepts(spec: Value) {
    assert_eq!(refusals::<Kind>(&provider(spec), None), Vec::<String>::new());
}

/// The server names the field and says these words.
fn refuses(spec: Value, field: &str, words: &str) {
    let object = provider(spec);
    let found = refusals::<Kind>(&object, None);
    let is_named = found.iter().any(|text| text.contains(field) && text.contains(words));
    assert!(is_named, "{object}: no {field} with {words:?} in {found:#?}");
}

fn refuses_change(from: Value, to: Value, words: &str) {
    let found = refusals::<Kind>(&provider(to), Some(&provider(from)));
    assert!(
        found.iter().any(|text| text.contains(words)),
        "no {words:?} in {found:#?}"
    );
}

fn accepts_change(from: Value, to: Value) {
    let found = refusals::<Kind>(&provider(to), Some(&provider(from)));
    assert_eq!(found, Vec::<String>::new());
}

// OP-001, OP-002, OP-003, OP-005, OP-006
#[test]
fn there_are_four_namespaced_kinds_with_spec_and_status() {
    fn check<K: ProviderObject>(kind: &str, plural: &str, type_: ProviderType) {
        let definition = crd::<K>();
        let spec = &definition["spec"];
        assert_eq!(spec["group"], "management.cluster.x-k8s.io");
        assert_eq!(spec["versions"][0]["name"], "v1alpha1");
        assert_eq!(spec["names"]["kind"], kind);
        assert_eq!(spec["names"]["plural"], plural);
        assert_eq!(spec["scope"], "Namespaced");
        assert_eq!(spec["versions"][0]["subresources"], json!({"status": {}}));
        let properties = &spec["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
        assert!(properties["spec"]["properties"].get("type").is_none());
        assert!(properties["status"].is_object());
        assert_eq!((K::TYPE, K::API), (type_, Api::V1Alpha1));
        assert_eq!(K::API.api_version(), K::API_VERSION);
        assert_eq!(K::TYPE.inventory(), K::KIND);
    }
    check::<CoreProvider>("CoreProvider", "coreproviders", ProviderType::Core);
    check::<BootstrapProvider>("BootstrapProvider", "bootstrapproviders", ProviderType::Bootstrap);
    check::<ControlPlaneProvider>(
        "ControlPlaneProvider",
        "controlplaneproviders",
        ProviderType::ControlPlane,
    );
    check::<InfrastructureProvider>(
        "InfrastructureProvider",
        "infrastructureproviders",
        ProviderType::Infrastructure,
    );
}

// OP-004
#[test]
fn the_kinds_differ_in_nothing_but_their_names() {
    fn fields<K: ApiKind>() -> [Value; 2] {
        let definition = crd::<K>();
        let properties = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
        ["spec", "status"].map(|name| properties[name].clone())
    }
    let one = fields::<CoreProvider>();
    assert_eq!(one, fields::<BootstrapProvider>());
    assert_eq!(one, fields::<ControlPlaneProvider>());
    assert_eq!(one, fields::<InfrastructureProvider>());
}

#[test]
fn a_server_takes_the_schema_and_its_rules() {
    let definition = crd::<Kind>();
    let how = Reviewing {
        at: "schema",
        resource: true,
        status: true,
        known: false,
        patterns: &Patterns::default(),
    };
    let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let found: Vec<String> = review(schema, &how).iter().map(ToString::to_string).collect();
    assert_eq!(found, Vec::<String>::new());
}

// OP-007, OP-009, OP-010, OP-015, OP-020
#[test]
fn nothing_has_to_be_said() {
    let mut bare = provider(Value::Null);
    bare.as_object_mut().unwrap().remove("spec");
    let read: Kind = stored(&bare);
    // What was not said is not written either: nothing is there to differ from what the user manages.
    assert_eq!(serde_json::to_value(&read).unwrap(), bare);
    let declared = read.declared().unwrap();
    assert_eq!(declared.fetch, Fetch::Default);
    assert_eq!((declared.version, declared.paused), (None, false));

    let empty: Kind = stored(&provider(json!({"manager": {}})));
    let mut expect = read.declared().unwrap();
    expect.generation = 3;
    assert_eq!(empty.declared().unwrap(), expect);
}

// OP-011
#[test]
fn a_version_is_a_semantic_version_with_a_v() {
    for version in [
        "v0.6.0",
        "v1.0.0-rc.1",
        "v1.2.3",
        "v10.20.30+build.5",
        "v1.0.0-alpha-a.b-c",
    ] {
        accepts(json!({"version": version}));
    }
    for version in [
        "0.6.0",
        "v1",
        "v1.2",
        "latest",
        "",
        "v01.2.3",
        "v1.2.3-",
        "v1.2.3 ",
        "V1.2.3",
        "v1.2.3-01",
    ] {
        refuses(json!({"version": version}), "spec.version", "should match");
        let read: Kind = serde_json::from_value(provider(json!({"version": version}))).unwrap();
        // An empty version means unset. Servers without this schema let the others pass, so they are problems.
        let problems = read.declared().map(drop).map_err(|problems| problems.reason());
        let expect = if version.is_empty() {
            Ok(())
        } else {
            Err("IncorrectVersionFormat")
        };
        assert_eq!(problems, expect, "{version}");
    }
    refuses(json!({"version": 1}), "spec.version", "must be of type string");
}

// OP-056, OP-057, OP-058, OP-059
#[test]
fn files_come_from_exactly_one_place() {
    let url = "https://github.com/owner/repository/releases";
    let labels = json!({"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]});
    accepts(json!({"fetchConfig": {"url": url}}));
    accepts(json!({"fetchConfig": {"selector": labels}}));
    let words = "set exactly one of url, selector";
    refuses(json!({"fetchConfig": {}}), "spec.fetchConfig", words);
    refuses(
        json!({"fetchConfig": {"url": url, "selector": labels}}),
        "spec.fetchConfig",
        words,
    );
    refuses(
        json!({"fetchConfig": {"url": ""}}),
        "spec.fetchConfig.url",
        "at least 1 char",
    );
    // OCI belongs to the other API.
    refuses(
        json!({"fetchConfig": {"oci": "x"}}),
        "spec.fetchConfig.oci",
        "unknown field",
    );
}

// OP-021
#[test]
fn paused_is_said_in_the_specification() {
    accepts(json!({"paused": true}));
    refuses(json!({"Paused": true}), "spec.Paused", "unknown field");
    refuses(json!({"paused": "yes"}), "spec.paused", "must be of type boolean");
    assert!(
        stored::<Kind>(&provider(json!({"paused": true})))
            .declared()
            .unwrap()
            .paused
    );
}

// OP-022, OP-023, OP-024, OP-025, OP-026, OP-027, OP-029, OP-030, OP-039, OP-040, OP-043, OP-044
#[test]
fn settings_of_the_manager_stand_side_by_side() {
    let manager = json!({
        "profilerAddress": "localhost:6060",
        "maxConcurrentReconciles": 3,
        "verbosity": 5,
        "debug": false,
        "featureGates": {"A": true, "B": false},
        "syncPeriod": "11m",
        "leaderElection": {"leaderElect": true},
        "cacheNamespace": "one",
        "gracefulShutDown": "-1s",
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": ":9440", "readinessEndpointName": "r", "livenessEndpointName": "l"},
        "webhook": {"port": 9444, "host": "h", "certDir": "/d"},
    });
    let declared = stored::<Kind>(&provider(json!({"manager": manager})))
        .declared()
        .unwrap();
    let settings = declared.manager;
    assert_eq!(settings.profiler_address.as_deref(), Some("localhost:6060"));
    assert_eq!(
        (settings.max_concurrent_reconciles, settings.verbosity),
        (Some(3), Some(5))
    );
    assert_eq!(
        settings.feature_gates,
        [("A".to_owned(), true), ("B".to_owned(), false)].into()
    );
    assert_eq!(settings.sync_period, Some(GoDuration::from_secs(660)));
    assert_eq!(settings.graceful_shutdown, Some(GoDuration::from_secs(-1)));
    assert_eq!(settings.cache_namespace.as_deref(), Some("one"));
    assert_eq!(settings.metrics_bind_address.as_deref(), Some("0"));
    assert_eq!(settings.health_probe_bind_address.as_deref(), Some(":9440"));
    assert_eq!(settings.readiness_endpoint_name.as_deref(), Some("r"));
    assert_eq!(settings.liveness_endpoint_name.as_deref(), Some("l"));
    assert_eq!(settings.webhook_port, Some(9444));
    assert_eq!(settings.webhook_host.as_deref(), Some("h"));
    assert_eq!(settings.webhook_cert_dir.as_deref(), Some("/d"));
    for field in [
        "gracefulShutdownTimeout",
        "metricsAddress",
        "controller",
        "additionalArgs",
    ] {
        refuses(
            json!({"manager": {field: "1s"}}),
            &format!("spec.manager.{field}"),
            "unknown field",
        );
    }
    for (field, value) in [("maxConcurrentReconciles", 0), ("verbosity", -1)] {
        refuses(
            json!({"manager": {field: value}}),
            &format!("spec.manager.{field}"),
            "greater than or equal to",
        );
    }
    refuses(
        json!({"manager": {"webhook": {"port": 0}}}),
        "spec.manager.webhook.port",
        "greater than or equal to 1",
    );
    refuses(
        json!({"manager": {"featureGates": {"A": "true"}}}),
        "spec.manager.featureGates.A",
        "boolean",
    );
    for duration in ["660", "11", "1 m", "1d", "soon", "-1s", ""] {
        refuses(
            json!({"manager": {"syncPeriod": duration}}),
            "spec.manager.syncPeriod",
            "should match",
        );
    }
}

// OP-182
#[test]
fn no_setting_has_a_default() {
    fn defaults(path: &str, schema: &Value, found: &mut Vec<String>) {
        if schema.get("default").is_some() {
            found.push(path.to_owned());
        }
        for (name, child) in schema["properties"].as_object().into_iter().flatten() {
            defaults(&format!("{path}.{name}"), child, found);
        }
    }
    let definition = crd::<Kind>();
    let spec = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let mut found = Vec::new();
    defaults("spec", spec, &mut found);
    assert_eq!(found, Vec::<String>::new());
    let settings = stored::<Kind>(&provider(json!({"manager": {}})))
        .declared()
        .unwrap()
        .manager;
    assert_eq!((settings.verbosity, settings.max_concurrent_reconciles), (None, None));
}

// OP-031, OP-032, OP-033, OP-034, OP-035, OP-036, OP-037
#[test]
fn of_leader_election_only_the_switch_must_be_said() {
    let with = |election: Value| json!({"manager": {"leaderElection": election}});
    accepts(with(json!({"leaderElect": true})));
    accepts(with(
        json!({"leaderElect": false, "leaseDuration": "15s", "renewDeadline": "15s", "retryPeriod": "2s"}),
    ));
    refuses(
        with(json!({"leaseDuration": "15s"})),
        "spec.manager.leaderElection.leaderElect",
        "Required",
    );
    refuses(
        with(json!({"leaderElect": true, "leaseDuration": "15s", "renewDeadline": "20s"})),
        "spec.manager.leaderElection",
        "renewDeadline must not be longer than leaseDuration",
    );
    // Zero means unset, so there is no limit to exceed.
    accepts(with(
        json!({"leaderElect": true, "leaseDuration": "0s", "renewDeadline": "20s"}),
    ));
    let declared = stored::<Kind>(&provider(with(json!({
        "leaderElect": true, "leaseDuration": "1m", "renewDeadline": "0s", "retryPeriod": "1500ms",
        "resourceLock": "leases", "resourceName": "n", "resourceNamespace": "ns",
    }))))
    .declared()
    .unwrap();
    let election = declared.manager.leader_election.unwrap();
    assert!(election.leader_elect);
    assert_eq!(election.lease_duration, Some(GoDuration::from_secs(60)));
    assert_eq!(election.renew_deadline, None);
    assert_eq!(election.retry_period, Some(GoDuration::from_nanos(1_500_000_000)));
    assert_eq!(election.resource_lock.as_deref(), Some("leases"));
    assert_eq!(election.resource_name.as_deref(), Some("n"));
    assert_eq!(election.resource_namespace.as_deref(), Some("ns"));
}

// OP-028, OP-207, OP-208
#[test]
fn while_a_manager_is_debugged_its_other_settings_stay() {
    let manager = |debug: bool, verbosity: i64| json!({"manager": {"debug": debug, "verbosity": verbosity}});
    refuses_change(manager(true, 1), manager(true, 3), "while debug is true");
    refuses_change(
        manager(true, 1),
        json!({"manager": {"debug": true}}),
        "while debug is true",
    );
    accepts_change(manager(true, 1), manager(true, 1));
    accepts_change(manager(true, 1), manager(false, 3));
    accepts_change(manager(false, 1), manager(true, 3));
    accepts_change(manager(false, 1), manager(false, 3));
    accepts_change(manager(true, 1), json!({}));
    // What is not a setting of the manager may change.
    let mut other = manager(true, 1);
    other["paused"] = json!(true);
    accepts_change(manager(true, 1), other);
    // The user's own values stay where they are.
    let settings = stored::<Kind>(&provider(manager(true, 2))).declared().unwrap().manager;
    assert_eq!((settings.debug, settings.verbosity), (true, Some(2)));
}

// OP-016, OP-045, OP-046, OP-047, OP-048, OP-049, OP-050
#[test]
fn settings_of_the_deployment_are_those_of_a_pod() {
    accepts(json!({"deployment": {"replicas": 2}}));
    accepts(json!({"deployment": {"replicas": 2, "containers": null}}));
    let zero = stored::<Kind>(&provider(json!({"deployment": {"replicas": 0}})))
        .declared()
        .unwrap();
    assert_eq!(zero.deployment.replicas, Some(0));
    refuses(
        json!({"deployment": {"replicas": -1}}),
        "spec.deployment.replicas",
        "greater than or equal to 0",
    );
    refuses(
        json!({"deployment": {"replicas": "2"}}),
        "spec.deployment.replicas",
        "must be of type integer",
    );
    refuses(
        json!({"deployment": {"containers": [{}]}}),
        "spec.deployment.containers[0].name",
        "Required",
    );
    refuses(
        json!({"deployment": {"containers": [{"name": ""}]}}),
        "spec.deployment.containers[0].name",
        "at least 1",
    );
    refuses(
        json!({"deployment": {"containers": [{"name": "a"}, {"name": "a"}]}}),
        "spec.deployment.containers[1]",
        "Duplicate",
    );
    let affinity = json!({
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]},
        ]}},
        "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 100, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}},
        ]},
    });
    let tolerations = json!([{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}]);
    let deployment = json!({"nodeSelector": {"n": "1"}, "tolerations": tolerations, "affinity": affinity});
    let declared = stored::<Kind>(&provider(json!({"deployment": deployment})))
        .declared()
        .unwrap();
    assert_eq!(
        declared.deployment.node_selector,
        Some([("n".to_owned(), "1".to_owned())].into())
    );
    assert_eq!(
        declared.deployment.tolerations.as_deref(),
        tolerations.as_array().map(Vec::as_slice)
    );
    assert_eq!(declared.deployment.affinity, Some(affinity));
    refuses(
        json!({"deployment": {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}}}),
        "spec.deployment.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey",
        "Required",
    );
}

// OP-051, OP-052, OP-053, OP-054, OP-055, OP-063, OP-076, OP-173
#[test]
fn settings_of_containers_are_typed() {
    let with = |container: Value| {
        let mut named = json!({"name": "manager"});
        named
            .as_object_mut()
            .unwrap()
            .extend(container.as_object().unwrap().clone());
        json!({"deployment": {"containers": [named]}})
    };
    refuses(
        with(json!({"image": "gcr.io/x/y:z"})),
        "containers[0].image",
        "must be of type object",
    );
    refuses(
        with(json!({"args": {"a": 12}})),
        "containers[0].args.a",
        "must be of type string",
    );
    refuses(
        with(json!({"imageUrl": "x"})),
        "containers[0].imageUrl",
        "unknown field",
    );
    refuses(
        with(json!({"resources": {"limits": {"cpu": "a lot"}}})),
        "limits.cpu",
        "should match",
    );
    let container = json!({
        "image": {"repository": "gcr.io/x", "tag": "v1"},
        "args": {"a": "12"},
        "env": [
            {"name": "A", "value": "1"},
            {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        ],
        "resources": {"limits": {"cpu": 1, "memory": "30Mi"}},
    });
    let declared = stored::<Kind>(&provider(with(container))).declared().unwrap();
    let [container] = declared.deployment.containers.as_slice() else {
        panic!("one container");
    };
    let image = ImageOverride::Parts {
        repository: Some("gcr.io/x".to_owned()),
        name: None,
        tag: Some("v1".to_owned()),
    };
    assert_eq!(container.image, Some(image));
    assert_eq!(container.args, [("a".to_owned(), "12".to_owned())].into());
    assert_eq!(container.env[0].value.as_deref(), Some("1"));
    assert_eq!(
        container.env[1].value_from,
        Some(json!({"secretKeyRef": {"name": "s", "key": "k"}}))
    );
    assert_eq!(
        container.resources,
        Some(json!({"limits": {"cpu": 1, "memory": "30Mi"}}))
    );
    // An image override without parts is no override.
    let nothing = stored::<Kind>(&provider(with(json!({"image": {}}))))
        .declared()
        .unwrap();
    assert_eq!(nothing.deployment.containers[0].image, None);
}

// OP-017, OP-019, OP-222
#[test]
fn the_secret_is_in_the_namespace_of_the_declaration() {
    let declared = stored::<Kind>(&provider(json!({"secretName": "s"})))
        .declared()
        .unwrap();
    assert_eq!(declared.config_secret.unwrap().to_string(), "capa-system/s");
    refuses(json!({"secretName": ""}), "spec.secretName", "at least 1");
    refuses(
        json!({"secretNamespace": "other"}),
        "spec.secretNamespace",
        "unknown field",
    );
}

// OP-060, OP-061, OP-062
#[test]
fn the_status_says_contract_conditions_and_generation() {
    let mut object = provider(json!({}));
    object["status"] = json!({
        "contract": "v1beta2",
        "observedGeneration": 3,
        "conditions": [{
            "type": "Ready", "status": "True", "reason": "DeploymentAvailable", "message": "",
            "lastTransitionTime": "2026-01-02T03:04:05Z",
        }],
    });
    let read: Kind = stored(&object);
    let parts = read.status_parts();
    assert_eq!(parts.contract, Some("v1beta2"));
    assert_eq!(parts.observed_generation, Some(3));
    assert_eq!(parts.installed_version, None);
    object["status"]["installedVersion"] = json!("v1.0.0");
    assert_eq!(
        refusals::<Kind>(&object, None),
        ["unknown field \"status.installedVersion\""]
    );
}
