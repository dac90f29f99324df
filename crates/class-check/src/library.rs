//! The objects of all files together: each is checked by itself, and then found by its name.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use windlass_admission::view::Objects;
use windlass_gocompat::yaml::File;
use windlass_objects::metadata::set_meta;
use windlass_topology::model::{TemplateRef, text};

use crate::finding::{Check, Finding, Problem};
use crate::kinds::{Kinds, is_class, is_class_of_any_version, is_definition, split};
use crate::object::{self, Checked};
use crate::source::{Object, read};

/// The group of test files, which may stand among the others.
pub(crate) const TESTS: &str = "test.windlass.dev";

/// The namespace of objects without one, if no object has one.
const NAMESPACE: &str = "default";

/// An object of the files.
#[derive(Debug)]
pub(crate) struct Entry {
    /// As it is written.
    pub(crate) object: Object,
    /// As a server would store it.
    pub(crate) stored: Arc<Value>,
    /// What is wrong with it.
    pub(crate) problems: Vec<Problem>,
}

impl Entry {
    /// Whether something is wrong with a field or with a part of it.
    pub(crate) fn is_wrong_at(&self, field: &str) -> bool {
        self.problems
            .iter()
            .any(|problem| problem.is_error() && is_within(&problem.field, field))
    }
}

