//! What is said of a control plane: the words that Cluster API v1.14 leaves.

use serde_json::Value;
use windlass_controller_runtime::Moment;
use windlass_controlplane_kubeadm::plan::Action;
use windlass_controlplane_kubeadm::status::{Done, status};

use crate::world::World;

fn condition<'s>(status: &'s Value, kind: &str) -> (&'s str, &'s str, &'s str) {
    let all = status["conditions"].as_array().unwrap();
    let found = all
        .iter()
        .find(|c| c["type"] == kind)
        .unwrap_or_else(|| panic!("no {kind}"));
    let text = |key: &str| found[key].as_str().unwrap();
    (text("status"), text("reason"), text("message"))
}

fn now(world: &World) -> Value {
    let facts = world.facts();
    status(&facts, &world.plan(), &Done::default(), &Moment::at(world.now))
}

#[test]
fn a_control_plane_stays_available_while_a_new_process_has_no_connection_yet() {
    let mut world = World::settled(3);
    (world.reachable, world.outage) = (false, None);
    assert_eq!(condition(&now(&world), "Available"), ("True", "Available", ""));
    world.now += jiff::SignedDuration::from_secs(600);
    world.outage = Some((world.now, None));
    assert_eq!(condition(&now(&world), "Available"), ("True", "Available", ""));
    world.now += jiff::SignedDuration::from_secs(600);
    let unknown = ("Unknown", "InspectionFailed", "Failed to get etcd members");
    assert_eq!(condition(&now(&world), "Available"), unknown);
}

#[test]
fn a_settled_control_plane_says_what_the_original_says() {
    let world = World::settled(3);
    let status = now(&world);
    let expect = [
        ("Available", "True", "Available"),
        ("CertificatesAvailable", "True", "Available"),
        ("Initialized", "True", "Initialized"),
        ("EtcdClusterHealthy", "True", "Healthy"),
        ("ControlPlaneComponentsHealthy", "True", "Healthy"),
        ("RollingOut", "False", "NotRollingOut"),
        ("Remediating", "False", "NotRemediating"),
        ("ScalingDown", "False", "NotScalingDown"),
        ("ScalingUp", "False", "NotScalingUp"),
        ("MachinesReady", "True", "Ready"),
        ("MachinesUpToDate", "True", "UpToDate"),
        ("Deleting", "False", "NotDeleting"),
    ];
    for (kind, holds, reason) in expect {
        assert_eq!(condition(&status, kind), (holds, reason, ""), "{kind}");
    }
    assert_eq!(status["conditions"].as_array().unwrap().len(), expect.len());
    let numbers = ["replicas", "readyReplicas", "availableReplicas", "upToDateReplicas"];
    assert!(numbers.iter().all(|n| status[*n] == 3), "{status}");
    assert_eq!(status["version"], "v1.35.0");
    assert_eq!(
        status["versions"],
        serde_json::json!([{ "version": "v1.35.0", "replicas": 3 }])
    );
    assert_eq!(status["initialization"]["controlPlaneInitialized"], true);
    assert_eq!(
        status["selector"],
        "cluster.x-k8s.io/cluster-name=demo,cluster.x-k8s.io/control-plane"
    );
    let legacy = &status["deprecated"]["v1beta1"];
    assert_eq!(legacy["readyReplicas"], 3);
    assert_eq!(legacy["unavailableReplicas"], 0);
    assert_eq!(legacy["updatedReplicas"], 3);
    let kinds: Vec<_> = legacy["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "Ready",
            "Available",
            "CertificatesAvailable",
            "ControlPlaneComponentsHealthy",
            "EtcdClusterHealthy",
            "MachinesCreated",
            "Resized"
        ]
    );
}

#[test]
fn the_beginning_is_reported_as_waiting() {
    let mut world = World::new(3);
    world.cluster.infrastructure_provisioned = false;
    let status = now(&world);
    let waits = "Waiting for Cluster status.initialization.infrastructureProvisioned to be true";
    assert_eq!(
        condition(&status, "EtcdClusterHealthy"),
        ("Unknown", "InspectionFailed", waits)
    );
    assert_eq!(
        condition(&status, "Available"),
        ("False", "NotAvailable", "Control plane not yet initialized")
    );
    assert_eq!(
        condition(&status, "ScalingUp"),
        ("True", "ScalingUp", "Scaling up from 0 to 3 replicas")
    );
    assert_eq!(condition(&status, "MachinesReady"), ("True", "NoReplicas", ""));
}

