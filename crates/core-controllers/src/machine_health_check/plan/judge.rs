//! Whether one Machine is healthy.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use windlass_api::core::{Cluster, Machine, MachineHealthCheck};
use windlass_api::k8s::Node;
use windlass_api::kind::Conditioned;
use windlass_api::meta::MetaExt as _;
use windlass_controller_runtime::Moment;
use windlass_meta::GoDuration;

use crate::machine_health_check::observed::Target;
use crate::shared::keys::{annotations, conditions, labels};
use crate::shared::machines;

/// Seconds that a Node may take to appear, when unset.
const NODE_STARTUP_TIMEOUT: i32 = 600;

/// How a Machine is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Health {
    /// It passes all checks.
    Good,
    /// It fails one.
    Bad { reason: &'static str, message: String },
    /// It does neither yet, or that is unknown.
    Unsettled,
}

fn bad(reason: &'static str, why: &str) -> Health {
    Health::Bad {
        reason,
        message: format!("Health check failed: {why}"),
    }
}

/// Whether a state has lasted for so many seconds.
fn lasted(since: Timestamp, seconds: i32, now: &Moment) -> bool {
    now.elapsed(since, SignedDuration::from_secs(i64::from(seconds)))
}

fn in_words(seconds: i32) -> String {
    GoDuration::from_secs(i64::from(seconds)).to_string()
}

/// The Nodes of the checked Machines, by name.
type Nodes = BTreeMap<String, Arc<Node>>;

/// Judges one Machine. `nodes` are those of the workload cluster; `None` when it does not answer.
pub(super) fn judge(
    check: &MachineHealthCheck,
    cluster: &Cluster,
    target: &Target,
    nodes: Option<&Nodes>,
    now: &Moment,
) -> Health {
    let machine = &*target.machine;
    if machine.metadata.has_annotation(annotations::REMEDIATE_MACHINE) {
        let key = annotations::REMEDIATE_MACHINE;
        return bad(
            "HasRemediateAnnotation",
            &format!("marked for remediation via {key} annotation"),
        );
    }
    let by_conditions = unhealthy_machine(check, machine, now);
    if let Conditions::Failed(health) = by_conditions {
        return health;
    }
    let initialization = cluster
        .status
        .as_ref()
        .and_then(|status| status.initialization.as_ref());
    let provisioned = initialization.and_then(|one| one.infrastructure_provisioned) == Some(true);
    let initialized = initialization.and_then(|one| one.control_plane_initialized) == Some(true);
    let is_control_plane = machine.metadata.label(labels::CONTROL_PLANE).is_some();
    if !provisioned || (!initialized && !is_control_plane) {
        return Health::Unsettled;
    }
    let Some(name) = target.node_name() else {
        // The Node of a Machine cannot be found while its workload cluster does not answer.
        if initialized && nodes.is_none() {
            return Health::Unsettled;
        }
        return starting(check, cluster, machine, initialized, now);
    };
    let Some(nodes) = nodes else {
        return Health::Unsettled;
    };
    let node = match nodes.get(name) {
        Some(node) => node,
        None if machine.metadata.is_deleting() => return Health::Unsettled,
        None => return bad("NodeDeleted", &format!("Node {name} has been deleted")),
    };
    let by_node = unhealthy_node(check, node, now);
    if let Conditions::Failed(health) = by_node {
        return health;
    }
    let pending = matches!(by_conditions, Conditions::Pending) || matches!(by_node, Conditions::Pending);
    if pending || machine.metadata.is_deleting() {
        return Health::Unsettled;
    }
    Health::Good
}

/// What the conditions of a Machine or of its Node say.
enum Conditions {
    /// None is bad.
    Good,
    /// One is bad, but not for long enough.
    Pending,
    /// One has been bad for too long.
    Failed(Health),
}

fn unhealthy_node(check: &MachineHealthCheck, node: &Node, now: &Moment) -> Conditions {
    let known = node
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default();
    let checks = check.spec.checks.as_ref();
    let mut found = Conditions::Good;
    for unhealthy in checks.into_iter().flat_map(|checks| &checks.unhealthy_node_conditions) {
        let (type_, status, timeout) = (&unhealthy.type_, &unhealthy.status, unhealthy.timeout_seconds);
        let mut alike = known
            .iter()
            .filter(|have| have.type_ == *type_ && have.status == *status);
        let Some(have) = alike.next() else { continue };
        let since = have.last_transition_time.as_ref().map_or(Timestamp::MIN, |time| time.0);
        if lasted(since, timeout, now) {
            return Conditions::Failed(bad("UnhealthyNode", &reported(type_, "Node", status, timeout)));
        }
        found = Conditions::Pending;
    }
    found
}

fn reported(type_: &str, on: &str, status: &str, timeout: i32) -> String {
    format!(
        "Condition {type_} on {on} is reporting status {status} for more than {}",
        in_words(timeout)
    )
}

fn unhealthy_machine(check: &MachineHealthCheck, machine: &Machine, now: &Moment) -> Conditions {
    let checks = check.spec.checks.as_ref();
    let mut found = Conditions::Good;
    for unhealthy in checks
        .into_iter()
        .flat_map(|checks| &checks.unhealthy_machine_conditions)
    {
        let (type_, status, timeout) = (&unhealthy.type_, &unhealthy.status, unhealthy.timeout_seconds);
        let have = machines::condition(machine, type_).filter(|have| have.status == *status);
        let Some(have) = have else { continue };
        if lasted(have.last_transition_time.0, timeout, now) {
            let why = reported(type_, "Machine", status, timeout);
            return Conditions::Failed(bad("UnhealthyMachine", &why));
        }
        found = Conditions::Pending;
    }
    found
}

/// The Machine has no Node yet. The clock starts when it could have begun to start.
fn starting(
    check: &MachineHealthCheck,
    cluster: &Cluster,
    machine: &Machine,
    initialized: bool,
    now: &Moment,
) -> Health {
    let timeout = check
        .spec
        .checks
        .as_ref()
        .and_then(|checks| checks.node_startup_timeout_seconds);
    let timeout = timeout.unwrap_or(NODE_STARTUP_TIMEOUT);
    if timeout == 0 || machine.metadata.is_deleting() {
        return Health::Unsettled;
    }
    let mut since = machine.metadata.created();
    let types = [
        (conditions::INFRASTRUCTURE_READY, true),
        (conditions::CONTROL_PLANE_INITIALIZED, initialized),
    ];
    for (type_, counts) in types {
        let have = windlass_conditions::get(cluster.conditions(), type_).filter(|have| counts && have.status == "True");
        since = have.map_or(since, |have| since.max(have.last_transition_time.0));
    }
    if !lasted(since, timeout, now) {
        return Health::Unsettled;
    }
    bad(
        "NodeStartupTimeout",
        &format!("Node failed to report startup in {}", in_words(timeout)),
    )
}
