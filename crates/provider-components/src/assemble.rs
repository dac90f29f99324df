//! Moves the objects of a release to one namespace, and labels, checks and sorts them.
//!
//! All namespaced objects of a provider move to the namespace of its declaration. References follow: subjects of bindings, the
//! Services of webhooks and conversions, the names in certificates, the sources of CA injection. A provider watches all
//! namespaces, so an argument of its manager that limits it to one is removed.

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
    /// The target namespace; defaults to the one in the release.
    pub namespace: Option<&'a str>,
    /// Its objects, as [`manifest::parse`](crate::manifest::parse) reads them.
    pub objects: Vec<Value>,
}

/// An assembled release.
#[derive(Debug)]
pub struct Components {
    /// The value of the label `cluster.x-k8s.io/provider` on all objects.
    pub label: String,
    /// Their namespace.
    pub namespace: String,
    /// The objects in the order of the release, which may include a Namespace.
    pub objects: Vec<Value>,
    /// Notes about changes that may surprise the user.
    pub notes: Vec<String>,
}

/// Why a release cannot be assembled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssembleError {
    /// No namespace is known.
    #[error("no namespace is given, and the components have none; name the namespace to install into")]
    NoNamespace,
    /// Several Namespaces.
    #[error("the components have the Namespaces {first} and {second}: a provider is installed into one")]
    TwoNamespaces {
        /// The first one.
        first: String,
        /// The second one.
        second: String,
    },
    /// No Deployment.
    #[error("the components have no Deployment, so nothing would run; is it the right file?")]
    NoDeployment,
    /// A Deployment without containers.
    #[error("{object} has no containers; is the file whole?")]
    NoContainers {
        /// Which one.
        object: Identity,
    },
    /// Two objects of the same kind have the same name after the move to one namespace.
    #[error("{object} is there twice, from different namespaces: everything of a provider is installed into one")]
    Collision {
        /// Which object.
        object: Identity,
    },
    /// The name of a definition is not the one that controllers look for.
    #[error(
        "the CustomResourceDefinition of {kind} is named {name:?}, and Cluster API looks for it as {expected:?}; if no object of the \
         core refers to the kind, the annotation {} on it says so",
        annotations::SKIP_CRD_NAME_PREFLIGHT_CHECK
    )]
    DefinitionName {
        /// The kind of the definition.
        kind: String,
        /// Its name.
        name: String,
        /// The expected name.
        expected: String,
    },
    /// A field of an object has the wrong type.
    #[error("{object}: {field} is {found}; expected {expected}")]
    Field {
        /// Which object.
        object: Box<Identity>,
        /// Which field.
        field: String,
        /// The type that it has.
        found: String,
        /// The expected type.
        expected: &'static str,
    },
}

/// Assembles a release.
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

/// Labels an object as part of this provider.
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

/// Validates the objects to install, also after settings and patches: there is a Deployment, each has containers, no two objects
/// are the same, and definitions have the expected names.
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

/// Notes about definitions whose contract labels (`cluster.x-k8s.io/v1beta2: v1beta1_v1beta2`) name none of their served
/// versions: readers of the labels find nothing. Labels of old contracts are often left behind, and do no harm.
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
