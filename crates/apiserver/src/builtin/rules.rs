//! What kube-apiserver does to and asks of each built-in kind, beyond what its schema says: defaults, what the server sets when an object
//! is made or changed, and what it refuses. One module for kinds of a sort; all functions are pure.
//!
//! Left out, because they need somebody who is not there (controllers, kubelets) or a part of the cluster that is not simulated: the
//! taint on new nodes and the finalizers that protect volumes and claims (nobody here would take them away), service account tokens
//! in pods, the use of LimitRange and ResourceQuota, pod security levels, runtime class overhead.

mod cluster;
mod config;
mod containers;
mod field;
mod jobs;
mod networking;
mod pods;
mod selectors;
mod services;
mod storage;
mod volumes;
mod warnings;
mod workloads;

use serde_json::{Value, json};
use windlass_schema::FieldError;

pub(crate) use self::cluster::default_autoscaler;
use self::field::{or_set, set};
pub(crate) use self::warnings::warnings;
use crate::error::ApiError;
use crate::objects::object::seconds;
use crate::objects::part::{Fresh, Part};
use crate::objects::resource::{Resource, Special};

/// Fills in what a kind has when nobody says otherwise.
pub(crate) fn default(resource: &Resource, object: &mut Value) {
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "Namespace") => cluster::default_namespace(object),
        ("", "Secret") => config::default_secret(object),
        ("", "Node") => cluster::default_node(object),
        ("", "Pod") => pods::default(object),
        ("", "PodTemplate") => pods::default_template(object, "/template"),
        ("", "Service") => services::default_service(object),
        ("", "Endpoints") => services::default_endpoints(object),
        ("", "PersistentVolume") => storage::default_volume(object),
        ("", "PersistentVolumeClaim") => storage::default_claim(object),
        ("", "ReplicationController") => workloads::default_replication_controller(object),
        ("", "LimitRange") => cluster::default_limits(object),
        ("apps", "Deployment") => workloads::default_deployment(object),
        ("apps", "ReplicaSet") => workloads::default_replica_set(object),
        ("apps", "StatefulSet") => workloads::default_stateful_set(object),
        ("apps", "DaemonSet") => workloads::default_daemon_set(object),
        ("batch", "Job") => jobs::default_job(object),
        ("batch", "CronJob") => jobs::default_cron_job(object),
        ("discovery.k8s.io", _) => services::default_slice(object),
        ("networking.k8s.io", "NetworkPolicy") => networking::default_policy(object),
        ("networking.k8s.io", "IngressClass") => networking::default_ingress_class(object),
        ("autoscaling", _) if resource.special == Special::AutoscalerV1 => cluster::default_old_autoscaler(object),
        ("autoscaling", _) => default_autoscaler(object),
        ("scheduling.k8s.io", _) => cluster::default_priority_class(object),
        ("storage.k8s.io", "StorageClass") => storage::default_class(object),
        ("storage.k8s.io", "CSIDriver") => storage::default_csi_driver(object),
        ("apiregistration.k8s.io", _) => cluster::default_api_service(object),
        ("admissionregistration.k8s.io", kind) => {
            cluster::default_webhooks(object, kind.starts_with("Mutating"));
        }
        ("apiextensions.k8s.io", _) => crate::crds::default(object),
        (crate::auth::rbac::GROUP, _) => crate::auth::rbac::default(object),
        _ => {}
    }
}

/// What admission adds to what is written: owned by nobody.
pub(crate) fn admit(resource: &Resource, object: &mut Value) {
    if resource.group.is_empty() && resource.kind == "Pod" {
        pods::tolerate_failing_nodes(object);
    }
}

/// Sets what the server alone decides of a new object.
pub(crate) fn on_create(resource: &Resource, object: &mut Value, fresh: &Fresh) {
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "Namespace") => namespace_on_create(object),
        ("", "Pod") => pods::on_create(object),
        ("", "PersistentVolume") => storage::volume_on_create(object, &seconds(fresh.now)),
        ("", "PersistentVolumeClaim") => set(object, "status", json!({"phase": "Pending"})),
        ("apps", "DaemonSet") => workloads::count_template(object, None),
        ("batch", "Job") => jobs::on_create(object),
        _ => {}
    }
    if let Some(schema) = resource.schema().filter(|_| !resource.is_custom()) {
        // The types of Kubernetes have a status from the start, with a zero for each number that must be there.
        windlass_schema::default(schema, object);
        // What is stored is read with its defaults once more: some follow from what was just set.
        default(resource, object);
        super::decode::settle(schema.root(), object);
    }
    // The conditions of a definition are there from the start, and null.
    if resource.group == "apiextensions.k8s.io" {
        crate::crds::initial(object);
    }
}

