//! Runs the cases of a test: defaults and admission of the Cluster, and the objects that the planner of the controller generates for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use windlass_admission::view::{Nothing, Objects, class_of};
use windlass_gocompat::yaml::File;
use windlass_smd::merge_patch;
use windlass_topology::keys::CORE_API_VERSION;
use windlass_topology::model::{name_of, text};
use windlass_topology::plan::Action;

use super::expect::{Generated, Refused, failures};
use super::format::{Case, Suite};
use super::shown;
use crate::class::{Parts, blueprint, first_plan, objects};
use crate::finding::{Finding, Problem, Severity};
use crate::kinds::Kinds;
use crate::library::{Entry, Library};
use crate::object;

/// How many errors of the files are listed.
const MOST_ERRORS: usize = 10;

/// The result of one case.
#[derive(Clone, Debug, Default)]
pub struct CaseResult {
    /// Its name.
    pub name: String,
    /// What is not as it is expected, each as some lines; empty for a case that passes.
    pub failures: Vec<String>,
    /// Whether the case could not be run: the class or a template is wrong.
    pub is_broken: bool,
    /// The golden file as it should be: its path in the test file, and its text.
    pub golden: Option<(String, String)>,
    /// All generated objects as YAML.
    pub generated: String,
}

/// The results of a test.
#[derive(Clone, Debug)]
pub struct SuiteResult {
    /// The file that the test is from.
    pub file: String,
    /// Its name.
    pub name: String,
    /// Its cases.
    pub cases: Vec<CaseResult>,
}

impl SuiteResult {
    /// The number of cases that fail.
    pub fn failed(&self) -> usize {
        self.cases
            .iter()
            .filter(|case| !case.failures.is_empty() && !case.is_broken)
            .count()
    }

    /// The number of cases that could not be run.
    pub fn broken(&self) -> usize {
        self.cases.iter().filter(|case| case.is_broken).count()
    }
}

/// Runs a test. `sources` are its files, and `goldens` its golden files by their paths in the test file, as far as they exist.
pub fn run(suite: &Suite, sources: &[File], goldens: &BTreeMap<String, String>, kinds: Kinds) -> SuiteResult {
    let (library, findings) = Library::read(sources, kinds);
    let class = class(suite, &library, &findings);
    let class = class.and_then(|class| without_extensions(class).map(|()| class));
    let case = |case: &Case| match &class {
        Ok(class) => {
            let generated = generate(suite, case, &library, class);
            let (failures, golden) = failures(&case.expect, &generated, goldens);
            CaseResult {
                name: case.name.clone(),
                failures,
                is_broken: false,
                golden,
                generated: generated.map_or_else(|_| String::new(), |objects| all(&objects)),
            }
        }
        Err(why) => CaseResult {
            name: case.name.clone(),
            failures: vec![why.clone()],
            is_broken: true,
            ..CaseResult::default()
        },
    };
    SuiteResult {
        file: suite.file.clone(),
        name: suite.name.clone(),
        cases: suite.cases.iter().map(case).collect(),
    }
}

/// Patches of runtime extensions need a server.
fn without_extensions(class: &Entry) -> Result<(), String> {
    let patches = class.stored.pointer("/spec/patches").and_then(Value::as_array);
    let mut external = patches
        .into_iter()
        .flatten()
        .filter(|patch| patch["external"].is_object());
    match external.next() {
        None => Ok(()),
        Some(patch) => Err(format!(
            "patch {:?} of the class comes from a runtime extension, which cannot be called here",
            text(patch, "/name")
        )),
    }
}

fn all(objects: &[Generated]) -> String {
    let documents: Vec<String> = objects.iter().map(|generated| shown(&generated.object)).collect();
    documents.join("---\n")
}

