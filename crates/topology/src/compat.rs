//! Which ClusterClasses are good, and which changes of classes existing Clusters can follow.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_gotemplate as gotemplate;

use crate::blueprint::{Reference, references};
use crate::error::Error;
use crate::model::{ClassSpec, Patch, TemplateRef, Topology, ValueFrom, name_of, read};
use crate::names::Naming;
use crate::variables::{BUILTIN, check};
use crate::version;

/// Everything that is wrong with a class by itself.
pub fn check_class(class: &Value) -> Vec<Error> {
    let name = name_of(class);
    let spec: ClassSpec = match read(class, "/spec") {
        Ok(spec) => spec,
        Err(error) => return vec![error],
    };
    let mut errors = Vec::new();
    for Reference { field, template } in references(&spec) {
        check_reference(&name, &field, template, &mut errors);
    }
    let deployments = spec.workers.machine_deployments.iter().map(|w| w.class.as_str());
    unique(&name, "spec.workers.machineDeployments", deployments, &mut errors);
    let pools = spec.workers.machine_pools.iter().map(|w| w.class.as_str());
    unique(&name, "spec.workers.machinePools", pools, &mut errors);
    check_naming(&name, &spec, &mut errors);
    if spec.control_plane.health_check.is_some() && spec.control_plane.machine_infrastructure.is_none() {
        let message = "can be set only if spec.controlPlane.machineInfrastructure is set";
        errors.push(Error::new(&name, "spec.controlPlane.healthCheck", message));
    }
    errors.extend(check::check_class(&name, &spec.variables));
    for (index, patch) in spec.patches.iter().enumerate() {
        let earlier = &spec.patches[..index];
        check_patch(
            &name,
            &format!("spec.patches[{index}]"),
            patch,
            earlier,
            &spec,
            &mut errors,
        );
    }
    check_versions(&name, &spec.kubernetes_versions, &mut errors);
    errors
}

fn check_reference(class: &str, field: &str, template: &TemplateRef, errors: &mut Vec<Error>) {
    let mut refuse = |part: &str, message: String| {
        errors.push(Error::new(class, format!("{field}.{part}"), message));
    };
    if template.name.is_empty() {
        refuse("name", "must not be empty".into());
    }
    if template.kind.strip_suffix("Template").unwrap_or_default().is_empty() {
        refuse(
            "kind",
            format!("must be of the form <Name>Template, not {:?}", template.kind),
        );
    }
    let parts: Vec<&str> = template.api_version.split('/').collect();
    if !matches!(parts[..], [group, version] if !group.is_empty() && !version.is_empty()) {
        refuse(
            "apiVersion",
            format!("must be of the form group/version, not {:?}", template.api_version),
        );
    }
}

fn unique<'a>(class: &str, field: &str, names: impl Iterator<Item = &'a str>, errors: &mut Vec<Error>) {
    let mut seen = BTreeSet::new();
    for (index, name) in names.enumerate() {
        let at = format!("{field}[{index}].class");
        if name.is_empty() {
            errors.push(Error::new(class, at, "must not be empty"));
        } else if !seen.insert(name) {
            errors.push(Error::new(class, at, format!("{name:?} is defined more than once")));
        }
    }
}

fn check_naming(class: &str, spec: &ClassSpec, errors: &mut Vec<Error>) {
    let mut check = |field: &str, template: Option<&str>, topology: Option<&str>| {
        let naming = Naming {
            cluster: "cluster",
            topology,
            template,
            at: (class, field),
        };
        errors.extend(naming.name(&["sample"]).err());
    };
    let (infrastructure, control_plane) = (&spec.infrastructure.naming, &spec.control_plane.naming);
    check(
        "spec.infrastructure.naming.template",
        infrastructure.template.as_deref(),
        None,
    );
    check(
        "spec.controlPlane.naming.template",
        control_plane.template.as_deref(),
        None,
    );
    for (index, worker) in spec.workers.machine_deployments.iter().enumerate() {
        let field = format!("spec.workers.machineDeployments[{index}].naming.template");
        check(&field, worker.naming.template.as_deref(), Some("topology"));
    }
}

