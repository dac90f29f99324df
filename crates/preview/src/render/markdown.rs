//! Markdown, for comments on pull requests.

use std::fmt::Write as _;

use super::words;
use crate::model::{FieldChange, Group, ObjectChange, Phase, Report, Verb};

/// The report as Markdown.
pub fn markdown(report: &Report) -> String {
    let mut out = format!("## Windlass plan\n\n{}\n", words::summary(report));
    if !report.refused.is_empty() {
        out.push_str("\n### Refused\n\n");
        for refusal in &report.refused {
            let (id, message) = (&refusal.object, refusal.message.replace('\n', " "));
            let _ = writeln!(out, "- :x: `{} {}/{}`: {message}", id.kind, id.namespace, id.name);
        }
    }
    if !report.changes.is_empty() {
        out.push_str("\n### Your change\n\n```diff\n");
        report.changes.iter().for_each(|change| object(&mut out, change));
        out.push_str("```\n");
    }
    if !report.ignored.is_empty() {
        let all: Vec<String> = report.ignored.iter().map(ToString::to_string).collect();
        let names = words::names(all.iter().map(String::as_str));
        let _ = writeln!(out, "\nNot planned, as no Cluster depends on such kinds: {names}");
    }
    for of_class in &report.waves {
        let _ = writeln!(out, "\n### ClusterClass `{}` is rolled out in waves\n", of_class.class);
        for line in words::waves(of_class) {
            let _ = writeln!(out, "- {line}");
        }
    }
    for one in &report.groups {
        group(&mut out, one);
    }
    out
}

fn group(out: &mut String, group: &Group) {
    let first = group.clusters.first().map_or("", String::as_str);
    let others = group.clusters.len().saturating_sub(1);
    let more = if others > 0 {
        format!(" and {} more", words::count(others, "Cluster"))
    } else {
        String::new()
    };
    let _ = writeln!(out, "\n### Cluster `{first}`{more}\n");
    for problem in &group.plan.problems {
        let _ = writeln!(out, "- :x: {}", problem.replace('\n', " "));
    }
    for wait in &group.plan.waits {
        let _ = writeln!(out, "- :hourglass: waits: {}", wait.replace('\n', " "));
    }
    let many = group.plan.phases.len() > 1;
    for (index, one) in group.plan.phases.iter().enumerate() {
        if many {
            let when = if index == 0 {
                "at once"
            } else {
                "when that is rolled out"
            };
            let _ = writeln!(out, "\n**{}. {when}**\n", index + 1);
        }
        phase(out, one);
    }
    if others > 0 {
        let names = group
            .clusters
            .iter()
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(", ");
        let total = words::count(group.clusters.len(), "Cluster");
        let _ = writeln!(out, "\n<details><summary>{total}</summary>\n\n{names}\n\n</details>");
    }
}

fn phase(out: &mut String, phase: &Phase) {
    for hook in &phase.hooks {
        let _ = writeln!(out, "- :hourglass: {}", words::hook(hook));
    }
    for machines in &phase.machines {
        let _ = writeln!(
            out,
            "- **{}**: {}",
            machines.owner,
            words::machines(machines).join("; ")
        );
    }
    for held in &phase.held {
        let _ = writeln!(out, "- later: {held}");
    }
    if phase.objects.is_empty() && phase.rotated.is_empty() {
        return;
    }
    out.push_str("\n```diff\n");
    phase.objects.iter().for_each(|change| object(out, change));
    for one in &phase.rotated {
        let _ = writeln!(out, "! {} {} is replaced by {}", one.kind, one.from, one.to);
        fields(out, &one.fields);
    }
    out.push_str("```\n");
}

fn object(out: &mut String, change: &ObjectChange) {
    let (sign, word) = match change.verb {
        Verb::Created => ('+', "is created"),
        Verb::Changed => ('!', "is changed"),
        Verb::Deleted => ('-', "is deleted"),
    };
    let why = change
        .reason
        .as_ref()
        .map_or_else(String::new, |why| format!(": {why}"));
    let _ = writeln!(out, "{sign} {} {word}{why}", change.object);
    fields(out, &change.fields);
}

fn fields(out: &mut String, fields: &[FieldChange]) {
    for field in fields {
        let (sign, line) = words::field(field);
        let sign = if sign == '~' { '!' } else { sign };
        let _ = writeln!(out, "{sign}   {line}");
    }
}
