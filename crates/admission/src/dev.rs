//! The kinds of the development infrastructure provider.

use std::net::IpAddr;

use serde_json::Value;
use windlass_schema::{FieldError, FieldErrors};

use crate::common;
use crate::defaults;
use crate::field::Field;
use crate::kubeadm::config::is_topology_dry_run;
use crate::kubeadm::control_plane::immutable;
use crate::rule::{Change, Verdict};
use crate::view::Unread;

/// The port of API servers.
const PORT: i64 = 6443;

/// Sets the backend, and what the Docker backend needs.
pub fn complete_cluster(_: &Change<'_>, cluster: &mut Value) -> Result<Verdict, Unread> {
    cluster_spec(cluster, "spec");
    Ok(Verdict::default())
}

/// [`complete_cluster`] of a template.
pub fn complete_cluster_template(_: &Change<'_>, template: &mut Value) -> Result<Verdict, Unread> {
    cluster_spec(template, "spec.template.spec");
    Ok(Verdict::default())
}

/// Sets the backend.
pub fn complete_machine(_: &Change<'_>, machine: &mut Value) -> Result<Verdict, Unread> {
    backend(machine, "spec");
    Ok(Verdict::default())
}

/// [`complete_machine`] of a template.
pub fn complete_machine_template(_: &Change<'_>, template: &mut Value) -> Result<Verdict, Unread> {
    backend(template, "spec.template.spec");
    Ok(Verdict::default())
}

/// Sets the Docker backend in an object without a backend.
fn backend(object: &mut Value, spec: &str) {
    let backend = format!("{spec}.backend");
    let has = |name: &str| !Field::of(object).child(&format!("{backend}.{name}")).value().is_null();
    if !has("inMemory") && !has("docker") {
        defaults::set(object, &backend, "docker", Value::Object(serde_json::Map::new()));
    }
}

fn cluster_spec(object: &mut Value, spec: &str) {
    backend(object, spec);
    let docker = format!("/{}/backend/docker", spec.replace('.', "/"));
    if object.pointer(&docker).is_none_or(Value::is_null) {
        return;
    }
    let endpoint = format!("{spec}.controlPlaneEndpoint");
    let port = Field::of(object).child(&endpoint).child("port");
    if port.value().is_null() || port.number() == Some(0) {
        defaults::set(object, &endpoint, "port", PORT);
    }
    let domains = object.pointer_mut(&format!("{docker}/failureDomains"));
    for domain in domains.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(domain) = domain.as_object_mut() {
            domain.entry("controlPlane").or_insert(false.into());
        }
    }
}

/// The durations of a machine's specification.
const DURATIONS: [&str; 5] = [
    "backend.docker.bootstrapTimeout",
    "backend.inMemory.apiServer.provisioning.startupDuration",
    "backend.inMemory.etcd.provisioning.startupDuration",
    "backend.inMemory.node.provisioning.startupDuration",
    "backend.inMemory.vm.provisioning.startupDuration",
];

/// A template with its durations as Go writes them.
fn with_durations(template: &Value) -> Value {
    let mut template = template.clone();
    for path in DURATIONS {
        let pointer = format!("/spec/template/spec/{}", path.replace('.', "/"));
        if let Some(duration) = template.pointer_mut(&pointer)
            && let Some(parsed) = duration.as_str().and_then(windlass_gocompat::duration::parse)
        {
            *duration = windlass_gocompat::duration::format(parsed).into();
        }
    }
    template
}

/// Checks the durations of a machine, as Go writes them.
fn durations(spec: &Field<'_>, errors: &mut FieldErrors) {
    let all = DURATIONS.map(|path| spec.child(path));
    for duration in all.into_iter().filter(|duration| !duration.value().is_null()) {
        if windlass_gocompat::duration::parse(duration.text()).is_none() {
            errors.add(|| duration.invalid("must be a duration, such as 30s or 5m"));
        }
    }
}

/// Checks a DevCluster. That its infrastructure stays externally managed is the rule of all InfraClusters.
pub fn check_cluster(change: &Change<'_>) -> Vec<FieldError> {
    failure_domains(&Field::of(change.new).child("spec"))
}

