//! What rules cost. Every client that reaches the port of a webhook can send a review with any object, so the cost of a rule may not
//! multiply with the numbers of parts of it.

#![allow(clippy::needless_pass_by_value, reason = "shapes read best with values")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use windlass_api::codec::Codec as _;
use windlass_api::core::ClusterClass;

use crate::core::{cluster, cluster_class};
use crate::kubeadm::control_plane;
use crate::rule::{Admission, Change, Operation, Rule, WRITES};
use crate::view::Objects;

/// The time limit of one check. One takes less than a second; what multiplies takes minutes.
const LIMIT: Duration = Duration::from_secs(20);
/// The number of parts.
const MANY: usize = 5_000;

fn rule(kind: &'static str, admission: Admission) -> Rule {
    Rule {
        group: "cluster.x-k8s.io",
        version: "v1beta2",
        kind,
        resource: "things",
        admission,
        decode: (kind == "ClusterClass").then_some(ClusterClass::decode_stored),
        closed: Vec::new(),
    }
}

/// Asserts that an update is judged in time. Gives the number of errors.
fn judged(rule: &Rule, old: &Value, new: &Value, beside: Vec<Value>) -> usize {
    let view = Objects(beside.into_iter().map(Arc::new).collect());
    let begun = Instant::now();
    let change = |new| Change {
        resource: "things.cluster.x-k8s.io",
        operation: Operation::Update,
        dry_run: false,
        old,
        new,
        view: &view,
    };
    let mut object = new.clone();
    let completed = rule.complete(&change(&Value::Null), &mut object).unwrap();
    let checked = rule.check(&change(&object)).unwrap();
    let took = begun.elapsed();
    assert!(took < LIMIT, "{took:?}");
    completed.errors.len() + checked.errors.len()
}

fn class(spec: Value) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass",
        "metadata": {"namespace": "a", "name": "c", "generation": 1}, "spec": spec,
    })
}

fn many(item: impl Fn(usize) -> Value) -> Value {
    (0..MANY).map(item).collect()
}

fn workers(field: &str, items: Value) -> Value {
    json!({"workers": {field: items}})
}

#[test]
fn classes_with_many_parts_are_judged_in_time() {
    let of_class = rule("ClusterClass", Admission::checking(WRITES, cluster_class::check));
    let check = |old: Value, new: Value, clusters: Vec<Value>, is_refused: bool| {
        let errors = judged(&of_class, &class(old), &class(new), clusters);
        assert_eq!(errors > 0, is_refused, "{errors}");
    };
    // Classes of one name, and of many.
    for name in [|_| "a".to_owned(), |n: usize| format!("w{n}")] {
        for field in ["machineDeployments", "machinePools"] {
            let of_kind = |kind: &str| {
                let template = json!({"templateRef": {"apiVersion": "g.io/v1", "kind": kind, "name": "t"}});
                workers(field, many(|n| json!({"class": name(n), "infrastructure": template})))
            };
            check(of_kind("ATemplate"), of_kind("BTemplate"), Vec::new(), true);
        }
    }
    // Errors that were there before, at the end of a long list.
    let taints = json!([{"key": "node-role.kubernetes.io/master", "effect": "NoSchedule"}]);
    let template = json!({"templateRef": {"apiVersion": "g.io/v1", "kind": "ATemplate", "name": "t"}});
    let worker = |n: usize| {
        let mut worker = json!({"class": format!("w{n}"), "infrastructure": template, "bootstrap": template});
        if n > MANY - 900 {
            worker["taints"] = taints.clone();
        }
        worker
    };
    let mut spec = workers("machineDeployments", many(worker));
    spec["infrastructure"] = template.clone();
    spec["controlPlane"] = template.clone();
    check(spec.clone(), spec.clone(), Vec::new(), false);
    // A long name above many parts.
    let long = "n".repeat(1 << 20);
    let taints = many(|_| json!({"key": "node-role.kubernetes.io/master", "effect": "NoSchedule"}));
    let worker = json!([{"class": long, "taints": taints}]);
    check(json!({}), workers("machineDeployments", worker), Vec::new(), true);
    // A long path of many numbers.
    let patch = json!({"op": "remove", "path": "/1".repeat(1 << 19)});
    let patches = json!([{"name": "p", "definitions": [{"jsonPatches": [patch]}]}]);
    check(json!({}), json!({"patches": patches}), Vec::new(), true);
    // Many names that select many classes.
    let names = |n: usize| [format!("w{n}"), format!("w{n}*"), format!("*{n}"), format!("*-{n}")];
    let select = |n: usize| {
        json!({
            "selector": {
                "apiVersion": "g.io/v1", "kind": "ATemplate",
                "matchResources": {"machineDeploymentClass": {"names": names(n)}},
            },
            "jsonPatches": [],
        })
    };
    let mut selecting = spec.clone();
    selecting["patches"] = json!([{"name": "p", "definitions": many(select)}]);
    check(spec.clone(), selecting, Vec::new(), true);
    // Names that cost much.
    let naming = json!({"template": "{{ printf \"%500000d\" 1 }}"});
    let named = many(|n| json!({"class": format!("w{n}"), "naming": naming}));
    check(json!({}), workers("machineDeployments", named), Vec::new(), true);
    // Health checks that are removed, and Clusters that use the class.
    let sets = many(
        |n| json!({"name": format!("s{n}"), "class": format!("w{n}"), "healthCheck": {"enabled": true}, "replicas": 1}),
    );
    let cluster = json!({
        "kind": "Cluster", "metadata": {"namespace": "a", "name": "x"},
        "spec": {"topology": {"classRef": {"name": "c"}, "workers": {"machineDeployments": sets}}},
    });
    let checks = json!({"checks": {"nodeStartupTimeoutSeconds": 60}});
    let checked = many(|n| json!({"class": format!("w{n}"), "healthCheck": checks}));
    let scaled = json!({"annotations": {"cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size": "9"}});
    let bare = many(|n| json!({"class": format!("w{n}"), "metadata": scaled}));
    let (old, new) = (
        workers("machineDeployments", checked),
        workers("machineDeployments", bare),
    );
    check(old.clone(), new, vec![cluster.clone()], true);
    check(old, json!({}), vec![cluster], true);
    // Variables that change.
    let variables = |most: usize| {
        let variable = |n: usize| json!({"name": format!("v{n}"), "required": false, "schema": {"openAPIV3Schema": {"type": "string", "maxLength": most}}});
        json!({"variables": (0..MANY / 10).map(variable).collect::<Value>()})
    };
    check(variables(5), variables(6), Vec::new(), false);
    // A long name of a variable, and of a property, above many others.
    for kind in ["string", "date"] {
        let below: Map<String, Value> = (0..MANY).map(|n| (format!("p{n}"), json!({"type": kind}))).collect();
        let below = json!({"type": "object", "properties": below});
        let nested = json!({"type": "object", "properties": { long.as_str(): below }});
        for (name, schema) in [(long.as_str(), &below), ("v", &nested)] {
            let variable = json!({"name": name, "required": false, "schema": {"openAPIV3Schema": schema}});
            // The schema of the kind limits the names of variables, and the rule that of properties.
            let is_refused = kind == "date" || name == "v";
            check(json!({}), json!({"variables": [variable]}), Vec::new(), is_refused);
        }
    }
}

