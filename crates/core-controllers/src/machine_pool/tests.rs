//! Cases for the plan and the status of MachinePools.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_api::core::{Machine, MachinePoolStatus};
use windlass_api::k8s::Node;
use windlass_cluster_cache::{GracePeriods, Outage, Workload};
use windlass_controller_runtime::{Dynamic, Moment, Seen};

use super::apply::Done;
use super::observe::Observed;
use super::plan::{Action, External, Plan, plan};
use super::status::status;
use crate::shared::read::Referenced;

fn now() -> Timestamp {
    "2026-03-01T10:00:00Z".parse().unwrap()
}

fn from<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn pool() -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachinePool",
        "metadata": {
            "name": "mp", "namespace": "ns", "uid": "uid-mp", "generation": 2,
            "labels": {"cluster.x-k8s.io/cluster-name": "c"},
            "ownerReferences": [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c", "uid": "uid-c"}],
        },
        "spec": {
            "clusterName": "c", "replicas": 2, "providerIDList": ["x:///1", "x:///2"],
            "template": {
                "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
                "spec": {
                    "clusterName": "c", "version": "v1.36.0", "deletion": {"nodeDeletionTimeoutSeconds": 10},
                    "bootstrap": {
                        "configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": "mp"},
                        "dataSecretName": "mp",
                    },
                    "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "XMachinePool", "name": "mp"},
                },
            },
        },
        "status": {
            "replicas": 2, "phase": "Running",
            "initialization": {"bootstrapDataSecretCreated": true, "infrastructureProvisioned": true},
            "nodeRefs": [
                {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "uid-n1"},
                {"apiVersion": "v1", "kind": "Node", "name": "n2", "uid": "uid-n2"},
            ],
            "deprecated": {"v1beta1": {"readyReplicas": 2, "availableReplicas": 2}},
        },
    })
}

fn external(kind: &str, spec: Value, status: Value) -> Seen<Referenced> {
    Seen::Found(Referenced::of(json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": kind,
        "metadata": {
            "name": "mp", "namespace": "ns", "uid": format!("uid-{kind}"),
            "labels": {"cluster.x-k8s.io/cluster-name": "c"},
            "ownerReferences": [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachinePool", "name": "mp", "uid": "uid-mp", "controller": true}],
        },
        "spec": spec, "status": status,
    })))
}

fn infrastructure(ids: &[&str], replicas: i32) -> Seen<Referenced> {
    let status = json!({"ready": true, "replicas": replicas});
    external("XMachinePool", json!({"providerIDList": ids}), status)
}

fn node(number: u8) -> Node {
    from(json!({
        "metadata": {
            "name": format!("n{number}"), "uid": format!("uid-n{number}"), "resourceVersion": "7",
            "annotations": {
                "cluster.x-k8s.io/cluster-name": "c", "cluster.x-k8s.io/cluster-namespace": "ns",
                "cluster.x-k8s.io/owner-kind": "MachinePool", "cluster.x-k8s.io/owner-name": "mp",
            },
        },
        "spec": {"providerID": format!("x:///{number}")},
        "status": {
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-03-01T09:59:00Z"}],
            "nodeInfo": {"architecture": "", "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "", "kubeProxyVersion": "",
                "kubeletVersion": "v1.36.0", "machineID": "", "operatingSystem": "", "osImage": "", "systemUUID": ""},
        },
    }))
}

fn nodes(all: impl IntoIterator<Item = Node>) -> Workload<BTreeMap<String, Arc<Node>>> {
    let named = all
        .into_iter()
        .map(|node| (node.metadata.name.clone().unwrap(), Arc::new(node)));
    Workload::Up(named.collect())
}

fn down() -> Workload<BTreeMap<String, Arc<Node>>> {
    Workload::Down(Outage {
        since: now(),
        last_success: None,
        why: "connection refused".to_owned(),
        grace: GracePeriods::default(),
    })
}

