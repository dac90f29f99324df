//! Cases for the plan and the status of pools of simulated machines.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::apply::Done;
use super::observe::{Host, Observed};
use super::plan::{Action, Plan, plan};
use super::status::status;

fn from<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn host(name: &str, version: &str, provisioned: bool) -> Host {
    let object = json!({
        "metadata": {
            "name": name, "namespace": "ns", "uid": format!("uid-{name}"), "creationTimestamp": "2026-03-01T09:00:00Z",
            "annotations": {"devmachinepool.infrastructure.cluster.x-k8s.io/version": version},
            "labels": {"cluster.x-k8s.io/cluster-name": "c", "cluster.x-k8s.io/pool-name": "mp"},
            "ownerReferences": [{"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DevMachinePool", "name": "dmp", "uid": "uid-dmp"}],
        },
        "spec": {"backend": {"inMemory": {}}, "providerID": format!("in-memory://{name}")},
        "status": {"initialization": {"provisioned": provisioned}},
    });
    let machine = json!({
        "metadata": {"name": name, "namespace": "ns", "uid": format!("uid-m-{name}")},
        "spec": {"clusterName": "c", "bootstrap": {}, "infrastructureRef": {"apiGroup": "i", "kind": "DevMachine", "name": name}},
    });
    Host {
        object: Arc::new(from(object)),
        machine: Some(Arc::new(from(machine))),
    }
}

fn seen(replicas: i32, hosts: Vec<Host>) -> Observed {
    let ids: Vec<String> = hosts
        .iter()
        .filter_map(|host| host.object.spec.clone()?.provider_id)
        .collect();
    let pool = json!({
        "metadata": {"name": "mp", "namespace": "ns", "uid": "uid-mp"},
        "spec": {"clusterName": "c", "replicas": replicas, "template": {"spec": {
            "clusterName": "c", "version": "v1.36.0", "bootstrap": {"dataSecretName": "mp"},
            "infrastructureRef": {"apiGroup": "i", "kind": "DevMachinePool", "name": "dmp"},
        }}},
    });
    Observed {
        object: Arc::new(from(json!({
            "metadata": {"name": "dmp", "namespace": "ns", "uid": "uid-dmp", "generation": 1},
            "spec": {"backend": {"inMemory": {}}, "providerID": "dev:////c-dmp-dmp", "providerIDList": ids},
        }))),
        pool: Some(Arc::new(from(pool))),
        hosts,
        dangling: Vec::new(),
        suffixes: ["aaaaa", "bbbbb", "ccccc", "ddddd"].map(str::to_owned).to_vec(),
    }
}

/// The names of what a plan makes and deletes.
fn changes(plan: &Plan) -> Vec<String> {
    let named = plan.actions.iter().filter_map(|action| match action {
        Action::Create(object) => Some(format!("+{}", object["metadata"]["name"].as_str().unwrap())),
        Action::DeleteMachine(machine) => Some(format!("-{}", machine.metadata.name.clone().unwrap())),
        Action::DeleteHost(host) => Some(format!("-host {}", host.metadata.name.clone().unwrap())),
        _ => None,
    });
    named.collect()
}

fn planned(seen: &Observed) -> Vec<String> {
    changes(&plan(seen))
}

const NEW: &str = "v1.36.0";
const OLD: &str = "v1.35.0";

#[test]
fn a_pool_has_as_many_machines_as_it_wants() {
    let plan = plan(&seen(2, Vec::new()));
    assert_eq!(changes(&plan), ["+mp-aaaaa", "+mp-bbbbb"]);
    let Action::Create(first) = &plan.actions[0] else {
        panic!("{plan:?}")
    };
    assert_eq!(
        first["metadata"]["annotations"],
        json!({"devmachinepool.infrastructure.cluster.x-k8s.io/version": NEW})
    );
    assert_eq!(first["metadata"]["ownerReferences"][0]["uid"], "uid-dmp");
    assert_eq!(
        planned(&seen(2, vec![host("a", NEW, true), host("b", NEW, false)])),
        Vec::<String>::new()
    );
}

#[test]
fn a_smaller_pool_gives_up_marked_machines_and_those_that_are_not_provisioned_first() {
    let mut marked = host("c", NEW, true);
    let machine = Arc::make_mut(marked.machine.as_mut().unwrap());
    machine.metadata.annotations = Some([("cluster.x-k8s.io/delete-machine".to_owned(), String::new())].into());
    let hosts = vec![host("a", NEW, true), host("b", NEW, false), marked];
    assert_eq!(planned(&seen(2, hosts.clone())), ["-c"]);
    assert_eq!(planned(&seen(1, hosts)), ["-c", "-b"]);
}

