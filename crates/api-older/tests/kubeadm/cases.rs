//! Single rules, by example.

use serde_json::{Value, json};

use crate::{Hubs, KINDS, Kind, Unknown, convert_with, converted, data_of, forgotten};

const CONFIG: usize = 0;
const CONTROL_PLANE: usize = 2;
const CONTROL_PLANE_TEMPLATE: usize = 3;

fn object(api_version: &str, kind: &Kind, spec: &Value) -> Value {
    json!({
        "apiVersion": api_version,
        "kind": kind.name,
        "metadata": {"name": "a", "namespace": "ns"},
        "spec": spec,
    })
}

/// The spec in v1beta1 of an object with a spec in the hub version.
fn older_spec(kind: usize, spec: &Value) -> Value {
    let kind = &KINDS[kind];
    converted(&object(&kind.hub.api_version, kind, spec), &kind.older)["spec"].take()
}

/// The spec in the hub version of an object with a spec in v1beta1 that was never converted.
fn hub_spec(kind: usize, spec: &Value) -> Value {
    let kind = &KINDS[kind];
    converted(&object(&kind.older.api_version, kind, spec), &kind.hub)["spec"].take()
}

/// The spec in the hub version after an older client changed what it sees.
fn edited(kind: usize, spec: &Value, edit: impl FnOnce(&mut Value)) -> Value {
    let kind = &KINDS[kind];
    let mut older = converted(&object(&kind.hub.api_version, kind, spec), &kind.older);
    edit(&mut older["spec"]);
    converted(&older, &kind.hub)["spec"].take()
}

fn control_plane(more: &Value) -> Value {
    let mut spec = json!({
        "version": "v1.35.0",
        "machineTemplate": {"spec": {"infrastructureRef": {
            "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachineTemplate", "name": "m",
        }}},
    });
    for (name, value) in more.as_object().unwrap() {
        spec[name] = value.clone();
    }
    spec
}

fn older_control_plane(more: &Value) -> Value {
    let mut spec = json!({
        "version": "v1.35.0",
        "kubeadmConfigSpec": {},
        "machineTemplate": {"infrastructureRef": {
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "DevMachineTemplate", "name": "m",
        }},
    });
    for (name, value) in more.as_object().unwrap() {
        spec[name] = value.clone();
    }
    spec
}

#[test]
fn timeouts_move_to_where_the_older_version_has_them() {
    let hub = json!({
        "initConfiguration": {"timeouts": {"controlPlaneComponentHealthCheckSeconds": 566, "discoverySeconds": 1}},
        "joinConfiguration": {"timeouts": {"controlPlaneComponentHealthCheckSeconds": 566, "tlsBootstrapSeconds": 90}},
    });
    let older = older_spec(CONFIG, &hub);
    assert_eq!(
        older["clusterConfiguration"]["apiServer"],
        json!({"timeoutForControlPlane": "9m26s"})
    );
    assert_eq!(older["joinConfiguration"]["discovery"], json!({"timeout": "1m30s"}));
    assert_eq!(older.get("initConfiguration"), None);
    let changed = edited(CONFIG, &hub, |spec| {
        spec["clusterConfiguration"]["apiServer"]["timeoutForControlPlane"] = json!("10m0.5s");
    });
    assert_eq!(
        changed["initConfiguration"]["timeouts"],
        json!({"controlPlaneComponentHealthCheckSeconds": 600, "discoverySeconds": 1})
    );
    assert_eq!(
        changed["joinConfiguration"]["timeouts"],
        json!({"controlPlaneComponentHealthCheckSeconds": 600, "tlsBootstrapSeconds": 90})
    );
}