/// A pool at rest, whose provider has no objects for single machines.
fn running() -> Observed {
    let created = json!({"dataSecretName": "mp", "initialization": {"dataSecretCreated": true}});
    Observed {
        pool: Arc::new(from(pool())),
        cluster: Seen::Found(Arc::new(from(json!({
            "metadata": {"name": "c", "namespace": "ns", "uid": "uid-c"}, "spec": {},
        })))),
        bootstrap: Some(external("KubeadmConfig", json!({}), created)),
        infrastructure: infrastructure(&["x:///1", "x:///2"], 2),
        hosts: None,
        machines: Vec::new(),
        neighbours: BTreeSet::new(),
        nodes: nodes([node(1), node(2)]),
    }
}

fn changed(change: impl FnOnce(&mut Value)) -> Observed {
    let mut object = pool();
    change(&mut object);
    Observed {
        pool: Arc::new(from(object)),
        ..running()
    }
}

fn planned(seen: &Observed) -> Plan {
    plan(seen, &Moment::at(now()))
}

fn reported(seen: &Observed) -> MachinePoolStatus {
    let plan = planned(seen);
    status(seen, &plan, &Done::default(), &Moment::at(now()))
}

fn old_ready(status: &MachinePoolStatus) -> Option<i32> {
    status.deprecated.clone()?.v1beta1?.ready_replicas
}

#[test]
fn a_pool_at_rest_needs_nothing() {
    let seen = running();
    assert_eq!(planned(&seen), Plan::default());
    let status = reported(&seen);
    assert_eq!(status.phase.as_deref(), Some("Running"));
    assert_eq!(
        (
            status.ready_replicas,
            status.available_replicas,
            status.up_to_date_replicas
        ),
        (Some(2), Some(2), Some(2))
    );
    assert_eq!((status.versions.len(), old_ready(&status)), (1, Some(2)));
}

#[test]
fn what_cannot_be_read_leaves_everything_as_it_was() {
    let mut seen = running();
    seen.nodes = down();
    seen.infrastructure = Seen::Failed("no answer".to_owned());
    let plan = planned(&seen);
    assert_eq!(plan.actions, []);
    assert!(plan.blocked.is_some());
    let status = reported(&seen);
    assert_eq!((status.node_refs.len(), old_ready(&status)), (2, Some(2)));
    assert_eq!(status.phase.as_deref(), Some("Running"));
    let done = status.initialization.unwrap();
    assert_eq!(done.infrastructure_provisioned, Some(true));
}

#[test]
fn a_provider_that_reports_machines_without_their_ids_has_not_listed_them_yet() {
    let mut seen = running();
    seen.infrastructure = infrastructure(&[], 2);
    assert_eq!(planned(&seen).actions, []);
    // Without machines the empty list is meant.
    seen.infrastructure = infrastructure(&[], 0);
    let plan = planned(&seen);
    let taken = plan
        .actions
        .iter()
        .any(|action| matches!(action, Action::TakeOver(spec) if spec["providerIDList"] == json!([])));
    assert!(taken, "{plan:?}");
    let deleted = plan
        .actions
        .iter()
        .filter(|action| matches!(action, Action::DeleteNode { .. }));
    assert_eq!(deleted.count(), 2);
}

#[test]
fn a_list_that_nothing_confirms_deletes_no_node() {
    let mut seen = running();
    for (ids, status) in [
        (json!([]), json!({"ready": true})),
        (json!(["x:///1", null]), json!({"ready": true, "replicas": 1})),
    ] {
        seen.infrastructure = external("XMachinePool", json!({"providerIDList": ids}), status);
        assert_eq!(planned(&seen).actions, []);
    }
}

