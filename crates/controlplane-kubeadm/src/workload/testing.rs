//! A workload cluster for tests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::Barrier;
use windlass_cluster_cache::Workload;
use windlass_etcd::testing::FakeEtcd;
use windlass_etcd::{EtcdMembers, async_trait};
use windlass_meta::ObjectKey;

use super::{WorkloadCluster, WorkloadClusters};
use crate::core_dns::{COREFILE, CoreDns, CoreDnsChange, CoreDnsObjects, Corefile};
use crate::facts::{NodeFacts, PodFacts};

/// The state of a fake workload cluster.
#[derive(Clone, Debug, Default)]
pub struct FakeState {
    /// False: no connection.
    pub up: bool,
    /// kubeadm's configuration is stored.
    pub kubeadm_config: bool,
    /// The version in kubeadm's configuration.
    pub kubeadm_version: Option<String>,
    /// All Nodes.
    pub nodes: Vec<NodeFacts>,
    /// Static pods.
    pub pods: BTreeMap<String, PodFacts>,
    /// Image of kube-proxy.
    pub kube_proxy: Option<String>,
    /// The Deployment of CoreDNS.
    pub core_dns: Option<CoreDns>,
    /// The ConfigMap of CoreDNS.
    pub corefile: Option<Corefile>,
    /// The settings of DNS in kubeadm's configuration.
    pub kubeadm_dns: Value,
    /// The certificates that machines which join must trust.
    pub cluster_info: Option<String>,
    /// Fingerprints of the authorities by which aggregated API servers know clients.
    pub extension_authorities: Option<BTreeSet<String>>,
    /// When serving certificates expire.
    pub expiry: Timestamp,
    /// Where reads of serving certificates meet before they are answered.
    pub certificate_reads: Option<Arc<Barrier>>,
    /// Who wants to know of changes.
    pub subscribers: Vec<Subscriber>,
}

/// Who wants to know of changes.
#[derive(Clone)]
pub struct Subscriber(Arc<dyn Fn(&ObjectKey) + Send + Sync>);

impl std::fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Subscriber")
    }
}

/// A fake workload cluster; clones share it.
#[derive(Clone, Debug, Default)]
pub struct FakeWorkload {
    state: Arc<Mutex<FakeState>>,
    /// Its etcd.
    pub etcd: FakeEtcd,
}

impl FakeWorkload {
    /// The state, to look at or to change.
    pub fn state(&self) -> MutexGuard<'_, FakeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells everybody who subscribed that something changed.
    pub fn changed(&self, cluster: &ObjectKey) {
        let subscribers = self.state().subscribers.clone();
        for Subscriber(changed) in subscribers {
            changed(cluster);
        }
    }
}

impl WorkloadClusters for FakeWorkload {
    fn workload(&self, _: &ObjectKey) -> Workload<Box<dyn WorkloadCluster>> {
        if self.state().up {
            Workload::Up(Box::new(self.clone()))
        } else {
            Workload::NotTried("the fake is not up yet".to_owned())
        }
    }

    fn subscribe(&self, changed: Arc<dyn Fn(&ObjectKey) + Send + Sync>) {
        self.state().subscribers.push(Subscriber(changed));
    }
}

#[async_trait]
impl WorkloadCluster for FakeWorkload {
    async fn has_kubeadm_config(&self) -> Result<bool, String> {
        Ok(self.state().kubeadm_config)
    }

    async fn nodes(&self, also: &BTreeSet<String>) -> Result<Vec<NodeFacts>, String> {
        let state = self.state();
        let wanted = |n: &&NodeFacts| n.role_label || also.contains(&n.name);
        Ok(state.nodes.iter().filter(wanted).cloned().collect())
    }

    async fn pods(&self) -> Result<BTreeMap<String, PodFacts>, String> {
        Ok(self.state().pods.clone())
    }

    async fn etcd(&self, node: &str) -> Result<Box<dyn EtcdMembers>, String> {
        Ok(Box::new(self.etcd.endpoint(node)))
    }

    async fn kube_proxy_image(&self) -> Result<Option<String>, String> {
        Ok(self.state().kube_proxy.clone())
    }

    async fn set_kube_proxy_image(&self, image: &str) -> Result<(), String> {
        self.state().kube_proxy = Some(image.to_owned());
        Ok(())
    }

    async fn core_dns(&self) -> Result<Option<CoreDns>, String> {
        Ok(self.state().core_dns.clone())
    }

    async fn unfinished_core_dns(&self) -> Result<Option<CoreDns>, String> {
        Ok(self.state().core_dns.clone().filter(CoreDns::is_unfinished))
    }

    async fn core_dns_objects(&self) -> Result<Option<CoreDnsObjects>, String> {
        let state = self.state();
        let objects = state.core_dns.clone().zip(state.corefile.clone());
        Ok(objects.map(|(deployment, corefile)| CoreDnsObjects { deployment, corefile }))
    }

    async fn change_core_dns(&self, change: &CoreDnsChange) -> Result<(), String> {
        let mut state = self.state();
        match change {
            CoreDnsChange::Corefile { data, resource_version } => {
                let corefile = state.corefile.as_mut().ok_or("ConfigMap not found")?;
                if corefile.resource_version != *resource_version {
                    return Err("the object has been modified".to_owned());
                }
                corefile.resource_version.push('+');
                for (key, text) in data {
                    let place = if *key == COREFILE {
                        &mut corefile.text
                    } else {
                        &mut corefile.backup
                    };
                    *place = Some(text.clone());
                }
            }
            CoreDnsChange::Deployment {
                resource_version,
                image,
                items,
            } => {
                let found = state.core_dns.as_mut().ok_or("Deployment not found")?;
                if found.resource_version != *resource_version {
                    return Err("the object has been modified".to_owned());
                }
                found.resource_version.push('+');
                if let Some(image) = image {
                    found.image.clone_from(image);
                }
                if let Some(items) = items {
                    found.items.clone_from(items);
                }
            }
        }
        Ok(())
    }

    async fn update_kubeadm_dns(&self, dns: &Value, _: &str) -> Result<(), String> {
        self.state().kubeadm_dns = dns.clone();
        Ok(())
    }

    async fn update_kubeadm_config(&self, _: &Value, version: &str) -> Result<(), String> {
        self.state().kubeadm_version = Some(version.to_owned());
        Ok(())
    }

    async fn ensure_rbac(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    async fn cluster_info(&self) -> Result<Option<String>, String> {
        Ok(self.state().cluster_info.clone())
    }

    async fn update_cluster_info(&self, authorities: &str) -> Result<(), String> {
        self.state().cluster_info = Some(authorities.to_owned());
        Ok(())
    }

    async fn extension_authorities(&self) -> Result<Option<BTreeSet<String>>, String> {
        Ok(self.state().extension_authorities.clone())
    }

    async fn drop_extension_authorities(&self, fingerprints: &BTreeSet<String>) -> Result<(), String> {
        if let Some(known) = &mut self.state().extension_authorities {
            known.retain(|one| !fingerprints.contains(one));
        }
        Ok(())
    }

    async fn certificate_expiry(&self, _: &str, _: u16) -> Result<Timestamp, String> {
        let meeting = self.state().certificate_reads.clone();
        if let Some(meeting) = meeting {
            meeting.wait().await;
        }
        Ok(self.state().expiry)
    }
}
