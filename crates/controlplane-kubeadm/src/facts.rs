//! What the controller knows when it plans: plain data, without clients, caches or clocks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, OwnerReference};
use serde_json::Value;
use windlass_cluster_cache::Workload;
use windlass_controller_runtime::Seen;
use windlass_etcd::{Alarm, Member, MemberId};
use windlass_pki::Purpose;
use windlass_runtime_client::in_place::InPlace;
use windlass_runtime_client::marks;

use crate::core_dns::{CoreDns, CoreDnsObjects};
use crate::names::{CERTIFICATES_EXPIRY, CONTROL_PLANE_NAME_LABEL, REMEDIATION_FOR, REMEDIATION_IN_PROGRESS, machine};
use crate::plan::remediate::Remembered;
use crate::rotation::Rotation;

/// Everything the planner looks at.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The control plane.
    pub control_plane: ControlPlane,
    /// Its Cluster.
    pub cluster: Cluster,
    /// The control plane Machines that it manages, or that it can take over as they have no controller, by name.
    pub machines: Vec<Arc<CpMachine>>,
    /// Control plane Machines of the Cluster that another controller manages.
    pub unowned: Vec<String>,
    /// Machines of the Cluster that are no control plane Machines.
    pub workers: Vec<String>,
    /// Names of the MachinePools of the Cluster.
    pub pools: Vec<String>,
    /// The template of the infrastructure machines.
    pub template: Seen<Value>,
    /// The authorities, in the order in which they are made.
    pub certificates: Vec<Certificate>,
    /// The Secret with the administrator's kubeconfig.
    pub kubeconfig: Kubeconfig,
    /// A rotation of the authorities that is asked for or under way.
    pub rotation: Option<Rotation>,
    /// What is known of the workload cluster.
    pub workload: Workload<Reached>,
    /// What the plan asked for.
    pub answers: Answers,
    /// Random characters for the name of the next Machine.
    pub suffix: String,
}

/// What the control plane asks for, and what it said of itself.
#[derive(Clone, Debug, Default)]
pub struct ControlPlane {
    /// Name.
    pub name: String,
    /// Namespace.
    pub namespace: String,
    /// Identity.
    pub uid: String,
    /// Generation of the specification.
    pub generation: i64,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// True once it was deleted.
    pub deleting: bool,
    /// Machines wanted.
    pub replicas: i32,
    /// Kubernetes version wanted, with its `v`.
    pub version: String,
    /// Machines more than wanted while rolling out: 0 or 1.
    pub max_surge: i32,
    /// Machines made before this moment are to be replaced once it has passed.
    pub rollout_after: Option<Timestamp>,
    /// Machines are replaced so many days before their certificates expire.
    pub rollout_before_days: Option<i32>,
    /// Limits of remediation.
    pub remediation: RemediationLimits,
    /// False with an external etcd. Machines that run decide, not what the specification asks for.
    pub managed_etcd: bool,
    /// The specification asks for the other kind of etcd than the Machines have.
    pub etcd_switched: bool,
    /// The template of the infrastructure machines.
    pub template: TemplateRef,
    /// Labels for Machines and what belongs to them.
    pub machine_labels: BTreeMap<String, String>,
    /// Annotations for Machines and what belongs to them.
    pub machine_annotations: BTreeMap<String, String>,
    /// `spec.machineTemplate.spec.deletion` as it stands.
    pub deletion: Value,
    /// `spec.machineTemplate.spec.taints` as it stands.
    pub taints: Value,
    /// `spec.machineTemplate.spec.readinessGates` as it stands.
    pub readiness_gates: Vec<Value>,
    /// Go template for names of Machines.
    pub naming_template: Option<String>,
    /// `spec.kubeadmConfigSpec` as it stands.
    pub kubeadm: Value,
    /// The first Machine came up.
    pub initialized: bool,
    /// Conditions as last written.
    pub conditions: Vec<Condition>,
    /// Older conditions as last written.
    pub legacy_conditions: Vec<Value>,
    /// `status.lastRemediation` as last written.
    pub last_remediation: Option<Value>,
    /// `status.version` as last written.
    pub status_version: Option<String>,
}

