//! Which Machines are unhealthy, and what is said about them. Pure.

mod judge;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use windlass_api::Condition;
use windlass_api::core::{Cluster, Machine, MachineHealthCheck};
use windlass_api::meta::MetaExt as _;
use windlass_api::reasons;
use windlass_cluster_cache::{Outage, Workload};
use windlass_conditions::Draft;
use windlass_contract::{Cloning, clone_template, is_template};
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
    Request {
        /// The request.
        object: Box<Value>,
        /// What the Machine says of it.
        saying: Box<Saying>,
    },
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

impl Saying {
    /// The same when the remediation request could not be made.
    pub(crate) fn without_request(&self, why: &str) -> Self {
        Self {
            externally_remediated: Some(Draft::no(reasons::REMEDIATION_REQUEST_CREATION_FAILED, why)),
            ..self.clone()
        }
    }

    /// Whether the Machine has these conditions already.
    pub(crate) fn is_said(&self) -> bool {
        let says =
            |type_: &str, verdict: &Draft| condition(&self.machine, type_).is_some_and(|have| verdict.is_said_by(have));
        let others = [
            (conditions::OWNER_REMEDIATED, &self.owner_remediated),
            (conditions::EXTERNALLY_REMEDIATED, &self.externally_remediated),
        ];
        says(conditions::HEALTH_CHECK_SUCCEEDED, &self.health)
            && others
                .iter()
                .all(|(type_, verdict)| verdict.as_ref().is_none_or(|verdict| says(type_, verdict)))
    }
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
    /// What keeps Machines from being judged; the status stays as it is then, but for `unknown`.
    pub blocked: Option<Blocked>,
    /// Why a remediation is not requested: its template cannot be used.
    pub no_template: Option<String>,
    /// The condition RemediationAllowed, if it cannot be told for a reason that stays until a user acts.
    pub unknown: Option<Draft>,
}

/// Decides.
pub(crate) fn plan(seen: &Observed, now: &Moment) -> Plan {
    let mut plan = Plan::default();
    let cluster = match &seen.cluster {
        Seen::Found(cluster) => cluster,
        Seen::NotFound => {
            let name = &seen.check.spec.cluster_name;
            let why = format!("spec.clusterName: Cluster {name} does not exist");
            plan.unknown = Some(Draft::unknown(reasons::OBJECT_DOES_NOT_EXIST, why.as_str()));
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
            plan.unknown = Some(Draft::unknown(reasons::INTERNAL_ERROR, why.as_str()));
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
    let mut saying = Saying {
        machine: target.machine.clone(),
        health,
        owner_remediated: None,
        externally_remediated: None,
        is_news: !was_known,
    };
    let mut request = None;
    if plan.limit.allowed {
        match &seen.request_template {
            Some(template) => {
                (request, saying.externally_remediated) = ask(seen, target, template, plan);
                let missing = saying.externally_remediated.as_ref();
                let missing = missing.filter(|said| said.reason == reasons::REMEDIATION_TEMPLATE_NOT_FOUND);
                if let Some(missing) = missing {
                    plan.no_template.get_or_insert_with(|| missing.message.clone());
                }
            }
            None => saying.owner_remediated = ask_owner(target),
        }
    } else {
        // What was asked for before stays asked for.
        let waiting = Draft::no(WAITING, "Waiting for remediation");
        saying.owner_remediated = says(target, conditions::OWNER_REMEDIATED, &waiting).then_some(waiting);
        let external = condition(&target.machine, conditions::EXTERNALLY_REMEDIATED);
        saying.externally_remediated = external.filter(|have| is_ours(have)).map(Draft::of);
    }
    match request {
        Some(object) => plan.actions.push(Action::Request {
            object: Box::new(object),
            saying: Box::new(saying),
        }),
        None if saying.is_said() => {}
        None => plan.actions.push(Action::Say(Box::new(saying))),
    }
}

/// Whether this controller has set the condition ExternallyRemediated. The controller of the remediation may set it to what it likes.
fn is_ours(have: &Condition) -> bool {
    let reasons = [
        WAITING,
        reasons::REMEDIATION_TEMPLATE_NOT_FOUND,
        reasons::REMEDIATION_REQUEST_CREATION_FAILED,
    ];
    have.status == "False" && reasons.contains(&have.reason.as_str())
}

/// ExternallyRemediated of a Machine for which there is a request: it is set with the request, and belongs to the controller of the
/// remediation from then on.
fn after_request(target: &Target) -> Option<Draft> {
    let have = condition(&target.machine, conditions::EXTERNALLY_REMEDIATED).filter(|have| is_ours(have))?;
    Some(if have.reason == WAITING {
        Draft::of(have)
    } else {
        Draft::no(WAITING, "Waiting for remediation")
    })
}

/// The owner is asked once; how far it is, it says itself. It is not asked for a Machine that goes already.
fn ask_owner(target: &Target) -> Option<Draft> {
    let waiting = Draft::no(WAITING, "Waiting for remediation");
    let have = condition(&target.machine, conditions::OWNER_REMEDIATED);
    if target.machine.metadata.is_deleting() {
        return says(target, conditions::OWNER_REMEDIATED, &waiting).then_some(waiting);
    }
    let asks = have.is_none_or(|have| have.status == "True" || have.reason == WAITING);
    (asks || is_true(&target.machine, conditions::OWNER_REMEDIATED)).then_some(waiting)
}

/// The remediation request to make, unless there is one, and the condition ExternallyRemediated.
fn ask(
    seen: &Observed,
    target: &Target,
    template: &Seen<Arc<Dynamic>>,
    plan: &mut Plan,
) -> (Option<Value>, Option<Draft>) {
    let waiting = Draft::no(WAITING, "Waiting for remediation");
    let request = target.request.as_ref();
    if matches!(request, Some(Seen::Found(_))) {
        return (None, after_request(target));
    }
    let template = match template {
        Seen::Found(template) if is_template(template.value()) => template,
        Seen::Found(template) => {
            let what = format!("{} {}", template.kind(), template.name());
            let message = format!("Could not use remediation template {what}: it has no spec.template");
            return (None, Some(Draft::no(reasons::REMEDIATION_TEMPLATE_NOT_FOUND, message)));
        }
        Seen::NotFound => {
            let reference = seen
                .check
                .spec
                .remediation
                .as_ref()
                .and_then(|all| all.template_ref.as_ref());
            let what = reference.map_or_else(String::new, |one| format!("{} {}", one.kind, one.name));
            let message = format!("Could not retrieve remediation template {what}: it does not exist");
            return (None, Some(Draft::no(reasons::REMEDIATION_TEMPLATE_NOT_FOUND, message)));
        }
        Seen::Failed(why) => {
            let message = format!("Could not retrieve remediation template: {why}");
            return (None, Some(Draft::no(reasons::REMEDIATION_TEMPLATE_NOT_FOUND, message)));
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
        let said = condition(&target.machine, conditions::EXTERNALLY_REMEDIATED);
        let said = said.filter(|have| is_ours(have)).map(Draft::of);
        return (None, said);
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
    (Some(object), Some(waiting))
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
