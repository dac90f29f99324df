//! The table of the built-in kinds: names, capabilities and strategy. A new kind is a row here.

use crate::cells::{core, others, pods as pod_cells, workloads as work_cells};
use crate::rules::{cluster, config, jobs, namespaces, networking, pods, services, storage, warnings, workloads};
use crate::strategy::{Cells, Lookup, Special, StoredForm, Strategy, Validate};
use crate::{autoscaler, events, fields};
use windlass_objects::metadata::seconds;
use windlass_rbac::roles;

/// A built-in kind in one version.
#[derive(Debug)]
pub struct Kind {
    /// API group, empty for the core group.
    pub group: &'static str,
    /// Version.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Plural name of the resource.
    pub plural: &'static str,
    /// Short names, separated by commas.
    pub short: &'static str,
    flags: &'static str,
    /// The fields that field selectors may name, separated by commas.
    pub fields: &'static str,
    /// The strategy of the kind.
    pub strategy: Strategy,
}

/// A capability of a kind, or a naming rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trait {
    /// Objects are in namespaces.
    Namespaced,
    /// There is a status subresource.
    Status,
    /// There is a scale subresource.
    Scale,
    /// Objects have a generation.
    Generation,
    /// It is in the category `all`.
    All,
    /// It is in the category `api-extensions`.
    ApiExtensions,
    /// PUT may create an object.
    CreateOnUpdate,
    /// PUT requires a resourceVersion.
    NeedsRevision,
    /// Names are path segments, as in RBAC.
    PathSegmentNames,
    /// Names are DNS labels.
    LabelNames,
}

impl Kind {
    /// Whether the kind has a trait.
    pub fn has(&self, wanted: Trait) -> bool {
        let flag = match wanted {
            Trait::Namespaced => 'N',
            Trait::Status => 'S',
            Trait::Scale => 'C',
            Trait::Generation => 'G',
            Trait::All => 'A',
            Trait::ApiExtensions => 'X',
            Trait::CreateOnUpdate => 'U',
            Trait::NeedsRevision => 'V',
            Trait::PathSegmentNames => 'R',
            Trait::LabelNames => 'L',
        };
        self.flags.contains(flag)
    }

    /// The full name of the kind's definition.
    pub fn type_name(&self) -> String {
        type_name(self.group, self.version, self.kind)
    }
}