/// Limits of remediation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemediationLimits {
    /// Attempts for one problem; without limit when absent.
    pub max_retry: Option<i32>,
    /// Time between two attempts.
    pub retry_period: Duration,
    /// A Machine healthy for so long starts a new count.
    pub min_healthy_period: Duration,
}

impl Default for RemediationLimits {
    fn default() -> Self {
        Self {
            max_retry: None,
            retry_period: Duration::ZERO,
            min_healthy_period: Duration::from_hours(1),
        }
    }
}

/// A reference to a template in the control plane's namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplateRef {
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
}

impl TemplateRef {
    /// `Kind.group`, as annotations carry it.
    pub fn group_kind(&self) -> String {
        format!("{}.{}", self.kind, self.group)
    }
}

/// What matters of the Cluster.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    /// Name.
    pub name: String,
    /// Identity.
    pub uid: String,
    /// Its infrastructure is there.
    pub infrastructure_provisioned: bool,
    /// Host and port of the API server, once known.
    pub endpoint: Option<(String, i32)>,
    /// `spec.topology.version` of a managed topology.
    pub topology_version: Option<String>,
    /// The version that the topology is going to next.
    pub upgrade_step: Option<String>,
    /// Its `spec.controlPlaneRef` names this control plane.
    pub refers_here: bool,
    /// Failure domains that take control plane Machines.
    pub failure_domains: Vec<String>,
}

/// Who controls an object, as its owner references tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Control {
    /// This control plane.
    #[default]
    Ours,
    /// A control plane of the same name with another uid: the object or the control plane comes from a backup.
    Outdated,
    /// It has no controller: the reference was lost, or a user made it.
    Free,
    /// A KubeadmConfig, which made it before this control plane did.
    Config,
    /// Another controller.
    Other,
}

/// A control plane Machine and what belongs to it.
#[derive(Clone, Debug)]
pub struct CpMachine {
    /// Name.
    pub name: String,
    /// Identity.
    pub uid: String,
    /// Version of the object, for changes that must not meet others.
    pub resource_version: String,
    /// Who controls it.
    pub control: Control,
    /// Its owner references.
    pub owners: Vec<OwnerReference>,
    /// Generation of the specification.
    pub generation: i64,
    /// When it was made.
    pub created: Timestamp,
    /// When it was deleted.
    pub deleted: Option<Timestamp>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// The finalizer of its own controller is there.
    pub has_finalizer: bool,
    /// Kubernetes version.
    pub version: String,
    /// Failure domain.
    pub failure_domain: Option<String>,
    /// Identity at the infrastructure provider.
    pub provider_id: Option<String>,
    /// `spec.infrastructureRef` as it stands.
    pub infra_ref: Value,
    /// `spec.bootstrap.configRef` as it stands.
    pub config_ref: Value,
    /// `spec.deletion` as it stands.
    pub deletion: Value,
    /// `spec.taints` as it stands.
    pub taints: Value,
    /// Name of its Node.
    pub node: Option<String>,
    /// Version its kubelet reports.
    pub kubelet_version: Option<String>,
    /// Conditions as last written, of all writers.
    pub conditions: Vec<Condition>,
    /// Its older condition `Ready`, as last written.
    pub legacy_ready: Option<Value>,
    /// When its certificates expire.
    pub certificates_expiry: Option<Timestamp>,
    /// Its infrastructure was there once.
    pub infrastructure_provisioned: bool,
    /// Its bootstrap data was there once.
    pub bootstrap_created: bool,
    /// Time since this controller wrote its conditions, while that may hold back the next write.
    pub conditions_age: Option<Duration>,
    /// Its KubeadmConfig.
    pub config: Seen<Value>,
    /// Its infrastructure machine.
    pub infra: Seen<Value>,
}

impl CpMachine {
    /// True once it was deleted.
    pub fn deleting(&self) -> bool {
        self.deleted.is_some()
    }

    /// Whether it was made by or for a control plane of this name, whatever its owner references tell.
    pub fn is_named_after(&self, control_plane: &ControlPlane) -> bool {
        let label = self.labels.get(CONTROL_PLANE_NAME_LABEL);
        self.control != Control::Free || label == Some(&windlass_meta::label_or_hash(&control_plane.name))
    }