// EX-047, EX-055: infrastructure without an endpoint leaves the control plane waiting for both parts of it; nothing is made.
#[test]
fn a_cluster_without_an_endpoint_is_waited_for() {
    let mut world = World::new(3);
    world.cluster.endpoint = None;
    let plan = world.plan();
    assert!(plan.blocked.is_none());
    assert!(plan.requeue.is_none(), "an event ends the wait");
    let status = now(&world);
    let waits = "Waiting for Cluster spec.controlPlaneEndpoint.host and spec.controlPlaneEndpoint.port to be set";
    for type_ in ["EtcdClusterHealthy", "ControlPlaneComponentsHealthy"] {
        assert_eq!(condition(&status, type_), ("Unknown", "InspectionFailed", waits));
    }
    assert_eq!(
        condition(&status, "ScalingUp"),
        ("True", "ScalingUp", "Scaling up from 0 to 3 replicas")
    );
}

#[test]
fn a_machine_on_its_way_blocks_scaling_up() {
    let mut world = World::new(3);
    world.reconcile(usize::MAX);
    let status = now(&world);
    let message = "Scaling up from 1 to 3 replicas is blocked because:\n\
         * waiting for control plane components to become healthy\n\
         * waiting for etcd cluster to become healthy";
    assert_eq!(condition(&status, "ScalingUp"), ("True", "ScalingUp", message));
    let waits = "Waiting for Cluster control plane to be initialized";
    assert_eq!(
        condition(&status, "EtcdClusterHealthy"),
        ("Unknown", "InspectionFailed", waits)
    );
    let name = world.machines.keys().next().unwrap();
    assert_eq!(
        condition(&status, "MachinesReady"),
        (
            "Unknown",
            "ReadyUnknown",
            format!("* Machine {name}: Condition Ready not yet reported").as_str()
        )
    );
    let legacy = &status["deprecated"]["v1beta1"]["conditions"];
    assert_eq!(legacy[0]["type"], "Ready");
    assert_eq!(
        legacy[0]["message"],
        "Scaling up control plane to 3 replicas (actual 1)"
    );
    assert_eq!(legacy[0]["severity"], "Warning");
}

#[test]
fn an_upgrade_tells_what_differs() {
    let mut world = World::settled(3);
    world.control_plane.version = "v1.36.0".into();
    let status = now(&world);
    let (holds, reason, message) = condition(&status, "RollingOut");
    assert_eq!((holds, reason), ("True", "RollingOut"));
    // The gate that newer kubeadm versions do not know is a change of the configuration too.
    assert_eq!(
        message,
        "Rolling out 3 not up-to-date replicas\n* Version v1.35.0, v1.36.0 required\n* KubeadmConfig is not up-to-date"
    );
    let (holds, reason, message) = condition(&status, "MachinesUpToDate");
    assert_eq!((holds, reason), ("False", "NotUpToDate"));
    let names: Vec<&str> = world.machines.keys().map(String::as_str).collect();
    assert_eq!(
        message,
        format!(
            "* Machines {}:\n  * Version v1.35.0, v1.36.0 required\n  * KubeadmConfig is not up-to-date",
            names.join(", ")
        )
    );
    assert_eq!(status["upToDateReplicas"], 0);
    let legacy = status["deprecated"]["v1beta1"]["conditions"].as_array().unwrap();
    let spec = legacy.iter().find(|c| c["type"] == "MachinesSpecUpToDate").unwrap();
    assert_eq!(
        spec["message"],
        "Rolling 3 replicas with outdated spec (0 replicas up to date)"
    );
}

#[test]
fn a_deleting_machine_is_reported_and_the_control_plane_stays_available() {
    let mut world = World::settled(3);
    let name = world.machines.keys().next().unwrap().clone();
    world.machines.get_mut(&name).unwrap().deleted = Some(world.now);
    let status = now(&world);
    assert_eq!(
        condition(&status, "EtcdClusterHealthy"),
        (
            "False",
            "NotHealthy",
            format!("* Machine {name}:\n  * EtcdMemberHealthy: Machine is deleting").as_str()
        )
    );
    assert_eq!(
        condition(&status, "ControlPlaneComponentsHealthy"),
        (
            "False",
            "NotHealthy",
            format!("* Machine {name}:\n  * Control plane components: Machine is deleting").as_str()
        )
    );
    assert_eq!(condition(&status, "Available"), ("True", "Available", ""));
}

