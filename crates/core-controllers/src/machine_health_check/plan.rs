//! Which Machines are unhealthy, and what is said about them. Pure.

mod judge;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use windlass_api::core::{Cluster, Machine, MachineHealthCheck};
use windlass_api::meta::MetaExt as _;
use windlass_cluster_cache::{Outage, Workload};
use windlass_conditions::Draft;
use windlass_contract::{Cloning, clone_template};
use windlass_controller_runtime::{Blocked, Dynamic, EventType, Moment, Note, Seen, Until};

use crate::machine_health_check::limits::{Limit, limit};
use crate::machine_health_check::observed::{Observed, Target};
use crate::shared::keys::{conditions, labels};
use crate::shared::machines::{condition, is_true, owner_reference};
use crate::shared::numbers::len_i32;
use judge::Health;
pub(super) use judge::gates;

/// When to look again for a remediation request that could not be read.
const UNREADABLE_AGAIN: Duration = Duration::from_secs(30);

/// The reason while an owner or an external system has not begun.
pub(crate) const WAITING: &str = "WaitingForRemediation";

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Applies the check's own owner and label.
    ApplySelf(Box<Value>),
    /// Says on a Machine how it is.
    Say(Box<Saying>),
    /// Makes a remediation request.
    Request(Box<Value>),
    /// Deletes the remediation request of a Machine that is healthy again.
    Withdraw(Arc<Dynamic>),
}

/// The conditions of one Machine that this controller owns.
#[derive(Clone, Debug, PartialEq)]
pub struct Saying {
    /// The Machine.
    pub machine: Arc<Machine>,
    /// HealthCheckSucceeded.
    pub health: Draft,
    /// OwnerRemediated; `None` leaves it to the owner.
    pub owner_remediated: Option<Draft>,
    /// ExternallyRemediated.
    pub externally_remediated: Option<Draft>,
    /// The Machine was well before, or nothing was known.
    pub is_news: bool,
}

/// Everything to be done, in order, and what was counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Writes, in order.
    pub actions: Vec<Action>,
    /// Why.
    pub notes: Vec<Note>,
    /// Names of the Machines that are checked.
    pub targets: Vec<String>,
    /// How many of them are healthy.
    pub healthy: i32,
    /// How many may still be replaced, and whether any may.
    pub limit: Limit,
    /// When to look again although nothing happens.
    pub requeue: Option<Duration>,
    /// What keeps Machines from being judged; the status stays as it is then.
    pub blocked: Option<Blocked>,
}

/// Decides.
pub(crate) fn plan(seen: &Observed, now: &Moment) -> Plan {
    let mut plan = Plan::default();
    let cluster = match &seen.cluster {
        Seen::Found(cluster) => cluster,
        Seen::NotFound => {
            let name = &seen.check.spec.cluster_name;
            let why = format!("spec.clusterName: Cluster {name} does not exist");
            plan.blocked = Some(Blocked::failed("CannotPlan", why));
            return plan;
        }
        Seen::Failed(why) => {
            plan.blocked = Some(Blocked::failed("CannotPlan", why.as_str()));
            return plan;
        }
    };
    plan.actions.extend(apply_self(&seen.check, cluster));
    if seen.check.metadata.is_deleting() {
        return plan;
    }
    let nodes = match &seen.nodes {
        Workload::Up(nodes) => Some(nodes),
        Workload::NotTried(why) | Workload::Down(Outage { why, .. }) => {
            // Neither what a Node reports nor whether a Node is there can be found then.
            let asks = judge::is_initialized(cluster) || seen.targets.iter().any(|target| target.node_name().is_some());
            if asks && !seen.targets.is_empty() {
                plan.blocked = Some(Blocked {
                    reason: "NotConnected",
                    message: format!("the workload cluster cannot be asked about Nodes: {why}"),
                    until: Until::Event,
                });
                return plan;
            }
            None
        }
    };
    let judged: Vec<(&Target, Health)> = seen
        .targets
        .iter()
        .map(|target| (target, judge::judge(&seen.check, cluster, target, nodes, now)))
        .collect();
    plan.targets = seen
        .targets
        .iter()
        .map(|target| target.machine.metadata.name().to_owned())
        .collect();
    plan.targets.sort();
    plan.healthy = len_i32(judged.iter().filter(|(_, health)| *health == Health::Good).count());
    plan.limit = match limit(&seen.check, len_i32(judged.len()), plan.healthy) {
        Ok(limit) => limit,
        Err(why) => {
            plan.blocked = Some(Blocked::failed("CannotPlan", why));
            return plan;
        }
    };
    if !plan.limit.allowed && judged.iter().any(|(_, health)| matches!(health, Health::Bad { .. })) {
        let why = plan.limit.why.as_str();
        plan.notes
            .push(Note::event(EventType::Warning, "RemediationRestricted", why));
    }
    for (target, health) in &judged {
        match health {
            Health::Good => good(target, &mut plan),
            Health::Bad { reason, message } => bad(seen, target, reason, message, &mut plan),
            Health::Unsettled => {}
        }
    }
    plan
}

fn apply_self(check: &MachineHealthCheck, cluster: &Cluster) -> Option<Action> {
    let owner = owner_reference("Cluster", &cluster.metadata, false);
    let mut owners = check.metadata.owner_references.iter().flatten();
    let owned = owners.any(|have| have.uid == cluster.metadata.uid());
    let labelled = check.metadata.label(labels::CLUSTER_NAME) == Some(&check.spec.cluster_name);
    (!owned || !labelled).then(|| {
        Action::ApplySelf(Box::new(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "MachineHealthCheck",
            "metadata": {
                "name": check.metadata.name,
                "namespace": check.metadata.namespace,
                "uid": check.metadata.uid,
                "labels": { labels::CLUSTER_NAME: check.spec.cluster_name },
                "ownerReferences": [owner],
            },
        })))
    })
}

