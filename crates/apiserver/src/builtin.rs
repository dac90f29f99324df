//! The kinds that Kubernetes itself has, as far as this server serves them, as data.

use std::sync::{Arc, LazyLock, OnceLock};

use crate::names::NameRule;
use crate::resource::{Column, Resource, ScalePaths, SchemaSource, Special, api_version};

/// One row of the table.
struct Row {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    short: &'static str,
    flags: &'static str,
    /// Name of the type in the OpenAPI document, without its package.
    package: &'static str,
    fields: &'static str,
    columns: &'static str,
}

macro_rules! rows {
    ($($group:literal $version:literal $kind:literal $plural:literal short $short:literal flags $flags:literal in $package:literal fields $fields:literal columns $columns:literal;)*) => {
        &[$(Row { group: $group, version: $version, kind: $kind, plural: $plural, short: $short, flags: $flags, package: $package, fields: $fields, columns: $columns }),*]
    };
}

// Flags: N namespaced, S status, C scale, G generation, A in category "all", U create on update.
// Columns: name=path, `|` between them, `*` before the name for wide output only; a path that starts with `@` is computed, one with `#` a
// pointer to a number that is zero when it is not there.
const ROWS: &[Row] = rows! {
    "" "v1" "Namespace" "namespaces" short "ns" flags "S" in "core.v1" fields "status.phase" columns "Status=.status.phase";
    "" "v1" "Secret" "secrets" short "" flags "N" in "core.v1" fields "type" columns "Type=.type|Data=@data";
    "" "v1" "ConfigMap" "configmaps" short "cm" flags "N" in "core.v1" fields "" columns "Data=@data";
    "" "v1" "Event" "events" short "ev" flags "NU" in "core.v1"
        fields "involvedObject.kind,involvedObject.namespace,involvedObject.name,involvedObject.uid,involvedObject.apiVersion,involvedObject.resourceVersion,involvedObject.fieldPath,reason,reportingComponent,source,type"
        columns "Last Seen=@lastseen|Type=.type|Reason=.reason|Object=@involved|Message=.message";
    "" "v1" "Node" "nodes" short "no" flags "S" in "core.v1" fields "spec.unschedulable"
        columns "Status=@nodestatus|Roles=@noderoles|Age=@age|Version=.status.nodeInfo.kubeletVersion|*Internal-IP=@internalip|*External-IP=@externalip|*OS-Image=.status.nodeInfo.osImage|*Kernel-Version=.status.nodeInfo.kernelVersion|*Container-Runtime=.status.nodeInfo.containerRuntimeVersion";
    "" "v1" "Pod" "pods" short "po" flags "NSAG" in "core.v1"
        fields "spec.nodeName,spec.restartPolicy,spec.schedulerName,spec.serviceAccountName,status.phase,status.podIP,status.podIPs,status.nominatedNodeName,spec.hostNetwork"
        columns "Ready=@podready|Status=@podstatus|Restarts=@podrestarts|Age=@age|*IP=.status.podIP|*Node=.spec.nodeName|*Nominated Node=.status.nominatedNodeName|*Readiness Gates=@none";
    "" "v1" "Service" "services" short "svc" flags "NSAU" in "core.v1" fields "spec.clusterIP,spec.type"
        columns "Type=.spec.type|Cluster-IP=.spec.clusterIP|External-IP=@svcexternal|Port(s)=@svcports|Age=@age|*Selector=@svcselector";
    "" "v1" "ServiceAccount" "serviceaccounts" short "sa" flags "N" in "core.v1" fields "" columns "Secrets=@secrets";
    "" "v1" "Endpoints" "endpoints" short "ep" flags "NU" in "core.v1" fields "" columns "Endpoints=@endpoints";
    "" "v1" "PersistentVolume" "persistentvolumes" short "pv" flags "S" in "core.v1" fields ""
        columns "Capacity=.spec.capacity.storage|Access Modes=@accessmodes|Reclaim Policy=.spec.persistentVolumeReclaimPolicy|Status=.status.phase|Claim=@claim|StorageClass=.spec.storageClassName|Age=@age";
    "" "v1" "PersistentVolumeClaim" "persistentvolumeclaims" short "pvc" flags "NS" in "core.v1" fields ""
        columns "Status=.status.phase|Volume=.spec.volumeName|Capacity=.status.capacity.storage|Access Modes=@accessmodes|StorageClass=.spec.storageClassName|Age=@age";
    "" "v1" "ReplicationController" "replicationcontrollers" short "rc" flags "NSCGA" in "core.v1" fields "status.replicas"
        columns "Desired=#/spec/replicas|Current=#/status/replicas|Ready=#/status/readyReplicas|Age=@age|*Containers=@containers|*Images=@images|*Selector=@svcselector";
    "apps" "v1" "Deployment" "deployments" short "deploy" flags "NSCGA" in "apps.v1" fields ""
        columns "Ready=@ready|Up-to-date=#/status/updatedReplicas|Available=#/status/availableReplicas|Age=@age|*Containers=@containers|*Images=@images|*Selector=@selector";
    "apps" "v1" "DaemonSet" "daemonsets" short "ds" flags "NSGA" in "apps.v1" fields ""
        columns "Desired=#/status/desiredNumberScheduled|Current=#/status/currentNumberScheduled|Ready=#/status/numberReady|Up-to-date=#/status/updatedNumberScheduled|Available=#/status/numberAvailable|Node Selector=@nodeselector|Age=@age|*Containers=@containers|*Images=@images|*Selector=@selector";
    "apps" "v1" "StatefulSet" "statefulsets" short "sts" flags "NSCGA" in "apps.v1" fields "" columns "Ready=@ready|Age=@age|*Containers=@containers|*Images=@images";
    "apps" "v1" "ReplicaSet" "replicasets" short "rs" flags "NSCGA" in "apps.v1" fields ""
        columns "Desired=#/spec/replicas|Current=#/status/replicas|Ready=#/status/readyReplicas|Age=@age|*Containers=@containers|*Images=@images|*Selector=@selector";
    "batch" "v1" "Job" "jobs" short "" flags "NSGA" in "batch.v1" fields "status.successful" columns "Status=@jobstatus|Completions=@completions|Duration=@none|Age=@age";
    "coordination.k8s.io" "v1" "Lease" "leases" short "" flags "NU" in "coordination.v1" fields "" columns "Holder=.spec.holderIdentity";
    "events.k8s.io" "v1" "Event" "events" short "ev" flags "NU" in "events.v1"
        fields "regarding.kind,regarding.namespace,regarding.name,regarding.uid,regarding.apiVersion,regarding.resourceVersion,regarding.fieldPath,reason,reportingController,type"
        columns "Last Seen=@lastseen|Type=.type|Reason=.reason|Object=@regarding|Message=.note";
    "rbac.authorization.k8s.io" "v1" "Role" "roles" short "" flags "NRU" in "rbac.v1" fields "" columns "Created At=.metadata.creationTimestamp";
    "rbac.authorization.k8s.io" "v1" "RoleBinding" "rolebindings" short "" flags "NRU" in "rbac.v1" fields "" columns "Role=@roleref|Age=@age";
    "rbac.authorization.k8s.io" "v1" "ClusterRole" "clusterroles" short "" flags "RU" in "rbac.v1" fields "" columns "Created At=.metadata.creationTimestamp";
    "rbac.authorization.k8s.io" "v1" "ClusterRoleBinding" "clusterrolebindings" short "" flags "RU" in "rbac.v1" fields "" columns "Role=@roleref|Age=@age";
    "policy" "v1" "PodDisruptionBudget" "poddisruptionbudgets" short "pdb" flags "NSG" in "policy.v1" fields ""
        columns "Min Available=.spec.minAvailable|Max Unavailable=.spec.maxUnavailable|Allowed Disruptions=.status.disruptionsAllowed|Age=@age";
    "storage.k8s.io" "v1" "StorageClass" "storageclasses" short "sc" flags "" in "storage.v1" fields ""
        columns "Provisioner=.provisioner|ReclaimPolicy=.reclaimPolicy|VolumeBindingMode=.volumeBindingMode|AllowVolumeExpansion=@expansion|Age=@age";
    "storage.k8s.io" "v1" "VolumeAttachment" "volumeattachments" short "" flags "S" in "storage.v1" fields ""
        columns "Attacher=.spec.attacher|PV=.spec.source.persistentVolumeName|Node=.spec.nodeName|Attached=.status.attached|Age=@age";
    "discovery.k8s.io" "v1" "EndpointSlice" "endpointslices" short "" flags "NG" in "discovery.v1" fields "" columns "AddressType=.addressType|Age=@age";
    "admissionregistration.k8s.io" "v1" "ValidatingWebhookConfiguration" "validatingwebhookconfigurations" short "" flags "GX" in "admissionregistration.v1" fields "" columns "Webhooks=@webhooks|Age=@age";
    "admissionregistration.k8s.io" "v1" "MutatingWebhookConfiguration" "mutatingwebhookconfigurations" short "" flags "GX" in "admissionregistration.v1" fields "" columns "Webhooks=@webhooks|Age=@age";
    "apiregistration.k8s.io" "v1" "APIService" "apiservices" short "" flags "SX" in "apiregistration.v1" fields "" columns "Service=@apiservice|Available=@apiavailable|Age=@age";
    "apiextensions.k8s.io" "v1" "CustomResourceDefinition" "customresourcedefinitions" short "crd,crds" flags "SGX" in "apiextensions.v1" fields "" columns "Created At=.metadata.creationTimestamp";
};

