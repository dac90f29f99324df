//! The kinds that Kubernetes itself has, as far as this server serves them, as data.

pub(crate) mod autoscaler;
pub(crate) mod cells;
mod data;
mod decode;
mod quantity;
pub(crate) mod rules;
pub(crate) mod schema;

use std::sync::{Arc, LazyLock, OnceLock};

pub(crate) use self::data::definition;
pub(crate) use self::decode::decode;
use crate::objects::names::NameRule;
use crate::objects::resource::{Resource, ScalePaths, SchemaSource, Special, api_version};

/// One row of the table.
struct Row {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    short: &'static str,
    flags: &'static str,
    /// What field selectors may name.
    fields: &'static str,
}

#[rustfmt::skip]
const fn row([group, version, kind, plural, short, flags, fields]: [&'static str; 7]) -> Row {
    Row { group, version, kind, plural, short, flags, fields }
}

// Flags: N namespaced, S status, C scale, G generation, A in category "all", X in category "api-extensions", U create on update,
// V an update must name a resourceVersion, R names as RBAC has them.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    row(["", "v1", "ConfigMap", "configmaps", "cm", "N", ""]),
    row(["", "v1", "Endpoints", "endpoints", "ep", "NU", ""]),
    row(["", "v1", "Event", "events", "ev", "NU",
        "involvedObject.kind,involvedObject.namespace,involvedObject.name,involvedObject.uid,involvedObject.apiVersion,involvedObject.resourceVersion,involvedObject.fieldPath,reason,reportingComponent,source,type"]),
    row(["", "v1", "LimitRange", "limitranges", "limits", "NU", ""]),
    row(["", "v1", "Namespace", "namespaces", "ns", "S", "status.phase"]),
    row(["", "v1", "Node", "nodes", "no", "S", "spec.unschedulable"]),
    row(["", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", "pvc", "NS", ""]),
    row(["", "v1", "PersistentVolume", "persistentvolumes", "pv", "S", ""]),
    row(["", "v1", "Pod", "pods", "po", "NSAG",
        "spec.nodeName,spec.restartPolicy,spec.schedulerName,spec.serviceAccountName,spec.hostNetwork,status.phase,status.podIP,status.podIPs,status.nominatedNodeName"]),
    row(["", "v1", "PodTemplate", "podtemplates", "", "NG", ""]),
    row(["", "v1", "ReplicationController", "replicationcontrollers", "rc", "NSCGA", "status.replicas"]),
    row(["", "v1", "ResourceQuota", "resourcequotas", "quota", "NS", ""]),
    row(["", "v1", "Secret", "secrets", "", "N", "type"]),
    row(["", "v1", "ServiceAccount", "serviceaccounts", "sa", "N", ""]),
    row(["", "v1", "Service", "services", "svc", "NSAU", "spec.clusterIP,spec.type"]),
    row(["apiregistration.k8s.io", "v1", "APIService", "apiservices", "", "SXV", ""]),
    row(["apps", "v1", "ControllerRevision", "controllerrevisions", "", "N", ""]),
    row(["apps", "v1", "DaemonSet", "daemonsets", "ds", "NSGA", ""]),
    row(["apps", "v1", "Deployment", "deployments", "deploy", "NSCGA", ""]),
    row(["apps", "v1", "ReplicaSet", "replicasets", "rs", "NSCGA", ""]),
    row(["apps", "v1", "StatefulSet", "statefulsets", "sts", "NSCGA", ""]),
    row(["events.k8s.io", "v1", "Event", "events", "ev", "NU",
        "regarding.kind,regarding.namespace,regarding.name,regarding.uid,regarding.apiVersion,regarding.resourceVersion,regarding.fieldPath,reason,reportingController,type"]),
    row(["autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa", "NSA", ""]),
    row(["autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa", "NSA", ""]),
    row(["batch", "v1", "CronJob", "cronjobs", "cj", "NSGA", ""]),
    row(["batch", "v1", "Job", "jobs", "", "NSGA", "status.successful"]),
    row(["certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", "csr", "S", "spec.signerName"]),
    row(["networking.k8s.io", "v1", "Ingress", "ingresses", "ing", "NSG", ""]),
    row(["networking.k8s.io", "v1", "IngressClass", "ingressclasses", "", "G", ""]),
    row(["networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", "netpol", "NG", ""]),
    row(["policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", "pdb", "NSGV", ""]),
    row(["rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", "", "RU", ""]),
    row(["rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", "", "RU", ""]),
    row(["rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", "", "NRU", ""]),
    row(["rbac.authorization.k8s.io", "v1", "Role", "roles", "", "NRU", ""]),
    row(["storage.k8s.io", "v1", "CSIDriver", "csidrivers", "", "V", ""]),
    row(["storage.k8s.io", "v1", "CSINode", "csinodes", "", "V", ""]),
    row(["storage.k8s.io", "v1", "CSIStorageCapacity", "csistoragecapacities", "", "NV", ""]),
    row(["storage.k8s.io", "v1", "StorageClass", "storageclasses", "sc", "", ""]),
    row(["storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", "", "SV", ""]),
    row(["storage.k8s.io", "v1", "VolumeAttributesClass", "volumeattributesclasses", "vac", "", ""]),
    row(["admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", "", "GXV", ""]),
    row(["admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", "", "GXV", ""]),
    row(["apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", "crd,crds", "SGXV", ""]),
    row(["scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", "pc", "G", ""]),
    row(["coordination.k8s.io", "v1", "Lease", "leases", "", "NUV", ""]),
    row(["node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", "", "V", ""]),
    row(["discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", "", "NGV", ""]),
];

fn special(row: &Row) -> Special {
    match (row.group, row.kind) {
        ("autoscaling", _) if row.version == "v1" => Special::AutoscalerV1,
        (_, "Namespace") => Special::Namespace,
        (_, "Pod") => Special::Pod,
        (_, "Service") => Special::Service,
        (_, "CustomResourceDefinition") => Special::Crd,
        (_, "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration") => Special::Webhooks,
        ("events.k8s.io", _) => Special::EventsV1,
        _ => Special::None,
    }
}

fn name_rule(row: &Row) -> NameRule {
    match row.kind {
        "Namespace" | "Service" => NameRule::Label,
        "APIService" => NameRule::PathSegment,
        _ if row.flags.contains('R') => NameRule::PathSegment,
        _ => NameRule::Subdomain,
    }
}

/// The full name of a kind's definition.
fn type_name(group: &str, version: &str, kind: &str) -> String {
    let first = group.split('.').next().unwrap_or("");
    let package = match group {
        "" => "io.k8s.api.core".to_owned(),
        "apiregistration.k8s.io" => "io.k8s.kube-aggregator.pkg.apis.apiregistration".to_owned(),
        "apiextensions.k8s.io" => "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions".to_owned(),
        _ => format!("io.k8s.api.{first}"),
    };
    format!("{package}.{version}.{kind}")
}

fn list(text: &str) -> Vec<String> {
    text.split(',').filter(|s| !s.is_empty()).map(str::to_owned).collect()
}

fn resource(row: &'static Row) -> Resource {
    let has = |flag: char| row.flags.contains(flag);
    // Both event groups show the same objects, which are stored in the core form.
    let storage = if row.group.is_empty() || row.kind == "Event" {
        row.plural.to_owned()
    } else {
        format!("{}.{}", row.plural, row.group)
    };
    let stored_version = match row.group {
        _ if row.kind == "Event" => "v1".to_owned(),
        "autoscaling" => "autoscaling/v2".to_owned(),
        group => api_version(group, row.version),
    };
    let type_name: &'static str = Box::leak(type_name(row.group, row.version, row.kind).into());
    Resource {
        group: row.group.to_owned(),
        version: row.version.to_owned(),
        api_version: api_version(row.group, row.version),
        kind: row.kind.to_owned(),
        list_kind: format!("{}List", row.kind),
        plural: row.plural.to_owned(),
        singular: row.kind.to_lowercase(),
        short_names: list(row.short),
        categories: if has('A') {
            vec!["all".to_owned()]
        } else if has('X') {
            vec!["api-extensions".to_owned()]
        } else {
            Vec::new()
        },
        namespaced: has('N'),
        storage: storage.into(),
        storage_api_version: stored_version,
        status: has('S'),
        scale: has('C').then(|| ScalePaths {
            spec: "spec.replicas".to_owned(),
            status: "status.replicas".to_owned(),
            selector: Some("spec.selector".to_owned()),
        }),
        generation: has('G'),
        name_rule: name_rule(row),
        special: special(row),
        create_on_update: has('U'),
        needs_revision: has('V'),
        columns: data::columns(row.group, row.version, row.plural),
        selectable: list(row.fields).into_iter().map(|f| (f.clone(), f)).collect(),
        schema: SchemaSource::BuiltIn(type_name, OnceLock::new()),
        raw_schema: None,
        conversion: None,
        deprecation: deprecation(row),
    }
}

fn deprecation(row: &Row) -> Option<String> {
    (row.kind == "Endpoints")
        .then(|| "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice".to_owned())
}

static RESOURCES: LazyLock<Vec<Arc<Resource>>> =
    LazyLock::new(|| ROWS.iter().map(|row| Arc::new(resource(row))).collect());

/// All built-in resources, in the order of discovery; shared by all servers of the process.
pub(crate) fn resources() -> &'static [Arc<Resource>] {
    &RESOURCES
}

/// Group, version and plural of each built-in resource: what data is generated for.
pub fn built_in_resources() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    ROWS.iter().map(|row| (row.group, row.version, row.plural))
}
