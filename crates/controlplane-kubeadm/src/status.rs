//! What is said of the control plane, after every attempt.

mod available;
mod legacy;
mod machines;

use windlass_conditions::Status;

use serde_json::{Map, Value, json};
use windlass_api::core::StatusVersion;
use windlass_api::labels::CLUSTER_NAME;
use windlass_api::versions;
use windlass_api_kubeadm::controlplane::KubeadmControlPlane;
use windlass_controller_runtime::{Moment, ReconcileError, Seen};
use windlass_meta::KubernetesVersion;

use crate::facts::{ControlPlane, Facts};
use crate::finding::{Finding, listed};
use crate::names::{CONTROL_PLANE_LABEL, REMEDIATION_FOR, REMEDIATION_IN_PROGRESS, control_plane, machine};
use crate::plan::remediate::Remembered;
use crate::plan::{Plan, Stage, certificates, delete};
use crate::rotation::ROTATED;

/// What became of a plan.
#[derive(Clone, Debug, Default)]
pub struct Done {
    /// Why the first action that failed did.
    pub failed: Option<ReconcileError>,
    /// That action made or kept an authority.
    pub certificates_failed: bool,
}

/// The whole status.
pub fn status(facts: &Facts, plan: &Plan, done: &Done, now: &Moment) -> Value {
    let control_plane = &facts.control_plane;
    let findings = findings(facts, plan, done, now);
    let conditions: Vec<_> = findings
        .iter()
        .map(|f| f.stamp(&control_plane.conditions, control_plane.generation, now.now()))
        .collect();
    let counts = Counts::of(facts, plan);
    let mut status = Map::new();
    let mut set = |key: &str, value: Value| {
        status.insert(key.to_owned(), value);
    };
    set("conditions", json!(conditions));
    set("observedGeneration", json!(control_plane.generation));
    set("replicas", json!(facts.machines.len()));
    set("readyReplicas", json!(counts.ready));
    set("availableReplicas", json!(counts.available));
    set("upToDateReplicas", json!(counts.up_to_date));
    let cluster = &facts.cluster.name;
    set(
        "selector",
        json!(format!("{CLUSTER_NAME}={cluster},{CONTROL_PLANE_LABEL}")),
    );
    if facts.initialized() {
        set("initialization", json!({ "controlPlaneInitialized": true }));
    }
    let lowest = lowest_version(facts).or(control_plane.status_version.as_deref());
    if let Some(version) = lowest {
        set("version", json!(version));
    }
    let versions = versions(facts);
    if !versions.is_empty() {
        set("versions", json!(versions));
    }
    if let Some(last) = last_remediation(facts) {
        set("lastRemediation", last);
    }
    set(
        "deprecated",
        json!({ "v1beta1": legacy::status(facts, plan, &findings, &counts, now.now()) }),
    );
    Value::Object(status)
}

/// The status of a control plane that no Cluster has ever referred to. One that had a Cluster keeps its status: a field manager gives up
/// what it leaves out.
pub fn without_cluster(control_plane: &KubeadmControlPlane, now: &Moment) -> Option<Value> {
    let status = control_plane.status.clone().unwrap_or_default();
    if status.replicas.is_some() {
        return None;
    }
    let message = "Waiting for a Cluster: no Cluster refers to this control plane in spec.controlPlaneRef";
    let generation = control_plane.metadata.generation.unwrap_or_default();
    let finding = Finding::no(control_plane::AVAILABLE, "NotAvailable", message);
    let condition = finding.stamp(&status.conditions, generation, now.now());
    Some(json!({ "conditions": [condition], "observedGeneration": generation }))
}

/// Numbers of Machines.
struct Counts {
    ready: usize,
    available: usize,
    up_to_date: usize,
}