#[test]
fn a_flag_that_is_off_stays_off_until_it_is_turned_on() {
    let hub = json!({
        "files": [
            {"path": "/a", "append": false}, {"path": "/a", "content": "x"}, {"path": "/a", "append": true}, {"path": "/b", "append": false},
        ],
        "joinConfiguration": {"discovery": {"bootstrapToken": {"unsafeSkipCAVerification": false}}},
    });
    let older = older_spec(CONFIG, &hub);
    assert_eq!(older["files"][0], json!({"path": "/a"}));
    assert_eq!(older["joinConfiguration"]["discovery"], json!({"bootstrapToken": {}}));
    let changed = edited(CONFIG, &hub, |spec| spec["files"][3]["append"] = json!(true));
    let mut expected = hub.clone();
    expected["files"][3]["append"] = json!(true);
    assert_eq!(changed, expected);
}

#[test]
fn a_disk_layout_stays_the_only_layout() {
    let hub = json!({"diskSetup": {"partitions": [{"device": "/dev/sdb", "diskLayout": [{"percentage": 100}]}]}});
    assert_eq!(
        older_spec(CONFIG, &hub)["diskSetup"]["partitions"][0]["layout"],
        json!(false)
    );
    assert_eq!(edited(CONFIG, &hub, |_| ()), hub);
    let changed = edited(CONFIG, &hub, |spec| {
        spec["diskSetup"]["partitions"] = json!([{"device": "/dev/sdc", "layout": false}]);
    });
    assert_eq!(
        changed["diskSetup"]["partitions"],
        json!([{"device": "/dev/sdc", "layout": false}])
    );
}

#[test]
fn what_has_no_effect_is_not_kept() {
    let older = json!({
        "useExperimentalRetryJoin": true,
        "clusterConfiguration": {
            "apiVersion": "kubeadm.k8s.io/v1beta3", "kind": "ClusterConfiguration", "clusterName": "c",
            "kubernetesVersion": "v1.35.0", "networking": {"podSubnet": "10.0.0.0/8"}, "certificatesDir": "/pki", "imageRepository": "",
        },
        "initConfiguration": {"apiVersion": "kubeadm.k8s.io/v1beta3"},
        "joinConfiguration": {"controlPlane": {}, "nodeRegistration": {"taints": []}},
    });
    let hub = hub_spec(CONFIG, &older);
    assert_eq!(
        hub,
        json!({
            "clusterConfiguration": {"certificatesDir": "/pki"},
            "joinConfiguration": {"controlPlane": {}, "nodeRegistration": {"taints": []}},
        })
    );
}

#[test]
fn a_reference_gets_the_version_of_its_kind_and_the_namespace() {
    let older = older_spec(CONTROL_PLANE, &control_plane(&json!({})));
    assert_eq!(
        older["machineTemplate"]["infrastructureRef"],
        json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DevMachineTemplate", "name": "m", "namespace": "ns",
        })
    );
    let kind = &KINDS[CONTROL_PLANE];
    let hub = object(&kind.hub.api_version, kind, &control_plane(&json!({})));
    assert_eq!(
        convert_with(&hub, &kind.older, &Unknown).unwrap_err(),
        "spec.machineTemplate.spec.infrastructureRef: the apiVersion of DevMachineTemplate.infrastructure.cluster.x-k8s.io \
         is not known: it has no CRD"
    );
    let mut older = object(&kind.older.api_version, kind, &older_control_plane(&json!({})));
    older["spec"]["machineTemplate"]["infrastructureRef"]["apiVersion"] = json!("a/b/c");
    assert_eq!(
        convert_with(&older, &kind.hub, &Hubs).unwrap_err(),
        "spec.machineTemplate.infrastructureRef.apiVersion: \"a/b/c\" is not an API version: expected GROUP/VERSION"
    );
}

