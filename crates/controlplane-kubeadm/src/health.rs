//! What the workload cluster says of each Machine: the conditions this controller sets on Machines.

mod etcd;
mod pods;

use std::sync::Arc;
use windlass_conditions::Status;

use windlass_cluster_cache::{Outage, Workload};
use windlass_controller_runtime::Moment;

use crate::facts::{CpMachine, Facts, NodeFacts, Reached};
use crate::finding::Finding;
use crate::names::{control_plane as own, machine, readiness_gates};
use crate::up_to_date::{self, UpToDate};

pub use etcd::Matching;

/// A Machine with what was found about it now.
#[derive(Clone, Debug)]
pub struct View {
    /// The Machine.
    pub facts: Arc<CpMachine>,
    /// The conditions this controller sets, fresh.
    pub findings: Vec<Finding>,
    /// How it differs from what is asked for.
    pub up_to_date: UpToDate,
}

impl View {
    /// The status of a condition: a fresh finding, or what another writer left.
    pub fn status(&self, kind: &str) -> Option<Status> {
        let fresh = self.findings.iter().find(|f| f.kind == kind);
        fresh
            .map(|f| f.status)
            .or_else(|| Some(Status::parse(&self.facts.condition(kind)?.status)))
    }

    /// True when the condition is there and true.
    pub fn is_true(&self, kind: &str) -> bool {
        self.status(kind) == Some(Status::True)
    }

    /// The fresh finding of a type.
    pub fn finding(&self, kind: &str) -> Option<&Finding> {
        self.findings.iter().find(|f| f.kind == kind)
    }

    /// True when API server, controller manager and scheduler are healthy.
    pub fn components_healthy(&self) -> bool {
        machine::COMPONENTS.iter().all(|kind| self.is_true(kind))
    }

    /// True when a component is known to be unhealthy, or etcd where it runs on the Machine. What is unknown is not broken.
    pub fn is_broken(&self, managed_etcd: bool) -> bool {
        let etcd = [machine::ETCD_POD, machine::ETCD_MEMBER];
        let etcd = etcd.iter().filter(|_| managed_etcd);
        machine::COMPONENTS
            .iter()
            .chain(etcd)
            .any(|kind| self.status(kind) == Some(Status::False))
    }
}

/// What was found about the control plane as a whole.
#[derive(Clone, Debug)]
pub struct Health {
    /// The Machines.
    pub machines: Vec<View>,
    /// The finding about etcd as a whole; absent with an external etcd.
    pub etcd: Option<Finding>,
    /// The finding about the other components as a whole.
    pub components: Finding,
    /// Whether members and Machines belong together.
    pub matching: Matching,
    /// Whether these are findings of earlier: nothing can be seen now, and has not been for a short time only.
    pub remembered: bool,
}

/// Why nothing can be said of the workload cluster.
struct Blind {
    overwrite: bool,
    reason: &'static str,
    message: String,
}

/// What the workload cluster lets the controller see.
enum Sight<'f> {
    /// The cluster answers.
    Clear(&'f Reached),
    /// It does not, or there is nothing to look at yet.
    Blind(Blind),
}

/// Looks at every Machine.
pub fn assess(facts: &Facts, now: &Moment) -> Health {
    let mut health = match sight(facts, now) {
        Sight::Clear(reached) => {
            let (mut machines, errors) = pods::findings(facts, reached);
            let matching = etcd::add_findings(facts, reached, &mut machines, now);
            let components = pods::aggregate(facts, &machines, &errors);
            let etcd = etcd::aggregate(facts, &machines, &matching);
            Health {
                machines,
                etcd,
                components,
                matching,
                remembered: false,
            }
        }
        Sight::Blind(blind) => in_the_dark(facts, &blind),
    };
    for view in &mut health.machines {
        view.up_to_date = up_to_date::judge(facts, &view.facts, now);
        let finding = up_to_date::finding(&view.facts, &view.up_to_date);
        view.findings.insert(0, finding);
    }
    health
}

fn sight<'f>(facts: &'f Facts, now: &Moment) -> Sight<'f> {
    if !facts.initialized() {
        return Sight::Blind(Blind {
            overwrite: true,
            reason: "InspectionFailed",
            message: "Waiting for Cluster control plane to be initialized".to_owned(),
        });
    }
    let (overwrite, last_success) = match &facts.workload {
        Workload::Up(reached) => return Sight::Clear(reached),
        Workload::Down(outage) => (silent_for_long(facts, outage, now), outage.last_success),
        // A process that has just started knows nothing: what was found before stays.
        Workload::NotTried(_) => (false, None),
    };
    Sight::Blind(Blind {
        overwrite,
        reason: "ConnectionDown",
        message: match last_success {
            Some(at) => format!("Last successful probe at {}", at.strftime("%Y-%m-%dT%H:%M:%SZ")),
            None => "Remote connection not established yet".to_owned(),
        },
    })
}

