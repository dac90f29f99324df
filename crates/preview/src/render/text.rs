//! Text for terminals. Styles are ANSI sequences, which the caller removes where the output is no terminal.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

use super::words;
use crate::model::{ClusterPlan, FieldChange, Group, ObjectChange, Phase, Report, Verb};

pub(super) const BOLD: Style = Style::new().bold();
const ADDED: Style = AnsiColor::Green.on_default();
pub(super) const CHANGED: Style = AnsiColor::Yellow.on_default();
pub(super) const REMOVED: Style = AnsiColor::Red.on_default();
pub(super) const FAINT: Style = Style::new().dimmed();

/// Clusters that are named of a group.
const SHOWN: usize = 5;

/// The report as text.
pub fn text(report: &Report) -> String {
    let mut out = Text::default();
    if !report.changes.is_empty() {
        out.line(0, BOLD, "Your change");
        for change in &report.changes {
            out.object(1, change);
        }
        out.blank();
    }
    if !report.ignored.is_empty() {
        let all: Vec<String> = report.ignored.iter().map(ToString::to_string).collect();
        let names = words::names(all.iter().map(String::as_str));
        out.line(
            0,
            FAINT,
            &format!("Not planned, as no Cluster depends on such kinds: {names}"),
        );
        out.blank();
    }
    if !report.refused.is_empty() {
        out.line(0, BOLD, "Refused");
        for refusal in &report.refused {
            let place = place(&refusal.object.namespace, &refusal.object.name);
            out.line(
                1,
                REMOVED,
                &format!("! {} {place}: {}", refusal.object.kind, refusal.message),
            );
        }
        out.line(1, FAINT, "The rest is planned without them.");
        out.blank();
    }
    for of_class in &report.waves {
        let class = &of_class.class;
        out.line(0, BOLD, &format!("ClusterClass {class} is rolled out in waves"));
        for line in words::waves(of_class) {
            out.line(1, Style::new(), &line);
        }
        out.blank();
    }
    for group in &report.groups {
        out.group(group);
    }
    out.line(0, BOLD, &words::summary(report));
    out.0
}

fn place(namespace: &str, name: &str) -> String {
    if namespace.is_empty() {
        name.to_owned()
    } else {
        format!("{namespace}/{name}")
    }
}

/// Lines, indented by two spaces a level.
#[derive(Default)]
pub(super) struct Text(pub(super) String);

impl Text {
    pub(super) fn line(&mut self, level: usize, style: Style, text: &str) {
        let indent = "  ".repeat(level);
        let _ = writeln!(self.0, "{indent}{style}{text}{style:#}");
    }

    fn blank(&mut self) {
        self.0.push('\n');
    }

    fn group(&mut self, group: &Group) {
        let first = group.clusters.first().map_or("", String::as_str);
        let class = if group.plan.class.is_empty() {
            String::new()
        } else {
            format!(" (ClusterClass {})", group.plan.class)
        };
        self.line(0, BOLD, &format!("Cluster {first}{class}"));
        let others = group.clusters.len().saturating_sub(1);
        if others > 0 {
            let names = group.clusters[1..]
                .iter()
                .take(SHOWN)
                .cloned()
                .collect::<Vec<_>>()
                .join(", ");
            let more = if others > SHOWN { ", ..." } else { "" };
            self.line(
                1,
                BOLD,
                &format!("the same for {}: {names}{more}", words::count(others, "other Cluster")),
            );
        }
        self.plan(&group.plan);
        self.blank();
    }

    fn plan(&mut self, plan: &ClusterPlan) {
        let many = plan.phases.len() > 1;
        for (index, phase) in plan.phases.iter().enumerate() {
            let level = if many {
                let when = if index == 0 {
                    "at once"
                } else {
                    "when that is rolled out"
                };
                self.line(1, BOLD, &format!("{}. {when}", index + 1));
                2
            } else {
                1
            };
            self.phase(level, phase);
        }
        for problem in &plan.problems {
            self.line(1, REMOVED, &format!("! {problem}"));
        }
        for wait in &plan.waits {
            self.line(1, CHANGED, &format!("waits: {wait}"));
        }
    }

    fn phase(&mut self, level: usize, phase: &Phase) {
        for hook in &phase.hooks {
            self.line(level, CHANGED, &format!("? {}", words::hook(hook)));
        }
        for change in &phase.objects {
            self.object(level, change);
        }
        for one in &phase.rotated {
            let text = format!("± {} {} is replaced by {}", one.kind, one.from, one.to);
            self.line(level, CHANGED, &text);
            self.fields(level + 1, &one.fields);
        }
        for machines in &phase.machines {
            let lines = words::machines(machines);
            let first = lines.first().map_or("", String::as_str);
            self.line(level, BOLD, &format!("* Machines of {}: {first}", machines.owner));
            for line in lines.iter().skip(1) {
                self.line(level + 2, Style::new(), line);
            }
        }
        for held in &phase.held {
            self.line(level, FAINT, &format!("later: {held}"));
        }
    }

    pub(super) fn object(&mut self, level: usize, change: &ObjectChange) {
        let (sign, style, word) = match change.verb {
            Verb::Created => ('+', ADDED, "is created"),
            Verb::Changed => ('~', CHANGED, "is changed"),
            Verb::Deleted => ('-', REMOVED, "is deleted"),
        };
        let why = change
            .reason
            .as_ref()
            .map_or_else(String::new, |why| format!(": {why}"));
        self.line(level, style, &format!("{sign} {} {word}{why}", change.object));
        self.fields(level + 1, &change.fields);
    }

    fn fields(&mut self, level: usize, fields: &[FieldChange]) {
        for field in fields {
            let (sign, line) = words::field(field);
            let style = match sign {
                '+' => ADDED,
                '-' => REMOVED,
                _ => CHANGED,
            };
            self.line(level, style, &format!("{sign} {line}"));
        }
    }
}