#[test]
fn a_node_without_pods_is_reported_once_for_all_components() {
    let mut world = World::new(1);
    world.reconcile(usize::MAX);
    let name = world.machines.keys().next().unwrap().clone();
    for _ in 0..3 {
        world.advance(&name);
    }
    world.reconcile(usize::MAX);
    world.control_plane.replicas = 3;
    world.reconcile(usize::MAX);
    let second = world.machines.keys().find(|n| **n != name).unwrap().clone();
    for _ in 0..2 {
        world.advance(&second);
    }
    world.members.retain(|m| m.name != second);
    let status = now(&world);
    assert_eq!(
        condition(&status, "ControlPlaneComponentsHealthy").2,
        format!("* Machine {second}:\n  * Control plane components: Pod does not exist")
    );
    assert_eq!(
        condition(&status, "EtcdClusterHealthy").2,
        format!("* Machine {second}:\n  * EtcdMemberHealthy: Etcd doesn't have an etcd member for Node {second}")
    );
    let legacy = status["deprecated"]["v1beta1"]["conditions"].as_array().unwrap();
    let etcd = legacy.iter().find(|c| c["type"] == "EtcdClusterHealthy").unwrap();
    assert_eq!(
        etcd["message"],
        format!("Following Machines are reporting etcd member errors: {second}")
    );
    assert_eq!(etcd["severity"], "Error");
}

#[test]
fn a_lost_connection_keeps_what_was_known_for_a_while() {
    let mut world = World::settled(3);
    world.reachable = false;
    let status = now(&world);
    assert_eq!(condition(&status, "EtcdClusterHealthy"), ("True", "Healthy", ""));
    world.now += jiff::SignedDuration::from_secs(301);
    let status = now(&world);
    let (holds, reason, _) = condition(&status, "EtcdClusterHealthy");
    assert_eq!((holds, reason), ("Unknown", "ConnectionDown"));
}

#[test]
fn deletion_tells_what_it_waits_for() {
    let mut world = World::settled(3);
    world.control_plane.deleting = true;
    world.workers = vec!["w1".into(), "w2".into()];
    let status_waiting = now(&world);
    assert_eq!(
        condition(&status_waiting, "Deleting"),
        (
            "True",
            "WaitingForWorkersDeletion",
            "KubeadmControlPlane deletion blocked because following objects still exist:\n* Machines: w1, w2"
        )
    );
    world.pools = vec!["mp".into()];
    let status_waiting = now(&world);
    let (_, _, message) = condition(&status_waiting, "Deleting");
    assert!(
        message.ends_with("\n* MachinePools: mp\n* Machines: w1, w2"),
        "{message}"
    );
    world.workers.clear();
    let status_waiting = now(&world);
    let (_, reason, message) = condition(&status_waiting, "Deleting");
    assert_eq!(reason, "WaitingForWorkersDeletion");
    assert!(message.ends_with("\n* MachinePools: mp"), "{message}");
    world.pools.clear();
    assert_eq!(
        condition(&now(&world), "Deleting"),
        ("True", "WaitingForMachineDeletion", "Deleting 3 Machines")
    );
}

#[test]
fn a_new_machine_is_complete_from_its_first_moment() {
    let mut world = World::new(1);
    world.certificates = true;
    world.write_kubeconfig("https://127.0.0.1:6443");
    let planned = world.plan();
    let [Action::CreateMachine(new)] = planned.actions.as_slice() else {
        panic!("{:?}", planned.actions);
    };
    let machine = new.machine.as_ref().unwrap();
    let gates: Vec<_> = machine["spec"]["readinessGates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|g| g["conditionType"].as_str().unwrap())
        .collect();
    assert_eq!(
        gates,
        [
            "NodeKubeadmLabelsAndTaintsSet",
            "APIServerPodHealthy",
            "ControllerManagerPodHealthy",
            "SchedulerPodHealthy",
            "EtcdPodHealthy",
            "EtcdMemberHealthy"
        ]
    );
    let labels = &machine["metadata"]["labels"];
    assert_eq!(labels["cluster.x-k8s.io/control-plane"], "");
    assert_eq!(labels["cluster.x-k8s.io/control-plane-name"], "cp");
    assert_eq!(labels["cluster.x-k8s.io/cluster-name"], "demo");
    assert_eq!(machine["metadata"]["ownerReferences"][0]["controller"], true);
    assert_eq!(machine["metadata"]["finalizers"][0], "machine.cluster.x-k8s.io");
    assert_eq!(machine["spec"].get("deletion"), None, "the default is set by admission");
    assert_eq!(machine["spec"]["infrastructureRef"]["kind"], "DevMachine");
    let infra = new.infra.as_ref().unwrap();
    let annotations = &infra["metadata"]["annotations"];
    assert_eq!(annotations["cluster.x-k8s.io/cloned-from-name"], "tmpl");
    assert_eq!(
        annotations["cluster.x-k8s.io/cloned-from-groupkind"],
        "DevMachineTemplate.infrastructure.cluster.x-k8s.io"
    );
    let config = &new.config.as_ref().unwrap()["spec"];
    assert_eq!(
        config["clusterConfiguration"]["featureGates"]["ControlPlaneKubeletLocalMode"],
        true
    );
    assert!(config["joinConfiguration"].is_null());
}