fn silent_for_long(facts: &Facts, outage: &Outage, now: &Moment) -> bool {
    let initialized = windlass_conditions::get(&facts.control_plane.conditions, own::INITIALIZED)
        .filter(|c| c.status == "True")
        .map(|c| c.last_transition_time.0);
    let heard = outage.last_success.unwrap_or(outage.since);
    let since = initialized.map_or(heard, |initialized| initialized.max(heard));
    now.elapsed(since, outage.grace.conditions)
}

/// Nothing can be seen: old findings stay for a while, then everything is unknown.
fn in_the_dark(facts: &Facts, blind: &Blind) -> Health {
    let control_plane = &facts.control_plane;
    let of = |kind: &'static str, existing: &[_]| {
        let kept = (!blind.overwrite).then(|| Finding::kept(kind, existing)).flatten();
        kept.unwrap_or_else(|| Finding::unknown(kind, blind.reason, blind.message.as_str()))
    };
    let machines = facts.machines.iter().map(|m| {
        let gates = readiness_gates(control_plane.managed_etcd);
        View {
            facts: Arc::clone(m),
            findings: gates.into_iter().map(|g| of(g, &m.conditions)).collect(),
            up_to_date: UpToDate::default(),
        }
    });
    Health {
        machines: machines.collect(),
        etcd: control_plane
            .managed_etcd
            .then(|| of(own::ETCD, &control_plane.conditions)),
        components: of(own::COMPONENTS, &control_plane.conditions),
        matching: Matching::default(),
        remembered: !blind.overwrite,
    }
}

fn node_of<'n>(nodes: &'n [NodeFacts], machine: &CpMachine) -> Option<&'n NodeFacts> {
    let name = machine.node.as_deref()?;
    nodes.iter().find(|n| n.name == name)
}

/// What a Machine without a Node waits for.
fn waits_for(machine: &CpMachine) -> String {
    match &machine.provider_id {
        Some(id) => format!("Waiting for a Node with spec.providerID {id} to exist"),
        None => format!("Waiting for {} to report spec.providerID", machine.infra_kind()),
    }
}

/// Reasons of a finding about the control plane as a whole.
struct Reasons {
    good: &'static str,
    bad: &'static str,
    unknown: &'static str,
}

/// One finding of those of many Machines: equal messages appear once, the most frequent first.
fn sum_up(
    kind: &'static str,
    kinds: &[&'static str],
    machines: &[View],
    errors: &[String],
    reasons: &Reasons,
    what: &str,
) -> Finding {
    use std::collections::{BTreeMap, BTreeSet};
    let mut messages: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let (mut bad, mut unknown, mut good) = (false, false, false);
    for view in machines {
        let mut lines = Vec::new();
        let mut seen = 0;
        let mut distinct = BTreeSet::new();
        for finding in kinds.iter().filter_map(|kind| view.finding(kind)) {
            seen += 1;
            distinct.insert(finding.message.as_str());
            match finding.status {
                Status::True => {
                    good = true;
                    continue;
                }
                // A Machine that has only just begun is no bad news.
                Status::Unknown if view.facts.provider_id.is_none() => {
                    good = true;
                    continue;
                }
                Status::False => bad = true,
                Status::Unknown => unknown = true,
            }
            let said = if finding.message.is_empty() {
                format!("condition is {}", finding.status.as_str())
            } else {
                finding.message.clone()
            };
            lines.push(format!("  * {}: {said}", finding.kind));
        }
        if lines.is_empty() {
            continue;
        }
        let message = match distinct.first() {
            Some(only) if seen > 1 && distinct.len() == 1 => {
                format!("  * Control plane components: {only}")
            }
            _ => lines.join("\n"),
        };
        messages.entry(message).or_default().push(&view.facts.name);
    }
    let mut messages: Vec<(String, Vec<&str>)> = messages.into_iter().collect();
    messages.sort_by(|(_, a), (_, b)| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    let mut text: Vec<String> = messages
        .iter()
        .map(|(message, names)| {
            let plural = if names.len() > 1 { "s" } else { "" };
            let names = crate::finding::listed(names);
            format!("* Machine{plural} {names}:\n{message}")
        })
        .collect();
    text.extend(errors.iter().map(|e| format!("* {e}")));
    let text = text.join("\n");
    if bad || !errors.is_empty() {
        Finding::no(kind, reasons.bad, text)
    } else if unknown {
        Finding::unknown(kind, reasons.unknown, text)
    } else if good {
        Finding::new(kind, Status::True, reasons.good, text)
    } else {
        let text = format!("No Machines reporting {what} status");
        Finding::unknown(kind, reasons.unknown, text)
    }
}