fn namespace_on_create(object: &mut Value) {
    or_set(object, "spec", json!({}));
    or_set(&mut object["spec"], "finalizers", json!([]));
    // Without it a deleted namespace would go before what is in it.
    if let Some(list) = object["spec"]["finalizers"].as_array_mut()
        && !list.iter().any(|f| f == "kubernetes")
    {
        list.push("kubernetes".into());
    }
    set(object, "status", json!({"phase": "Active"}));
}

/// What is stored of an object, once nothing changes it any more.
pub(crate) fn settle(resource: &Resource, object: &mut Value) {
    if let Some(schema) = resource.schema().filter(|_| !resource.is_custom()) {
        super::decode::settle(schema.root(), object);
    }
}

/// Sets what the server alone decides of a changed object.
pub(crate) fn on_update(resource: &Resource, old: &Value, new: &mut Value, part: Part) {
    if part != Part::Main {
        return;
    }
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "Service") => services::on_update(old, new),
        ("", "Pod") => pods::tolerate_failing_nodes(new),
        ("apps", "DaemonSet") => workloads::count_template(new, Some(old)),
        _ => {}
    }
}

/// What is wrong with an object by the rules of its kind.
pub(crate) fn errors(resource: &Resource, object: &Value, old: Option<&Value>, part: Part) -> Vec<FieldError> {
    let mut errors = Vec::new();
    // What its subresources may change of a pod they know themselves.
    if part == Part::Binding {
        return errors;
    }
    let e = &mut errors;
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "Namespace") => crate::objects::namespace::errors(object, old, e),
        ("", "Secret") => config::secret(object, old, e),
        ("", "ConfigMap") => config::config_map(object, old, e),
        ("", "Pod") => pods::check(object, old, part, e),
        ("", "PodTemplate") => workloads::pod_template(object, old, e),
        ("", "Node") => cluster::node(object, old, e),
        ("", "Event") => cluster::event(object, old, false, e),
        ("events.k8s.io", _) => cluster::event(object, old, true, e),
        ("", "Service") => services::service(object, old, e),
        ("", "Endpoints") => services::endpoints(object, old, e),
        ("", "PersistentVolume") => storage::volume(object, old, e),
        ("", "PersistentVolumeClaim") => storage::claim(object, old, e),
        ("", "ReplicationController") => workloads::replication_controller(object, old, e),
        ("", "ResourceQuota") => cluster::quota(object, old, e),
        ("apps", "Deployment") => workloads::deployment(object, old, e),
        ("apps", "ReplicaSet") => workloads::replica_set(object, old, e),
        ("apps", "StatefulSet") => workloads::stateful_set(object, old, e),
        ("apps", "DaemonSet") => workloads::daemon_set(object, old, e),
        ("apps", "ControllerRevision") => workloads::controller_revision(object, old, e),
        ("batch", "Job") => jobs::job(object, old, e),
        ("batch", "CronJob") => jobs::cron_job(object, old, e),
        ("coordination.k8s.io", _) => cluster::lease(object, old, e),
        ("policy", _) => cluster::budget(object, old, e),
        ("scheduling.k8s.io", _) => cluster::priority_class(object, old, e),
        ("certificates.k8s.io", _) => cluster::signing_request(object, old, e),
        ("node.k8s.io", _) => cluster::runtime_class(object, old, e),
        ("autoscaling", _) => cluster::autoscaler(object, old, e),
        ("discovery.k8s.io", _) => services::slice(object, old, e),
        ("networking.k8s.io", "Ingress") => networking::ingress(object, old, e),
        ("networking.k8s.io", "IngressClass") => networking::ingress_class(object, old, e),
        ("networking.k8s.io", "NetworkPolicy") => networking::policy(object, old, e),
        ("storage.k8s.io", "StorageClass") => storage::class(object, old, e),
        ("storage.k8s.io", "VolumeAttachment") => storage::attachment(object, old, e),
        ("storage.k8s.io", "CSINode") => storage::csi_node(object, old, e),
        ("storage.k8s.io", "CSIDriver") => storage::csi_driver(object, old, e),
        ("apiregistration.k8s.io", _) => cluster::api_service(object, old, e),
        ("admissionregistration.k8s.io", _) => e.extend(crate::admission::webhook::errors(resource, object, old)),
        ("apiextensions.k8s.io", _) if part == Part::Status => e.extend(crate::crds::status_errors(object)),
        ("apiextensions.k8s.io", _) => e.extend(crate::crds::errors(object, old)),
        (crate::auth::rbac::GROUP, kind) => crate::auth::rbac::errors(kind, object, old, e),
        _ => {}
    }
    errors
}

/// Whether a binding names a node that a pod can be bound to.
pub(crate) fn binding(name: &str, binding: &Value) -> Result<(), ApiError> {
    let mut errors = Vec::new();
    pods::check_binding(binding, &mut errors);
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid("", "Binding", name, &errors))
}