const fn row([group, version, kind, plural, short, flags, fields]: [&'static str; 7], strategy: Strategy) -> Kind {
    Kind {
        group,
        version,
        kind,
        plural,
        short,
        flags,
        fields,
        strategy,
    }
}

/// All built-in kinds, in the order of discovery.
///
/// Columns: group, version, kind, plural, short names, flags (see [`Kind::has`]), selectable fields; then the strategy.
#[rustfmt::skip]
pub static KINDS: &[Kind] = &[
    row(["", "v1", "ConfigMap", "configmaps", "cm", "N", ""], Strategy {
        validate: Validate::Object(config::config_map), cells: Cells::Named(core::config_map), ..Strategy::PLAIN
    }),
    row(["", "v1", "Endpoints", "endpoints", "ep", "NU", ""], Strategy {
        default: services::default_endpoints, validate: Validate::Object(services::endpoints),
        cells: Cells::Named(core::endpoints_cells),
        deprecation: Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
        ..Strategy::PLAIN
    }),
    row(["", "v1", "Event", "events", "ev", "NU",
        "involvedObject.kind,involvedObject.namespace,involvedObject.name,involvedObject.uid,involvedObject.apiVersion,involvedObject.resourceVersion,involvedObject.fieldPath,reason,reportingComponent,source,type"], Strategy {
        validate: Validate::Object(|o, old, e| cluster::event(o, old, false, e)), cells: Cells::All(core::event),
        field: fields::of_event, ..Strategy::PLAIN
    }),
    row(["", "v1", "LimitRange", "limitranges", "limits", "NU", ""], Strategy {
        default: cluster::default_limits, ..Strategy::PLAIN
    }),
    row(["", "v1", "Namespace", "namespaces", "ns", "SL", "status.phase"], Strategy {
        special: Special::Namespace, default: cluster::default_namespace, on_create: |o, _| namespaces::on_create(o),
        validate: Validate::Object(namespaces::errors), cells: Cells::Named(core::namespace), ..Strategy::PLAIN
    }),
    row(["", "v1", "Node", "nodes", "no", "S", "spec.unschedulable"], Strategy {
        default: cluster::default_node, validate: Validate::Object(cluster::node), cells: Cells::Named(core::node),
        field: fields::of_node, ..Strategy::PLAIN
    }),
    row(["", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", "pvc", "NS", ""], Strategy {
        default: storage::default_claim, lookup: Lookup::StorageClass, on_create: |o, _| storage::claim_on_create(o),
        validate: Validate::Object(storage::claim), cells: Cells::Named(core::persistent_volume_claim),
        ..Strategy::PLAIN
    }),
    row(["", "v1", "PersistentVolume", "persistentvolumes", "pv", "S", ""], Strategy {
        default: storage::default_volume, on_create: |o, now| storage::volume_on_create(o, &seconds(now)),
        validate: Validate::Object(storage::volume), cells: Cells::Named(core::persistent_volume), ..Strategy::PLAIN
    }),
    row(["", "v1", "Pod", "pods", "po", "NSAG",
        "spec.nodeName,spec.restartPolicy,spec.schedulerName,spec.serviceAccountName,spec.hostNetwork,status.phase,status.podIP,status.podIPs,status.nominatedNodeName"], Strategy {
        special: Special::Pod, default: pods::default, admit: pods::tolerate_failing_nodes, lookup: Lookup::Priority,
        on_create: |o, _| pods::on_create(o), on_update: |_, new| pods::tolerate_failing_nodes(new),
        validate: Validate::Part(pods::check), warnings: warnings::of_pod, cells: Cells::Named(pod_cells::cells),
        field: fields::of_pod, ..Strategy::PLAIN
    }),
    row(["", "v1", "PodTemplate", "podtemplates", "", "NG", ""], Strategy {
        default: |o| pods::default_template(o, "/template"), validate: Validate::Object(workloads::pod_template),
        cells: Cells::Named(core::pod_template), ..Strategy::PLAIN
    }),
    row(["", "v1", "ReplicationController", "replicationcontrollers", "rc", "NSCGA", "status.replicas"], Strategy {
        default: workloads::default_replication_controller,
        validate: Validate::Object(workloads::replication_controller),
        cells: Cells::Named(core::replication_controller), field: fields::of_numbers, ..Strategy::PLAIN
    }),
    row(["", "v1", "ResourceQuota", "resourcequotas", "quota", "NS", ""], Strategy {
        validate: Validate::Object(cluster::quota), cells: Cells::Named(core::resource_quota), ..Strategy::PLAIN
    }),
    row(["", "v1", "Secret", "secrets", "", "N", "type"], Strategy {
        default: config::default_secret, validate: Validate::Object(config::secret),
        cells: Cells::Named(core::secret), ..Strategy::PLAIN
    }),
    row(["", "v1", "ServiceAccount", "serviceaccounts", "sa", "N", ""], Strategy {
        cells: Cells::Named(core::service_account), ..Strategy::PLAIN
    }),
    row(["", "v1", "Service", "services", "svc", "NSAUL", "spec.clusterIP,spec.type"], Strategy {
        special: Special::Service, default: services::default_service, on_update: services::on_update,
        validate: Validate::Object(services::service), cells: Cells::Named(core::service), ..Strategy::PLAIN
    }),
    row(["apiregistration.k8s.io", "v1", "APIService", "apiservices", "", "SXVR", ""], Strategy {
        default: cluster::default_api_service, validate: Validate::Object(cluster::api_service),
        cells: Cells::Named(others::apiservice), ..Strategy::PLAIN
    }),
    row(["apps", "v1", "ControllerRevision", "controllerrevisions", "", "N", ""], Strategy {
        validate: Validate::Object(workloads::controller_revision),
        cells: Cells::Named(work_cells::controller_revision), ..Strategy::PLAIN
    }),
    row(["apps", "v1", "DaemonSet", "daemonsets", "ds", "NSGA", ""], Strategy {
        default: workloads::default_daemon_set, on_create: |o, _| workloads::count_template(o, None),
        on_update: |old, new| workloads::count_template(new, Some(old)),
        validate: Validate::Object(workloads::daemon_set), warnings: warnings::of_template,
        cells: Cells::Named(work_cells::daemon_set), ..Strategy::PLAIN
    }),
    row(["apps", "v1", "Deployment", "deployments", "deploy", "NSCGA", ""], Strategy {
        default: workloads::default_deployment, validate: Validate::Object(workloads::deployment),
        warnings: warnings::of_template, cells: Cells::Named(work_cells::deployment), ..Strategy::PLAIN
    }),
    row(["apps", "v1", "ReplicaSet", "replicasets", "rs", "NSCGA", ""], Strategy {
        default: workloads::default_replica_set, validate: Validate::Object(workloads::replica_set),
        warnings: warnings::of_template, cells: Cells::Named(work_cells::replica_set), ..Strategy::PLAIN
    }),
    row(["apps", "v1", "StatefulSet", "statefulsets", "sts", "NSCGA", ""], Strategy {
        default: workloads::default_stateful_set, validate: Validate::Object(workloads::stateful_set),
        warnings: warnings::of_template, cells: Cells::Named(work_cells::stateful_set), ..Strategy::PLAIN
    }),
    row(["events.k8s.io", "v1", "Event", "events", "ev", "NU",
        "regarding.kind,regarding.namespace,regarding.name,regarding.uid,regarding.apiVersion,regarding.resourceVersion,regarding.fieldPath,reason,reportingController,type"], Strategy {
        validate: Validate::Object(|o, old, e| cluster::event(o, old, true, e)), cells: Cells::All(core::event),
        field: fields::of_event,
        stored: Some(StoredForm { to_storage: events::to_core, from_storage: events::from_core }), ..Strategy::PLAIN
    }),
    row(["autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa", "NSA", ""], Strategy {
        default: cluster::default_autoscaler, validate: Validate::Object(cluster::autoscaler),
        cells: Cells::Named(others::horizontal_pod_autoscaler), ..Strategy::PLAIN
    }),
    row(["autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa", "NSA", ""], Strategy {
        default: cluster::default_old_autoscaler, validate: Validate::Object(cluster::autoscaler),
        cells: Cells::Named(others::old_horizontal_pod_autoscaler),
        stored: Some(StoredForm { to_storage: autoscaler::to_v2, from_storage: autoscaler::to_v1 }), ..Strategy::PLAIN
    }),
    row(["batch", "v1", "CronJob", "cronjobs", "cj", "NSGA", ""], Strategy {
        default: jobs::default_cron_job, validate: Validate::Object(jobs::cron_job), warnings: warnings::of_cron_job,
        cells: Cells::Named(work_cells::cron_job), ..Strategy::PLAIN
    }),
    row(["batch", "v1", "Job", "jobs", "", "NSGA", "status.successful"], Strategy {
        default: jobs::default_job, on_create: |o, _| jobs::on_create(o), validate: Validate::Object(jobs::job),
        warnings: warnings::of_template, cells: Cells::Named(work_cells::job), field: fields::of_numbers,
        ..Strategy::PLAIN
    }),
    row(["certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", "csr", "S", "spec.signerName"], Strategy {
        validate: Validate::Object(cluster::signing_request),
        cells: Cells::Named(others::certificate_signing_request), ..Strategy::PLAIN
    }),
    row(["networking.k8s.io", "v1", "Ingress", "ingresses", "ing", "NSG", ""], Strategy {
        validate: Validate::Object(networking::ingress), cells: Cells::Named(others::ingress), ..Strategy::PLAIN
    }),
    row(["networking.k8s.io", "v1", "IngressClass", "ingressclasses", "", "G", ""], Strategy {
        default: networking::default_ingress_class, validate: Validate::Object(networking::ingress_class),
        cells: Cells::Named(others::ingress_class), ..Strategy::PLAIN
    }),
    row(["networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", "netpol", "NG", ""], Strategy {
        default: networking::default_policy, validate: Validate::Object(networking::policy),
        cells: Cells::Named(others::network_policy), ..Strategy::PLAIN
    }),
    row(["policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", "pdb", "NSGV", ""], Strategy {
        validate: Validate::Object(cluster::budget), cells: Cells::Named(others::pod_disruption_budget),
        ..Strategy::PLAIN
    }),
    row(["rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", "", "RU", ""], Strategy {
        default: roles::default,
        validate: Validate::Object(|o, old, e| roles::errors("ClusterRoleBinding", o, old, e)),
        cells: Cells::Named(others::role_binding), ..Strategy::PLAIN
    }),
    row(["rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", "", "RU", ""], Strategy {
        default: roles::default, validate: Validate::Object(|o, old, e| roles::errors("ClusterRole", o, old, e)),
        ..Strategy::PLAIN
    }),
    row(["rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", "", "NRU", ""], Strategy {
        default: roles::default, validate: Validate::Object(|o, old, e| roles::errors("RoleBinding", o, old, e)),
        cells: Cells::Named(others::role_binding), ..Strategy::PLAIN
    }),
    row(["rbac.authorization.k8s.io", "v1", "Role", "roles", "", "NRU", ""], Strategy {
        default: roles::default, validate: Validate::Object(|o, old, e| roles::errors("Role", o, old, e)),
        ..Strategy::PLAIN
    }),
    row(["storage.k8s.io", "v1", "CSIDriver", "csidrivers", "", "V", ""], Strategy {
        default: storage::default_csi_driver, validate: Validate::Object(storage::csi_driver),
        cells: Cells::Named(others::csidriver), ..Strategy::PLAIN
    }),
    row(["storage.k8s.io", "v1", "CSINode", "csinodes", "", "V", ""], Strategy {
        validate: Validate::Object(storage::csi_node), cells: Cells::Named(others::csinode), ..Strategy::PLAIN
    }),
    row(["storage.k8s.io", "v1", "CSIStorageCapacity", "csistoragecapacities", "", "NV", ""], Strategy::PLAIN),
    row(["storage.k8s.io", "v1", "StorageClass", "storageclasses", "sc", "", ""], Strategy {
        default: storage::default_class, validate: Validate::Object(storage::class),
        cells: Cells::Named(others::storage_class), ..Strategy::PLAIN
    }),
    row(["storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", "", "SV", ""], Strategy {
        validate: Validate::Object(storage::attachment), cells: Cells::Named(others::volume_attachment),
        ..Strategy::PLAIN
    }),
    row(["storage.k8s.io", "v1", "VolumeAttributesClass", "volumeattributesclasses", "vac", "", ""], Strategy {
        cells: Cells::Named(others::volume_attributes_class), ..Strategy::PLAIN
    }),
    row(["admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", "", "GXV", ""], Strategy {
        special: Special::Webhooks, default: |o| cluster::default_webhooks(o, true),
        cells: Cells::Named(others::webhook_configuration), ..Strategy::PLAIN
    }),
    row(["admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", "", "GXV", ""], Strategy {
        special: Special::Webhooks, default: |o| cluster::default_webhooks(o, false),
        cells: Cells::Named(others::webhook_configuration), ..Strategy::PLAIN
    }),
    row(["apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", "crd,crds", "SGXV", ""], Strategy {
        special: Special::Crd, ..Strategy::PLAIN
    }),
    row(["scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", "pc", "G", ""], Strategy {
        default: cluster::default_priority_class, validate: Validate::Object(cluster::priority_class),
        cells: Cells::Named(others::priority_class), ..Strategy::PLAIN
    }),
    row(["coordination.k8s.io", "v1", "Lease", "leases", "", "NUV", ""], Strategy {
        validate: Validate::Object(cluster::lease), cells: Cells::Named(others::lease), ..Strategy::PLAIN
    }),
    row(["node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", "", "V", ""], Strategy {
        validate: Validate::Object(cluster::runtime_class), cells: Cells::Named(others::runtime_class),
        ..Strategy::PLAIN
    }),
    row(["discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", "", "NGV", ""], Strategy {
        default: services::default_slice, validate: Validate::Object(services::slice),
        cells: Cells::Named(others::endpoint_slice), ..Strategy::PLAIN
    }),
];

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
