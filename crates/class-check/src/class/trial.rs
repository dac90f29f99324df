//! The patches of a class, tried on its own templates with example values, by the planner of the controller.
//!
//! The planner stops at the first operation that fails. A trial reports it, leaves it out, and goes on, so that all that fail are reported.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use windlass_admission::view::Nothing;
use windlass_topology::Error;
use windlass_topology::model::{ClassSpec, VariableStatus, read};
use windlass_topology::plan::Plan;
use windlass_topology::variables::BUILTIN;
use windlass_topology::variables::class::path_of;

use super::blame;
use super::blueprint::{Parts, blueprint, first_plan, objects};
use super::scenario::{Scenario, Values};
use super::usage::{is_discovered, operations, used};
use crate::finding::{Check, Finding, Problem, Severity};
use crate::library::{Entry, Library};
use crate::object;

/// What Go templates write in place of a missing value.
const NO_VALUE: &str = "<no value>";

/// How many operations may fail. After each, all others are tried again.
const MOST_FAILURES: usize = 20;

/// Tries the patches of a class.
pub(super) fn findings(library: &Library, class: &Entry, spec: &ClassSpec) -> Vec<Finding> {
    let mut trial = Trial {
        library,
        class,
        spec,
        removed: BTreeSet::new(),
        enabled: BTreeSet::new(),
        known: BTreeSet::new(),
        failures: 0,
        findings: Vec::new(),
    };
    trial.run();
    trial.findings
}

/// A patch, or one of its operations.
type Part = (usize, Option<(usize, usize)>);

struct Trial<'a> {
    library: &'a Library,
    class: &'a Entry,
    spec: &'a ClassSpec,
    /// What is left out: it is wrong in itself, or has failed.
    removed: BTreeSet<Part>,
    /// The patches that some values enable.
    enabled: BTreeSet<usize>,
    /// Problems of generated objects that are reported.
    known: BTreeSet<(String, String, String)>,
    /// How many operations have failed.
    failures: usize,
    findings: Vec<Finding>,
}

