//! The objects of a release, put into one namespace, labelled, checked and ordered.
//!
//! Everything that a provider has within namespaces comes into one: that of its declaration. What refers to it follows: subjects of
//! bindings, the services that webhooks and conversions are sent to, the names in certificates, the certificate that
//! authorities are taken from. A provider looks after all namespaces, so an argument of its manager that would confine it to one
//! goes.

mod namespace;
mod order;

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_api_operator::{ProviderType, annotations, labels};

use crate::object::{self, Identity, is, map_at, name};
use crate::plural;
pub use order::{Parts, Stage, in_order, split};

/// The group of definitions.
const DEFINITIONS: &str = "apiextensions.k8s.io";

/// What precedes a contract in the labels of definitions.
const CONTRACT_PREFIX: &str = "cluster.x-k8s.io/";

/// What a release is put together from.
#[derive(Debug)]
pub struct Input<'a> {
    /// What sort of provider.
    pub type_: ProviderType,
    /// Its name.
    pub name: &'a str,
    /// The namespace to put it into; without one, that which the release names.
    pub namespace: Option<&'a str>,
    /// Its objects, as [`manifest::parse`](crate::manifest::parse) reads them.
    pub objects: Vec<Value>,
}

/// A release that is put together.
#[derive(Debug)]
pub struct Components {
    /// The value of the label `cluster.x-k8s.io/provider` on all objects.
    pub label: String,
    /// The namespace that they are in.
    pub namespace: String,
    /// The objects, in the order of the release, which may have a Namespace.
    pub objects: Vec<Value>,
    /// What was done to them that somebody may wonder about.
    pub notes: Vec<String>,
}

/// Why a release cannot be put together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssembleError {
    /// It is not known where to.
    #[error("no namespace is given, and the components have none; name the namespace to install into")]
    NoNamespace,
    /// Several Namespaces.
    #[error("the components have the Namespaces {first} and {second}: a provider is installed into one")]
    TwoNamespaces {
        /// One.
        first: String,
        /// Another.
        second: String,
    },
    /// Nothing that would run.
    #[error("the components have no Deployment, so nothing would run; is it the right file?")]
    NoDeployment,
    /// A Deployment without containers.
    #[error("{object} has no containers; is the file whole?")]
    NoContainers {
        /// Which one.
        object: Identity,
    },
    /// Two objects of the same kind have the same name, now that they are in the same namespace.
    #[error("{object} is there twice, from different namespaces: everything of a provider is installed into one")]
    Collision {
        /// Which object.
        object: Identity,
    },
    /// A definition is named otherwise than controllers will look for it.
    #[error(
        "the CustomResourceDefinition of {kind} is named {name:?}, and Cluster API looks for it as {expected:?}; if no object of the \
         core refers to the kind, the annotation {} on it says so",
        annotations::SKIP_CRD_NAME_PREFLIGHT_CHECK
    )]
    DefinitionName {
        /// Whose definition.
        kind: String,
        /// What it is named.
        name: String,
        /// What it should be named.
        expected: String,
    },
    /// A field of an object is not what its kind has there.
    #[error("{object}: {field} is {found}; expected {expected}")]
    Field {
        /// Which object.
        object: Box<Identity>,
        /// Which field.
        field: String,
        /// What it is.
        found: String,
        /// What it should be.
        expected: &'static str,
    },
}

/// Puts a release together.
pub fn assemble(input: Input<'_>) -> Result<Components, AssembleError> {
    let Input {
        type_,
        name,
        namespace,
        mut objects,
    } = input;
    let own = own_namespace(&objects)?;
    let target = namespace
        .or(own.as_deref())
        .ok_or(AssembleError::NoNamespace)?
        .to_owned();
    let label = type_.label(name);
    let kinds = namespace::cluster_wide(&objects);
    for object in &mut objects {
        namespace::put(object, &kinds, own.as_deref(), &target)?;
        put_labels(object, &label)?;
    }
    check(&objects)?;
    let notes = contract_notes(&objects);
    Ok(Components {
        label,
        namespace: target,
        objects,
        notes,
    })
}