#[test]
fn a_node_of_another_owner_is_left_alone() {
    let mut other = node(1);
    let annotations = other.metadata.annotations.as_mut().unwrap();
    annotations.insert("cluster.x-k8s.io/owner-name".to_owned(), "other".to_owned());
    let mut seen = running();
    seen.nodes = nodes([other.clone(), node(2)]);
    // The other pool is gone.
    assert!(matches!(planned(&seen).actions[..], [Action::PatchNode { .. }]));
    seen.neighbours.insert("other".to_owned());
    assert_eq!(planned(&seen).actions, []);
    let annotations = other.metadata.annotations.as_mut().unwrap();
    annotations.insert("cluster.x-k8s.io/owner-kind".to_owned(), "MachineSet".to_owned());
    annotations.insert("cluster.x-k8s.io/machine".to_owned(), "m".to_owned());
    seen.nodes = nodes([other, node(2)]);
    assert_eq!(planned(&seen).actions, []);
}

#[test]
fn nodes_are_marked_only_while_the_provider_is_seen() {
    let mut new = node(1);
    new.metadata.annotations = None;
    let mut seen = running();
    seen.nodes = nodes([new, node(2)]);
    assert!(matches!(&planned(&seen).actions[..], [Action::PatchNode { name, .. }] if name == "n1"));
    seen.infrastructure = Seen::Failed("no answer".to_owned());
    assert_eq!(planned(&seen).actions, []);
}

#[test]
fn a_pool_that_was_restored_renews_what_names_it() {
    let mut seen = with_hosts(vec![machine("h1", "old")]);
    let plan = planned(&seen);
    let at = |wanted: fn(&Action) -> bool| plan.actions.iter().position(wanted).unwrap();
    let renewed = at(
        |action| matches!(action, Action::RenewMachineOwner(machine) if machine.metadata.name.as_deref() == Some("h1")),
    );
    assert!(renewed < at(|action| matches!(action, Action::ApplyMachine { is_new: false, .. })));
    assert_eq!(
        (plan.blocked.is_none(), reported(&seen).ready_replicas),
        (true, Some(1))
    );
    let mut object = seen.infrastructure.found().unwrap().value().clone();
    object["metadata"]["ownerReferences"][0]["uid"] = json!("old");
    seen.infrastructure = Seen::Found(Referenced::of(object));
    let actions = planned(&seen).actions;
    let both = [
        Action::RenewOwner(External::Infrastructure),
        Action::Own(External::Infrastructure),
    ];
    assert_eq!(actions[..2], both);
}

#[test]
fn so_many_machines_are_made_at_once() {
    let hosts = (0..60).map(|number| host(&format!("h{number:02}"), "x:///9")).collect();
    let mut seen = with_hosts(Vec::new());
    seen.hosts = Some(Seen::Found(hosts));
    assert_eq!(applied(&planned(&seen)).len(), 50);
}

#[test]
fn the_node_of_a_machine_that_is_gone_is_deleted_and_no_other() {
    let mut seen = running();
    seen.infrastructure = infrastructure(&["x:///2"], 1);
    let delete = |name: &str| Action::DeleteNode {
        name: name.to_owned(),
        uid: Some(format!("uid-{name}")),
        required: true,
    };
    assert!(planned(&seen).actions.contains(&delete("n1")));
    // While the deletion is refused, the status still names the Node.
    assert_eq!(reported(&seen).node_refs.len(), 2);
    let done = Done {
        deleted: BTreeSet::from(["n1".to_owned()]),
        ..Done::default()
    };
    let after = status(&seen, &planned(&seen), &done, &Moment::at(now()));
    assert_eq!(after.node_refs.len(), 1);
    // A Node of this name that was registered again is another one.
    let mut again = node(1);
    again.metadata.uid = Some("new".to_owned());
    seen.nodes = nodes([again, node(2)]);
    let is_delete = |action: &Action| matches!(action, Action::DeleteNode { .. });
    assert!(!planned(&seen).actions.iter().any(is_delete));
    seen.nodes = down();
    assert!(!planned(&seen).actions.iter().any(is_delete));
}