impl Counts {
    fn of(facts: &Facts, plan: &Plan) -> Self {
        let with = |kind: &str| {
            let machines = facts.machines.iter();
            machines
                .filter(|m| m.condition(kind).is_some_and(|c| c.status == "True"))
                .count()
        };
        let up_to_date = match &plan.health {
            Some(health) => health
                .machines
                .iter()
                .filter(|v| v.is_true(machine::UP_TO_DATE))
                .count(),
            None => with(machine::UP_TO_DATE),
        };
        Self {
            ready: with(machine::READY),
            available: with(machine::AVAILABLE),
            up_to_date,
        }
    }
}

/// The lowest version that the Machines should have: components of the cluster may not be newer.
fn lowest_version(facts: &Facts) -> Option<&str> {
    let versions = facts.machines.iter().map(|machine| machine.version.as_str());
    let parsed = versions.filter_map(|text| Some((KubernetesVersion::parse_tolerant(text).ok()?, text)));
    parsed
        .min_by(|(one, _), (other, _)| one.cmp(other))
        .map(|(_, text)| text)
}

/// The versions of the Machines. Builds without an order follow the age of their Machines.
fn versions(facts: &Facts) -> Vec<StatusVersion> {
    let mut machines: Vec<_> = facts.machines.iter().collect();
    machines.sort_by_key(|machine| (machine.created, &machine.name));
    versions::added_up(
        machines.into_iter().filter_map(|machine| {
            versions::of_machine(machine.kubelet_version.as_deref(), Some(machine.version.as_str()))
        }),
    )
}

fn last_remediation(facts: &Facts) -> Option<Value> {
    let own = &facts.control_plane.annotations;
    let last = match own.get(REMEDIATION_IN_PROGRESS) {
        Some(text) => Remembered::parse(text),
        None => facts
            .machines
            .iter()
            .filter_map(|m| Remembered::parse(m.annotations.get(REMEDIATION_FOR)?))
            .max_by_key(|r| r.timestamp),
    };
    match last {
        Some(last) => Some(json!({
            "machine": last.machine,
            "retryCount": last.retry_count,
            "time": last.timestamp.to_string(),
        })),
        None => facts.control_plane.last_remediation.clone(),
    }
}

/// All conditions of the control plane but Paused, which the driver keeps.
fn findings(facts: &Facts, plan: &Plan, done: &Done, now: &Moment) -> Vec<Finding> {
    let certificates = certificates_available(facts, plan, done);
    let mut findings = vec![available::finding(
        facts,
        plan,
        certificates.as_ref().is_none_or(|found| found.status == Status::True),
        now,
    )];
    findings.extend(certificates);
    findings.push(initialized(facts));
    findings.extend(health(facts, plan));
    findings.push(rolling_out(facts, plan));
    findings.push(remediating(facts, plan, now));
    findings.push(scaling_down(facts, plan, now));
    findings.push(scaling_up(facts, plan));
    findings.push(machines::ready(facts, now.now()));
    findings.push(machines::up_to_date(facts, plan, now));
    findings.push(deleting(plan));
    findings.extend(rotating(facts, plan));
    findings
}

/// Without a rotation there is no condition of it.
fn rotating(facts: &Facts, plan: &Plan) -> Option<Finding> {
    const KIND: &str = control_plane::ROTATING;
    match (&plan.rotation, facts.control_plane.annotations.get(ROTATED)) {
        (Some(progress), _) => Some(Finding::new(
            KIND,
            Status::True,
            progress.reason,
            progress.message.clone(),
        )),
        (None, _)
            if facts
                .rotation
                .as_ref()
                .is_some_and(|rotation| rotation.state().is_some()) =>
        {
            Finding::kept(KIND, &facts.control_plane.conditions)
        }
        (None, Some(name)) => Some(Finding::no(KIND, "NotRotating", format!("Rotation {name} is complete"))),
        (None, None) => None,
    }
}