/// Labels an object as one of this provider.
fn put_labels(object: &mut Value, label: &str) -> Result<(), AssembleError> {
    if let Some(found) = map_at(object, &["metadata", "labels"]) {
        found.insert(labels::CLUSTERCTL.to_owned(), String::new().into());
        found.insert(labels::PROVIDER.to_owned(), label.into());
        return Ok(());
    }
    Err(AssembleError::Field {
        object: Box::new(Identity::of(object)),
        field: "metadata.labels".to_owned(),
        found: object["metadata"]["labels"].to_string(),
        expected: "a map",
    })
}

/// The name of the Namespace among the objects.
fn own_namespace(objects: &[Value]) -> Result<Option<String>, AssembleError> {
    let mut found = objects.iter().filter(|object| is(object, "", "Namespace")).map(name);
    let first = found.next();
    match (first, found.next()) {
        (Some(first), Some(second)) => Err(AssembleError::TwoNamespaces {
            first: first.to_owned(),
            second: second.to_owned(),
        }),
        _ => Ok(first.map(str::to_owned)),
    }
}

/// Checks what is about to be installed, also after settings and patches have changed it: there is a Deployment, each has
/// containers, no two objects are the same, definitions are named as they are looked for.
pub fn check(objects: &[Value]) -> Result<(), AssembleError> {
    let mut seen = BTreeSet::new();
    let mut runs = false;
    for object in objects {
        let identity = Identity::of(object);
        if is(object, "apps", "Deployment") {
            runs = true;
            if object::containers(object).next().is_none() {
                return Err(AssembleError::NoContainers { object: identity });
            }
        }
        if is(object, DEFINITIONS, "CustomResourceDefinition") {
            check_name(object)?;
        }
        if let Some(object) = seen.replace(identity) {
            return Err(AssembleError::Collision { object });
        }
    }
    runs.then_some(()).ok_or(AssembleError::NoDeployment)
}

fn check_name(definition: &Value) -> Result<(), AssembleError> {
    let skip = &definition["metadata"]["annotations"][annotations::SKIP_CRD_NAME_PREFLIGHT_CHECK];
    if !skip.is_null() {
        return Ok(());
    }
    let group = object::text(definition, &["spec", "group"]);
    let kind = object::text(definition, &["spec", "names", "kind"]);
    let missing = [("spec.group", group), ("spec.names.kind", kind)]
        .into_iter()
        .find(|(_, text)| text.is_empty());
    if let Some((field, _)) = missing {
        return Err(AssembleError::Field {
            object: Box::new(Identity::of(definition)),
            field: field.to_owned(),
            found: "missing".to_owned(),
            expected: "a text",
        });
    }
    let expected = plural::definition_name(group, kind);
    if name(definition) == expected {
        return Ok(());
    }
    Err(AssembleError::DefinitionName {
        kind: kind.to_owned(),
        name: name(definition).to_owned(),
        expected,
    })
}

/// Definitions whose contract labels (`cluster.x-k8s.io/v1beta2: v1beta1_v1beta2`) name versions that they do not serve: whoever
/// follows the label finds nothing.
fn contract_notes(objects: &[Value]) -> Vec<String> {
    let mut notes = Vec::new();
    for definition in objects
        .iter()
        .filter(|o| is(o, DEFINITIONS, "CustomResourceDefinition"))
    {
        let served = |version: &str| {
            let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
            versions
                .into_iter()
                .any(|v| v["name"] == version && v["served"] != false)
        };
        let labels = definition["metadata"]["labels"].as_object().into_iter().flatten();
        for (label, versions) in labels {
            let contract = label.strip_prefix(CONTRACT_PREFIX).filter(|rest| is_contract(rest));
            let (Some(contract), Some(versions)) = (contract, versions.as_str()) else {
                continue;
            };
            let unknown: Vec<&str> = versions.split('_').filter(|version| !served(version)).collect();
            if !unknown.is_empty() {
                notes.push(format!(
                    "CustomResourceDefinition {}: its label for the contract {contract} names {}, which it does not serve",
                    name(definition),
                    unknown.join(", ")
                ));
            }
        }
    }
    notes
}

/// `v1beta2`, `v1`.
fn is_contract(text: &str) -> bool {
    text.strip_prefix('v')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests;