/// The class of a test, or why it cannot be tested.
fn class<'a>(suite: &Suite, library: &'a Library, findings: &[Finding]) -> Result<&'a Entry, String> {
    let errors: Vec<String> = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error)
        .map(|finding| format!("\n  {finding}"))
        .collect();
    if !errors.is_empty() {
        let shown = errors.iter().take(MOST_ERRORS).map(String::as_str).collect::<String>();
        let more = errors.len().saturating_sub(MOST_ERRORS);
        let more = if more > 0 {
            format!("\n  and {more} more")
        } else {
            String::new()
        };
        return Err(format!("an API server would refuse objects of the files:{shown}{more}"));
    }
    let classes: Vec<&Entry> = library.classes().collect();
    let names = || {
        let names: Vec<&str> = classes
            .iter()
            .map(|class| text(&class.stored, "/metadata/name"))
            .collect();
        names.join(", ")
    };
    match (&suite.class, classes.as_slice()) {
        (_, []) => Err("there is no ClusterClass in the files of the test".to_owned()),
        (None, [one]) => Ok(one),
        (None, _) => Err(format!(
            "set spec.class to one of the classes in the files: {}",
            names()
        )),
        (Some(name), _) => classes
            .iter()
            .copied()
            .find(|class| text(&class.stored, "/metadata/name") == name)
            .ok_or_else(|| {
                format!(
                    "there is no ClusterClass {name:?} in the files of the test; there are: {}",
                    names()
                )
            }),
    }
}

/// The Cluster of a case.
fn cluster(suite: &Suite, case: &Case, class: &Value) -> Value {
    let namespace = text(class, "/metadata/namespace");
    let mut cluster = json!({
        "apiVersion": CORE_API_VERSION,
        "kind": "Cluster",
        "metadata": {"name": "test", "namespace": namespace, "uid": "00000000-0000-0000-0000-000000000000"},
        "spec": {"topology": {"version": "v1.36.0"}},
    });
    for part in [&suite.cluster, &case.cluster]
        .into_iter()
        .filter(|part| part.is_object())
    {
        merge_patch(&mut cluster, part);
    }
    let topology = &mut cluster["spec"]["topology"];
    if topology.is_object() && topology["classRef"].is_null() {
        topology["classRef"] = json!({"name": text(class, "/metadata/name"), "namespace": namespace});
    }
    if topology.is_object() && !case.variables.is_empty() {
        let given = topology
            .get("variables")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let is_other = |variable: &Value| {
            variable["name"]
                .as_str()
                .is_none_or(|name| !case.variables.contains_key(name))
        };
        let added = case
            .variables
            .iter()
            .map(|(name, value)| json!({"name": name, "value": value}));
        topology["variables"] = given.into_iter().filter(is_other).chain(added).collect();
    }
    cluster
}

/// The objects of a case in their order, the Cluster first; or everything that would be refused.
fn generate(suite: &Suite, case: &Case, library: &Library, class: &Entry) -> Result<Vec<Generated>, Vec<Refused>> {
    let cluster = cluster(suite, case, &class.stored);
    let view = Objects(vec![Arc::clone(&class.stored)]);
    let checked = object::check(&library.kinds, &cluster, &view);
    refused(&cluster, checked.problems)?;
    let mut cluster = checked.completed;
    let of = |pointer| text(&class.stored, pointer);
    let tested = (of("/metadata/namespace"), of("/metadata/name"));
    if class_of(&cluster).is_some_and(|named| named != tested) {
        return Err(vec![Refused {
            object: name_of(&cluster),
            field: "spec.topology.classRef".to_owned(),
            message: format!("is not the class of the test, {}/{}", tested.0, tested.1),
        }]);
    }
    let refuse = |error: windlass_topology::Error| {
        vec![Refused {
            object: error.object,
            field: error.field,
            message: error.message,
        }]
    };
    let blueprint = blueprint(library, &class.stored, Parts::All).map_err(refuse)?;
    let plan = first_plan(&cluster, &blueprint).map_err(refuse)?;
    for step in &plan.steps {
        if let Action::PatchCluster(patch) = &step.action {
            merge_patch(&mut cluster, patch);
        }
    }
    let mut found = Vec::new();
    for object in objects(&plan) {
        let checked = object::check(&library.kinds, object, &Nothing);
        found.extend(refused(object, checked.problems).err().into_iter().flatten());
    }
    if !found.is_empty() {
        return Err(found);
    }
    let made = objects(&plan).map(|object| Generated::of(object.clone(), &cluster));
    let made: Vec<Generated> = made.collect();
    let whole = Generated::of(cluster.clone(), &cluster);
    Ok(std::iter::once(whole).chain(made).collect())
}

/// The errors among problems.
fn refused(object: &Value, problems: Vec<Problem>) -> Result<(), Vec<Refused>> {
    let errors = problems.into_iter().filter(Problem::is_error);
    let refused: Vec<Refused> = errors
        .map(|problem| Refused {
            object: name_of(object),
            field: problem.field,
            message: problem.message,
        })
        .collect();
    if refused.is_empty() { Ok(()) } else { Err(refused) }
}
