//! Patches of ClusterClasses.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use windlass_api::values::VARIABLE_FROM_INLINE;
use windlass_gocompat::quote::quoted;
use windlass_objects::names::qualified_name_problems;
use windlass_schema::{FieldError, FieldErrors};

use crate::field::Field;

/// Operations of inline patches.
const OPERATIONS: [&str; 3] = ["add", "remove", "replace"];

/// The builtin variables that a patch can name. More exist below some of them: a template reaches those.
const BUILTIN: [&str; 43] = [
    "builtin.cluster",
    "builtin.cluster.name",
    "builtin.cluster.namespace",
    "builtin.cluster.uid",
    "builtin.cluster.metadata.labels",
    "builtin.cluster.metadata.annotations",
    "builtin.cluster.topology",
    "builtin.cluster.topology.classRef.name",
    "builtin.cluster.topology.classRef.namespace",
    "builtin.cluster.topology.class",
    "builtin.cluster.topology.classNamespace",
    "builtin.cluster.topology.version",
    "builtin.cluster.network",
    "builtin.cluster.network.serviceDomain",
    "builtin.cluster.network.services",
    "builtin.cluster.network.pods",
    "builtin.controlPlane",
    "builtin.controlPlane.name",
    "builtin.controlPlane.replicas",
    "builtin.controlPlane.version",
    "builtin.controlPlane.metadata.labels",
    "builtin.controlPlane.metadata.annotations",
    "builtin.controlPlane.machineTemplate.infrastructureRef.name",
    "builtin.machineDeployment",
    "builtin.machineDeployment.class",
    "builtin.machineDeployment.name",
    "builtin.machineDeployment.replicas",
    "builtin.machineDeployment.topologyName",
    "builtin.machineDeployment.version",
    "builtin.machineDeployment.metadata.labels",
    "builtin.machineDeployment.metadata.annotations",
    "builtin.machineDeployment.bootstrap.configRef.name",
    "builtin.machineDeployment.infrastructureRef.name",
    "builtin.machinePool",
    "builtin.machinePool.class",
    "builtin.machinePool.name",
    "builtin.machinePool.replicas",
    "builtin.machinePool.topologyName",
    "builtin.machinePool.version",
    "builtin.machinePool.metadata.labels",
    "builtin.machinePool.metadata.annotations",
    "builtin.machinePool.bootstrap.configRef.name",
    "builtin.machinePool.infrastructureRef.name",
];

/// Checks the patches of a class. `class` is its specification.
pub(crate) fn check(class: &Field<'_>, errors: &mut FieldErrors) {
    let known = Known::of(class);
    let mut names = BTreeSet::new();
    let variables = class.child("variables");
    let variables: BTreeSet<&str> = variables
        .items()
        .map(|variable| variable.child("name").text())
        .collect();
    for patch in class.child("patches").items() {
        let name = patch.child("name");
        if name.text().is_empty() {
            errors.add(|| name.required("patch name must be defined"));
        }
        if name.text() == VARIABLE_FROM_INLINE {
            let words = "can not be used as the name of a patch";
            errors.add(|| name.required(format!("{} {words}", quoted(VARIABLE_FROM_INLINE))));
        }
        if !names.insert(name.text()) {
            errors.add(|| {
                name.invalid(format!(
                    "patch names must be unique. Patch with name {} is defined more than once",
                    quoted(name.text())
                ))
            });
        }
        template(&patch.child("enabledIf"), errors);
        definitions(&known, &variables, &patch, errors);
    }
}

fn definitions(known: &Known<'_>, variables: &BTreeSet<&str>, patch: &Field<'_>, errors: &mut FieldErrors) {
    let (definitions, external) = (patch.child("definitions"), patch.child("external"));
    match (definitions.is_set(), external.is_set()) {
        (false, false) => errors.add(|| patch.required("one of definitions or external must be defined")),
        (true, true) => {
            let name = patch.child("name").value();
            let words = "only one of definitions or external can be defined";
            errors.add(|| FieldError::invalid(patch.path(), name.clone(), words));
        }
        _ => {}
    }
    for definition in definitions.items() {
        for operation in definition.child("jsonPatches").items() {
            json_patch(variables, &operation, errors);
        }
        selector(known, &definition.child("selector"), errors);
    }
    if external.is_set() {
        let is_named = |name: &str| !external.child(name).text().is_empty();
        if !is_named("validateTopologyExtension") && !is_named("generatePatchesExtension") {
            let words = "one of validateTopologyExtension and generatePatchesExtension must be defined";
            errors.add(|| external.invalid(words));
        }
    }
}