fn says(target: &Target, type_: &str, verdict: &Draft) -> bool {
    condition(&target.machine, type_).is_some_and(|have| verdict.is_said_by(have))
}

fn good(target: &Target, plan: &mut Plan) {
    if let Some(Seen::Found(request)) = &target.request
        && !request.is_deleting()
    {
        let name = target.machine.metadata.name();
        plan.notes.push(Note::new(format!(
            "the remediation request of Machine {name} is deleted: the Machine is healthy again"
        )));
        plan.actions.push(Action::Withdraw(request.clone()));
    }
    let health = Draft::yes("HealthCheckSucceeded", "");
    let external = condition(&target.machine, conditions::EXTERNALLY_REMEDIATED).is_some();
    let asked = condition(&target.machine, conditions::OWNER_REMEDIATED).is_some_and(|have| have.reason == WAITING);
    if says(target, conditions::HEALTH_CHECK_SUCCEEDED, &health) && !external && !asked {
        return;
    }
    plan.actions.push(Action::Say(Box::new(Saying {
        machine: target.machine.clone(),
        health,
        owner_remediated: None,
        externally_remediated: None,
        is_news: false,
    })));
}

fn bad(seen: &Observed, target: &Target, reason: &str, message: &str, plan: &mut Plan) {
    let health = Draft::no(reason.to_owned(), message);
    let was_known =
        condition(&target.machine, conditions::HEALTH_CHECK_SUCCEEDED).is_some_and(|have| have.status == "False");
    let (mut owner, mut external) = (None, None);
    if plan.limit.allowed {
        match (&seen.request_template, &target.request) {
            (Some(template), request) => {
                external = ask(seen, target, template, request.as_ref(), plan);
            }
            (None, _) => owner = ask_owner(target),
        }
    } else {
        // What was asked for before stays asked for.
        let waiting = Draft::no(WAITING, "Waiting for remediation");
        owner = says(target, conditions::OWNER_REMEDIATED, &waiting).then_some(waiting);
    }
    let said = says(target, conditions::HEALTH_CHECK_SUCCEEDED, &health)
        && owner
            .as_ref()
            .is_none_or(|verdict| says(target, conditions::OWNER_REMEDIATED, verdict))
        && external
            .as_ref()
            .is_none_or(|verdict| says(target, conditions::EXTERNALLY_REMEDIATED, verdict));
    if !said {
        plan.actions.push(Action::Say(Box::new(Saying {
            machine: target.machine.clone(),
            health,
            owner_remediated: owner,
            externally_remediated: external,
            is_news: !was_known,
        })));
    }
}

/// The owner is asked once; how far it is, it says itself.
fn ask_owner(target: &Target) -> Option<Draft> {
    let waiting = Draft::no(WAITING, "Waiting for remediation");
    let have = condition(&target.machine, conditions::OWNER_REMEDIATED);
    let asks = have.is_none_or(|have| have.status == "True" || have.reason == WAITING);
    (asks || is_true(&target.machine, conditions::OWNER_REMEDIATED)).then_some(waiting)
}

/// Makes a remediation request unless there is one. The answer is the condition ExternallyRemediated.
fn ask(
    seen: &Observed,
    target: &Target,
    template: &Seen<Arc<Dynamic>>,
    request: Option<&Seen<Arc<Dynamic>>>,
    plan: &mut Plan,
) -> Option<Draft> {
    let waiting = Draft::no(WAITING, "Waiting for remediation");
    if matches!(request, Some(Seen::Found(_))) {
        return Some(waiting);
    }
    let template = match template {
        Seen::Found(template) => template,
        Seen::NotFound => {
            let reference = seen
                .check
                .spec
                .remediation
                .as_ref()
                .and_then(|all| all.template_ref.as_ref());
            let what = reference.map_or_else(String::new, |one| format!("{} {}", one.kind, one.name));
            let message = format!("Could not retrieve remediation template {what}: it does not exist");
            return Some(Draft::no("RemediationTemplateNotFound", message));
        }
        Seen::Failed(why) => {
            let message = format!("Could not retrieve remediation template: {why}");
            return Some(Draft::no("RemediationTemplateNotFound", message));
        }
    };
    let machine = &target.machine.metadata;
    if let Some(Seen::Failed(why)) = request {
        // There may be one: what was said about it stays.
        plan.notes.push(Note::new(format!(
            "no remediation is requested for Machine {}: {why}",
            machine.name()
        )));
        plan.requeue = Some(UNREADABLE_AGAIN);
        return condition(&target.machine, conditions::EXTERNALLY_REMEDIATED).map(Draft::of);
    }
    let object = clone_template(&Cloning {
        template: template.value(),
        namespace: machine.namespace(),
        name: machine.name(),
        cluster_name: &seen.check.spec.cluster_name,
        owner: Some(owner_reference("Machine", machine, false)),
        labels: std::collections::BTreeMap::new(),
        annotations: std::collections::BTreeMap::new(),
    });
    plan.notes.push(Note::new(format!(
        "external remediation is requested for Machine {}",
        machine.name()
    )));
    plan.actions.push(Action::Request(Box::new(object)));
    Some(waiting)
}

impl windlass_controller_runtime::Plan for Plan {
    fn notes(&self) -> &[Note] {
        &self.notes
    }

    fn requeue(&self) -> Option<Duration> {
        self.requeue
    }

    fn blocked(&self) -> Option<Blocked> {
        self.blocked.clone()
    }
}

#[cfg(test)]
#[allow(clippy::unnecessary_wraps, reason = "cases hand in what is seen")]
mod tests;