fn failure_domains(spec: &Field<'_>) -> Vec<FieldError> {
    let domains = spec.child("backend.docker.failureDomains");
    let names: Vec<&str> = domains
        .value()
        .as_array()
        .into_iter()
        .flatten()
        .map(|domain| domain["name"].as_str().unwrap_or_default())
        .collect();
    if names.is_sorted() {
        return Vec::new();
    }
    vec![domains.invalid("failure domains must be sorted by name")]
}

/// Checks a DevClusterTemplate: its specification cannot change.
pub fn check_cluster_template(change: &Change<'_>) -> Result<Verdict, Unread> {
    if change.is_update() {
        let completed = |object: &Value| {
            let mut object = object.clone();
            cluster_spec(&mut object, "spec.template.spec");
            object
        };
        let changed = immutable("DevClusterTemplate", &completed(change.old), &completed(change.new));
        return Ok(Vec::from_iter(changed).into());
    }
    let template = Field::of(change.new).child("spec.template");
    let mut errors = FieldErrors::new();
    errors.extend(failure_domains(&template.child("spec")));
    common::template_metadata(&template.child("metadata"), &mut errors);
    Ok(errors.into())
}

/// Checks a DevIPPool: its range is of one family, and not upside down.
pub fn check_ip_pool(change: &Change<'_>) -> Result<Verdict, Unread> {
    let spec = Field::of(change.new).child("spec");
    let mut errors = FieldErrors::new();
    let mut address = |field: &Field<'_>| {
        let parsed: Option<IpAddr> = field.text().parse().ok();
        if parsed.is_none() {
            errors.add(|| field.invalid("not a valid IP address"));
        }
        parsed
    };
    let (first, last, gateway) = (spec.child("first"), spec.child("last"), spec.child("gateway"));
    let range = (address(&first), address(&last));
    if gateway.is_set() {
        address(&gateway);
    }
    if let (Some(from), Some(to)) = range {
        let prefix = spec.child("prefix");
        if from.is_ipv4() != to.is_ipv4() {
            errors.add(|| last.invalid("must be of the same family as spec.first"));
        } else if from > to {
            errors.add(|| last.invalid("must not be before spec.first"));
        }
        if from.is_ipv4() && prefix.number().is_some_and(|bits| bits > 32) {
            errors.add(|| prefix.invalid("prefix is too large for an IPv4 address"));
        }
    }
    Ok(errors.into())
}

/// Checks the durations of a DevMachinePool.
pub fn check_machine_pool(change: &Change<'_>) -> Result<Verdict, Unread> {
    let mut errors = FieldErrors::new();
    durations(&Field::of(change.new).child("spec"), &mut errors);
    Ok(errors.into())
}

/// Checks a DevMachinePoolTemplate.
pub fn check_machine_pool_template(change: &Change<'_>) -> Result<Verdict, Unread> {
    let template = Field::of(change.new).child("spec.template");
    let mut errors = FieldErrors::new();
    durations(&template.child("spec"), &mut errors);
    common::template_metadata(&template.child("metadata"), &mut errors);
    Ok(errors.into())
}

/// Checks a DevMachine: its image cannot change.
pub fn check_machine(change: &Change<'_>) -> Result<Verdict, Unread> {
    let docker = |object| Field::of(object).child("spec.backend.docker");
    let (old, new) = (docker(change.old), docker(change.new));
    let mut errors = FieldErrors::new();
    if change.is_update() && !old.value().is_null() && !new.value().is_null() {
        let image = new.child("customImage");
        if image.text() != old.child("customImage").text() {
            errors.add(|| image.forbidden("cannot be modified"));
        }
    }
    durations(&Field::of(change.new).child("spec"), &mut errors);
    Ok(errors.into())
}

/// Checks a DevMachineTemplate: its specification cannot change, except in a dry run of a topology.
pub fn check_machine_template(change: &Change<'_>) -> Result<Verdict, Unread> {
    let mut errors = FieldErrors::new();
    if change.is_update() && !is_topology_dry_run(change, change.new) {
        // A duration may be written in several ways.
        let (old, new) = (with_durations(change.old), with_durations(change.new));
        errors.extend(immutable("DevMachineTemplate", &old, &new));
    }
    let template = Field::of(change.new).child("spec.template");
    durations(&template.child("spec"), &mut errors);
    common::template_metadata(&template.child("metadata"), &mut errors);
    Ok(errors.into())
}