fn check_patch(class: &str, at: &str, patch: &Patch, earlier: &[Patch], spec: &ClassSpec, errors: &mut Vec<Error>) {
    let mut refuse = |field: String, message: String| errors.push(Error::new(class, field, message));
    match patch.name.as_str() {
        "" => refuse(format!("{at}.name"), "must not be empty".into()),
        "inline" => refuse(format!("{at}.name"), "\"inline\" cannot be the name of a patch".into()),
        name if earlier.iter().any(|p| p.name == name) => {
            refuse(format!("{at}.name"), format!("{name:?} is used more than once"));
        }
        _ => {}
    }
    match (patch.definitions.is_empty(), &patch.external) {
        (true, None) => refuse(at.to_owned(), "must have one of definitions and external".into()),
        (false, Some(_)) => refuse(at.to_owned(), "can have only one of definitions and external".into()),
        _ => {}
    }
    if let Some(Err(error)) = patch.enabled_if.as_deref().map(gotemplate::check) {
        refuse(format!("{at}.enabledIf"), error.to_string());
    }
    for (index, definition) in patch.definitions.iter().enumerate() {
        let at = format!("{at}.definitions[{index}]");
        let places = &definition.selector.match_resources;
        let any = places.control_plane
            || places.infrastructure_cluster
            || places.machine_deployment_class.is_some()
            || places.machine_pool_class.is_some();
        if !any {
            refuse(
                format!("{at}.selector.matchResources"),
                "selects nothing; set at least one part".into(),
            );
        }
        for (index, operation) in definition.json_patches.iter().enumerate() {
            let at = format!("{at}.jsonPatches[{index}]");
            if let Some(ValueFrom {
                variable: Some(path), ..
            }) = &operation.value_from
            {
                let name = path.split(['.', '[']).next().unwrap_or_default();
                if name != BUILTIN && !spec.variables.iter().any(|v| v.name == name) {
                    let message = format!("variable {name:?} is not defined by the class");
                    refuse(format!("{at}.valueFrom.variable"), message);
                }
            }
            if let Some(ValueFrom {
                template: Some(template),
                ..
            }) = &operation.value_from
                && let Err(error) = gotemplate::check(template)
            {
                refuse(format!("{at}.valueFrom.template"), error.to_string());
            }
            if let Err(error) = crate::patches::check_operation(class, &at, operation) {
                refuse(error.field, error.message);
            }
        }
    }
}

fn check_versions(class: &str, versions: &[String], errors: &mut Vec<Error>) {
    let mut before: Option<semver::Version> = None;
    for (index, text) in versions.iter().enumerate() {
        let at = format!("spec.kubernetesVersions[{index}]");
        let Some(now) = version::parse(text) else {
            errors.push(Error::new(
                class,
                at,
                format!("{text:?} is no semantic version such as v1.35.0"),
            ));
            continue;
        };
        if let Some(before) = &before {
            if now <= *before {
                errors.push(Error::new(
                    class,
                    at,
                    format!("{text} must be newer than v{before} before it"),
                ));
            } else if version::minors_between(before, &now) > 1 {
                let message = format!("{text} leaves out a minor release after v{before}");
                errors.push(Error::new(class, at, message));
            }
        }
        before = Some(now);
    }
}

