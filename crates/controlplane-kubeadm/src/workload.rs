//! What the controller needs of workload clusters: small traits, so that tests need no cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use windlass_cluster_cache::Workload;
use windlass_etcd::{EtcdMembers, async_trait};
use windlass_meta::ObjectKey;

use crate::core_dns::{CoreDns, CoreDnsChange, CoreDnsObjects};
use crate::facts::{NodeFacts, PodFacts};

mod read_only;
pub mod remote;
pub mod testing;

/// Finds workload clusters.
pub trait WorkloadClusters: Send + Sync + 'static {
    /// The connection to the workload cluster of a Cluster.
    fn workload(&self, cluster: &ObjectKey) -> Workload<Box<dyn WorkloadCluster>>;
    /// Has `changed` called with the Cluster whenever a connection comes or goes, or a Node or static pod changes.
    fn subscribe(&self, changed: Arc<dyn Fn(&ObjectKey) + Send + Sync>);
}

/// What the controller asks of one workload cluster. Errors are sentences for people.
#[async_trait]
pub trait WorkloadCluster: Send + Sync {
    /// Whether kubeadm has stored its configuration.
    async fn has_kubeadm_config(&self) -> Result<bool, String>;
    /// Nodes with the control plane role, and those named.
    async fn nodes(&self, also: &BTreeSet<String>) -> Result<Vec<NodeFacts>, String>;
    /// Static pods of control planes in `kube-system`, by name.
    async fn pods(&self) -> Result<BTreeMap<String, PodFacts>, String>;
    /// The etcd member on a Node.
    async fn etcd(&self, node: &str) -> Result<Box<dyn EtcdMembers>, String>;
    /// Image of kube-proxy; none when there is no kube-proxy.
    async fn kube_proxy_image(&self) -> Result<Option<String>, String>;
    /// Changes the image of kube-proxy.
    async fn set_kube_proxy_image(&self, image: &str) -> Result<(), String>;
    /// The Deployment of CoreDNS; none when there is none.
    async fn core_dns(&self) -> Result<Option<CoreDns>, String>;
    /// The Deployment of CoreDNS, if it reads the Corefile of before an update; none when it does not, or when there is none.
    async fn unfinished_core_dns(&self) -> Result<Option<CoreDns>, String>;
    /// Deployment and ConfigMap of CoreDNS as they are now; none when one of them is missing.
    async fn core_dns_objects(&self) -> Result<Option<CoreDnsObjects>, String>;
    /// Changes an object of CoreDNS.
    async fn change_core_dns(&self, change: &CoreDnsChange) -> Result<(), String>;
    /// Brings the settings of DNS that kubeadm stores to a specification, in the format of a version.
    async fn update_kubeadm_dns(&self, dns: &Value, version: &str) -> Result<(), String>;
    /// Brings kubeadm's stored configuration to a specification and version.
    async fn update_kubeadm_config(&self, configuration: &Value, version: &str) -> Result<(), String>;
    /// Makes the role bindings that kubeadm of a version expects.
    async fn ensure_rbac(&self, version: &str) -> Result<(), String>;
    /// The certificates that machines which join must trust, PEM; none when the cluster tells them nothing.
    async fn cluster_info(&self) -> Result<Option<String>, String>;
    /// Tells machines that join which certificates to trust.
    async fn update_cluster_info(&self, authorities: &str) -> Result<(), String>;
    /// Fingerprints of the authorities by which aggregated API servers know clients; none when the cluster tells them nothing.
    async fn extension_authorities(&self) -> Result<Option<BTreeSet<String>>, String>;
    /// Takes authorities out of them, by their fingerprints.
    async fn drop_extension_authorities(&self, fingerprints: &BTreeSet<String>) -> Result<(), String>;
    /// When the serving certificate of the API server on a port of a Node expires.
    async fn certificate_expiry(&self, node: &str, port: u16) -> Result<Timestamp, String>;
}