fn template(field: &Field<'_>, errors: &mut FieldErrors) {
    if let Err(why) = windlass_gotemplate::check(field.text()) {
        errors.add(|| field.invalid(format!("template can not be parsed: {why}")));
    }
}

fn json_patch(variables: &BTreeSet<&str>, patch: &Field<'_>, errors: &mut FieldErrors) {
    let (op, path) = (patch.child("op"), patch.child("path"));
    if !OPERATIONS.contains(&op.text()) {
        let allowed = OPERATIONS.map(str::to_owned);
        errors.add(|| FieldError::not_supported(op.path(), op.value().clone(), &allowed));
    }
    if !path.text().starts_with("/spec") {
        errors.add(|| path.invalid("jsonPatch path must start with \"/spec\""));
    }
    for part in path.text().split('/') {
        let Ok(index) = part.parse::<i64>() else { continue };
        match op.text() {
            "add" if index != 0 => {
                errors.add(|| path.invalid("arrays can only be accessed using \"0\" (prepend) or \"-\" (append)"));
            }
            "replace" | "remove" => errors.add(|| {
                path.invalid(format!(
                    "elements in arrays can not be accessed in a {} operation",
                    op.text()
                ))
            }),
            _ => {}
        }
    }
    if let Some(offset) = windlass_topology::patches::malformed_token(path.text()) {
        errors.add(|| {
            path.invalid(format!(
                "jsonPatch path must be a JSON pointer: the token at offset {offset} is malformed"
            ))
        });
    }
    if matches!(op.text(), "add" | "replace") {
        value(variables, patch, errors);
    }
}

fn value(variables: &BTreeSet<&str>, patch: &Field<'_>, errors: &mut FieldErrors) {
    let shown = || Value::String(patch.child("path").text().to_owned());
    // A null is a value here.
    let has_value = patch.value().get("value").is_some();
    let from = patch.child("valueFrom");
    match (has_value, from.value().is_null()) {
        (false, true) => {
            let words = "jsonPatch must define one of value or valueFrom";
            errors.add(|| FieldError::invalid(patch.path(), shown(), words));
        }
        (true, false) => {
            let words = "jsonPatch can not define both value and valueFrom";
            errors.add(|| FieldError::invalid(patch.path(), shown(), words));
        }
        _ => {}
    }
    if from.value().is_null() {
        return;
    }
    let (text, variable) = (from.child("template"), from.child("variable"));
    match (text.text().is_empty(), variable.text().is_empty()) {
        (true, true) => errors.add(|| from.invalid("valueFrom must set either template or variable")),
        (false, false) => errors.add(|| from.invalid("valueFrom can not set both template and variable")),
        _ => {}
    }
    template(&text, errors);
    if variable.text().is_empty() {
        return;
    }
    if variable.text().starts_with("builtin.") {
        if !BUILTIN.contains(&variable.text()) {
            errors.add(|| variable.invalid("not a defined builtin variable"));
        }
        return;
    }
    let name = variable.text().split(['.', '[']).find(|part| !part.is_empty());
    if !name.is_some_and(|name| variables.contains(name)) {
        errors.add(|| variable.invalid(format!("variable with name {} cannot be found", variable.text())));
    }
}

/// API version and kind of templates.
type Form<'a> = (&'a str, &'a str);

/// The templates that patches can select.
struct Known<'a> {
    cluster: Option<Form<'a>>,
    control_plane: [Option<Form<'a>>; 2],
    machine_deployments: Workers<'a>,
    machine_pools: Workers<'a>,
}

/// The worker classes that have a template of a form. The author of a class chooses how many there are, and how many names select them, so
/// the classes are not searched for each name.
#[derive(Default)]
struct Workers<'a>(BTreeMap<Form<'a>, Names<'a>>);

#[derive(Default)]
struct Names<'a> {
    all: BTreeSet<&'a str>,
    /// The names from their ends to their beginnings.
    reversed: BTreeSet<String>,
}