#[test]
fn a_rollout_of_a_template_without_a_type_is_a_rolling_update() {
    let surge = json!({"rolloutStrategy": {"rollingUpdate": {"maxSurge": 1}}});
    let empty = json!({"rolloutStrategy": {"rollingUpdate": {}}});
    let strategy = |spec: Value| spec["rollout"]["strategy"].clone();
    let template = |more: &Value| {
        let mut spec = json!({"kubeadmConfigSpec": {}});
        spec["rolloutStrategy"] = more["rolloutStrategy"].clone();
        hub_spec(CONTROL_PLANE_TEMPLATE, &json!({"template": {"spec": spec}}))["template"]["spec"].take()
    };
    assert_eq!(
        strategy(template(&surge)),
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}})
    );
    assert_eq!(strategy(template(&empty)), json!({"type": "RollingUpdate"}));
    // In a control plane the webhook defaults it.
    let control_plane = |more: &Value| hub_spec(CONTROL_PLANE, &older_control_plane(more));
    assert_eq!(
        strategy(control_plane(&surge)),
        json!({"rollingUpdate": {"maxSurge": 1}})
    );
    assert_eq!(strategy(control_plane(&empty)), Value::Null);
}

#[test]
fn an_empty_user_of_a_kubeconfig_is_written_in_the_older_version_only() {
    let older = json!({"joinConfiguration": {"discovery": {"file": {
        "kubeConfigPath": "/k", "kubeConfig": {"cluster": {"server": "https://x"}, "user": {}},
    }}}});
    let hub = hub_spec(CONFIG, &older);
    let file = json!({"kubeConfigPath": "/k", "kubeConfig": {"cluster": {"server": "https://x"}}});
    assert_eq!(hub["joinConfiguration"]["discovery"]["file"], file);
    let again = older_spec(CONFIG, &hub);
    assert_eq!(
        again["joinConfiguration"]["discovery"],
        older["joinConfiguration"]["discovery"]
    );
}

#[test]
fn a_retry_period_of_zero_is_unset_unless_it_was_kept() {
    let remediation = json!({"remediation": {"retryPeriodSeconds": 0, "maxRetry": 3}});
    let hub = control_plane(&remediation);
    assert_eq!(
        older_spec(CONTROL_PLANE, &hub)["remediationStrategy"],
        json!({"maxRetry": 3, "retryPeriod": "0s"})
    );
    assert_eq!(edited(CONTROL_PLANE, &hub, |_| ()), hub);
    let never_kept = older_control_plane(&json!({"remediationStrategy": {"maxRetry": 3, "retryPeriod": "0s"}}));
    assert_eq!(
        hub_spec(CONTROL_PLANE, &never_kept)["remediation"],
        json!({"maxRetry": 3})
    );
}

#[test]
fn ready_follows_from_the_ready_machines() {
    let kind = &KINDS[CONTROL_PLANE];
    let mut hub = object(&kind.hub.api_version, kind, &control_plane(&json!({})));
    hub["status"] = json!({
        "replicas": 3, "readyReplicas": 2, "initialization": {"controlPlaneInitialized": true},
        "deprecated": {"v1beta1": {"readyReplicas": 1, "updatedReplicas": 3}},
    });
    let older = converted(&hub, &kind.older);
    assert_eq!(
        older["status"],
        json!({
            "replicas": 3, "readyReplicas": 1, "updatedReplicas": 3, "unavailableReplicas": 0, "initialized": true, "ready": true,
            "v1beta2": {"readyReplicas": 2},
        })
    );
    // An older controller writes what it always writes.
    let fresh = converted(&forgotten(older), &kind.hub);
    assert_eq!(
        fresh["status"]["deprecated"],
        json!({"v1beta1": {"readyReplicas": 1, "updatedReplicas": 3, "unavailableReplicas": 0}})
    );
}

#[test]
fn an_object_without_a_spec_is_converted() {
    for kind in KINDS.iter() {
        let mut older = object(&kind.older.api_version, kind, &json!({}));
        older.as_object_mut().unwrap().remove("spec");
        let hub = converted(&older, &kind.hub);
        let mut again = converted(&hub, &kind.older);
        assert!(data_of(&mut again).is_string());
        assert_eq!(again["kind"], kind.name);
    }
}
