//! Unit tests of ClusterClasses: given this class and this Cluster, these objects are generated, or the Cluster is refused.

mod compare;
mod expect;
mod format;
mod golden;
pub mod junit;
mod lines;
mod run;

use serde_json::Value;
use windlass_gocompat::yaml;
use windlass_gocompat::yaml::File;
use windlass_topology::model::text;

use crate::finding::{Check, Finding, Severity};
use crate::kinds::split;
use crate::library::TESTS;
use crate::positions::Position;
use crate::source::options;

pub use format::Suite;
pub use run::{CaseResult, SuiteResult, run};

/// The kind of test files.
const KIND: &str = "ClusterClassTest";
/// Their version.
const VERSION: &str = "v1alpha1";

/// The tests in a file, of which other documents are ignored. What cannot be read is an error.
pub fn suites(file: &File) -> Result<Vec<Suite>, Vec<Finding>> {
    let (mut suites, mut findings) = (Vec::new(), Vec::new());
    for document in yaml::documents(file.text.trim_start_matches('\u{feff}')) {
        match suite(&document) {
            Ok(Some(mut suite)) => {
                suite.file.clone_from(&file.name);
                suites.push(suite);
            }
            Ok(None) => {}
            Err((position, message)) => findings.push(Finding {
                severity: Severity::Error,
                check: Check::Syntax,
                file: file.name.clone(),
                position,
                object: String::new(),
                field: String::new(),
                message,
                hint: String::new(),
            }),
        }
    }
    if findings.is_empty() { Ok(suites) } else { Err(findings) }
}

fn suite(document: &yaml::Document<'_>) -> Result<Option<Suite>, (Position, String)> {
    let at = |line: usize, column: usize| Position {
        line: document.line + line - 1,
        column,
    };
    let broken = |error: &serde_saphyr::Error| {
        let problem = yaml::problem(error);
        (at(problem.line, problem.column), problem.text)
    };
    let value = yaml::read(document.text, options()).map_err(|error| broken(&error))?;
    let (group, version) = split(text(&value, "/apiVersion"));
    if group != TESTS {
        return Ok(None);
    }
    if (version, text(&value, "/kind")) != (VERSION, KIND) {
        let message = format!("is no {KIND} of {TESTS}/{VERSION}");
        return Err((at(1, 1), message));
    }
    let parsed: format::Document =
        serde_saphyr::from_str_with_options(document.text, options()).map_err(|error| broken(&error))?;
    parsed.suite().map(Some).map_err(|why| (at(1, 1), why))
}

/// An object as YAML.
fn shown(value: &Value) -> String {
    yaml::document(value)
}
