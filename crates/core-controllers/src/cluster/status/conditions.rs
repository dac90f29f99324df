//! The conditions that the Cluster controller owns.

use jiff::Timestamp;
use windlass_api::core::{ClusterStatus, Machine};
use windlass_api::{Condition, conditions as types, reasons};
use windlass_cluster_cache::Workload;
use windlass_conditions::{
    self as conditions, Aggregate, Fallback, Mirror, Priority, Reasons, Source, Status, Summary, condition,
    default_priority,
};
use windlass_contract::control_plane;
use windlass_contract::infra_cluster::{self, Endpoint};
use windlass_controller_runtime::{Moment, Seen};

use crate::cluster::facts::{endpoint, usable_infrastructure};
use crate::cluster::observe::Observed;
use crate::cluster::plan::Plan;
use crate::shared::machines::is_age_known;
use crate::shared::read::Referenced;

const TOPOLOGY_WAIT: &str = "Waiting for cluster topology to be reconciled";

/// The message while no connection was ever seen.
const NOT_ESTABLISHED: &str = "Remote connection not established yet";

/// Computes them all, in an order in which each finds what it needs.
pub(super) fn conditions(seen: &Observed, plan: &Plan, status: &ClusterStatus, now: &Moment) -> Vec<Condition> {
    let cx = Maker {
        seen,
        moment: now,
        now: now.now(),
        generation: seen.cluster.metadata.generation,
    };
    let mut all: Vec<Condition> = seen
        .cluster
        .status
        .as_ref()
        .map(|status| status.conditions.clone())
        .unwrap_or_default();
    let initialized = status
        .initialization
        .as_ref()
        .and_then(|done| done.control_plane_initialized)
        == Some(true);
    let provisioned = status
        .initialization
        .as_ref()
        .and_then(|done| done.infrastructure_provisioned)
        == Some(true);
    let all_machines = || {
        seen.control_plane_machines
            .iter()
            .chain(seen.judged_workers())
            .map(|machine| &**machine)
    };
    let control_plane: Vec<&Machine> = seen.control_plane_machines.iter().map(|machine| &**machine).collect();
    let workers: Vec<&Machine> = seen.judged_workers().map(|machine| &**machine).collect();
    let new = [
        cx.probe(),
        cx.infrastructure(provisioned),
        cx.control_plane_available(initialized),
        cx.control_plane_initialized(initialized),
        cx.workers_available(),
        cx.machines(types::CONTROL_PLANE_MACHINES_READY, types::READY, &control_plane),
        cx.machines(types::WORKER_MACHINES_READY, types::READY, &workers),
        cx.machines(
            types::CONTROL_PLANE_MACHINES_UP_TO_DATE,
            types::UP_TO_DATE,
            &control_plane,
        ),
        cx.machines(types::WORKER_MACHINES_UP_TO_DATE, types::UP_TO_DATE, &workers),
        cx.ongoing(
            types::ROLLING_OUT,
            reasons::ROLLING_OUT,
            reasons::ROLLING_OUT_UNKNOWN,
            reasons::NOT_ROLLING_OUT,
            false,
        ),
        cx.ongoing(
            types::SCALING_UP,
            reasons::SCALING_UP,
            reasons::SCALING_UP_UNKNOWN,
            reasons::NOT_SCALING_UP,
            true,
        ),
        cx.ongoing(
            types::SCALING_DOWN,
            reasons::SCALING_DOWN,
            reasons::SCALING_DOWN_UNKNOWN,
            reasons::NOT_SCALING_DOWN,
            true,
        ),
        cx.remediating(&all_machines().collect::<Vec<_>>()),
        match &plan.deleting {
            Some(deleting) => cx.make(types::DELETING, Status::True, deleting.reason, &deleting.message),
            None => cx.make(types::DELETING, Status::False, reasons::NOT_DELETING, ""),
        },
    ];
    let owned: Vec<String> = new.iter().map(|condition| condition.type_.clone()).collect();
    for condition in new {
        conditions::set(&mut all, condition);
    }
    let available = cx.available(&all);
    conditions::set(&mut all, available);
    all.retain(|condition| condition.type_ == types::AVAILABLE || owned.contains(&condition.type_));
    all
}

