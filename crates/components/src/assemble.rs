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

use crate::metadata::CONTRACTS;
use crate::object::{self, Identity, is, map_at, name};
use crate::plural;
pub use order::{Parts, Stage, in_order, split};

/// The group of definitions.
const DEFINITIONS: &str = "apiextensions.k8s.io";

/// The prefix of contract labels on CRDs.
const CONTRACT_PREFIX: &str = "cluster.x-k8s.io/";

/// The parts of a release.
#[derive(Debug)]
pub struct Input<'a> {
    /// The type of the provider.
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
    /// Notes about changes that may surprise the user.
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
    let mut notes = Vec::new();
    for object in &mut objects {
        namespace::put(object, &kinds, own.as_deref(), &target)?;
        notes.extend(namespace::watch_all(object));
        put_labels(object, &label)?;
    }
    check(&objects)?;
    notes.extend(contract_notes(&objects));
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

/// Definitions none of whose contract labels (`cluster.x-k8s.io/v1beta2: v1beta1_v1beta2`) names a version that they serve: a
/// reader of the labels finds nothing. Labels of contracts that are no longer in use are often left behind, and do no harm.
fn contract_notes(objects: &[Value]) -> Vec<String> {
    let definitions = objects
        .iter()
        .filter(|o| is(o, DEFINITIONS, "CustomResourceDefinition"));
    definitions
        .filter_map(|definition| {
            let versions = definition["spec"]["versions"].as_array().map_or(&[][..], Vec::as_slice);
            let served = |version: &str| versions.iter().any(|v| v["name"] == version && v["served"] != false);
            let labels = &definition["metadata"]["labels"];
            let named: Vec<&str> = CONTRACTS
                .iter()
                .filter_map(|contract| labels[format!("{CONTRACT_PREFIX}{contract}")].as_str())
                .flat_map(|versions| versions.split('_'))
                .collect();
            let nowhere = !named.is_empty() && !named.iter().any(|version| served(version));
            nowhere.then(|| {
                let (name, named) = (name(definition), named.join(", "));
                format!("CustomResourceDefinition {name}: its contract labels name {named}, and it serves none of these versions")
            })
        })
        .collect()
}

#[cfg(test)]
mod tests;