fn special(row: &Row) -> Special {
    match (row.group, row.kind) {
        (_, "Namespace") => Special::Namespace,
        (_, "Secret") => Special::Secret,
        (_, "ConfigMap") => Special::ConfigMap,
        (_, "Pod") => Special::Pod,
        (_, "Service") => Special::Service,
        ("apps" | "batch", _) => Special::Workload,
        (_, "CustomResourceDefinition") => Special::Crd,
        (_, "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration") => Special::Webhooks,
        ("events.k8s.io", _) => Special::EventsV1,
        _ => Special::None,
    }
}

fn name_rule(row: &Row) -> NameRule {
    match row.kind {
        "Namespace" => NameRule::Label,
        "Service" => NameRule::Label,
        _ if row.flags.contains('R') => NameRule::PathSegment,
        _ => NameRule::Subdomain,
    }
}

fn package(row: &Row) -> String {
    match row.package {
        "apiregistration.v1" => "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1".to_owned(),
        "apiextensions.v1" => "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1".to_owned(),
        other => format!("io.k8s.api.{other}"),
    }
}

fn list(text: &str) -> Vec<String> {
    text.split(',').filter(|s| !s.is_empty()).map(str::to_owned).collect()
}

fn columns(text: &str) -> Vec<Column> {
    let mut out = vec![column("Name", "@name", 0)];
    for part in text.split('|').filter(|p| !p.is_empty()) {
        let (part, priority) = part.strip_prefix('*').map_or((part, 0), |p| (p, 1));
        if let Some((name, path)) = part.split_once('=') {
            out.push(column(name, path, priority));
        }
    }
    if !text.contains("Age=") && !text.contains("Created At") && !text.contains("Last Seen") {
        out.push(column("Age", "@age", 0));
    }
    out
}

