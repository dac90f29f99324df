//! Text about a trial of a take-over.

use anstyle::Style;

use super::text::{BOLD, CHANGED, FAINT, REMOVED, Text};
use super::words;
use crate::adopt::model::Adoption;
use crate::model::Verdict;

/// The report as text.
pub fn text(report: &Adoption) -> String {
    let mut out = Text::default();
    let mut namespace = "";
    for change in &report.changes {
        if change.object.namespace != namespace {
            namespace = &change.object.namespace;
            out.line(0, FAINT, &format!("in namespace {namespace}"));
        }
        out.object(0, change);
    }
    for write in &report.workload_writes {
        out.line(
            0,
            CHANGED,
            &format!("~ workload cluster {}: {}", write.cluster, write.what),
        );
    }
    for refused in &report.refused {
        out.line(0, REMOVED, &format!("! a write is refused: {refused}"));
    }
    for unreached in &report.unreached {
        let line = format!(
            "! workload cluster {} is not reached: {}",
            unreached.cluster, unreached.why
        );
        out.line(0, REMOVED, &line);
    }
    if let Some(controllers) = &report.unsettled {
        let line = format!(
            "! the controllers did not come to rest in time: {}",
            controllers.join(", ")
        );
        out.line(0, REMOVED, &line);
        out.line(1, Style::new(), "try again with a longer --timeout");
    }
    if !report.texts.is_empty() {
        let number = words::count(report.texts.len(), "object");
        let line =
            format!("Only messages, reasons and times in the status of {number} would be others: see --output yaml");
        out.line(0, FAINT, &line);
    }
    out.line(0, BOLD, &summary(report));
    out.0
}

/// The result in a sentence.
pub fn summary(report: &Adoption) -> String {
    let looked = format!(
        "{} of {} were looked at",
        words::count(report.objects, "object"),
        words::count(report.clusters, "Cluster")
    );
    match report.verdict() {
        Verdict::Same => format!("Nothing would change: {looked}."),
        Verdict::Changes => {
            let mut parts = vec![words::count(report.changes.len(), "object")];
            if !report.workload_writes.is_empty() {
                let writes = words::count(report.workload_writes.len(), "write");
                parts.push(format!("{writes} to workload clusters"));
            }
            format!("{} would change: {looked}.", parts.join(" and "))
        }
        Verdict::Problems => format!("It is not known whether something would change: {looked}."),
    }
}
