//! From API objects to facts, with the defaults that admission would set.

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use windlass_api::core::v1beta2::{Cluster, Machine};
use windlass_api::kind::ApiKind as _;
use windlass_api::owner;
use windlass_api_kubeadm::bootstrap::v1beta2::KubeadmConfig;
use windlass_api_kubeadm::controlplane::v1beta2::KubeadmControlPlane;
use windlass_controller_runtime::{Seen, Stored as _};

use super::created;
use crate::desired;
use crate::facts::{self, Control, CpMachine, RemediationLimits, SecretFacts, TemplateRef};
use crate::names::{MACHINE_FINALIZER, control_plane};

const SECRET_TYPE: &str = "cluster.x-k8s.io/secret";

/// A part of an object's JSON; `null` where it is not there.
fn part(object: &Value, pointer: &str) -> Value {
    object.pointer(pointer).cloned().unwrap_or_default()
}

/// A list in an object's JSON.
fn list(object: &Value, pointer: &str) -> Vec<Value> {
    let list = object.pointer(pointer).and_then(Value::as_array);
    list.cloned().unwrap_or_default()
}

/// Kubernetes versions carry a `v`; users may leave it out.
fn with_v(version: &str) -> String {
    if version.starts_with('v') || version.is_empty() {
        version.to_owned()
    } else {
        format!("v{version}")
    }
}

pub(super) fn control_plane(object: &KubeadmControlPlane) -> facts::ControlPlane {
    let spec = &object.spec;
    let meta = &object.metadata;
    let status = object.status.clone().unwrap_or_default();
    let template = &spec.machine_template;
    let whole = object.to_json();
    let kubeadm = match part(&whole, "/spec/kubeadmConfigSpec") {
        Value::Null => Value::Object(Map::new()),
        spec => spec,
    };
    let rollout = spec.rollout.as_ref();
    let strategy = rollout.and_then(|r| r.strategy.as_ref()?.rolling_update.as_ref());
    let max_surge = match strategy.and_then(|s| s.max_surge.as_ref()) {
        Some(IntOrString::Int(surge)) => *surge,
        Some(IntOrString::String(surge)) => surge.parse().unwrap_or(1),
        None => 1,
    };
    let machine_meta = template.metadata.clone().unwrap_or_default();
    facts::ControlPlane {
        name: meta.name.clone().unwrap_or_default(),
        namespace: meta.namespace.clone().unwrap_or_default(),
        uid: meta.uid.clone().unwrap_or_default(),
        generation: meta.generation.unwrap_or_default(),
        annotations: meta.annotations.clone().unwrap_or_default(),
        deleting: meta.deletion_timestamp.is_some(),
        replicas: spec.replicas.unwrap_or(1),
        version: with_v(&spec.version),
        max_surge,
        rollout_after: rollout.and_then(|r| r.after.as_ref()).map(|t| t.0),
        rollout_before_days: rollout.and_then(|r| r.before.as_ref()?.certificates_expiry_days),
        remediation: remediation(object),
        managed_etcd: !has_external_etcd(&kubeadm),
        etcd_switched: false,
        template: TemplateRef {
            group: template.spec.infrastructure_ref.api_group.clone(),
            kind: template.spec.infrastructure_ref.kind.clone(),
            name: template.spec.infrastructure_ref.name.clone(),
        },
        machine_labels: machine_meta.labels,
        machine_annotations: machine_meta.annotations,
        deletion: part(&whole, "/spec/machineTemplate/spec/deletion"),
        taints: part(&whole, "/spec/machineTemplate/spec/taints"),
        readiness_gates: list(&whole, "/spec/machineTemplate/spec/readinessGates"),
        naming_template: spec.machine_naming.as_ref().and_then(|n| n.template.clone()),
        kubeadm,
        initialized: status
            .initialization
            .as_ref()
            .is_some_and(|i| i.control_plane_initialized == Some(true)),
        legacy_conditions: list(&whole, "/status/deprecated/v1beta1/conditions"),
        last_remediation: whole.pointer("/status/lastRemediation").cloned(),
        status_version: status.version,
        conditions: status.conditions,
    }
}

fn has_external_etcd(kubeadm: &Value) -> bool {
    kubeadm["clusterConfiguration"]["etcd"]["external"].is_object()
}

/// Whether members of etcd run on the Machines, whatever the specification asks for now. A KubeadmConfig without `clusterConfiguration`
/// does not tell. When none tells, the conditions do: one about etcd is there as long as its members are on Machines.
pub(super) fn runs_etcd(own: &facts::ControlPlane, machines: &[Arc<CpMachine>]) -> bool {
    if machines.is_empty() {
        return own.managed_etcd;
    }
    let configs = machines.iter().filter_map(|machine| machine.config.found());
    let telling = configs
        .map(|config| &config["spec"])
        .filter(|spec| spec["clusterConfiguration"].is_object());
    let external: Vec<bool> = telling.map(has_external_etcd).collect();
    if !external.is_empty() {
        return external.iter().any(|external| !external);
    }
    own.managed_etcd || windlass_conditions::get(&own.conditions, control_plane::ETCD).is_some()
}

