//! What is known of kinds: their schemas, and the admission rules of ours.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use windlass_admission::Rule;
use windlass_api::kind::ApiKind;
use windlass_cel::Validator;
use windlass_contract::{ContractVersion, choose_version};
use windlass_objects::names::NameRule;
use windlass_schema::{Dialect, Schema};
use windlass_topology::blueprint::Contract;
use windlass_topology::model::{TemplateRef, text};

use crate::finding::{Check, Problem};

/// The schema of object metadata, as Kubernetes publishes it.
const METADATA: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// A kind with its versions.
#[derive(Debug)]
pub(crate) struct Kind {
    /// The schemas of its served versions.
    versions: BTreeMap<String, Version>,
    /// Labels of its definition, which name the versions of the provider contract.
    labels: BTreeMap<String, String>,
    /// The resource name.
    plural: String,
    /// Whether its objects are in namespaces.
    pub(crate) is_namespaced: bool,
}

#[derive(Debug)]
struct Version {
    schema: Value,
    validator: OnceCell<Validator>,
}

/// All known kinds.
#[derive(Debug)]
pub struct Kinds {
    known: BTreeMap<(String, String), Kind>,
    rules: Vec<Rule>,
    metadata: Option<Arc<Schema>>,
}

impl Kinds {
    /// The kinds of these definitions, with these admission rules.
    pub fn new(definitions: &[Value], rules: Vec<Rule>) -> Self {
        let mut kinds = Self {
            known: BTreeMap::new(),
            rules,
            metadata: windlass_builtin_kinds::parsed(METADATA),
        };
        for definition in definitions {
            kinds.insert(definition);
        }
        kinds
    }

    /// Adds the kind of a CustomResourceDefinition, unless it is known. What is wrong with its schemas is returned.
    pub(crate) fn add(&mut self, definition: &Value) -> Vec<Problem> {
        let key = key(definition);
        if key.0.is_empty() || key.1.is_empty() {
            let words = "spec.group and spec.names.kind must be set";
            return vec![Problem::error(Check::Definition, "spec", words)];
        }
        if self.known.contains_key(&key) {
            return Vec::new();
        }
        let mut problems = Vec::new();
        for (index, version) in versions(definition).iter().enumerate() {
            let at = format!("spec.versions[{index}].schema.openAPIV3Schema");
            let Some(schema) = version.pointer("/schema/openAPIV3Schema") else {
                problems.push(Problem::error(Check::Definition, at, "must be set"));
                continue;
            };
            if let Err(error) = Validator::parse(schema, Dialect::Crd, &at) {
                let found = error.0.into_iter();
                problems.extend(found.map(|error| {
                    let message = error.body();
                    Problem::error(Check::Definition, error.path, message)
                }));
            }
        }
        self.insert(definition);
        problems
    }

    fn insert(&mut self, definition: &Value) {
        let served = versions(definition).iter().filter(|version| version["served"] == true);
        let version = served.filter_map(|version| {
            let schema = version.pointer("/schema/openAPIV3Schema")?.clone();
            let validator = OnceCell::new();
            Some((text(version, "/name").to_owned(), Version { schema, validator }))
        });
        let labels = definition.pointer("/metadata/labels").and_then(Value::as_object);
        let label = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
        let kind = Kind {
            versions: version.collect(),
            labels: labels.into_iter().flatten().filter_map(label).collect(),
            plural: text(definition, "/spec/names/plural").to_owned(),
            is_namespaced: text(definition, "/spec/scope") != "Cluster",
        };
        self.known.insert(key(definition), kind);
    }

    /// The kind of an object.
    pub(crate) fn of(&self, object: &Value) -> Option<&Kind> {
        let (group, _) = split(text(object, "/apiVersion"));
        self.known.get(&(group.to_owned(), text(object, "/kind").to_owned()))
    }

    /// The admission rule for an object.
    pub(crate) fn rule(&self, object: &Value) -> Option<&Rule> {
        let (group, version) = split(text(object, "/apiVersion"));
        let kind = text(object, "/kind");
        self.rules
            .iter()
            .find(|rule| (rule.group, rule.version, rule.kind) == (group, version, kind))
    }

    /// The schema of metadata.
    pub(crate) fn metadata(&self) -> Option<&Schema> {
        self.metadata.as_deref()
    }

    /// The contract of the control planes that a template makes; the current one for an unknown kind.
    pub(crate) fn contract(&self, template: &TemplateRef) -> Contract {
        let kind = template.kind.strip_suffix("Template").unwrap_or(&template.kind);
        let known = self.known.get(&(template.group().to_owned(), kind.to_owned()));
        let chosen = known.and_then(|kind| choose_version(&kind.labels, |version| kind.versions.contains_key(version)));
        match chosen {
            Some((ContractVersion::V1Beta1, _)) => Contract::V1Beta1,
            _ => Contract::V1Beta2,
        }
    }
}

impl Kind {
    /// What checks objects of a version; none if it is not served.
    pub(crate) fn validator(&self, version: &str) -> Option<&Validator> {
        let version = self.versions.get(version)?;
        let make = || Validator::new(Arc::new(Schema::stored(&version.schema)));
        Some(version.validator.get_or_init(make))
    }

    /// The served versions.
    pub(crate) fn served(&self) -> String {
        let names: Vec<&str> = self.versions.keys().map(String::as_str).collect();
        names.join(", ")
    }

    /// Resource and group, in the form of `kubectl`.
    pub(crate) fn resource(&self, group: &str) -> String {
        windlass_objects::names::qualified(group, &self.plural)
    }

    /// What is wrong with a name. API servers want a DNS subdomain for custom objects.
    pub(crate) fn name_problems(name: &str) -> Vec<String> {
        NameRule::Subdomain.problems(name, false)
    }
}

/// Group and version.
pub(crate) fn split(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// Whether an object is a CustomResourceDefinition.
pub(crate) fn is_definition(object: &Value) -> bool {
    text(object, "/kind") == "CustomResourceDefinition" && text(object, "/apiVersion") == "apiextensions.k8s.io/v1"
}

/// Whether an object is a ClusterClass, in whatever version.
pub(crate) fn is_class_of_any_version(object: &Value) -> bool {
    let is_older = || windlass_api_older::older(text(object, "/apiVersion"), text(object, "/kind")).is_some();
    is_class(object) || text(object, "/kind") == windlass_api::core::ClusterClass::KIND && is_older()
}

/// Whether an object is a ClusterClass in the version that is checked here.
pub(crate) fn is_class(object: &Value) -> bool {
    is_of::<windlass_api::core::ClusterClass>(object)
}

/// Whether an object is a Cluster with a topology.
pub(crate) fn is_topology(object: &Value) -> bool {
    is_of::<windlass_api::core::Cluster>(object) && object.pointer("/spec/topology").is_some_and(Value::is_object)
}

fn is_of<K: ApiKind>(object: &Value) -> bool {
    text(object, "/kind") == K::KIND && split(text(object, "/apiVersion")) == (K::GROUP, K::VERSION)
}

fn key(definition: &Value) -> (String, String) {
    let text = |pointer| text(definition, pointer).to_owned();
    (text("/spec/group"), text("/spec/names/kind"))
}

fn versions(definition: &Value) -> &[Value] {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    versions.map_or(&[], Vec::as_slice)
}
