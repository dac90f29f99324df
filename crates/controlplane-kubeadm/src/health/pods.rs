//! Findings about Nodes and static pods.

use std::sync::Arc;

use serde_json::Value;
use windlass_conditions::Status;

use super::{Reasons, View, node_of, sum_up, waits_for};
use crate::facts::{CpMachine, Facts, NodeFacts, PodFacts, Reached};
use crate::finding::Finding;
use crate::names::{NODE_ROLE, control_plane, machine};
use crate::up_to_date::UpToDate;

/// Conditions about pods, and the component each pod runs.
const PODS: [(&str, &str); 4] = [
    (machine::API_SERVER, "kube-apiserver"),
    (machine::CONTROLLER_MANAGER, "kube-controller-manager"),
    (machine::SCHEDULER, "kube-scheduler"),
    (machine::ETCD_POD, "etcd"),
];

fn pods(managed_etcd: bool) -> &'static [(&'static str, &'static str)] {
    if managed_etcd { &PODS } else { &PODS[..3] }
}

/// The findings about every Machine, and what is wrong beyond Machines.
pub(super) fn findings(facts: &Facts, reached: &Reached) -> (Vec<View>, Vec<String>) {
    let managed = facts.control_plane.managed_etcd;
    let views = facts.machines.iter().map(|machine| View {
        facts: Arc::clone(machine),
        findings: of_machine(reached, machine, pods(managed)),
        up_to_date: UpToDate::default(),
    });
    (views.collect(), orphans(facts, reached))
}

/// Nodes that no Machine stands behind, once no Machine waits for its Node.
fn orphans(facts: &Facts, reached: &Reached) -> Vec<String> {
    let provisioning = facts.machines.iter().any(|m| m.node.is_none() && !m.deleting());
    let (Ok(nodes), false) = (&reached.nodes, provisioning) else {
        return Vec::new();
    };
    nodes
        .iter()
        .filter(|n| n.role_label)
        .filter(|n| {
            let name = Some(n.name.as_str());
            !facts.machines.iter().any(|m| m.node.as_deref() == name)
        })
        .map(|n| format!("Control plane Node {} does not have a corresponding Machine", n.name))
        .collect()
}

fn of_machine(reached: &Reached, machine: &CpMachine, pods: &[(&'static str, &'static str)]) -> Vec<Finding> {
    let all = |node: Finding, pod: &dyn Fn(&'static str) -> Finding| -> Vec<Finding> {
        let mut findings = vec![node];
        findings.extend(pods.iter().map(|(kind, _)| pod(kind)));
        findings
    };
    let labels = machine::NODE_LABELS;
    let nodes = match &reached.nodes {
        Ok(nodes) => nodes,
        Err(error) => {
            let message = format!("Failed to get the Node hosting the Pod: {error}");
            return all(
                Finding::unknown(labels, "InspectionFailed", "Failed to get the Node"),
                &|kind| Finding::unknown(kind, "InspectionFailed", message.clone()),
            );
        }
    };
    let node = node_of(nodes, machine);
    if machine.deleting() {
        let on_node = match node {
            Some(node) => of_node(machine, node),
            None => Finding::no(labels, "Deleting", "Machine is deleting"),
        };
        return all(on_node, &|kind| Finding::no(kind, "Deleting", "Machine is deleting"));
    }
    let unseen = match (&machine.node, node) {
        (None, _) => waits_for(machine),
        (Some(name), None) => format!("Node {name} does not exist"),
        (Some(name), Some(node)) if node.unreachable => format!("Node {name} is unreachable"),
        (Some(_), Some(node)) => {
            let stale = node.ready.as_deref() == Some("Unknown");
            let mut findings = vec![of_node(machine, node)];
            findings.extend(pods.iter().map(|(kind, component)| {
                if stale {
                    let message = "Node Ready condition is Unknown, Pod data might be stale";
                    return Finding::unknown(kind, "InspectionFailed", message);
                }
                match &reached.pods {
                    Ok(pods) => of_pod(kind, pods.get(&format!("{component}-{}", node.name))),
                    Err(_) => Finding::unknown(kind, "InspectionFailed", "Please check controller logs for errors"),
                }
            }));
            return findings;
        }
    };
    all(Finding::unknown(labels, "InspectionFailed", unseen.clone()), &|kind| {
        Finding::unknown(kind, "InspectionFailed", unseen.clone())
    })
}

