//! Everything that can be said about files without a server.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_admission::view::Nothing;
use windlass_gocompat::yaml::{Document, File};

use crate::class::{self, Parts, blueprint, first_plan, objects};
use crate::finding::{Check, Finding, Problem, Severity};
use crate::kinds::{Kinds, is_topology};
use crate::library::{Entry, Library};
use crate::object;
use crate::source::{self, Object};

/// What was checked, and what was found, in the order of the files and their lines.
#[derive(Clone, Debug)]
pub struct Report {
    /// The number of objects.
    pub objects: usize,
    /// The findings.
    pub findings: Vec<Finding>,
}

impl Report {
    /// The number of findings that are as grave as this.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings
            .iter()
            .filter(|finding| finding.severity == severity)
            .count()
    }
}

/// Checks files: each object by itself, classes with their templates, Clusters with their classes.
pub fn lint(files: &[File], kinds: Kinds) -> Report {
    let (library, mut findings) = Library::read(files, kinds);
    for class in library.classes() {
        findings.extend(class::lint(&library, class));
    }
    let is_wrong = |entry: &Entry, findings: &[Finding]| {
        let (file, name) = (entry.object.file(), entry.object.name());
        let of = |finding: &&Finding| finding.file == file && finding.object == name;
        findings
            .iter()
            .filter(of)
            .any(|finding| finding.severity == Severity::Error)
    };
    for cluster in library.entries.iter().filter(|entry| is_topology(&entry.stored)) {
        let class = library.class_of(&cluster.stored);
        if let Some(class) = class.filter(|class| !is_wrong(class, &findings) && !is_wrong(cluster, &findings)) {
            findings.extend(of_cluster(&library, cluster, class));
        }
    }
    let order: BTreeMap<&str, usize> = files
        .iter()
        .enumerate()
        .map(|(n, file)| (file.name.as_str(), n))
        .collect();
    let place = |finding: &Finding| {
        let file = order.get(finding.file.as_str()).copied().unwrap_or_default();
        (file, finding.position, finding.severity)
    };
    findings.sort_by_key(place);
    findings.dedup();
    Report {
        objects: library.entries.len(),
        findings,
    }
}

/// What the schemas of their kinds have against the objects of a document, which was read to `value`: the object, or those of its list. Kinds that
/// are not known are passed over.
pub fn schemas(file: &str, document: &Document<'_>, value: &Value, kinds: &Kinds) -> Vec<Finding> {
    let is_list = value["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
    let items = value["items"].as_array().filter(|_| is_list);
    let mut all = items.map_or_else(|| std::slice::from_ref(value), Vec::as_slice).iter();
    // Places are read for a document with problems alone: a fleet has many objects.
    if all.all(|object| object::by_schema(kinds, object).is_empty()) {
        return Vec::new();
    }
    let objects = source::placed(file, document, value.clone());
    let of_object = |object: &Object| -> Vec<Finding> {
        let problems = object::by_schema(kinds, &object.value).into_iter();
        problems.map(|problem| object.finding(problem)).collect()
    };
    objects.iter().flat_map(of_object).collect()
}

/// What keeps the objects of a Cluster from being generated.
fn of_cluster(library: &Library, cluster: &Entry, class: &Entry) -> Vec<Finding> {
    let report = |problem| cluster.object.finding(problem);
    let Ok(blueprint) = blueprint(library, &class.stored, Parts::All) else {
        // The class says which templates are missing.
        return Vec::new();
    };
    let plan = match first_plan(&cluster.stored, &blueprint) {
        Ok(plan) => plan,
        Err(error) => {
            let is_own = error.object.starts_with("Cluster ");
            let (field, message) = if is_own {
                (error.field, error.message)
            } else {
                (
                    "spec.topology".to_owned(),
                    format!("its objects cannot be generated: {error}"),
                )
            };
            return vec![report(Problem::error(Check::Topology, field, message))];
        }
    };
    let mut findings = Vec::new();
    for object in objects(&plan) {
        let checked = object::check(&library.kinds, object, &Nothing);
        for problem in checked.problems.into_iter().filter(Problem::is_error) {
            let kind = object["kind"].as_str().unwrap_or_default();
            let name = object
                .pointer("/metadata/name")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let message = format!(
                "the generated {kind} {name} would be refused: {}: {}",
                problem.field, problem.message
            );
            findings.push(report(
                Problem::error(Check::GeneratedObject, "spec.topology", message).hint(problem.hint),
            ));
        }
    }
    findings
}
