//! Decides which templates get an owner reference to a class, and what the status of the class reports.

use std::time::Duration;

use serde::Deserialize as _;
use serde_json::{Value, json};
use windlass_api::core::ClusterClass;
use windlass_api::kind::ApiKind as _;
use windlass_api::values::VARIABLE_FROM_INLINE;
use windlass_controller_runtime::{Blocked, Dynamic, Note, Seen, owner};
use windlass_meta::beginning;
use windlass_topology::blueprint::references;
use windlass_topology::model::{ClassSpec, VariableClass, name_of, read};
use windlass_topology::variables::class::{check_class, check_variables};
use windlass_topology::variables::sources::{Source, in_conflict, together};

use super::observe::Observed;

/// Templates with this annotation are left alone.
const PAUSED: &str = windlass_api::annotations::PAUSED;

/// What the definition of ClusterClasses allows in `status.variables`.
const MOST_VARIABLES: usize = 1_000;
const LONGEST_NAME: usize = 256;
/// The most bytes of the reasons in a condition, which has a limit: there may be any number of patches.
const LONGEST_MESSAGE: usize = 8 << 10;

/// What messages about variables of extensions begin with.
const DISCOVERY_FAILED: &str = "VariableDiscovery failed";

/// How long the variables of extensions count. No event shows that one defines others now; Cluster API asks again as often.
const VARIABLES_COUNT_FOR: Duration = Duration::from_mins(10);

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    /// Apply the owner references of a template.
    Own(Value),
}

/// The writes, and the facts for the status.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(super) actions: Vec<Action>,
    /// Why templates get owner references.
    pub(super) notes: Vec<Note>,
    /// Which template cannot be read.
    pub(super) blocked: Option<Blocked>,
    /// Problems of templates.
    pub(super) missing: Vec<String>,
    /// Problems of variables.
    pub(super) variable_faults: Vec<String>,
    /// Variables for the status.
    pub(super) variables: Vec<Value>,
    /// Whether extensions define variables.
    discovers: bool,
    /// References that name an older version of a kind.
    pub(super) outdated: Vec<String>,
}

pub(super) fn plan(seen: &Observed) -> Plan {
    let mut plan = Plan::default();
    let class = name_of(&seen.value);
    let spec: ClassSpec = match read(&seen.value, "/spec") {
        Ok(spec) => spec,
        Err(error) => {
            plan.missing.push(error.to_string());
            return plan;
        }
    };
    for reference in references(&spec) {
        let Some(template) = seen.templates.get(reference.template) else {
            continue;
        };
        let name = &reference.template.name;
        match &template.object {
            Seen::Found(object) => plan.own(seen, &class, object),
            Seen::NotFound => {
                let namespace = seen.class.metadata.namespace.as_deref().unwrap_or_default();
                let kind = &reference.template.kind;
                plan.missing.push(format!(
                    "{class}: {}: {kind} {namespace}/{name} does not exist",
                    reference.field
                ));
            }
            Seen::Failed(why) => {
                plan.blocked = Some(Blocked::failed("Unreadable", why.as_str()));
                plan.missing.push(format!("{class}: {}: {why}", reference.field));
            }
        }
        let want = template.newest.as_deref().unwrap_or(&reference.template.api_version);
        if want != reference.template.api_version {
            let (kind, have) = (&reference.template.kind, &reference.template.api_version);
            plan.outdated.push(format!(
                "* {kind} {name}: current: {}, latest: {}",
                version(have),
                version(want)
            ));
        }
    }
    plan.outdated.dedup();
    plan.variables(seen, &class, &spec);
    plan
}

/// What the status of a class cannot hold of the variables of an extension.
fn beyond_limits(variables: &[VariableClass]) -> Option<String> {
    if variables.len() > MOST_VARIABLES {
        return Some(format!(
            "has {} variables, at most {MOST_VARIABLES} are allowed",
            variables.len()
        ));
    }
    let long = variables.iter().find(|variable| variable.name.len() > LONGEST_NAME)?;
    let name = beginning(&long.name, LONGEST_NAME);
    Some(format!("the name {name:?}... is longer than {LONGEST_NAME} bytes"))
}

/// The version of an API version with a group.
fn version(api_version: &str) -> &str {
    api_version.rsplit_once('/').map_or(api_version, |(_, version)| version)
}

