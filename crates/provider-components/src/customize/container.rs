//! Settings of a container.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_api_operator::ContainerSettings;

use super::{CustomizeError, Note, arguments, container_mut, container_names, flags, image, listed};
use crate::args::{Arguments, Was, flag_name};

/// Applies settings to a container by name; an error if the Deployment lacks it.
pub(super) fn apply(
    object: &mut Value,
    name: &str,
    settings: &ContainerSettings,
    field: &str,
    notes: &mut Vec<Note>,
) -> Result<(), CustomizeError> {
    let unknown = |have: &[&str]| CustomizeError::UnknownContainer {
        field: format!("{field}.name"),
        container: settings.name.clone(),
        have: format!("{} in {name}", listed(have)),
    };
    if !container_names(object).contains(&settings.name.as_str()) {
        return Err(unknown(&container_names(object)));
    }
    let mut args = arguments(object, &settings.name)?;
    let mut note = |setting: &str, what: String| {
        notes.push(Note::done(&format!("{field}.{setting}"), name, what).in_container(&settings.name));
    };
    let Some(container) = container_mut(object, &settings.name) else {
        return Err(unknown(&[]));
    };
    if let Some(change) = &settings.image {
        let have = container["image"].as_str().unwrap_or("");
        let image = image::overridden(have, change).map_err(|(part, why)| CustomizeError::Setting {
            field: format!("{field}.image{part}"),
            why,
        })?;
        note("image", format!("set image to {image}"));
        container["image"] = Value::String(image);
    }
    if let Some(command) = &settings.command {
        note("command", "set command".to_owned());
        container["command"] = json!(command);
    }
    if let Some(resources) = &settings.resources {
        note("resources", "set resources".to_owned());
        container["resources"] = resources.clone();
    }
    for variable in &settings.env {
        let what = set_variable(container, &variable.name, json!(variable));
        note(&format!("env[{}]", variable.name), what.to_owned());
    }
    if !settings.args.is_empty() {
        let field = format!("{field}.args");
        for note in set_all(&mut args, &settings.args, &field)? {
            notes.push(Note {
                object: name.to_owned(),
                ..note.in_container(&settings.name)
            });
        }
        args.write(container);
    }
    Ok(())
}

/// Sets flags that a user gave by name. Their values are not logged, as they may be secret.
pub(super) fn set_all(
    args: &mut Arguments,
    given: &BTreeMap<String, String>,
    field: &str,
) -> Result<Vec<Note>, CustomizeError> {
    let mut notes = Vec::new();
    let mut seen: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
    for (key, value) in given {
        let wrong = |why: String| CustomizeError::Setting {
            field: format!("{field}[{key}]"),
            why,
        };
        let name =
            flag_name(key).ok_or_else(|| wrong("is not the name of a flag: write it without its value".to_owned()))?;
        if let Some((other, same)) = seen.insert(name, (key, value)).filter(|(_, same)| same != value) {
            let _ = same;
            return Err(wrong(format!(
                "is the same flag as {other:?} with another value: keep one of them"
            )));
        }
        let field = format!("{field}[{key}]");
        if name == flags::NAMESPACE {
            notes.push(Note::ignored(&field, "", "providers watch all namespaces"));
            continue;
        }
        let what = match args.set(name, value) {
            Was::Absent => format!("added --{name}"),
            Was::Different => format!("replaced --{name}"),
            Was::Same => format!("--{name} is so already"),
        };
        notes.push(Note::done(&field, "", what));
    }
    Ok(notes)
}

/// Replaces the variable of the same name, or appends it.
fn set_variable(container: &mut Value, name: &str, variable: Value) -> &'static str {
    if !container["env"].is_array() {
        container["env"] = json!([]);
    }
    let Some(list) = container["env"].as_array_mut() else {
        return "";
    };
    let mut there = (0..list.len())
        .filter(|at| list[*at]["name"] == name)
        .collect::<Vec<_>>();
    if there.is_empty() {
        list.push(variable);
        return "added the variable";
    }
    // Of duplicates, Kubernetes uses the last.
    let first = there.remove(0);
    for at in there.into_iter().rev() {
        list.remove(at);
    }
    list[first] = variable;
    "replaced the variable"
}