/// Nothing new is said before the authorities can be made.
fn certificates_available(facts: &Facts, plan: &Plan, done: &Done) -> Option<Finding> {
    const KIND: &str = control_plane::CERTIFICATES;
    if done.certificates_failed {
        let message = "Please check controller logs for errors";
        return Some(Finding::unknown(KIND, "InternalError", message));
    }
    let missing = certificates::missing(facts);
    let is_made_later = facts.certificates.iter().any(|c| c.secret.is_not_found());
    if plan.stage == Stage::WaitingForInfrastructure && missing.is_empty() && is_made_later {
        return Finding::kept(KIND, &facts.control_plane.conditions);
    }
    Some(match missing.as_slice() {
        [] => Finding::yes(KIND, "Available"),
        [only] => Finding::no(
            KIND,
            "NotAvailable",
            format!("Cluster certificate for {only} is not available, please check cluster certificate secrets"),
        ),
        many => Finding::no(
            KIND,
            "NotAvailable",
            format!(
                "Cluster certificates for {} are not available, please check cluster certificate secrets",
                many.join(", ")
            ),
        ),
    })
}

fn initialized(facts: &Facts) -> Finding {
    if facts.initialized() {
        Finding::yes(control_plane::INITIALIZED, "Initialized")
    } else {
        Finding::no(control_plane::INITIALIZED, "NotInitialized", "")
    }
}

fn health(facts: &Facts, plan: &Plan) -> Vec<Finding> {
    let waits = match plan.stage {
        Stage::WaitingForInfrastructure => {
            "Waiting for Cluster status.initialization.infrastructureProvisioned to be true"
        }
        Stage::WaitingForEndpoint => {
            "Waiting for Cluster spec.controlPlaneEndpoint.host and spec.controlPlaneEndpoint.port to be set"
        }
        Stage::Running | Stage::Deleting(..) => "",
    };
    if let Some(health) = &plan.health {
        return health.etcd.iter().chain([&health.components]).cloned().collect();
    }
    let kinds = [control_plane::ETCD, control_plane::COMPONENTS];
    let kinds = kinds
        .into_iter()
        .filter(|k| facts.control_plane.managed_etcd || *k != control_plane::ETCD);
    kinds
        .filter_map(|kind| match plan.stage {
            Stage::Deleting(..) => Finding::kept(kind, &facts.control_plane.conditions),
            _ => Some(Finding::unknown(kind, "InspectionFailed", waits)),
        })
        .collect()
}

fn rolling_out(facts: &Facts, plan: &Plan) -> Finding {
    const KIND: &str = control_plane::ROLLING_OUT;
    let Some(health) = &plan.health else {
        return Finding::kept(KIND, &facts.control_plane.conditions)
            .unwrap_or_else(|| Finding::no(KIND, "NotRollingOut", ""));
    };
    let outdated: Vec<&Finding> = health
        .machines
        .iter()
        .filter_map(|v| v.finding(machine::UP_TO_DATE))
        .filter(|f| f.status == Status::False)
        .collect();
    if outdated.is_empty() {
        return Finding::no(KIND, "NotRollingOut", "");
    }
    let mut reasons: Vec<&str> = outdated.iter().flat_map(|f| f.message.lines()).collect();
    // A change of version comes first.
    reasons.sort_by_key(|r| (!r.starts_with("* Version"), *r));
    reasons.dedup();
    let mut message = format!("Rolling out {} not up-to-date replicas", outdated.len());
    if !plan.blockers.refused.is_empty() || plan.blockers.undecided.is_some() {
        message = blocked(message, &plan.blockers.messages());
    }
    for reason in reasons {
        message.push('\n');
        message.push_str(reason);
    }
    Finding::new(KIND, Status::True, "RollingOut", message)
}