#[test]
fn phases_follow_the_nodes() {
    let scaled = |replicas: i32| changed(|pool| pool["spec"]["replicas"] = json!(replicas));
    assert_eq!(reported(&scaled(3)).phase.as_deref(), Some("ScalingUp"));
    assert_eq!(reported(&scaled(1)).phase.as_deref(), Some("ScalingDown"));
    let managed = |by: &str| {
        changed(|pool| {
            pool["spec"]["replicas"] = json!(3);
            pool["metadata"]["annotations"] = json!({"cluster.x-k8s.io/replicas-managed-by": by});
        })
    };
    assert_eq!(reported(&managed("")).phase.as_deref(), Some("Scaling"));
    assert_eq!(reported(&managed("false")).phase.as_deref(), Some("ScalingUp"));
    let mut seen = running();
    seen.infrastructure = external("XMachinePool", json!({}), json!({}));
    assert_eq!(reported(&seen).phase.as_deref(), Some("Provisioned"));
    seen.nodes = nodes([]);
    assert_eq!(reported(&seen).phase.as_deref(), Some("Provisioning"));
    seen.bootstrap = Some(external("KubeadmConfig", json!({}), json!({})));
    assert_eq!(reported(&seen).phase.as_deref(), Some("Pending"));
}

#[test]
fn a_node_is_available_after_the_time_that_the_template_sets() {
    let seen = changed(|pool| pool["spec"]["template"]["spec"]["minReadySeconds"] = json!(90));
    let moment = Moment::at(now());
    let plan = plan(&seen, &moment);
    let available = |moment: &Moment| {
        let status = status(&seen, &plan, &Done::default(), moment);
        status.deprecated.unwrap().v1beta1.unwrap().available_replicas
    };
    assert_eq!(available(&moment), None);
    let end = "2026-03-01T10:00:30Z".parse().unwrap();
    assert_eq!(moment.next_deadline(), Some(end));
    assert_eq!(available(&Moment::at(end)), Some(2));
}

fn host(name: &str, id: &str) -> Arc<Dynamic> {
    let value = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "XMachine",
        "metadata": {"name": name, "namespace": "ns", "uid": format!("uid-{name}")},
        "spec": {"providerID": id},
    });
    Arc::new(Dynamic::new(value).unwrap())
}

/// A Machine whose pool has this uid.
fn machine(name: &str, owner: &str) -> Arc<Machine> {
    Arc::new(from(json!({
        "metadata": {
            "name": name, "namespace": "ns", "uid": format!("uid-{name}"),
            "labels": {"cluster.x-k8s.io/pool-name": "mp", "cluster.x-k8s.io/cluster-name": "c"},
            "ownerReferences": [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachinePool", "name": "mp", "uid": owner, "controller": true}],
        },
        "spec": {
            "clusterName": "c", "version": "v1.35.0", "bootstrap": {"dataSecretName": ""},
            "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "XMachine", "name": name},
        },
        "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-03-01T09:00:00Z"}]},
    })))
}

fn with_hosts(machines: Vec<Arc<Machine>>) -> Observed {
    Observed {
        hosts: Some(Seen::Found(vec![host("h1", "x:///1"), host("h2", "x:///2")])),
        machines,
        ..running()
    }
}

/// The Machines that a plan applies.
fn applied(plan: &Plan) -> Vec<(Value, bool)> {
    let machines = plan.actions.iter().filter_map(|action| match action {
        Action::ApplyMachine { machine, is_new } => Some((serde_json::to_value(machine).unwrap(), *is_new)),
        _ => None,
    });
    machines.collect()
}