fn of_node(machine: &CpMachine, node: &NodeFacts) -> Finding {
    let label = (!node.role_label).then(|| format!("the {NODE_ROLE} label"));
    let taint = (!node.role_taint && wants_taint(machine)).then(|| format!("the {NODE_ROLE}:NoSchedule taint"));
    let missing: Vec<String> = [label, taint].into_iter().flatten().collect();
    if missing.is_empty() {
        return Finding::yes(machine::NODE_LABELS, "Set");
    }
    let message = format!("Node {} does not have {}", node.name, missing.join(" and "));
    Finding::no(machine::NODE_LABELS, "NotSet", message)
}

/// The Machine asks for the taint, or kubeadm sets it: it does unless the node registration has a list of taints of its own without it.
/// What kubeadm was given is not known without the KubeadmConfig, and then nothing is missing.
fn wants_taint(machine: &CpMachine) -> bool {
    let has_taint = |taints: &Value| {
        let mut taints = taints.as_array().into_iter().flatten();
        taints.any(|t| t["key"] == NODE_ROLE && t["effect"] == "NoSchedule")
    };
    if has_taint(&machine.taints) {
        return true;
    }
    let Some(config) = machine.config.found() else {
        return false;
    };
    let spec = &config["spec"];
    let section = if spec["joinConfiguration"]["controlPlane"].is_object() {
        "joinConfiguration"
    } else {
        "initConfiguration"
    };
    let taints = &spec[section]["nodeRegistration"]["taints"];
    taints.is_null() || has_taint(taints)
}

fn of_pod(kind: &'static str, pod: Option<&PodFacts>) -> Finding {
    let Some(pod) = pod else {
        return Finding::no(kind, "DoesNotExist", "Pod does not exist");
    };
    let holds = |condition: &str| pod.true_conditions.iter().any(|c| c == condition);
    match pod.phase.as_str() {
        "Pending" => {
            let message = if !holds("PodScheduled") {
                "Waiting to be scheduled"
            } else if !holds("Initialized") {
                "Running init containers"
            } else {
                ""
            };
            Finding::no(kind, "Provisioning", message)
        }
        "Running" if holds("Ready") => Finding::yes(kind, "Running"),
        "Running" if !pod.waiting.is_empty() => {
            let reason = if pod.failed_before { "Failed" } else { "Provisioning" };
            Finding::no(kind, reason, pod.waiting.join(", "))
        }
        "Running" if !pod.terminated.is_empty() => Finding::no(kind, "Failed", pod.terminated.join(", ")),
        "Running" => Finding::no(kind, "Provisioning", "Waiting for startup or readiness probes"),
        "Succeeded" | "Failed" => Finding::no(kind, "Failed", "All the containers have been terminated"),
        _ => Finding::new(
            kind,
            Status::Unknown,
            "InspectionFailed",
            "Pod is reporting Unknown status",
        ),
    }
}

/// The finding about all components.
pub(super) fn aggregate(facts: &Facts, machines: &[View], errors: &[String]) -> Finding {
    if let Some(Err(error)) = facts.reached().map(|r| &r.nodes) {
        let message = format!("Failed to get Nodes hosting control plane components: {error}");
        return Finding::unknown(control_plane::COMPONENTS, "InspectionFailed", message);
    }
    let kinds: Vec<&'static str> = pods(facts.control_plane.managed_etcd)
        .iter()
        .map(|(kind, _)| *kind)
        .collect();
    let reasons = Reasons {
        good: "Healthy",
        bad: "NotHealthy",
        unknown: "HealthUnknown",
    };
    sum_up(
        control_plane::COMPONENTS,
        &kinds,
        machines,
        errors,
        &reasons,
        "control plane",
    )
}