fn remediating(facts: &Facts, plan: &Plan, now: &Moment) -> Finding {
    const KIND: &str = control_plane::REMEDIATING;
    let marked: Vec<_> = facts.machines.iter().filter(|m| m.is_marked()).collect();
    if marked.is_empty() {
        let unhealthy: Vec<&str> = facts
            .machines
            .iter()
            .filter(|m| m.is_unhealthy())
            .map(|m| m.name.as_str())
            .collect();
        let message = match unhealthy.len() {
            0 => String::new(),
            1 => format!(
                "Machine {} is not healthy (not to be remediated by KubeadmControlPlane)",
                unhealthy[0]
            ),
            _ => format!(
                "Machines {} are not healthy (not to be remediated by KubeadmControlPlane)",
                listed(&unhealthy)
            ),
        };
        return Finding::no(KIND, "NotRemediating", message);
    }
    let sources = marked.iter().map(|m| {
        let fresh = plan.remediation.iter().find(|(name, _)| *name == m.name);
        let condition = match fresh {
            Some((_, finding)) => Some(finding.stamp(&m.conditions, m.generation, now.now())),
            None => m.condition(machine::OWNER_REMEDIATED).cloned(),
        };
        (m.name.as_str(), condition.into_iter().collect())
    });
    let sources: Vec<_> = sources.collect();
    let message = machines::remediation(&sources, now.now());
    Finding::new(KIND, Status::True, "Remediating", message)
}

/// Machines wanted: none while everything is being deleted.
fn wanted(control_plane: &ControlPlane) -> usize {
    if control_plane.deleting {
        return 0;
    }
    usize::try_from(control_plane.replicas).unwrap_or_default()
}

fn blocked(mut message: String, reasons: &[String]) -> String {
    if !reasons.is_empty() {
        message.push_str(" is blocked because:\n");
        message.push_str(&reasons.join("\n"));
    }
    message
}

fn scaling_up(facts: &Facts, plan: &Plan) -> Finding {
    const KIND: &str = control_plane::SCALING_UP;
    let (current, wanted) = (facts.machines.len(), wanted(&facts.control_plane));
    let kind = &facts.control_plane.template.kind;
    let missing = match &facts.template {
        Seen::Found(_) => None,
        Seen::NotFound => Some(format!("{kind} does not exist")),
        Seen::Failed(why) => Some(why.clone()),
    };
    if current >= wanted {
        let refused = plan.blockers.refused.iter().cloned();
        let reasons: Vec<String> = refused.chain(missing).collect();
        let message = match reasons.as_slice() {
            [] => String::new(),
            reasons => format!("Scaling up would be blocked because {}", reasons.join("; ")),
        };
        return Finding::no(KIND, "NotScalingUp", message);
    }
    let mut reasons = plan.blockers.messages();
    reasons.extend(missing.map(|m| format!("* {m}")));
    let message = format!("Scaling up from {current} to {wanted} replicas");
    Finding::new(KIND, Status::True, "ScalingUp", blocked(message, &reasons))
}

fn scaling_down(facts: &Facts, plan: &Plan, now: &Moment) -> Finding {
    const KIND: &str = control_plane::SCALING_DOWN;
    let (current, wanted) = (facts.machines.len(), wanted(&facts.control_plane));
    if current <= wanted {
        return Finding::no(KIND, "NotScalingDown", "");
    }
    let mut reasons = plan.blockers.messages();
    reasons.extend(delete::slow(&facts.machines, now).map(|m| format!("* {m}")));
    let message = format!("Scaling down from {current} to {wanted} replicas");
    Finding::new(KIND, Status::True, "ScalingDown", blocked(message, &reasons))
}

fn deleting(plan: &Plan) -> Finding {
    match &plan.stage {
        Stage::Deleting(reason, message) => {
            Finding::new(control_plane::DELETING, Status::True, *reason, message.clone())
        }
        _ => Finding::no(control_plane::DELETING, "NotDeleting", ""),
    }
}

impl windlass_controller_runtime::Done for Done {
    fn failed(&self) -> Option<&windlass_controller_runtime::ReconcileError> {
        self.failed.as_ref()
    }
}