fn remediation(object: &KubeadmControlPlane) -> RemediationLimits {
    let limits = object.spec.remediation.clone().unwrap_or_default();
    let default = RemediationLimits::default();
    let seconds = |s: Option<i32>| s.map(|s| Duration::from_secs(u64::try_from(s).unwrap_or_default()));
    RemediationLimits {
        max_retry: limits.max_retry,
        retry_period: seconds(limits.retry_period_seconds).unwrap_or(default.retry_period),
        min_healthy_period: seconds(limits.min_healthy_period_seconds).unwrap_or(default.min_healthy_period),
    }
}

/// Whether `spec.controlPlaneRef` of a Cluster names a control plane of ours.
pub(super) fn refers_to(cluster: &Cluster, control_plane: &str) -> bool {
    let reference = cluster.spec.control_plane_ref.as_ref();
    reference.is_some_and(|r| r.kind == KubeadmControlPlane::KIND && r.name == control_plane)
}

pub(super) fn cluster(object: Option<&Cluster>, name: &str, control_plane: &str) -> facts::Cluster {
    let Some(object) = object else {
        return facts::Cluster {
            name: name.to_owned(),
            ..facts::Cluster::default()
        };
    };
    let status = object.status.clone().unwrap_or_default();
    let endpoint = object.spec.control_plane_endpoint.as_ref();
    let annotations = object.metadata.annotations.as_ref();
    let step = annotations.and_then(|a| a.get(windlass_api::annotations::TOPOLOGY_UPGRADE_STEP));
    facts::Cluster {
        name: name.to_owned(),
        uid: object.metadata.uid.clone().unwrap_or_default(),
        refers_here: refers_to(object, control_plane),
        infrastructure_provisioned: status
            .initialization
            .as_ref()
            .is_some_and(|i| i.infrastructure_provisioned == Some(true)),
        endpoint: endpoint.and_then(|e| {
            let host = e.host.clone().filter(|h| !h.is_empty())?;
            Some((host, e.port.filter(|p| *p > 0)?))
        }),
        topology_version: object.spec.topology.as_ref().map(|t| with_v(&t.version)),
        upgrade_step: step.filter(|s| !s.is_empty()).cloned(),
        failure_domains: status
            .failure_domains
            .iter()
            .filter(|d| d.control_plane == Some(true))
            .map(|d| d.name.clone())
            .collect(),
    }
}

pub(super) fn machine(
    own: &facts::ControlPlane,
    object: &Machine,
    config: Seen<Value>,
    infra: Seen<Value>,
) -> CpMachine {
    let meta = &object.metadata;
    let spec = &object.spec;
    let status = object.status.clone().unwrap_or_default();
    let initialization = status.initialization.unwrap_or_default();
    let whole = object.to_json();
    let mut legacy = list(&whole, "/status/deprecated/v1beta1/conditions").into_iter();
    CpMachine {
        name: meta.name.clone().unwrap_or_default(),
        uid: meta.uid.clone().unwrap_or_default(),
        resource_version: meta.resource_version.clone().unwrap_or_default(),
        control: control(meta, own),
        owners: meta.owner_references.clone().unwrap_or_default(),
        generation: meta.generation.unwrap_or_default(),
        created: created(meta),
        deleted: meta.deletion_timestamp.as_ref().map(|t| t.0),
        labels: meta.labels.clone().unwrap_or_default(),
        annotations: meta.annotations.clone().unwrap_or_default(),
        has_finalizer: meta.finalizers.iter().flatten().any(|f| f == MACHINE_FINALIZER),
        version: with_v(spec.version.as_deref().unwrap_or_default()),
        failure_domain: spec.failure_domain.clone(),
        provider_id: spec.provider_id.clone(),
        infra_ref: part(&whole, "/spec/infrastructureRef"),
        config_ref: part(&whole, "/spec/bootstrap/configRef"),
        deletion: part(&whole, "/spec/deletion"),
        taints: part(&whole, "/spec/taints"),
        node: status.node_ref.map(|n| n.name),
        kubelet_version: status.node_info.map(|n| n.kubelet_version),
        legacy_ready: legacy.find(|condition| condition["type"] == "Ready"),
        conditions: status.conditions,
        certificates_expiry: status.certificates_expiry_date.map(|t| t.0),
        infrastructure_provisioned: initialization.infrastructure_provisioned == Some(true),
        bootstrap_created: initialization.bootstrap_data_secret_created == Some(true)
            || spec.bootstrap.data_secret_name.is_some(),
        conditions_age: None,
        config,
        infra,
    }
}

pub(super) fn secret(object: &Secret, own: &facts::ControlPlane) -> SecretFacts {
    let meta = &object.metadata;
    SecretFacts {
        uid: meta.uid.clone().unwrap_or_default(),
        resource_version: meta.resource_version.clone().unwrap_or_default(),
        control: control(meta, own),
        owners: meta.owner_references.clone().unwrap_or_default(),
        generated: object.type_.as_deref() == Some(SECRET_TYPE),
    }
}

/// Who controls an object.
pub(super) fn control(meta: &ObjectMeta, own: &facts::ControlPlane) -> Control {
    let Some(controller) = owner::controller_of(meta) else {
        return Control::Free;
    };
    let ours = desired::owner(own);
    if controller.uid == ours.uid {
        Control::Ours
    } else if owner::is_same(controller, &ours) {
        Control::Outdated
    } else if controller.kind == KubeadmConfig::KIND {
        Control::Config
    } else {
        Control::Other
    }
}