/// Whether a path leads to a field or to a part of it.
pub(crate) fn is_within(path: &str, field: &str) -> bool {
    path.strip_prefix(field)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// What the files say of a template.
#[derive(Debug)]
pub(crate) enum Lookup<'a> {
    /// It is there.
    Found(&'a Entry),
    /// It is there in another version of its API.
    OtherVersion(&'a Entry),
    /// An object of this name is there in another namespace only.
    OtherNamespace(&'a Entry),
    /// It is not there.
    Missing,
}

/// The objects of all files.
#[derive(Debug)]
pub(crate) struct Library {
    pub(crate) kinds: Kinds,
    pub(crate) entries: Vec<Entry>,
}

type Key = (String, String, String, String);

impl Library {
    /// Reads and checks the objects of files. The findings are about single objects.
    pub(crate) fn read(files: &[File], mut kinds: Kinds) -> (Self, Vec<Finding>) {
        let (mut objects, mut findings) = read(files);
        objects.retain(|object| object.group() != TESTS);
        for definition in objects.iter().filter(|object| is_definition(&object.value)) {
            let problems = kinds.add(&definition.value).into_iter();
            findings.extend(problems.map(|problem| definition.finding(problem)));
        }
        let namespace = common_namespace(&objects);
        findings.extend(duplicates(&objects, &namespace));
        let classes = objects.iter().filter(|object| is_class_of_any_version(&object.value));
        let classes = classes.map(|class| {
            let checked = object::check(&kinds, &class.value, &Objects::default());
            Arc::new(stored(&kinds, checked.completed, &namespace))
        });
        let view = Objects(classes.collect());
        let entries = objects.into_iter().map(|object| {
            let with_namespace = in_namespace(&kinds, object.value.clone(), &namespace);
            let Checked {
                problems, completed, ..
            } = object::check(&kinds, &with_namespace, &view);
            Entry {
                stored: Arc::new(stored(&kinds, completed, &namespace)),
                problems,
                object,
            }
        });
        let entries: Vec<Entry> = entries.collect();
        for entry in &entries {
            let problems = entry.problems.iter().cloned();
            findings.extend(problems.map(|problem| entry.object.finding(problem)));
        }
        (Self { kinds, entries }, findings)
    }

    /// The classes.
    pub(crate) fn classes(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| is_class(&entry.stored))
    }

    /// The class that a Cluster names.
    pub(crate) fn class_of(&self, cluster: &Value) -> Option<&Entry> {
        let (namespace, name) = windlass_admission::view::class_of(cluster)?;
        self.classes().find(|class| {
            let of = |pointer| text(&class.stored, pointer);
            (of("/metadata/namespace"), of("/metadata/name")) == (namespace, name)
        })
    }

    /// The template that a class in a namespace refers to.
    pub(crate) fn template(&self, namespace: &str, template: &TemplateRef) -> Lookup<'_> {
        let of_name = |entry: &&Entry| {
            entry.object.group() == template.group()
                && text(&entry.stored, "/kind") == template.kind
                && text(&entry.stored, "/metadata/name") == template.name
        };
        let all: Vec<&Entry> = self.entries.iter().filter(of_name).collect();
        let here = all
            .iter()
            .find(|entry| text(&entry.stored, "/metadata/namespace") == namespace);
        match (here, all.first()) {
            (Some(here), _) if is_served_as(text(&here.stored, "/apiVersion"), template) => Lookup::Found(here),
            (Some(here), _) => Lookup::OtherVersion(here),
            (None, Some(other)) => Lookup::OtherNamespace(other),
            (None, None) => Lookup::Missing,
        }
    }
}

/// Whether an object with an apiVersion is what a reference names: the same version, or one to which servers convert it.
fn is_served_as(api_version: &str, template: &TemplateRef) -> bool {
    api_version == template.api_version || windlass_api_older::knows(&template.kind, api_version, &template.api_version)
}

/// The one namespace that objects have, if they have one.
fn common_namespace(objects: &[Object]) -> String {
    let mut found = objects
        .iter()
        .filter(|object| split(text(&object.value, "/apiVersion")).0.ends_with("x-k8s.io"))
        .map(|object| text(&object.value, "/metadata/namespace"))
        .filter(|namespace| !namespace.is_empty());
    let first = found.next().unwrap_or(NAMESPACE);
    if found.all(|other| other == first) {
        first
    } else {
        NAMESPACE
    }
    .to_owned()
}

fn in_namespace(kinds: &Kinds, mut object: Value, namespace: &str) -> Value {
    let is_namespaced = kinds.of(&object).is_none_or(|kind| kind.is_namespaced);
    let metadata = object.get("metadata").filter(|metadata| metadata.is_object());
    if is_namespaced && metadata.is_some_and(|metadata| metadata.get("namespace").is_none_or(Value::is_null)) {
        set_meta(&mut object, "namespace", Some(namespace.into()));
    }
    object
}

/// An object as a server has it, and a class as its controller leaves it.
fn stored(kinds: &Kinds, object: Value, namespace: &str) -> Value {
    let mut object = in_namespace(kinds, object, namespace);
    if is_class(&object) {
        set_meta(&mut object, "generation", Some(1.into()));
        let variables = definitions(&object);
        object["status"] = json!({
            "observedGeneration": 1,
            "conditions": [{"type": "VariablesReady", "status": "True"}],
            "variables": variables,
        });
    }
    object
}

/// The definitions of variables in the status of a class.
fn definitions(class: &Value) -> Vec<Value> {
    let variables = class.pointer("/spec/variables").and_then(Value::as_array);
    let definition = |variable: &Value| {
        let inline = json!({
            "from": windlass_api::values::VARIABLE_FROM_INLINE,
            "required": variable["required"],
            "schema": variable["schema"],
        });
        json!({"name": variable["name"], "definitions": [inline]})
    };
    variables.into_iter().flatten().map(definition).collect()
}

fn duplicates(objects: &[Object], namespace: &str) -> Vec<Finding> {
    let mut seen: BTreeMap<Key, &Object> = BTreeMap::new();
    let mut findings = Vec::new();
    for object in objects {
        let text = |pointer| text(&object.value, pointer).to_owned();
        let mut of = text("/metadata/namespace");
        if of.is_empty() {
            namespace.clone_into(&mut of);
        }
        let key = (object.group().to_owned(), text("/kind"), of, text("/metadata/name"));
        let Some(first) = seen.get(&key) else {
            seen.insert(key, object);
            continue;
        };
        let at = format!("{}:{}", first.file(), first.place("").value.line);
        let problem = if first.value == object.value {
            Problem::warning(
                Check::DuplicateObject,
                "metadata.name",
                format!("the same object stands at {at}"),
            )
            .hint("remove one of them")
        } else {
            let message = format!("another object of this name stands at {at}; the last that is applied wins");
            Problem::error(Check::DuplicateObject, "metadata.name", message).hint("rename or remove one of them")
        };
        findings.push(object.finding(problem));
    }
    findings
}
