//! Decides which templates get an owner reference to a class, and what the status of the class reports.

use serde_json::{Value, json};
use windlass_api::core::ClusterClass;
use windlass_api::kind::ApiKind as _;
use windlass_api::values::VARIABLE_FROM_INLINE;
use windlass_controller_runtime::{Blocked, Dynamic, Note, Seen, owner};
use windlass_topology::blueprint::references;
use windlass_topology::model::{ClassSpec, name_of, read};
use windlass_topology::variables::class::check_class;

use super::observe::Observed;

/// Templates with this annotation are left alone.
const PAUSED: &str = windlass_api::annotations::PAUSED;

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
                "* Ref \"{have} {kind} {name}\" should be \"{want} {kind} {name}\""
            ));
        }
    }
    plan.outdated.dedup();
    plan.variables(seen, &class, &spec);
    plan
}

impl Plan {
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

    fn variables(&mut self, seen: &Observed, class: &str, spec: &ClassSpec) {
        let faults = check_class(&spec.variables);
        self.variable_faults = faults.iter().map(|fault| format!("{class}: {fault}")).collect();
        for (index, patch) in spec.patches.iter().enumerate() {
            let external = patch.external.as_ref();
            if external.is_some_and(|e| e.get("discoverVariablesExtension").is_some()) {
                self.variable_faults.push(format!(
                    "{class}: spec.patches[{index}].external.discoverVariablesExtension: runtime extensions are not \
                     supported yet"
                ));
            }
        }
        let raw = seen.value.pointer("/spec/variables").and_then(Value::as_array);
        self.variables = raw
            .into_iter()
            .flatten()
            .map(|variable| {
                let mut definition = json!({
                    "from": VARIABLE_FROM_INLINE,
                    "required": variable["required"],
                    "schema": variable["schema"],
                });
                if let Some(metadata) = variable.get("deprecatedV1Beta1Metadata") {
                    definition["deprecatedV1Beta1Metadata"] = metadata.clone();
                }
                json!({"name": variable["name"], "definitions": [definition]})
            })
            .collect();
        self.variables
            .sort_by(|a, b| a["name"].as_str().cmp(&b["name"].as_str()));
    }
}

impl windlass_controller_runtime::Plan for Plan {
    fn notes(&self) -> &[Note] {
        &self.notes
    }

    fn blocked(&self) -> Option<Blocked> {
        self.blocked.clone()
    }
}