/// What every condition of one pass has in common.
struct Maker<'a> {
    seen: &'a Observed,
    moment: &'a Moment,
    /// The present time, for time stamps.
    now: Timestamp,
    generation: Option<i64>,
}

impl Maker<'_> {
    fn make(&self, type_: &str, status: Status, reason: &str, message: &str) -> Condition {
        condition(type_, status, reason, message, self.now, self.generation)
    }

    fn probe(&self) -> Condition {
        let type_ = types::REMOTE_CONNECTION_PROBE;
        let good = || self.make(type_, Status::True, reasons::PROBE_SUCCEEDED, "");
        let failed = |message: &str| self.make(type_, Status::False, reasons::PROBE_FAILED, message);
        let status = self.seen.cluster.status.as_ref();
        let before = status.and_then(|status| conditions::get(&status.conditions, type_));
        let was_good = before.is_some_and(|before| before.status == "True");
        // The words of an earlier process say more about an outage than those of one that never had a connection.
        let never = || {
            let before = before.filter(|before| before.status == "False" && before.reason == reasons::PROBE_FAILED);
            failed(before.map_or(NOT_ESTABLISHED, |before| before.message.as_str()))
        };
        if let Some(why) = &self.seen.refused {
            return failed(why);
        }
        match &self.seen.probe {
            Workload::Up(()) => good(),
            // A process that has just started knows nothing: what was reported stays.
            Workload::NotTried(_) if was_good => good(),
            Workload::NotTried(_) => never(),
            Workload::Down(outage) => match outage.last_success {
                Some(last) if self.moment.elapsed(last, outage.grace.connection) => {
                    let at = last.strftime("%Y-%m-%dT%H:%M:%SZ");
                    failed(&format!("Remote connection probe failed, probe last succeeded at {at}"))
                }
                Some(_) => good(),
                None if was_good && !self.moment.elapsed(outage.since, outage.grace.connection) => good(),
                None => never(),
            },
        }
    }

    /// What a topology that has not named the object yet means.
    fn waits_for_topology(&self, type_: &str, named: bool, status: Status) -> Option<Condition> {
        (!named && self.seen.cluster.spec.topology.is_some()).then(|| {
            let message = if self.seen.deleting() { "" } else { TOPOLOGY_WAIT };
            self.make(type_, status, reasons::OBJECT_DOES_NOT_EXIST, message)
        })
    }

    fn infrastructure(&self, provisioned: bool) -> Condition {
        let type_ = types::INFRASTRUCTURE_READY;
        let reference = self.seen.cluster.spec.infrastructure_ref.as_ref();
        if let Some(waiting) = self.waits_for_topology(type_, reference.is_some(), Status::False) {
            return waiting;
        }
        let (Some(reference), Some(object)) = (reference, &self.seen.infrastructure) else {
            return self.make(type_, Status::True, reasons::READY, "");
        };
        let rule = Follows {
            type_,
            source: types::READY,
            kind: &reference.kind,
            good: reasons::READY,
            bad: reasons::NOT_READY,
            before: provisioned,
        };
        self.referenced(object, infrastructure_lack, &rule)
    }

    fn control_plane_available(&self, initialized: bool) -> Condition {
        let type_ = types::CONTROL_PLANE_AVAILABLE;
        let reference = self.seen.cluster.spec.control_plane_ref.as_ref();
        if let Some(waiting) = self.waits_for_topology(type_, reference.is_some(), Status::False) {
            return waiting;
        }
        let (Some(reference), Some(object)) = (reference, &self.seen.control_plane) else {
            let state = if initialized { Status::True } else { Status::False };
            let reason = if initialized {
                reasons::AVAILABLE
            } else {
                reasons::NOT_AVAILABLE
            };
            return self.make(type_, state, reason, "");
        };
        let rule = Follows {
            type_,
            source: types::AVAILABLE,
            kind: &reference.kind,
            good: reasons::AVAILABLE,
            bad: reasons::NOT_AVAILABLE,
            before: initialized,
        };
        self.referenced(object, control_plane_lack, &rule)
    }

    fn referenced(
        &self,
        object: &Seen<Referenced>,
        lack: fn(&Referenced) -> Option<String>,
        rule: &Follows<'_>,
    ) -> Condition {
        let Follows {
            type_,
            source,
            kind,
            good,
            bad,
            before,
        } = *rule;
        match object {
            Seen::Failed(why) => self.make(type_, Status::Unknown, reasons::INTERNAL_ERROR, why),
            Seen::NotFound if before && self.seen.deleting() => self.make(
                type_,
                Status::False,
                reasons::OBJECT_DELETED,
                &format!("{kind} has been deleted"),
            ),
            Seen::NotFound if before => {
                let message = format!("{kind} has been deleted while the cluster still exists");
                self.make(type_, Status::False, reasons::OBJECT_DELETED, &message)
            }
            Seen::NotFound => self.make(
                type_,
                Status::False,
                reasons::OBJECT_DOES_NOT_EXIST,
                &format!("{kind} does not exist"),
            ),
            Seen::Found(found) => match conditions::value::conditions_of(found.value()) {
                Err(error) => self.make(
                    type_,
                    Status::Unknown,
                    reasons::INVALID_CONDITION_REPORTED,
                    &error.to_string(),
                ),
                Ok(list) => {
                    let lack = lack(found);
                    let fallback = Fallback {
                        status: Status::from(lack.is_none()),
                        reason: if lack.is_none() { good } else { bad },
                        message: lack.unwrap_or_default(),
                    };
                    let rule = Mirror {
                        source_type: source,
                        target_type: type_,
                        fallback: Some(fallback),
                    };
                    {
                        let source = conditions::get(&list, source);
                        conditions::named(conditions::mirror(source, &rule, self.now, self.generation), good)
                    }
                }
            },
        }
    }

    fn control_plane_initialized(&self, initialized: bool) -> Condition {
        let type_ = types::CONTROL_PLANE_INITIALIZED;
        let reference = self.seen.cluster.spec.control_plane_ref.as_ref();
        if initialized {
            return self.make(type_, Status::True, reasons::INITIALIZED, "");
        }
        if let Some(waiting) = self.waits_for_topology(type_, reference.is_some(), Status::Unknown) {
            return waiting;
        }
        match (reference, &self.seen.control_plane) {
            (Some(reference), Some(Seen::NotFound)) => {
                let message = format!("{} does not exist", reference.kind);
                self.make(type_, Status::Unknown, reasons::OBJECT_DOES_NOT_EXIST, &message)
            }
            (_, Some(Seen::Failed(why))) => self.make(type_, Status::Unknown, reasons::INTERNAL_ERROR, why),
            (reference, _) => {
                let waits = match reference {
                    Some(_) => "Control plane not yet initialized",
                    None => "Waiting for the first control plane machine to have status.nodeRef set",
                };
                let endpoint = self.endpoint_lack().map(|lack| format!("\n{lack}")).unwrap_or_default();
                let message = format!("{waits}{endpoint}");
                self.make(type_, Status::False, reasons::NOT_INITIALIZED, &message)
            }
        }
    }

    /// That provisioned infrastructure has left the Cluster without an endpoint: its control plane cannot begin.
    fn endpoint_lack(&self) -> Option<String> {
        if endpoint(self.seen).0.is_some() {
            return None;
        }
        let object = usable_infrastructure(self.seen)?;
        let why = match infra_cluster::read_endpoint(object.value()) {
            Endpoint::Incomplete(why) => why,
            Endpoint::Absent | Endpoint::Complete(_) => "spec.controlPlaneEndpoint is not set".to_owned(),
        };
        Some(format!(
            "Cluster spec.controlPlaneEndpoint is not set, {} {}: {why}",
            object.kind(),
            object.name()
        ))
    }

    fn workers_available(&self) -> Condition {
        let type_ = types::WORKERS_AVAILABLE;
        let rule = Aggregate {
            reasons: Reasons {
                issue: reasons::NOT_AVAILABLE,
                unknown: reasons::AVAILABLE_UNKNOWN,
                info: reasons::AVAILABLE,
            },
            ..Aggregate::new(types::AVAILABLE, type_)
        };
        self.gathered(&self.deployments(), &rule, reasons::NO_WORKERS)
    }

    /// The aggregate, or True where there is nothing to aggregate.
    fn gathered(&self, sources: &[Source<'_>], rule: &Aggregate<'_>, none: &str) -> Condition {
        conditions::aggregate(sources, rule, self.now, self.generation)
            .unwrap_or_else(|| self.make(rule.target, Status::True, none, ""))
    }

    fn deployments(&self) -> Vec<Source<'_>> {
        self.seen
            .deployments
            .iter()
            .map(|deployment| Source {
                kind: "MachineDeployment",
                name: deployment.metadata.name.as_deref().unwrap_or_default(),
                control_plane: false,
                conditions: deployment.status.as_ref().map_or(&[], |status| &status.conditions),
            })
            .collect()
    }

    /// Ready or UpToDate of some Machines. A Machine so new that no controller has compared it yet is not counted as unknown.
    fn machines(&self, target: &str, source: &str, machines: &[&Machine]) -> Condition {
        let (issue, unknown, info) = if source == types::READY {
            (reasons::NOT_READY, reasons::READY_UNKNOWN, reasons::READY)
        } else {
            (
                reasons::NOT_UP_TO_DATE,
                reasons::UP_TO_DATE_UNKNOWN,
                reasons::UP_TO_DATE,
            )
        };
        let counts = |machine: &&&Machine| source == types::READY || is_age_known(machine, self.moment);
        let sources: Vec<Source<'_>> = machines
            .iter()
            .filter(counts)
            .map(|machine| machine_source(machine))
            .collect();
        let rule = Aggregate {
            reasons: Reasons { issue, unknown, info },
            ..Aggregate::new(source, target)
        };
        self.gathered(&sources, &rule, reasons::NO_REPLICAS)
    }

    /// A condition that says that something is under way, gathered from the control plane and the workers.
    fn ongoing(&self, type_: &str, issue: &str, unknown: &str, info: &str, with_sets: bool) -> Condition {
        if let Some(Seen::Failed(why)) = &self.seen.control_plane {
            return self.make(type_, Status::Unknown, reasons::INTERNAL_ERROR, why);
        }
        let reported = self.seen.control_plane().and_then(|object| {
            let list = conditions::value::conditions_of(object.value()).ok()?;
            conditions::get(&list, type_)?;
            Some((object.kind().to_owned(), object.name().to_owned(), list))
        });
        let mut sources: Vec<Source<'_>> = Vec::new();
        if let Some((kind, name, list)) = &reported {
            sources.push(Source {
                kind,
                name,
                control_plane: true,
                conditions: list,
            });
        }
        sources.extend(self.deployments());
        if with_sets {
            sources.extend(self.seen.sets.iter().map(|set| Source {
                kind: "MachineSet",
                name: set.metadata.name.as_deref().unwrap_or_default(),
                control_plane: false,
                conditions: set.status.as_ref().map_or(&[], |status| &status.conditions),
            }));
        }
        let rule = Aggregate {
            negative: true,
            reasons: Reasons { issue, unknown, info },
            ..Aggregate::new(type_, type_)
        };
        conditions::aggregate(&sources, &rule, self.now, self.generation)
            .unwrap_or_else(|| self.make(type_, Status::False, info, ""))
    }

    fn remediating(&self, machines: &[&Machine]) -> Condition {
        let has = |machine: &&Machine, type_: &str, status: &str| {
            let list = machine.status.as_ref().map(|s| &s.conditions);
            list.and_then(|list| conditions::get(list, type_))
                .is_some_and(|found| found.status == status)
        };
        let to_remediate: Vec<Source<'_>> = machines
            .iter()
            .filter(|m| has(m, types::HEALTH_CHECK_SUCCEEDED, "False") && has(m, types::OWNER_REMEDIATED, "False"))
            .map(|machine| machine_source(machine))
            .collect();
        if to_remediate.is_empty() {
            let mut names: Vec<&str> = machines
                .iter()
                .filter(|machine| has(machine, types::HEALTH_CHECK_SUCCEEDED, "False"))
                .filter_map(|machine| machine.metadata.name.as_deref())
                .collect();
            names.sort_unstable();
            return self.make(
                types::REMEDIATING,
                Status::False,
                reasons::NOT_REMEDIATING,
                &unhealthy(&names),
            );
        }
        let rule = Aggregate::new(types::OWNER_REMEDIATED, types::REMEDIATING);
        let gathered = self.gathered(&to_remediate, &rule, reasons::REMEDIATING);
        self.make(
            types::REMEDIATING,
            Status::True,
            reasons::REMEDIATING,
            &gathered.message,
        )
    }

    fn available(&self, all: &[Condition]) -> Condition {
        let own = &self.seen.cluster.spec.availability_gates;
        let class = self
            .seen
            .class
            .as_ref()
            .map(|class| class.spec.availability_gates.as_slice())
            .unwrap_or_default();
        let gates = if own.is_empty() { class } else { own };
        let mut for_types = vec![
            types::DELETING,
            types::REMOTE_CONNECTION_PROBE,
            types::INFRASTRUCTURE_READY,
            types::CONTROL_PLANE_AVAILABLE,
            types::WORKERS_AVAILABLE,
            types::TOPOLOGY_RECONCILED,
        ];
        for_types.extend(gates.iter().map(|gate| gate.condition_type.as_str()));
        let mut negative = vec![types::DELETING];
        let against = gates.iter().filter(|gate| gate.polarity.as_deref() == Some("Negative"));
        negative.extend(against.map(|gate| gate.condition_type.as_str()));
        let missing_is_fine: &[&str] = if self.seen.cluster.spec.topology.is_none() {
            &[types::TOPOLOGY_RECONCILED]
        } else {
            &[]
        };
        let deleting = self.seen.deleting();
        let priority = |condition: &Condition| {
            let reason = condition.reason.as_str();
            let gone = [types::INFRASTRUCTURE_READY, types::CONTROL_PLANE_AVAILABLE]
                .contains(&condition.type_.as_str())
                && (reason == reasons::OBJECT_DELETED || reason == reasons::OBJECT_DOES_NOT_EXIST);
            let under_way = condition.type_ == types::TOPOLOGY_RECONCILED
                && condition.status == "False"
                && reason != reasons::RECONCILE_FAILED
                && reason != reasons::CLUSTER_CLASS_NOT_RECONCILED;
            if (deleting && gone) || under_way {
                Priority::Info
            } else {
                default_priority(condition, &negative)
            }
        };
        let rule = Summary {
            negative: &negative,
            ignore_if_missing: missing_is_fine,
            priority: Some(&priority),
            reasons: Reasons {
                issue: reasons::NOT_AVAILABLE,
                unknown: reasons::AVAILABLE_UNKNOWN,
                info: reasons::AVAILABLE,
            },
            ..Summary::new(types::AVAILABLE, &for_types)
        };
        conditions::summary(all, &rule, self.now, self.generation)
    }
}