    /// Whether it ran a part of the cluster, also when its status was lost. The annotation of its KubeadmConfig outlives a restore.
    pub fn has_been_up(&self) -> bool {
        let config = self.config.found();
        let expiry = config.map(|config| &config["metadata"]["annotations"][CERTIFICATES_EXPIRY]);
        self.node.is_some() || self.certificates_expiry.is_some() || expiry.is_some_and(|expiry| !expiry.is_null())
    }

    /// Its update in place was decided, and has not begun.
    pub fn is_to_be_updated(&self) -> bool {
        marks::is_marked(Some(&self.annotations)) && !marks::is_pending(Some(&self.annotations))
    }

    /// It is being updated in place.
    pub fn is_updating(&self) -> bool {
        marks::is_under_way(Some(&self.annotations))
    }

    /// The kind of its infrastructure machine.
    pub fn infra_kind(&self) -> &str {
        self.infra_ref["kind"].as_str().unwrap_or_default()
    }

    /// A condition as last written.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        windlass_conditions::get(&self.conditions, kind)
    }

    /// True when a health check failed.
    pub fn is_unhealthy(&self) -> bool {
        self.has(machine::HEALTH_CHECK_SUCCEEDED, "False")
    }

    /// True when a health check failed and the owner of the Machine has to replace it.
    pub fn is_marked(&self) -> bool {
        self.is_unhealthy() && self.has(machine::OWNER_REMEDIATED, "False")
    }

    fn has(&self, kind: &str, status: &str) -> bool {
        self.condition(kind).is_some_and(|c| c.status == status)
    }
}

/// One of the authorities a cluster needs.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// What it is for.
    pub purpose: Purpose,
    /// False for certificates that only a user can bring.
    pub can_generate: bool,
    /// Its Secret.
    pub secret: Seen<SecretFacts>,
}

/// What matters of a Secret.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SecretFacts {
    /// Identity.
    pub uid: String,
    /// Version of the object.
    pub resource_version: String,
    /// Who controls it.
    pub control: Control,
    /// Its owner references.
    pub owners: Vec<OwnerReference>,
    /// It has the type of Secrets made by controllers; others are a user's own and stay as they are.
    pub generated: bool,
}

impl SecretFacts {
    /// Whether the control plane becomes its controller: what names it with another uid always, and what controllers made without a
    /// controller of its own. A Secret of another controller, or of a user, stays as it is.
    pub fn is_to_be_owned(&self) -> bool {
        match self.control {
            Control::Outdated => true,
            Control::Free | Control::Config => self.generated,
            Control::Ours | Control::Other => false,
        }
    }
}

/// The Secret with the administrator's kubeconfig.
#[derive(Clone, Debug, PartialEq)]
pub enum Kubeconfig {
    /// It does not exist.
    Missing,
    /// It exists.
    Found {
        /// What matters of the Secret.
        secret: SecretFacts,
        /// When its client certificate ends; none when it cannot be read.
        expires: Option<Timestamp>,
        /// URL of the API server in it.
        server: Option<String>,
    },
}

/// What a workload cluster that answers holds.
#[derive(Clone, Debug)]
pub struct Reached {
    /// kubeadm has stored its configuration: the first node is initialised.
    pub kubeadm_config: Result<bool, String>,
    /// Nodes with the control plane role, and the Nodes of our Machines.
    pub nodes: Result<Vec<NodeFacts>, String>,
    /// Static pods of the control plane by name.
    pub pods: Result<BTreeMap<String, PodFacts>, String>,
    /// The members of etcd.
    pub etcd: Etcd,
}

/// Facts that only some plans need: they are read when a plan asks for them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answers {
    /// Whether the control plane is deleted, or another one has its name, by what the API server has now.
    pub deleted: Option<Result<bool, String>>,
    /// When the serving certificates of API servers expire, by Node.
    pub certificates: BTreeMap<String, Result<Timestamp, String>>,
    /// The image of kube-proxy.
    pub kube_proxy: Option<Seen<String>>,
    /// The Deployment of CoreDNS.
    pub core_dns: Option<Seen<CoreDns>>,
    /// Deployment and ConfigMap of CoreDNS, as they are now.
    pub core_dns_objects: Option<Seen<CoreDnsObjects>>,
    /// The certificates that machines which join must trust, PEM.
    pub cluster_info: Option<Seen<String>>,
    /// Fingerprints of the authorities by which aggregated API servers know clients.
    pub extension_authorities: Option<Seen<BTreeSet<String>>>,
    /// Whether the Machine that would be replaced next can be updated in place.
    pub in_place: Option<InPlace>,
}

