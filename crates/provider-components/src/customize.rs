//! Applies the settings of a declaration to the Deployments of a provider (and to their Services).
//!
//! Which Deployments:
//!
//! - a Deployment in `spec.additionalDeployments` has the settings given there, and no others;
//! - the only Deployment of a provider has `spec.deployment` and `spec.manager`;
//! - of several Deployments, those named like `capi-controller-manager` (`ca*-controller-manager`) have these or, if there is
//!   none, those with a container `manager`. A container that only another Deployment has is found there.
//!
//! The precedence for a flag, highest first: `manager.debug`, fields of `manager`, `manager.additionalArgs`, `containers[].args`,
//! the provider's files. A field that is set replaces the value, and one that is unset has no effect. The result is the same for
//! the same input, and applying the same settings again changes nothing.

mod container;
mod deployment;
pub mod flags;
mod image;
mod manager;
mod note;
pub mod pause;
mod ports;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_api_operator::{Api, ContainerSettings, Declared, DeploymentSettings, Settings, keys};

pub use self::note::Note;
pub(crate) use self::note::object_name;
use self::ports::Move;

/// Why settings cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CustomizeError {
    /// No Deployment has a container of that name.
    #[error("{field}: there is no container {container:?}; there are {have}")]
    UnknownContainer {
        /// The field with the name.
        field: String,
        /// The name.
        container: String,
        /// The existing names.
        have: String,
    },
    /// The provider has no Deployment of that name.
    #[error("{field}: the provider has no Deployment {name:?}; it has {have}")]
    UnknownDeployment {
        /// The field with the name.
        field: String,
        /// The name.
        name: String,
        /// The existing names.
        have: String,
    },
    /// No container is recognized as the manager.
    #[error("{field}: {object} has no container \"manager\", so it is not known which one is meant; it has {have}")]
    NoManager {
        /// The settings.
        field: String,
        /// The Deployment.
        object: String,
        /// Its containers.
        have: String,
    },
    /// A setting has an invalid value.
    #[error("{field}: {why}")]
    Setting {
        /// The field.
        field: String,
        /// The problem.
        why: String,
    },
    /// The provider's files have an invalid structure.
    #[error("{object}: {why}")]
    Shape {
        /// The object.
        object: String,
        /// The problem.
        why: String,
    },
}

/// The settings of a Deployment.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role<'a> {
    Main,
    Additional(&'a str),
    Other,
}

/// The settings of one Deployment.
struct Chosen<'a> {
    /// The field with the settings: `spec`, `spec.additionalDeployments[x]`.
    field: String,
    manager: &'a Settings,
    deployment: &'a DeploymentSettings,
    /// By their index in the list, with those for this Deployment.
    containers: Vec<(usize, &'a ContainerSettings)>,
}

/// Applies the settings of a declaration to a provider's objects. After an error, some objects may have been changed: discard
/// them.
pub fn customize(objects: &mut [Value], declared: &Declared) -> Result<Vec<Note>, CustomizeError> {
    let deployments: Vec<usize> = (0..objects.len()).filter(|at| is_deployment(&objects[*at])).collect();
    let roles = roles(objects, &deployments, declared)?;
    let places = containers(objects, &deployments, &roles, &declared.deployment.containers)?;
    let mut notes = Vec::new();
    let mut moves = Vec::new();
    for (nth, at) in deployments.iter().enumerate() {
        let main = declared.deployment.containers.iter().enumerate();
        let named: Vec<_> = main.filter(|(i, _)| places[*i].contains(&nth)).collect();
        let nothing = (&Settings::default(), &DeploymentSettings::default());
        let (field, (manager, deployment), containers) = match roles[nth] {
            Role::Main => ("spec".to_owned(), (&declared.manager, &declared.deployment), named),
            Role::Other => ("spec".to_owned(), nothing, named),
            Role::Additional(name) => {
                let own = &declared.additional[name];
                let field = format!("spec.additionalDeployments[{name}]");
                let listed = own.deployment.containers.iter().enumerate().collect();
                (field, (&own.manager, &own.deployment), listed)
            }
        };
        let chosen = Chosen {
            field,
            manager,
            deployment,
            containers,
        };
        let merge_gates = declared.api == Api::V1Alpha2;
        // Other programs than a provider's manager may be limited to a namespace.
        let watches = roles[nth] != Role::Other;
        one(&mut objects[*at], &chosen, merge_gates, watches, &mut notes, &mut moves)?;
    }
    for moved in &moves {
        ports::services(objects, moved, &mut notes);
    }
    Ok(notes)
}

fn one(
    object: &mut Value,
    chosen: &Chosen<'_>,
    merge_gates: bool,
    watches: bool,
    notes: &mut Vec<Note>,
    moves: &mut Vec<Move>,
) -> Result<(), CustomizeError> {
    let name = object_name(object);
    let manager = manager_of(object);
    // Read before any change: the old ports determine which port is which.
    let before = match &manager {
        Some(manager) => Some(ports::Endpoints::of(&arguments(object, manager)?)),
        None => None,
    };
    deployment::apply(object, &name, chosen.deployment, &chosen.field, notes);
    for (index, settings) in &chosen.containers {
        let field = format!("{}.deployment.containers[{index}]", chosen.field);
        container::apply(object, &name, settings, &field, notes)?;
    }
    let field = format!("{}.manager", chosen.field);
    let Some(manager) = manager else {
        if *chosen.manager == Settings::default() {
            return Ok(());
        }
        return Err(CustomizeError::NoManager {
            field,
            object: name,
            have: listed(&container_names(object)),
        });
    };
    let mut place = manager::Place {
        object,
        name: &name,
        container: &manager,
        field: &field,
        notes,
    };
    if watches {
        place.watch_all()?;
    }
    place.flags(chosen.manager, merge_gates)?;
    place.probes(chosen.manager);
    if let Some(before) = before {
        let after = ports::Endpoints::of(&arguments(object, &manager)?);
        ports::follow(object, &manager, &before, &after, &field, notes, moves);
    }
    Ok(())
}

