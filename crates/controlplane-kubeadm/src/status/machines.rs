//! Conditions that sum up those of the Machines.

use jiff::{SignedDuration, Timestamp};

use crate::facts::Facts;
use crate::finding::{Finding, Tri, listed};
use crate::names::{control_plane, machine};
use crate::plan::Plan;

/// Time in which a new Machine gets its first conditions.
const FIRST: SignedDuration = SignedDuration::from_secs(10);
/// Different messages that are shown.
const SHOWN: usize = 3;

/// All Machines are ready.
pub(super) fn ready(facts: &Facts) -> Finding {
    let sources = facts.machines.iter().map(|m| {
        let condition = m.condition(machine::READY);
        Source {
            name: &m.name,
            status: condition.map_or(Tri::Unknown, |c| Tri::parse(&c.status)),
            message: condition.map_or_else(
                || format!("Condition {} not yet reported", machine::READY),
                |c| c.message.clone(),
            ),
        }
    });
    sum_up(
        control_plane::MACHINES_READY,
        sources.collect(),
        ["Ready", "NotReady", "ReadyUnknown"],
    )
}

/// All Machines are as asked for.
pub(super) fn up_to_date(facts: &Facts, plan: &Plan, now: Timestamp) -> Finding {
    let fresh = |name: &str| {
        let health = plan.health.as_ref()?;
        let view = health.machines.iter().find(|v| v.facts.name == name)?;
        view.finding(machine::UP_TO_DATE).cloned()
    };
    let sources = facts.machines.iter().filter_map(|m| {
        let finding = fresh(&m.name).or_else(|| Finding::kept(machine::UP_TO_DATE, &m.conditions));
        match finding {
            Some(finding) => Some(Source {
                name: &m.name,
                status: finding.status,
                message: finding.message,
            }),
            None if now.duration_since(m.created) > FIRST => Some(Source {
                name: &m.name,
                status: Tri::Unknown,
                message: format!("Condition {} not yet reported", machine::UP_TO_DATE),
            }),
            None => None,
        }
    });
    sum_up(
        control_plane::MACHINES_UP_TO_DATE,
        sources.collect(),
        ["UpToDate", "NotUpToDate", "UpToDateUnknown"],
    )
}

struct Source<'m> {
    name: &'m str,
    status: Tri,
    message: String,
}

fn sum_up(kind: &'static str, sources: Vec<Source<'_>>, reasons: [&'static str; 3]) -> Finding {
    let [good, bad, unknown] = reasons;
    if sources.is_empty() {
        return Finding::yes(kind, "NoReplicas");
    }
    let worst = [Tri::False, Tri::Unknown, Tri::True]
        .into_iter()
        .find(|status| sources.iter().any(|s| s.status == *status))
        .unwrap_or(Tri::Unknown);
    let (reason, shown): (_, &[Tri]) = match worst {
        Tri::True => (good, &[Tri::True]),
        Tri::False => (bad, &[Tri::False, Tri::Unknown]),
        Tri::Unknown => (unknown, &[Tri::Unknown]),
    };
    let mut text = Vec::new();
    for status in shown {
        let of_status = sources.iter().filter(|s| s.status == *status);
        let told = messages(of_status.map(|s| (s.name, s.message.clone())));
        if !told.is_empty() {
            text.push(told);
        }
    }
    Finding::new(kind, worst, reason, text.join("\n"))
}

/// Messages of Machines: equal ones are told once, the most frequent first.
pub(super) fn messages<'m>(sources: impl Iterator<Item = (&'m str, String)>) -> String {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for (name, message) in sources {
        if message.is_empty() {
            continue;
        }
        match groups.iter_mut().find(|(m, _)| *m == message) {
            Some((_, names)) => names.push(name),
            None => groups.push((message, vec![name])),
        }
    }
    for (_, names) in &mut groups {
        names.sort_unstable();
    }
    groups.sort_by(|(_, a), (_, b)| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    let rest: usize = groups.iter().skip(SHOWN).map(|(_, names)| names.len()).sum();
    let mut lines: Vec<String> = groups
        .iter()
        .take(SHOWN)
        .map(|(message, names)| {
            let plural = if names.len() > 1 { "s" } else { "" };
            let names = listed(names);
            if message.starts_with('*') {
                let inner = message.replace('\n', "\n  ");
                format!("* Machine{plural} {names}:\n  {inner}")
            } else {
                format!("* Machine{plural} {names}: {message}")
            }
        })
        .collect();
    if rest > 0 {
        let plural = if rest > 1 { "s" } else { "" };
        lines.push(format!("And {rest} Machine{plural} with other issues"));
    }
    lines.join("\n")
}