impl Plan {
    /// What to say of references that name an older version of a kind, in the words of v1.14.
    pub(super) fn outdated(&self) -> String {
        let outdated = self.outdated.join("\n");
        format!("The following templateRefs are not using the latest apiVersion:\n{outdated}")
    }

    /// Adds an owner reference to the class. All classes write owner references with one field manager, so that each has to repeat those of
    /// the other classes.
    fn own(&mut self, seen: &Observed, class: &str, template: &Dynamic) {
        let uid = seen.class.metadata.uid.as_deref().unwrap_or_default();
        if template.annotation(PAUSED).is_some()
            || template.is_deleting()
            || owner::is_owned_by(template.metadata(), uid)
        {
            return;
        }
        let owners = template.metadata().owner_references.iter().flatten();
        let mut classes: Vec<_> = owners
            .filter(|owner| owner.kind == ClusterClass::KIND && owner.api_version == ClusterClass::API_VERSION)
            .cloned()
            .collect();
        owner::ensure(&mut classes, owner::owner_ref(&*seen.class));
        let intent = json!({
            "apiVersion": template.api_version(),
            "kind": template.kind(),
            "metadata": {
                "namespace": template.key().namespace,
                "name": template.name(),
                "uid": template.uid(),
                "ownerReferences": classes,
            },
        });
        let action = Action::Own(intent);
        if !self.actions.contains(&action) {
            let (kind, name) = (template.kind(), template.name());
            self.notes.push(Note::new(format!(
                "{kind} {name} gets an owner reference to {class}, which uses it"
            )));
            self.actions.push(action);
        }
    }

    /// The definitions of the class and of extensions. None of an extension count while one of them is not known: a Cluster would be checked
    /// by half of them.
    fn variables(&mut self, seen: &Observed, class: &str, spec: &ClassSpec) {
        let faults = check_class(&spec.variables);
        self.variable_faults = faults.iter().map(|fault| format!("{class}: {fault}")).collect();
        let raw = seen.value.pointer("/spec/variables").and_then(Value::as_array);
        let mut sources = vec![Source {
            from: VARIABLE_FROM_INLINE,
            variables: raw.map_or(&[][..], Vec::as_slice),
        }];
        let mut failed = Vec::new();
        for found in &seen.discovered {
            let patch = &found.patch;
            let variables = match &found.variables {
                Ok(variables) => variables,
                Err(why) => {
                    self.blocked = Some(Blocked::failed("VariableDiscoveryFailed", why.as_str()));
                    failed.push(format!("failed to call DiscoverVariables for patch {patch}: {why}"));
                    continue;
                }
            };
            let read: Vec<VariableClass> = match variables.iter().map(VariableClass::deserialize).collect() {
                Ok(read) => read,
                Err(error) => {
                    failed.push(format!("{patch}.variables: {error}"));
                    continue;
                }
            };
            if let Some(why) = beyond_limits(&read) {
                failed.push(format!("{patch}.variables: {why}"));
                continue;
            }
            let wrong = check_variables(&read, &format!("{patch}.variables"));
            failed.extend(wrong.iter().map(ToString::to_string));
            sources.push(Source { from: patch, variables });
        }
        self.discovers = !seen.discovered.is_empty();
        if !failed.is_empty() {
            let failed = failed.join(", ");
            let shown = beginning(&failed, LONGEST_MESSAGE);
            self.variable_faults.push(format!("{DISCOVERY_FAILED}: {shown}"));
            let before = seen.value.pointer("/status/variables").and_then(Value::as_array);
            self.variables = before.cloned().unwrap_or_default();
            return;
        }
        self.variables = together(&sources);
        let conflicts = in_conflict(&self.variables).join(",");
        if !conflicts.is_empty() {
            let why = format!("{DISCOVERY_FAILED}: the following variables have conflicting schemas: {conflicts}");
            self.variable_faults.push(why);
        }
    }
}

impl windlass_controller_runtime::Plan for Plan {
    fn notes(&self) -> &[Note] {
        &self.notes
    }

    fn requeue(&self) -> Option<Duration> {
        self.discovers.then_some(VARIABLES_COUNT_FOR)
    }

    fn blocked(&self) -> Option<Blocked> {
        self.blocked.clone()
    }
}