/// What matters of a Node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFacts {
    /// Name.
    pub name: String,
    /// Identity at the infrastructure provider.
    pub provider_id: Option<String>,
    /// It has the control plane role label.
    pub role_label: bool,
    /// It has the control plane role taint.
    pub role_taint: bool,
    /// Its kubelet does not report any more.
    pub unreachable: bool,
    /// Its Ready condition: `True`, `False`, `Unknown`.
    pub ready: Option<String>,
    /// When it was made.
    pub created: Option<Timestamp>,
}

/// What matters of a static pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodFacts {
    /// `Pending`, `Running`, `Succeeded`, `Failed`, `Unknown`.
    pub phase: String,
    /// Conditions that are true.
    pub true_conditions: Vec<String>,
    /// Reasons of containers that wait.
    pub waiting: Vec<String>,
    /// Reasons of containers that ended.
    pub terminated: Vec<String>,
    /// A container ended with an error before.
    pub failed_before: bool,
}

/// What etcd says.
#[derive(Clone, Debug, Default)]
pub enum Etcd {
    /// No member could be asked: there is no Node yet, or etcd is external.
    #[default]
    NotAsked,
    /// No answer; the reason.
    Failed(String),
    /// The member list.
    Members {
        /// All members.
        members: Vec<Member>,
        /// Active alarms.
        alarms: Vec<Alarm>,
        /// Who leads.
        leader: MemberId,
    },
}

impl Etcd {
    /// The member list, when it is known.
    pub fn members(&self) -> Option<&[Member]> {
        match self {
            Self::Members { members, .. } => Some(members),
            Self::NotAsked | Self::Failed(_) => None,
        }
    }
}

impl Facts {
    /// What the workload cluster holds, when it answers.
    pub fn reached(&self) -> Option<&Reached> {
        self.workload.up()
    }

    /// The etcd members, when they are known.
    pub fn members(&self) -> Option<&[Member]> {
        self.reached()?.etcd.members()
    }

    /// The first Machine is up, as said before or seen now.
    pub fn initialized(&self) -> bool {
        self.control_plane.initialized || self.sees_initialization()
    }

    /// Whether there may be a cluster of which nothing is seen now, also when no status tells of it: a status is lost with a restored
    /// backup, or not written yet when a manager ends. Only a cluster has a second Machine, or one that has been up.
    pub fn is_blind(&self) -> bool {
        let silent = self.reached().is_none_or(|reached| reached.kubeadm_config.is_err());
        let begun = self.machines.len() > 1 || self.machines.iter().any(|machine| machine.has_been_up());
        silent && (self.initialized() || begun)
    }

    /// The remediation that still waits for a replacement, as its annotation holds it. An annotation that is left after a Machine was
    /// made for it counts as none: a second replacement would be made otherwise.
    pub fn remediation(&self) -> Option<&String> {
        let text = self.control_plane.annotations.get(REMEDIATION_IN_PROGRESS)?;
        let since = Remembered::parse(text)?.timestamp;
        // Whole seconds on both sides: a replacement made within the second of the deletion counts.
        let replaces = |machine: &Arc<CpMachine>| {
            machine.annotations.get(REMEDIATION_FOR) == Some(text) || machine.created > since
        };
        (!self.machines.iter().any(replaces)).then_some(text)
    }

    /// kubeadm stored its configuration, and the only Machine is not on its way out.
    fn sees_initialization(&self) -> bool {
        let stored = self.reached().is_some_and(|r| r.kubeadm_config == Ok(true));
        let doomed = match self.machines.as_slice() {
            [only] => only.deleting() || only.is_marked(),
            _ => false,
        };
        stored && !doomed
    }
}