#[test]
fn each_host_has_a_machine() {
    let mut seen = with_hosts(vec![machine("h1", "uid-mp")]);
    let plan = planned(&seen);
    let machines = applied(&plan);
    assert_eq!(
        machines.iter().map(|(_, is_new)| *is_new).collect::<Vec<_>>(),
        [false, true]
    );
    let new = &machines[1].0;
    assert_eq!(new["metadata"]["name"], "h2");
    assert_eq!(
        new["metadata"]["labels"],
        json!({"a": "b", "cluster.x-k8s.io/pool-name": "mp", "cluster.x-k8s.io/cluster-name": "c"})
    );
    assert_eq!(new["metadata"]["annotations"], json!({"c": "d"}));
    assert_eq!(new["metadata"]["ownerReferences"][0]["uid"], "uid-mp");
    assert_eq!(new["spec"]["bootstrap"]["dataSecretName"], "");
    assert_eq!(new["spec"]["version"], "v1.36.0", "that of the Node");
    assert_eq!(new["spec"]["infrastructureRef"]["kind"], "XMachine");
    // Nodes with a Machine are marked by its controller.
    assert!(
        !plan
            .actions
            .iter()
            .any(|action| matches!(action, Action::PatchNode { .. }))
    );
    // While no Node is seen, the version stays.
    seen.nodes = down();
    assert_eq!(applied(&planned(&seen))[0].0["spec"]["version"], "v1.35.0");
    let status = reported(&seen);
    assert_eq!((status.ready_replicas, status.available_replicas), (Some(1), Some(0)));
}

#[test]
fn a_machine_of_another_owner_is_left_alone() {
    let mut other = (*machine("h1", "other")).clone();
    other.metadata.owner_references.as_mut().unwrap()[0].kind = "MachineSet".to_owned();
    let seen = with_hosts(vec![Arc::new(other)]);
    let plan = planned(&seen);
    assert_eq!(applied(&plan).len(), 1, "h2 gets its own");
    assert!(plan.blocked.unwrap().message.contains("h1"));
    let status = reported(&seen);
    assert_eq!(status.ready_replicas, Some(0));
    let said = windlass_conditions::get(&status.conditions, "InfrastructureReady").unwrap();
    assert!(said.message.contains("h1"), "{said:?}");
}

#[test]
fn a_host_that_goes_gets_no_machine() {
    let mut leaving = host("h1", "x:///1").value().clone();
    leaving["metadata"]["deletionTimestamp"] = json!("2026-03-01T09:59:00Z");
    let mut seen = with_hosts(Vec::new());
    seen.hosts = Some(Seen::Found(vec![Arc::new(Dynamic::new(leaving).unwrap())]));
    assert_eq!(applied(&planned(&seen)), []);
}

fn deleting() -> Observed {
    changed(|pool| pool["metadata"]["deletionTimestamp"] = json!("2026-03-01T09:59:55Z"))
}

#[test]
fn a_deletion_takes_the_infrastructure_first_and_the_nodes_last() {
    let mut seen = deleting();
    let plan = planned(&seen);
    assert_eq!(
        plan.actions,
        [
            Action::Delete(External::Bootstrap),
            Action::Delete(External::Infrastructure)
        ]
    );
    assert_eq!(plan.deleting.unwrap().reason, "WaitingForBootstrapDeletion");
    seen.bootstrap = Some(Seen::NotFound);
    seen.infrastructure = Seen::Failed("no answer".to_owned());
    let plan = planned(&seen);
    assert_eq!(
        (plan.actions, plan.blocked.is_some()),
        (Vec::new(), true),
        "unreadable is not gone"
    );
    seen.infrastructure = Seen::NotFound;
    let plan = planned(&seen);
    assert_eq!(plan.actions.len(), 3);
    assert!(matches!(&plan.actions[0], Action::DeleteNode { name, required: true, .. } if name == "n1"));
    assert_eq!(plan.actions[2], Action::RemoveFinalizer);
}