/// How a condition follows from an object the Cluster references.
#[derive(Clone, Copy)]
struct Follows<'a> {
    type_: &'a str,
    source: &'a str,
    kind: &'a str,
    good: &'a str,
    bad: &'a str,
    before: bool,
}

/// What an infrastructure cluster lacks to be provisioned, in the words of its fields. An endpoint may come from elsewhere, so one
/// counts only when a client has begun to write it.
fn infrastructure_lack(object: &Referenced) -> Option<String> {
    let lack = infra_cluster::provisioned_lack(object.value(), object.contract)?;
    let endpoint = match infra_cluster::read_endpoint(object.value()) {
        Endpoint::Incomplete(why) => format!(", {why}"),
        Endpoint::Absent | Endpoint::Complete(_) => String::new(),
    };
    Some(format!("{} {}: {lack}{endpoint}", object.kind(), object.name()))
}

/// What a control plane lacks to be initialized.
fn control_plane_lack(object: &Referenced) -> Option<String> {
    let lack = control_plane::initialized_lack(object.value(), object.contract)?;
    Some(format!("{} {}: {lack}", object.kind(), object.name()))
}

fn machine_source(machine: &Machine) -> Source<'_> {
    Source {
        kind: "Machine",
        name: machine.metadata.name.as_deref().unwrap_or_default(),
        control_plane: machine
            .metadata
            .labels
            .as_ref()
            .is_some_and(|all| all.contains_key(windlass_api::labels::CONTROL_PLANE)),
        conditions: machine.status.as_ref().map_or(&[], |status| &status.conditions),
    }
}

fn unhealthy(names: &[&str]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let shown = windlass_conditions::listed(names, 3);
    let (noun, verb) = if names.len() == 1 {
        ("Machine", "is")
    } else {
        ("Machines", "are")
    };
    format!("{noun} {shown} {verb} not healthy (not to be remediated)")
}
