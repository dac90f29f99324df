//! Words that all texts for people use.

use serde_json::Value;

use crate::model::{ClassWaves, FieldChange, HookCall, MachineChange, Report, Wave};

/// Values longer than this are cut.
const LONGEST: usize = 100;
/// Names that are shown of a long list.
const SHOWN: usize = 5;

/// A value in one line.
pub(super) fn value(value: &Value) -> String {
    let text = match value {
        Value::String(text) if text.is_empty() => "\"\"".to_owned(),
        Value::String(text) if text.contains('\n') => {
            let lines = text.lines().count();
            let first = text.lines().next().unwrap_or_default();
            format!("{first} ... ({lines} lines)")
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if text.chars().count() <= LONGEST {
        return text;
    }
    let cut: String = text.chars().take(LONGEST).collect();
    format!("{cut}...")
}

/// What happens to a field: the sign, and the rest of the line.
pub(super) fn field(change: &FieldChange) -> (char, String) {
    let path = &change.path;
    match (&change.from, &change.to) {
        (Some(from), Some(to)) => {
            let (mut old, mut new) = (value(from), value(to));
            if old == new {
                // Only the parts that were cut differ.
                old = format!("{} characters", from.to_string().len());
                new = format!("{} characters, other content", to.to_string().len());
            }
            ('~', format!("{path}: {old} -> {new}"))
        }
        (None, Some(to)) => ('+', format!("{path}: {}", value(to))),
        (Some(from), None) => ('-', format!("{path}: {}", value(from))),
        (None, None) => ('~', path.clone()),
    }
}

/// A list of names, cut.
pub(super) fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let all: Vec<&str> = names.into_iter().collect();
    match all.len().checked_sub(SHOWN) {
        Some(more) if more > 1 => format!("{}, ... ({more} more)", all[..SHOWN].join(", ")),
        _ => all.join(", "),
    }
}

/// The waves of a class, a line each; those of a stage with the same number of Clusters together.
pub(super) fn waves(of: &ClassWaves) -> Vec<String> {
    let mut lines = Vec::new();
    let mut index = 0;
    while let Some(wave) = of.waves.get(index) {
        let is_like = |other: &&Wave| other.stage == wave.stage && other.clusters.len() == wave.clusters.len();
        let same = of.waves[index..].iter().take_while(is_like).count();
        let numbers = match same {
            1 => format!("wave {}", index + 1),
            _ => format!("waves {} to {}", index + 1, index + same),
        };
        let each = if same == 1 { "" } else { " each" };
        let clusters = count(wave.clusters.len(), "Cluster");
        let all = of.waves[index..index + same].iter().flat_map(|wave| &wave.clusters);
        let names = names(all.map(String::as_str));
        let soak = match wave.soak_seconds {
            0 => String::new(),
            seconds => format!("; healthy for {seconds} s before the next"),
        };
        lines.push(format!(
            "{numbers}, stage {}: {clusters}{each}: {names}{soak}",
            wave.stage
        ));
        index += same;
    }
    if !of.left_out.is_empty() {
        let names = names(of.left_out.iter().map(String::as_str));
        lines.push(format!("in no wave, as they are paused: {names}"));
    }
    if let Some(held) = &of.held {
        lines.push(format!("no wave begins: {held}"));
    }
    lines
}

/// A number of things.
pub(super) fn count(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

/// A hook in a phase.
pub(super) fn hook(call: &HookCall) -> String {
    let versions = match (call.from.as_str(), call.to.as_str()) {
        ("", "") => String::new(),
        ("", to) => format!(" ({to})"),
        (from, to) => format!(" ({from} -> {to})"),
    };
    format!(
        "hook {}{versions} is called first: extensions may hold back what follows until they let it pass",
        call.hook
    )
}

/// What becomes of Machines: how many and how, and then a line for each reason, with names.
pub(super) fn machines(change: &MachineChange) -> Vec<String> {
    let number = |number: i32| usize::try_from(number).unwrap_or_default();
    let total = change.total.max(change.replaced.len());
    let mut parts = Vec::new();
    if !change.replaced.is_empty() {
        let done = if change.in_place.is_empty() {
            "replaced".to_owned()
        } else {
            format!("updated in place if {} can, else replaced", change.in_place.join(", "))
        };
        parts.push(format!("{} of {total} {done}", change.replaced.len()));
    }
    let removed = change.removed.len() + number(change.surplus);
    if removed > 0 {
        parts.push(format!("{removed} deleted"));
    }
    if change.added > 0 {
        parts.push(format!("{} created", change.added));
    }
    if !change.how.is_empty() {
        parts.push(change.how.clone());
    }
    let mut by_reason: Vec<(String, Vec<&str>)> = Vec::new();
    for machine in &change.replaced {
        let reasons = machine.reasons.join("; ");
        match by_reason.iter_mut().find(|(known, _)| *known == reasons) {
            Some((_, names)) => names.push(&machine.name),
            None => by_reason.push((reasons, vec![&machine.name])),
        }
    }
    let mut lines = vec![parts.join(", ")];
    lines.extend(by_reason.into_iter().map(|(reasons, found)| {
        // Machines that are not in the files have no names.
        let known = names(found.into_iter().filter(|name| !name.starts_with('(')));
        let colon = if known.is_empty() { "" } else { ": " };
        format!("{reasons}{colon}{known}")
    }));
    if !change.removed.is_empty() {
        lines.push(format!("deleted: {}", names(change.removed.iter().map(String::as_str))));
    }
    lines
}

/// The last line.
pub(super) fn summary(report: &Report) -> String {
    let numbers = &report.summary;
    if report.changes.is_empty() && report.groups.is_empty() && report.refused.is_empty() {
        return "Nothing changes.".to_owned();
    }
    let mut parts = Vec::new();
    let objects = [
        (numbers.created, "created"),
        (numbers.changed, "changed"),
        (numbers.rotated, "rotated"),
        (numbers.deleted, "deleted"),
    ];
    let objects: Vec<String> = objects
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, done)| format!("{number} {done}"))
        .collect();
    if !objects.is_empty() {
        parts.push(format!("objects: {}", objects.join(", ")));
    }
    let machines = [
        (numbers.machines_replaced, "replaced"),
        (numbers.machines_added, "created"),
        (numbers.machines_removed, "deleted"),
    ];
    let machines: Vec<String> = machines
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, done)| format!("{number} {done}"))
        .collect();
    let none = "no Machine is replaced".to_owned();
    parts.push(if machines.is_empty() {
        none
    } else {
        format!("Machines: {}", machines.join(", "))
    });
    if numbers.failed_clusters > 0 {
        parts.push(format!("problems in {}", count(numbers.failed_clusters, "Cluster")));
    }
    if !report.refused.is_empty() {
        parts.push(format!("{} refused", count(report.refused.len(), "change")));
    }
    format!(
        "Plan: {} of {} changed; {}.",
        numbers.changed_clusters,
        count(numbers.clusters, "Cluster"),
        parts.join("; ")
    )
}