#[test]
fn a_deletion_waits_for_a_workload_cluster_as_long_as_the_template_allows() {
    let mut seen = deleting();
    seen.bootstrap = Some(Seen::NotFound);
    seen.infrastructure = Seen::NotFound;
    seen.nodes = down();
    let early = Moment::at(now());
    let waiting = plan(&seen, &early);
    assert_eq!(waiting.actions, []);
    let end = "2026-03-01T10:00:05Z".parse().unwrap();
    assert_eq!(early.next_deadline(), Some(end));
    assert_eq!(plan(&seen, &Moment::at(end)).actions, [Action::RemoveFinalizer]);
    // A process that has just started has not tried yet.
    seen.nodes = Workload::NotTried("no attempt".to_owned());
    let waiting = plan(&seen, &Moment::at(end));
    assert_eq!((waiting.actions, waiting.requeue.is_some()), (Vec::new(), true));
    seen.nodes = down();
    // 0 is no limit.
    let object = &mut (*seen.pool).clone();
    object
        .spec
        .template
        .spec
        .deletion
        .as_mut()
        .unwrap()
        .node_deletion_timeout_seconds = Some(0);
    seen.pool = Arc::new(object.clone());
    assert_eq!(plan(&seen, &Moment::at(end)).actions, []);
    // Nothing is waited for in a cluster that is gone.
    seen.cluster = Seen::NotFound;
    assert_eq!(plan(&seen, &Moment::at(end)).actions, [Action::RemoveFinalizer]);
}

#[test]
fn a_pool_that_was_moved_to_another_cluster_changes_nothing() {
    let seen = changed(|pool| pool["spec"]["clusterName"] = json!("d"));
    let plan = planned(&seen);
    assert_eq!(plan.actions, []);
    assert!(plan.blocked.unwrap().message.contains("set it back to c"));
    let said = |seen: &Observed, type_: &str| {
        let status = reported(seen);
        windlass_conditions::get(&status.conditions, type_)
            .unwrap()
            .message
            .clone()
    };
    assert!(said(&seen, "InfrastructureReady").contains("set it back to c"));
    let leaving = changed(|pool| {
        pool["spec"]["clusterName"] = json!("d");
        pool["metadata"]["deletionTimestamp"] = json!("2026-03-01T09:59:55Z");
    });
    assert!(said(&leaving, "Deleting").contains("set it back to c"));
}

#[test]
fn infrastructure_that_vanishes_is_reported_as_failure() {
    let mut seen = running();
    seen.infrastructure = Seen::NotFound;
    let status = reported(&seen);
    let old = status.deprecated.unwrap().v1beta1.unwrap();
    assert_eq!(old.failure_reason.as_deref(), Some("InvalidConfiguration"));
    let ready = old
        .conditions
        .iter()
        .find(|condition| condition.type_ == "InfrastructureReady")
        .unwrap();
    assert_eq!(
        (ready.reason.as_deref(), ready.message.as_deref()),
        (
            Some("IncorrectExternalRef"),
            Some("could not find infra reference of kind XMachinePool with name mp")
        )
    );
    let message = windlass_conditions::get(&status.conditions, "InfrastructureReady").unwrap();
    assert_eq!(
        message.message,
        "XMachinePool has been deleted while the MachinePool still exists"
    );
}

#[test]
fn a_new_pool_takes_over_what_its_objects_report() {
    let seen = changed(|pool| {
        pool["spec"]["template"]["spec"]["bootstrap"]
            .as_object_mut()
            .unwrap()
            .remove("dataSecretName");
        pool["spec"]["providerIDList"] = json!([]);
        pool["status"] = json!({"observedGeneration": 1});
        pool["metadata"]["labels"] = json!({});
        pool["metadata"]["ownerReferences"] = json!([]);
    });
    let plan = planned(&seen);
    assert!(
        matches!(&plan.actions[0], Action::Join(Some(owner)) if owner.uid == "uid-c" && owner.controller.is_none())
    );
    let taken = json!({
        "template": {"spec": {"bootstrap": {"dataSecretName": "mp"}}},
        "providerIDList": ["x:///1", "x:///2"],
    });
    assert_eq!(plan.actions[1..], [Action::TakeOver(taken)]);
}