fn column(name: &str, path: &str, priority: i64) -> Column {
    Column {
        name: name.to_owned(),
        kind: "string".to_owned(),
        format: if name == "Name" { "name" } else { "" }.to_owned(),
        description: String::new(),
        priority,
        path: path.to_owned(),
    }
}

fn resource(row: &'static Row) -> Resource {
    let has = |flag: char| row.flags.contains(flag);
    // Both event groups show the same objects, which are stored in the core form.
    let storage = if row.group.is_empty() || row.kind == "Event" {
        row.plural.to_owned()
    } else {
        format!("{}.{}", row.plural, row.group)
    };
    let stored_version = if row.kind == "Event" {
        "v1".to_owned()
    } else {
        api_version(row.group, row.version)
    };
    let type_name: &'static str = Box::leak(format!("{}.{}", package(row), row.kind).into());
    Resource {
        group: row.group.to_owned(),
        version: row.version.to_owned(),
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
        columns: columns(row.columns),
        selectable: list(row.fields).into_iter().map(|f| (f.clone(), f)).collect(),
        schema: SchemaSource::BuiltIn(type_name, OnceLock::new()),
        raw_schema: None,
        deprecation: (row.kind == "Endpoints")
            .then(|| "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice".to_owned()),
    }
}

static RESOURCES: LazyLock<Vec<Arc<Resource>>> =
    LazyLock::new(|| ROWS.iter().map(|row| Arc::new(resource(row))).collect());

/// All built-in resources, in the order of discovery; shared by all servers of the process.
pub(crate) fn resources() -> &'static [Arc<Resource>] {
    &RESOURCES
}