fn roles<'a>(
    objects: &[Value],
    deployments: &[usize],
    declared: &'a Declared,
) -> Result<Vec<Role<'a>>, CustomizeError> {
    let names: Vec<&str> = deployments.iter().map(|at| plain_name(&objects[*at])).collect();
    if let Some(name) = declared.additional.keys().find(|name| !names.contains(&name.as_str())) {
        return Err(CustomizeError::UnknownDeployment {
            field: "spec.additionalDeployments".to_owned(),
            name: name.clone(),
            have: listed(&names),
        });
    }
    let usual = |name: &str| name.starts_with("ca") && name.ends_with("-controller-manager");
    let any_usual = names.iter().any(|name| usual(name));
    let main = |nth: usize| {
        let object = &objects[deployments[nth]];
        match (names.len(), any_usual) {
            (1, _) => true,
            (_, true) => usual(names[nth]),
            (_, false) => container_names(object).contains(&keys::MANAGER_CONTAINER),
        }
    };
    let role = |nth: usize| match declared.additional.get_key_value(names[nth]) {
        Some((name, _)) => Role::Additional(name),
        None if main(nth) => Role::Main,
        None => Role::Other,
    };
    Ok((0..names.len()).map(role).collect())
}

/// For each container setting, the Deployments with that container. Also checks that the Deployments in
/// `spec.additionalDeployments` exist.
fn containers(
    objects: &[Value],
    deployments: &[usize],
    roles: &[Role<'_>],
    settings: &[ContainerSettings],
) -> Result<Vec<BTreeSet<usize>>, CustomizeError> {
    let with = |role: Role<'_>, container: &str| -> BTreeSet<usize> {
        let has = |nth: &usize| container_names(&objects[deployments[*nth]]).contains(&container);
        (0..roles.len()).filter(|nth| roles[*nth] == role).filter(has).collect()
    };
    let find = |(index, one): (usize, &ContainerSettings)| {
        let main = with(Role::Main, &one.name);
        let found = if main.is_empty() {
            with(Role::Other, &one.name)
        } else {
            main
        };
        if !found.is_empty() {
            return Ok(found);
        }
        let have = deployments.iter().map(|at| {
            let object = &objects[*at];
            format!("{} in {}", listed(&container_names(object)), object_name(object))
        });
        let have = have.collect::<Vec<_>>().join("; ");
        Err(CustomizeError::UnknownContainer {
            field: format!("spec.deployment.containers[{index}].name"),
            container: one.name.clone(),
            have: if have.is_empty() {
                "no Deployments".to_owned()
            } else {
                have
            },
        })
    };
    settings.iter().enumerate().map(find).collect()
}

fn is_deployment(object: &Value) -> bool {
    object["kind"] == "Deployment" && object["apiVersion"].as_str().is_some_and(|v| v.starts_with("apps/"))
}

fn plain_name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or("")
}

fn listed(names: &[&str]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    names.join(", ")
}

/// The paths of a Deployment's containers; regular ones first.
const LISTS: [&str; 2] = ["/spec/template/spec/containers", "/spec/template/spec/initContainers"];

fn container_names(object: &Value) -> Vec<&str> {
    let lists = LISTS.iter().filter_map(|list| object.pointer(list)?.as_array());
    lists
        .flatten()
        .filter_map(|container| container["name"].as_str())
        .collect()
}

fn container_path(object: &Value, name: &str) -> Option<String> {
    LISTS.iter().find_map(|list| {
        let containers = object.pointer(list)?.as_array()?;
        let at = containers.iter().position(|container| container["name"] == name)?;
        Some(format!("{list}/{at}"))
    })
}

fn container_mut<'v>(object: &'v mut Value, name: &str) -> Option<&'v mut Value> {
    let path = container_path(object, name)?;
    object.pointer_mut(&path)
}

/// The manager container: `manager`; else the default container of kubectl, else the only one.
fn manager_of(object: &Value) -> Option<String> {
    let containers = object.pointer(LISTS[0])?.as_array()?;
    let names: Vec<&str> = containers
        .iter()
        .filter_map(|container| container["name"].as_str())
        .collect();
    let shown = &object["spec"]["template"]["metadata"]["annotations"]["kubectl.kubernetes.io/default-container"];
    let is = |name: &&&str| **name == keys::MANAGER_CONTAINER;
    let shown = |name: &&&str| shown.as_str() == Some(**name);
    let found = names.iter().find(is).or_else(|| names.iter().find(shown));
    found
        .or_else(|| names.first().filter(|_| names.len() == 1))
        .map(|name| (*name).to_owned())
}

/// The arguments of a container, or the error.
fn arguments(object: &Value, container: &str) -> Result<crate::args::Arguments, CustomizeError> {
    let none = Value::Null;
    let at = container_path(object, container);
    let found = at.and_then(|path| object.pointer(&path)).unwrap_or(&none);
    crate::args::Arguments::of(found).map_err(|nth| CustomizeError::Shape {
        object: object_name(object),
        why: format!("argument {nth} of container {container} is not text: put it into quotes in the provider's files"),
    })
}