/// Reasons that forbid a change of a class to `new` while these Clusters use it.
pub fn check_class_update(old: &Value, new: &Value, clusters: &[Value]) -> Vec<Error> {
    let (before, after) = match (read::<ClassSpec>(old, "/spec"), read::<ClassSpec>(new, "/spec")) {
        (Ok(before), Ok(after)) => (before, after),
        (Err(error), _) | (_, Err(error)) => return vec![error],
    };
    let name = name_of(new);
    let mut errors = compatible(&name, &before, &after);
    for cluster in clusters {
        let Ok(topology) = read::<Topology>(cluster, "/spec/topology") else {
            continue;
        };
        let cluster = name_of(cluster);
        for entry in &topology.workers.machine_deployments {
            let was = before
                .workers
                .machine_deployments
                .iter()
                .any(|c| c.class == entry.class);
            let class = after
                .workers
                .machine_deployments
                .iter()
                .find(|c| c.class == entry.class);
            if was && class.is_none() {
                let message = format!(
                    "MachineDeployment class {:?} cannot be removed: {cluster} uses it",
                    entry.class
                );
                errors.push(Error::new(&name, "spec.workers.machineDeployments", message));
            }
        }
        for variable in before
            .variables
            .iter()
            .filter(|b| !after.variables.iter().any(|a| a.name == b.name))
        {
            if topology.variables.iter().any(|v| v.name == variable.name) {
                let message = format!("variable {:?} cannot be removed: {cluster} sets it", variable.name);
                errors.push(Error::new(&name, "spec.variables", message));
            }
        }
    }
    errors
}

/// Reasons that forbid a rebase of a Cluster from the class `old` to the class `new`.
pub fn check_rebase(cluster: &Value, old: &Value, new: &Value) -> Vec<Error> {
    let (before, after) = match (read::<ClassSpec>(old, "/spec"), read::<ClassSpec>(new, "/spec")) {
        (Ok(before), Ok(after)) => (before, after),
        (Err(error), _) | (_, Err(error)) => return vec![error],
    };
    let mut errors = compatible(&name_of(new), &before, &after);
    let topology: Topology = match read(cluster, "/spec/topology") {
        Ok(topology) => topology,
        Err(error) => return vec![error],
    };
    for (index, entry) in topology.workers.machine_deployments.iter().enumerate() {
        if !after.workers.machine_deployments.iter().any(|c| c.class == entry.class) {
            let field = format!("spec.topology.workers.machineDeployments[{index}].class");
            let message = format!(
                "MachineDeployment class {:?} does not exist in {}",
                entry.class,
                name_of(new)
            );
            errors.push(Error::new(name_of(cluster), field, message));
        }
    }
    errors
}

/// Group and kind of what exists cannot change; bootstrap templates are only read when Machines are made, and may.
fn compatible(name: &str, before: &ClassSpec, after: &ClassSpec) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut same = |field: String, before: &TemplateRef, after: &TemplateRef| {
        if (before.group(), &before.kind) != (after.group(), &after.kind) {
            let message = format!(
                "kind cannot change from {}.{} to {}.{}: existing Clusters could not follow",
                before.kind,
                before.group(),
                after.kind,
                after.group()
            );
            errors.push(Error::new(name, field, message));
        }
    };
    same(
        "spec.infrastructure.templateRef".into(),
        &before.infrastructure.template_ref,
        &after.infrastructure.template_ref,
    );
    same(
        "spec.controlPlane.templateRef".into(),
        &before.control_plane.template_ref,
        &after.control_plane.template_ref,
    );
    let machines = |spec: &ClassSpec| spec.control_plane.machine_infrastructure.clone();
    match (machines(before), machines(after)) {
        (Some(before), Some(after)) => same(
            "spec.controlPlane.machineInfrastructure.templateRef".into(),
            &before.template_ref,
            &after.template_ref,
        ),
        (None, None) => {}
        _ => errors.push(Error::new(
            name,
            "spec.controlPlane.machineInfrastructure",
            "cannot be added or removed: existing control planes could not follow",
        )),
    }
    let mut same = |field: String, before: &TemplateRef, after: &TemplateRef| {
        if (before.group(), &before.kind) != (after.group(), &after.kind) {
            let message = format!("kind cannot change from {} to {}", before.kind, after.kind);
            errors.push(Error::new(name, field, message));
        }
    };
    for (index, worker) in after.workers.machine_deployments.iter().enumerate() {
        let was = before
            .workers
            .machine_deployments
            .iter()
            .find(|b| b.class == worker.class);
        if let Some(was) = was {
            let field = format!("spec.workers.machineDeployments[{index}].infrastructure.templateRef");
            same(
                field,
                &was.infrastructure.template_ref,
                &worker.infrastructure.template_ref,
            );
        }
    }
    errors
}

#[cfg(test)]
mod tests;
