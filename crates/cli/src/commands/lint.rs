//! `windlass lint`.

use std::fmt::Write as _;

use serde_json::json;
use windlass_class_check::{Finding, Report, Severity, lint};

use crate::args::{LintArgs, Output};
use crate::commands::files;
use crate::error::CliError;
use crate::printer::{BOLD, Printer, styled};

/// Checks classes, templates and Clusters in files, and prints what is found.
pub(crate) fn run(args: &LintArgs, printer: &Printer) -> Result<(), CliError> {
    let texts = files::read_all(&args.files)?;
    let report = files::deeply(|| lint(&texts, files::our_kinds()))?;
    if report.objects == 0 && report.findings.is_empty() {
        let what = "there is no object in the files".to_owned();
        return Err(CliError::Input { what, source: None });
    }
    match args.output {
        Output::Text => printer.text(&text(&report))?,
        Output::Json => printer.text(&json_document(&report))?,
    }
    let is_bad = report.count(Severity::Error) > 0 || (args.strict && report.count(Severity::Warning) > 0);
    if is_bad { Err(CliError::Reported) } else { Ok(()) }
}

fn text(report: &Report) -> String {
    let mut out = String::new();
    for finding in &report.findings {
        let line = finding.to_string();
        let _ = match finding.severity {
            Severity::Error => writeln!(out, "{}", styled(BOLD, &line)),
            Severity::Warning | Severity::Note => writeln!(out, "{line}"),
        };
        if !finding.hint.is_empty() {
            let _ = writeln!(out, "    {}", shown_hint(finding));
        }
    }
    let _ = writeln!(out, "{}", summary(report));
    out
}

fn shown_hint(finding: &Finding) -> String {
    finding.hint.replace(char::is_control, " ")
}

fn summary(report: &Report) -> String {
    let count = |severity, word: &str| counted(report.count(severity), word);
    format!(
        "{}: {}, {}",
        counted(report.objects, "object"),
        count(Severity::Error, "error"),
        count(Severity::Warning, "warning")
    )
}

/// A number with its noun.
pub(super) fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

fn json_document(report: &Report) -> String {
    let document = json!({
        "objects": report.objects,
        "errors": report.count(Severity::Error),
        "warnings": report.count(Severity::Warning),
        "notes": report.count(Severity::Note),
        "findings": report.findings,
    });
    format!("{document:#}\n")
}
