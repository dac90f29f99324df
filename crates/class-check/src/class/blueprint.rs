//! A class and its templates, put together from the files.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_meta::Moment;
use windlass_topology::Error;
use windlass_topology::blueprint::{Blueprint, Class};
use windlass_topology::current::Current;
use windlass_topology::desired::Input;
use windlass_topology::model::{TemplateRef, text};
use windlass_topology::plan::{Action, Plan, plan};

use crate::library::{Library, Lookup};

/// What is done about templates that are not in the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parts {
    /// They are an error.
    All,
    /// An empty template of a kind that no patch selects takes their place.
    StandIns,
}

/// The blueprint of a class.
pub(crate) fn blueprint(library: &Library, class: &Value, parts: Parts) -> Result<Blueprint, Error> {
    let namespace = text(class, "/metadata/namespace");
    let class = Arc::new(Class::read(class)?);
    let contract = library.kinds.contract(&class.spec.control_plane.template_ref);
    Blueprint::new(&class, contract, |template| {
        let name = || format!("{} {namespace}/{}", template.kind, template.name);
        let is_usable = |object: &Value| object.pointer("/spec/template").is_some_and(Value::is_object);
        match (library.template(namespace, template), parts) {
            (Lookup::Found(entry), Parts::All) => Ok(Arc::clone(&entry.stored)),
            (Lookup::Found(entry), Parts::StandIns) if is_usable(&entry.stored) => Ok(Arc::clone(&entry.stored)),
            (_, Parts::StandIns) => Ok(Arc::new(stand_in(template, namespace))),
            (Lookup::OtherVersion(entry), _) => {
                let version = text(&entry.stored, "/apiVersion");
                Err(format!(
                    "{} is written in version {version}; write both in the same version",
                    name()
                ))
            }
            (Lookup::OtherNamespace(_) | Lookup::Missing, _) => {
                Err(format!("{} is not in the files; add the file that has it", name()))
            }
        }
    })
}

fn stand_in(template: &TemplateRef, namespace: &str) -> Value {
    json!({
        "apiVersion": template.api_version,
        "kind": "AbsentTemplate",
        "metadata": {"name": template.name, "namespace": namespace},
        "spec": {"template": {"spec": {}}},
    })
}

/// Plans the first pass for a Cluster of which nothing exists yet.
pub(crate) fn first_plan(cluster: &Value, blueprint: &Blueprint) -> Result<Plan, Error> {
    plan(Input {
        cluster,
        blueprint,
        current: &Current::default(),
        stores_defaults: true,
        upgrade_plan: None,
        patches: None,
        // What depends on time is about what exists.
        now: &Moment::at(Timestamp::UNIX_EPOCH),
    })
}

/// The objects that a plan makes, in their order.
pub(crate) fn objects(plan: &Plan) -> impl Iterator<Item = &Value> {
    plan.steps.iter().filter_map(|step| match &step.action {
        Action::Apply(object) => Some(object),
        Action::PatchCluster(_) | Action::Delete(_) => None,
    })
}