impl<'a> Known<'a> {
    fn of(class: &Field<'a>) -> Self {
        let workers = |field: &str| Workers::of(&class.child("workers").child(field));
        Self {
            cluster: form(&class.child("infrastructure.templateRef")),
            control_plane: [
                "controlPlane.templateRef",
                "controlPlane.machineInfrastructure.templateRef",
            ]
            .map(|part| form(&class.child(part))),
            machine_deployments: workers("machineDeployments"),
            machine_pools: workers("machinePools"),
        }
    }
}

impl<'a> Workers<'a> {
    fn of(workers: &Field<'a>) -> Self {
        let mut found = Self::default();
        for worker in workers.items() {
            let name = worker.child("class").text();
            for part in ["infrastructure.templateRef", "bootstrap.templateRef"] {
                let Some(form) = form(&worker.child(part)) else {
                    continue;
                };
                let names = found.0.entry(form).or_default();
                if names.all.insert(name) {
                    names.reversed.insert(name.chars().rev().collect());
                }
            }
        }
        found
    }

    /// Whether a name, or a pattern with one star at an end, selects a class that has a template of this form.
    fn has(&self, form: Form<'_>, pattern: &str) -> bool {
        let Some(names) = self.0.get(&form) else { return false };
        let begins = |start: &str| {
            let mut later = names.all.range(start..);
            later.next().is_some_and(|name| name.starts_with(start))
        };
        let ends = |end: &str| {
            let end: String = end.chars().rev().collect();
            let mut later = names.reversed.range(end.clone()..);
            later.next().is_some_and(|name| name.starts_with(&end))
        };
        names.all.contains(pattern)
            || pattern.strip_prefix('*').is_some_and(ends)
            || pattern.strip_suffix('*').is_some_and(begins)
    }
}

/// The form of the template that a reference names, if there is one.
fn form<'a>(reference: &Field<'a>) -> Option<Form<'a>> {
    reference
        .is_set()
        .then(|| (reference.child("apiVersion").text(), reference.child("kind").text()))
}

/// Checks that each part of a selector selects a template of the class.
fn selector(known: &Known<'_>, selector: &Field<'_>, errors: &mut FieldErrors) {
    let places = selector.child("matchResources");
    let (cluster, control_plane) = (places.child("infrastructureCluster"), places.child("controlPlane"));
    let (sets, pools) = (
        places.child("machineDeploymentClass.names"),
        places.child("machinePoolClass.names"),
    );
    if !cluster.is_true() && !control_plane.is_true() && sets.is_empty() && pools.is_empty() {
        let kind = selector.child("kind").value();
        errors.add(|| FieldError::invalid(selector.path(), kind.clone(), "no selector enabled"));
        return;
    }
    let wanted = (selector.child("apiVersion").text(), selector.child("kind").text());
    if cluster.is_true() && known.cluster != Some(wanted) {
        errors.add(|| cluster.invalid("selector is enabled but does not match the infrastructure ref"));
    }
    if control_plane.is_true() && !known.control_plane.contains(&Some(wanted)) {
        let words = "selector is enabled but matches neither the controlPlane ref nor the controlPlane machineInfrastructure ref";
        errors.add(|| control_plane.invalid(words));
    }
    for (names, workers, kind) in [
        (sets, &known.machine_deployments, "MachineDeployment"),
        (pools, &known.machine_pools, "MachinePool"),
    ] {
        for name in names.items() {
            if let Some(why) = malformed_name(name.text()) {
                errors.add(|| name.invalid(why));
                break;
            }
            if !workers.has(wanted, name.text()) {
                errors.add(|| {
                    name.invalid(format!(
                        "selector is enabled but matches neither the bootstrap ref nor the infrastructure ref of a {kind} class"
                    ))
                });
            }
        }
    }
}

fn malformed_name(name: &str) -> Option<&'static str> {
    if !name.contains('*') {
        return None;
    }
    if name.matches('*').count() > 1 {
        return Some("selector can at most contain a single \"*\" rune");
    }
    if !name.starts_with('*') && !name.ends_with('*') {
        return Some("\"*\" rune can only appear at the beginning, or ending of the selector");
    }
    let is_malformed = !qualified_name_problems(&name.replace('*', "a")).is_empty();
    is_malformed.then_some("selector does not comply with the Kubernetes naming standards")
}