#[test]
fn machines_of_another_version_are_replaced_by_provisioned_ones() {
    let old = || vec![host("a", OLD, true), host("b", OLD, true)];
    assert_eq!(planned(&seen(2, old())), ["+mp-aaaaa", "+mp-bbbbb"]);
    let with = |new: &[bool]| {
        let new = new
            .iter()
            .enumerate()
            .map(|(at, provisioned)| host(&format!("n{at}"), NEW, *provisioned));
        planned(&seen(2, old().into_iter().chain(new).collect()))
    };
    assert_eq!(with(&[false, false]), Vec::<String>::new());
    assert_eq!(with(&[true, false]), ["-a"]);
    assert_eq!(with(&[true, true]), ["-a", "-b"]);
}

#[test]
fn a_machine_that_goes_already_makes_no_room_for_another() {
    let mut going = host("a", OLD, true);
    let time = from(json!("2026-03-01T09:59:00Z"));
    Arc::make_mut(going.machine.as_mut().unwrap())
        .metadata
        .deletion_timestamp = Some(time);
    let hosts = vec![
        going,
        host("b", OLD, true),
        host("n0", NEW, true),
        host("n1", NEW, false),
    ];
    assert_eq!(planned(&seen(2, hosts)), Vec::<String>::new());
}

#[test]
fn a_pool_waits_for_its_bootstrap_data() {
    let mut seen = seen(1, Vec::new());
    let pool = Arc::make_mut(seen.pool.as_mut().unwrap());
    pool.spec.template.spec.bootstrap.data_secret_name = None;
    assert_eq!(planned(&seen), Vec::<String>::new());
    let status = status(&seen, &plan(&seen), &Done::default(), Timestamp::UNIX_EPOCH);
    assert_eq!(status.ready, Some(false));
    assert_eq!(
        status.conditions[0].message,
        "* ReplicasReady: Waiting for the bootstrap data of the MachinePool"
    );
}

#[test]
fn a_deletion_goes_by_machines_and_takes_those_along_that_have_none() {
    let mut alone = host("b", NEW, false);
    alone.machine = None;
    let mut seen = seen(2, vec![host("a", NEW, true), alone]);
    // Before, a machine without a Machine is about to get one.
    Arc::make_mut(seen.pool.as_mut().unwrap()).spec.replicas = Some(0);
    assert_eq!(planned(&seen), ["-a"]);
    let time = from(json!("2026-03-01T09:59:00Z"));
    Arc::make_mut(&mut seen.object).metadata.deletion_timestamp = Some(time);
    seen.pool = None;
    assert_eq!(planned(&seen), ["-a", "-host b"]);
    seen.hosts.clear();
    assert_eq!(plan(&seen).actions, [Action::RemoveFinalizer]);
}

#[test]
fn a_pool_that_was_complete_stays_ready() {
    let whole = seen(1, vec![host("a", NEW, true)]);
    let report = |seen: &Observed| status(seen, &plan(seen), &Done::default(), Timestamp::UNIX_EPOCH);
    let first = report(&whole);
    assert_eq!((first.ready, first.replicas), (Some(true), Some(1)));
    let mut less = seen(2, vec![host("a", NEW, true)]);
    assert_eq!(report(&less).ready, Some(false));
    Arc::make_mut(&mut less.object).status = Some(first);
    let after = report(&less);
    assert_eq!(after.ready, Some(true));
    let said = after
        .conditions
        .iter()
        .find(|condition| condition.type_ == "ReplicasReady")
        .unwrap();
    assert_eq!(said.status, "False");
}

#[test]
fn labels_and_owners_that_are_lost_come_back() {
    let mut lost = host("a", NEW, true);
    Arc::make_mut(&mut lost.object).metadata.owner_references = None;
    let plan = plan(&seen(1, vec![lost]));
    let [Action::Adopt(object)] = plan.actions.as_slice() else {
        panic!("{plan:?}")
    };
    assert_eq!(
        (
            &object["metadata"]["uid"],
            &object["metadata"]["ownerReferences"][0]["name"]
        ),
        (&json!("uid-a"), &json!("dmp"))
    );
}

#[test]
fn a_machine_whose_host_is_gone_goes() {
    let mut seen = seen(1, vec![host("a", NEW, true)]);
    seen.dangling = vec![host("b", NEW, true).machine.unwrap()];
    assert_eq!(planned(&seen), ["-b"]);
}