#[test]
fn clusters_with_many_parts_are_judged_in_time() {
    let admission = Admission::checking(WRITES, cluster::check).completing(cluster::complete);
    let of_cluster = rule("Cluster", admission);
    let cluster = |topology: Value| {
        let mut topology = topology;
        topology["classRef"] = json!({"name": "c"});
        topology["version"] = json!("v1.35.0");
        json!({"metadata": {"namespace": "a", "name": "x"}, "spec": {"topology": topology}})
    };
    let classes = many(|n| json!({"class": format!("w{n}")}));
    let beside = class(workers("machineDeployments", classes));
    let sets = |replicas: usize| {
        many(|n| json!({"name": format!("s{n}"), "class": format!("w{}", MANY - n), "replicas": replicas}))
    };
    let (old, new) = (
        cluster(workers("machineDeployments", sets(1))),
        cluster(workers("machineDeployments", sets(2))),
    );
    judged(&of_cluster, &old, &new, vec![beside.clone()]);
    // A long name in a value above many others.
    let map = |of: &Value| json!({"type": "object", "additionalProperties": of});
    let schema = map(&map(&json!({"type": "string"})));
    let variable = json!({"name": "v", "required": false, "schema": {"openAPIV3Schema": schema}});
    let below: Map<String, Value> = (0..MANY).map(|n| (n.to_string(), json!(1))).collect();
    let value = json!({ "n".repeat(1 << 20): below });
    let new = cluster(json!({"variables": [{"name": "v", "value": value}]}));
    let with_variable = class(json!({"variables": [variable]}));
    assert!(judged(&of_cluster, &cluster(json!({})), &new, vec![with_variable]) > 0);
    // A long name above many values.
    let values = many(|n| json!({"name": format!("v{n}"), "value": 1}));
    let set = json!([{"name": "n".repeat(1 << 20), "class": "w1", "variables": {"overrides": values}}]);
    let new = cluster(workers("machineDeployments", set));
    assert!(judged(&of_cluster, &cluster(json!({})), &new, vec![beside]) > 0);
}

#[test]
fn control_planes_with_many_parts_are_judged_in_time() {
    let admission = Admission::checking(WRITES, control_plane::check).completing(control_plane::complete);
    let of_control_plane = rule("KubeadmControlPlane", admission);
    let template = rule(
        "KubeadmControlPlaneTemplate",
        Admission::checking(WRITES, control_plane::check_template),
    );
    let below: Map<String, Value> = (0..MANY).map(|n| (n.to_string(), json!(1))).collect();
    let long = json!({ "n".repeat(1 << 20): below });
    let new = json!({"spec": {"kubeadmConfigSpec": long}});
    assert!(judged(&of_control_plane, &json!({}), &new, Vec::new()) > 0);
    let new = json!({"spec": {"template": {"spec": {"kubeadmConfigSpec": long}}}});
    assert!(judged(&template, &json!({}), &new, Vec::new()) > 0);
}