impl Trial<'_> {
    fn run(&mut self) {
        let mut class = Value::clone(&self.class.stored);
        let wrong = self.leave_out();
        if let Some(list) = class.pointer_mut("/status/variables").and_then(Value::as_array_mut) {
            list.retain(|variable| variable["name"].as_str().is_none_or(|name| !wrong.contains(name)));
        }
        let status: Vec<VariableStatus> = read(&class, "/status/variables").unwrap_or_default();
        let values = Values::of(self.spec, &status);
        for (name, is_required) in values.without_any() {
            let what = if is_required {
                "patches are"
            } else {
                "patches that use it are"
            };
            let message = format!("no value of variable {name:?} can be made up, so that {what} not tried");
            let problem = Problem::warning(Check::ExampleValue, path_of(name), message);
            self.report(problem.hint("give its schema an example or a default"));
        }
        let (scenarios, are_all) = values.scenarios(self.spec);
        let Some(first) = scenarios.first() else { return };
        if self.without_patches(&class, first).is_err() {
            return;
        }
        for scenario in &scenarios {
            self.scenario(&class, scenario);
        }
        // With more values than are tried, one of the others may enable a patch.
        if are_all {
            self.never_enabled(&class, first);
        }
    }

    fn never_enabled(&mut self, class: &Value, scenario: &Scenario) {
        // Without its condition, a patch is enabled if it selects a template at all.
        let selecting = self.enabled_by(class, scenario, false);
        for (index, patch) in self.spec.patches.iter().enumerate() {
            if self.removed.contains(&(index, None)) || self.enabled.contains(&index) || !selecting.contains(&index) {
                continue;
            }
            let message = format!(
                "patch {:?} is not enabled by any of the values that were tried",
                patch.name
            );
            let field = format!("spec.patches[{index}].enabledIf");
            let problem = Problem::warning(Check::PatchNeverEnabled, field, message);
            self.report(problem.hint("give the schemas of the variables that it uses an example that enables it"));
        }
    }

    fn report(&mut self, problem: Problem) {
        let finding = self.class.object.finding(problem);
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    /// Leaves out what is reported already, and what cannot be tried. Gives the variables that are wrong.
    fn leave_out(&mut self) -> BTreeSet<String> {
        let variables = self.spec.variables.iter().enumerate();
        let wrong = variables.filter(|(index, variable)| {
            let by_index = format!("spec.variables[{index}]");
            self.class.is_wrong_at(&path_of(&variable.name)) || self.class.is_wrong_at(&by_index)
        });
        let wrong: BTreeSet<String> = wrong.map(|(_, variable)| variable.name.clone()).collect();
        let is_discovered = is_discovered(&self.class.stored);
        let inline: BTreeSet<&str> = self.spec.variables.iter().map(|one| one.name.as_str()).collect();
        for (index, patch) in self.spec.patches.iter().enumerate() {
            let at = format!("spec.patches[{index}]");
            if patch.external.is_some() {
                self.removed.insert((index, None));
                let message = format!("patch {:?} comes from a runtime extension and is not tried", patch.name);
                self.report(Problem::note(Check::ExternalPatch, format!("{at}.external"), message));
            }
            let (names, _) = used(index, patch);
            // Variables that an extension defines have no value here.
            let is_foreign = |name: &String| name != BUILTIN && !inline.contains(name.as_str());
            if is_discovered && names.iter().any(is_foreign) {
                self.removed.insert((index, None));
            }
            if !names.is_disjoint(&wrong) || self.class.is_wrong_at(&format!("{at}.enabledIf")) {
                self.removed.insert((index, None));
            }
            for (field, _) in operations(index, patch) {
                if self.class.is_wrong_at(&field) {
                    self.removed.extend(part(&field));
                }
            }
        }
        wrong
    }

    /// The class without what is left out, and the fields that its patches had.
    fn remaining(&self, class: &Value) -> (Value, Fields) {
        let (mut patches, mut fields) = (Vec::new(), Fields(Vec::new()));
        let all = class.pointer("/spec/patches").and_then(Value::as_array);
        for (index, patch) in all.into_iter().flatten().enumerate() {
            if self.removed.contains(&(index, None)) {
                continue;
            }
            let mut patch = patch.clone();
            let mut kept = Vec::new();
            let definitions = patch.get_mut("definitions").and_then(Value::as_array_mut);
            for (number, definition) in definitions.into_iter().flatten().enumerate() {
                let list = definition.get_mut("jsonPatches").and_then(Value::as_array_mut);
                let mut places = Vec::new();
                if let Some(list) = list {
                    let is_kept = |place: &usize| !self.removed.contains(&(index, Some((number, *place))));
                    places = (0..list.len()).filter(is_kept).collect();
                    *list = places.iter().filter_map(|place| list.get(*place).cloned()).collect();
                }
                kept.push(places);
            }
            patches.push(patch);
            fields.0.push((index, kept));
        }
        let mut class = class.clone();
        class["spec"]["patches"] = patches.into();
        (class, fields)
    }

    fn plan(&self, class: &Value, scenario: &Scenario) -> Result<Plan, Error> {
        let blueprint = blueprint(self.library, class, Parts::StandIns)?;
        first_plan(&scenario.cluster(class, self.spec), &blueprint)
    }

    /// What the templates and the class alone give.
    fn without_patches(&mut self, class: &Value, scenario: &Scenario) -> Result<(), ()> {
        let mut bare = class.clone();
        bare["spec"]["patches"] = json!([]);
        let plan = match self.plan(&bare, scenario) {
            Ok(plan) => plan,
            Err(error) => {
                // Admission may have said the same.
                if !self.class.is_wrong_at(&error.field) && !self.class.problems.iter().any(Problem::is_error) {
                    self.report(Problem::error(Check::Topology, error.field, error.message));
                }
                return Err(());
            }
        };
        for object in objects(&plan) {
            for problem in self.refused(object, scenario) {
                let says = format!("the generated {} would be refused: {}", kind(object), problem.message);
                let Some((template, field)) = blame::template(self.library, object, &problem.field) else {
                    let message = format!("{}: {says}", problem.field);
                    self.report(Problem::error(Check::GeneratedObject, "spec", message).hint(problem.hint));
                    continue;
                };
                if !template.problems.iter().any(Problem::is_error) {
                    let problem = Problem::error(Check::GeneratedObject, field, says).hint(problem.hint);
                    let finding = template.object.finding(problem);
                    self.findings.push(finding);
                }
            }
        }
        Ok(())
    }

    /// What is wrong with a generated object, and was not seen before. What does not fit a made-up value says little about others.
    fn refused(&mut self, object: &Value, scenario: &Scenario) -> Vec<Problem> {
        let checked = object::check(&self.library.kinds, object, &Nothing);
        let key = |problem: &Problem| (kind(object).to_owned(), problem.field.clone(), problem.message.clone());
        let errors = checked.problems.into_iter().filter(Problem::is_error);
        let sure = errors.filter(|problem| !scenario.is_made_up || is_about_fields(problem));
        sure.filter(|problem| self.known.insert(key(problem))).collect()
    }

    /// Tries one Cluster, again without each operation that fails.
    fn scenario(&mut self, class: &Value, scenario: &Scenario) {
        let most = self
            .spec
            .patches
            .iter()
            .enumerate()
            .map(|(n, patch)| 1 + operations(n, patch).count());
        for _ in 0..=most.sum() {
            let (rest, fields) = self.remaining(class);
            match self.plan(&rest, scenario) {
                Ok(plan) => {
                    self.written(&plan, scenario);
                    break;
                }
                Err(error) => {
                    let Some(field) = fields.original(&error.field) else {
                        let problem = Problem::error(Check::Topology, error.field, error.message);
                        self.report(problem.hint(tried_with(scenario)));
                        break;
                    };
                    self.failed(&field, error.message, scenario);
                }
            }
        }
        let enabled = self.enabled_by(class, scenario, true);
        self.enabled.extend(enabled);
    }

    /// Reports what has failed, unless it had to after another failure, and leaves it out from now on.
    fn failed(&mut self, field: &str, message: String, scenario: &Scenario) {
        self.failures += 1;
        if self.failures > MOST_FAILURES {
            let message = format!("more than {MOST_FAILURES} operations fail; the others are not tried");
            self.report(Problem::note(Check::Patch, "spec.patches", message));
            return;
        }
        let Some(failed) = part(field) else { return };
        let is_path = message.contains("cannot change");
        let path = |(index, place): &Part| {
            let (definition, operation) = place.as_ref()?;
            let patch = self.spec.patches.get(*index)?;
            Some(
                patch
                    .definitions
                    .get(*definition)?
                    .json_patches
                    .get(*operation)?
                    .path
                    .as_str(),
            )
        };
        let follows = |before: &Part| {
            let (Some(before), Some(now)) = (path(before), path(&failed)) else {
                return false;
            };
            now.strip_prefix(before.trim_end_matches("/-"))
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let is_consequence = is_path && self.removed.iter().any(follows);
        self.removed.insert(failed);
        if is_consequence {
            return;
        }
        let mut hint = tried_with(scenario);
        if message.contains("has no value") {
            hint =
                format!("give the variable a default, make it required, or enable the patch only with a value; {hint}");
        } else if is_path {
            hint =
                format!("the path must lead to something that is there: add its parent before, or correct it; {hint}");
        }
        let before = self.spec.patches.iter().take(failed.0);
        let follows_extension = before.into_iter().any(|patch| patch.external.is_some());
        if follows_extension {
            hint = format!("a patch of an extension before it may change that, and is not tried; {hint}");
        }
        let mut problem = Problem::error(Check::Patch, field, message).hint(hint);
        if follows_extension || (scenario.is_made_up && !is_path) {
            problem.severity = Severity::Warning;
        }
        self.report(problem);
    }

    /// Looks at what the patches have written.
    fn written(&mut self, plan: &Plan, scenario: &Scenario) {
        for object in objects(plan) {
            let mut found = Vec::new();
            without_value(&object["spec"], "spec", &mut found);
            without_value(&object["metadata"], "metadata", &mut found);
            for field in found {
                // One in a template is no work of a patch.
                let Some(at) = blame::operation(self.spec, object, &field) else {
                    continue;
                };
                let message = format!(
                    "writes {NO_VALUE:?} to {field} of {}: the template reads a variable that has no value, or a field that it \
                     does not have",
                    kind(object)
                );
                let problem = Problem::warning(Check::MissingValue, at, message);
                self.report(problem.hint(format!("write a default into the template; {}", tried_with(scenario))));
            }
            for problem in self.refused(object, scenario) {
                let at = blame::operation(self.spec, object, &problem.field);
                let message = format!(
                    "the generated {} would be refused: {}: {}",
                    kind(object),
                    problem.field,
                    problem.message
                );
                let hint = [problem.hint, tried_with(scenario)];
                let hint: Vec<&str> = hint
                    .iter()
                    .map(String::as_str)
                    .filter(|hint| !hint.is_empty())
                    .collect();
                let at = at.unwrap_or_else(|| "spec.patches".to_owned());
                self.report(Problem::error(Check::GeneratedObject, at, message).hint(hint.join("; ")));
            }
        }
    }

    /// The patches that values enable for some template, of those that are not known to be enabled: each leaves a mark instead of what it
    /// does. Without their conditions, those that select a template.
    fn enabled_by(&self, class: &Value, scenario: &Scenario, by_condition: bool) -> BTreeSet<usize> {
        let all = class
            .pointer("/spec/patches")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let is_open = |index: &usize| !self.removed.contains(&(*index, None)) && !self.enabled.contains(index);
        let mut open: Vec<usize> = (0..all.len()).filter(is_open).collect();
        let mut enabled = BTreeSet::new();
        let mut class = class.clone();
        while !open.is_empty() {
            let patches = open.iter().map(|index| marking(&all[*index], *index, by_condition));
            class["spec"]["patches"] = patches.collect();
            match self.plan(&class, scenario) {
                Ok(plan) => {
                    let specs = objects(&plan).map(|object| &object["spec"]);
                    let specs = specs.flat_map(|spec| [spec, &spec["template"]["spec"]]);
                    let marks = specs.filter_map(Value::as_object).flat_map(|spec| spec.keys());
                    enabled.extend(marks.filter_map(|name| name.strip_prefix(MARK)?.parse::<usize>().ok()));
                    break;
                }
                Err(error) => {
                    // A template without a place for a mark is selected as well. A condition that fails enables nothing.
                    let Some(failed) = blame::number(&error.field, "spec.patches[").filter(|n| *n < open.len()) else {
                        break;
                    };
                    let index = open.remove(failed);
                    if error.field.contains(".definitions[") {
                        enabled.insert(index);
                    }
                }
            }
        }
        enabled
    }
}

/// The beginning of the name of a field that a patch leaves as its mark.
const MARK: &str = "<enabled>";

/// A patch that leaves a mark in each template that it selects.
fn marking(patch: &Value, index: usize, by_condition: bool) -> Value {
    let mut patch = patch.clone();
    if let Some(fields) = patch.as_object_mut().filter(|_| !by_condition) {
        fields.remove("enabledIf");
    }
    let mark = json!([{"op": "add", "path": format!("/spec/template/spec/{MARK}{index}"), "value": true}]);
    let definitions = patch.get_mut("definitions").and_then(Value::as_array_mut);
    for definition in definitions
        .into_iter()
        .flatten()
        .filter(|definition| definition.is_object())
    {
        definition["jsonPatches"] = mark.clone();
    }
    patch
}

/// Whether an error is about the fields of an object, whatever its values are. The type of a value may depend on it: a Go template makes a number
/// of a text such as `1`.
fn is_about_fields(problem: &Problem) -> bool {
    let is_about = problem.message == "unknown field" || problem.message.starts_with("Required value");
    problem.check == Check::Schema && is_about
}

fn kind(object: &Value) -> &str {
    object["kind"].as_str().unwrap_or_default()
}

fn tried_with(scenario: &Scenario) -> String {
    let values = match scenario.says() {
        says if says.is_empty() => "the defaults of all variables".to_owned(),
        says => says,
    };
    format!("tried with {values}, version {}", scenario.version)
}

/// The fields of patches before some were left out.
struct Fields(Vec<(usize, Vec<Vec<usize>>)>);

impl Fields {
    /// The field that an error is about, in the class as it is written. None if it is not about a patch.
    fn original(&self, field: &str) -> Option<String> {
        let rest = field.strip_prefix("spec.patches[")?;
        let (number, rest) = rest.split_once(']')?;
        let (index, definitions) = self.0.get(number.parse::<usize>().ok()?)?;
        let whole = |rest: &str| Some(format!("spec.patches[{index}]{rest}"));
        let Some(after) = rest.strip_prefix(".definitions[") else {
            return whole(rest);
        };
        let (definition, after) = after.split_once(']')?;
        let Some(after) = after.strip_prefix(".jsonPatches[") else {
            return whole(rest);
        };
        let (place, after) = after.split_once(']')?;
        let places = definitions.get(definition.parse::<usize>().ok()?)?;
        let place = places.get(place.parse::<usize>().ok()?)?;
        whole(&format!(".definitions[{definition}].jsonPatches[{place}]{after}"))
    }
}

/// The patch or operation that a field is in.
fn part(field: &str) -> Option<Part> {
    let index = blame::number(field, "spec.patches[")?;
    let definition = blame::number(field, ".definitions[");
    let place = blame::number(field, ".jsonPatches[");
    Some((index, definition.zip(place)))
}

/// The texts with a missing value.
fn without_value(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::String(text) if text.contains(NO_VALUE) => found.push(at.to_owned()),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                without_value(item, &format!("{at}[{index}]"), found);
            }
        }
        Value::Object(map) => {
            for (name, value) in map {
                without_value(value, &format!("{at}.{name}"), found);
            }
        }
        _ => {}
    }
}
