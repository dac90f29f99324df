//! The in-memory backend: what a cloud, its machines and what runs on them would be.
//!
//! A simulated workload cluster is a port on the loopback interface from the moment its infrastructure exists, and an API server
//! behind it while at least one control plane machine runs. It lives in memory only: after a restart it is made again from the
//! objects of the management cluster.

mod etcd;
mod nodes;
mod port;
mod tls;
mod workload;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use windlass_kit::ObjectKey;
use windlass_pki::CertificateAuthority;

pub(crate) use nodes::NodeSpec;

use port::Reserved;
use workload::Workload;

/// The first port that simulated clusters get; the same as Cluster API's.
const FIRST_PORT: u16 = 20_000;

/// Why the simulated cloud could not do something.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CloudError {
    /// No port could be had.
    #[error(
        "port {port} on 127.0.0.1 for cluster {cluster}: {source}; free the port, or delete and create the cluster again"
    )]
    Port {
        cluster: ObjectKey,
        port: u16,
        #[source]
        source: std::io::Error,
    },
    /// All ports are taken.
    #[error("no free port from {FIRST_PORT} upward on 127.0.0.1 for cluster {0}")]
    NoPort(ObjectKey),
    /// The infrastructure of the cluster is not there (yet, or again after a restart).
    #[error("the simulated infrastructure of cluster {0} is not there yet")]
    NoCluster(ObjectKey),
    /// The API server of the cluster does not run.
    #[error("the simulated API server of cluster {0} does not run")]
    NotServing(ObjectKey),
    /// Certificates could not be made.
    #[error("certificates of simulated cluster {cluster}: {why}")]
    Certificates { cluster: ObjectKey, why: String },
    /// The simulated API server refused something.
    #[error("the simulated API server of cluster {cluster}: {why}")]
    Server { cluster: ObjectKey, why: String },
}

/// What the cloud knows of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct VmState {
    /// When it was started.
    pub(crate) started: Timestamp,
    /// Whether its Node is registered.
    pub(crate) node: bool,
    /// Whether its etcd member and its API server run.
    pub(crate) api_server: bool,
}

/// The authorities of a workload cluster.
pub(crate) struct Authorities {
    /// Signs the API server's certificate and knows its clients.
    pub(crate) cluster: CertificateAuthority,
    /// The same for etcd.
    pub(crate) etcd: CertificateAuthority,
}

type UpListener = Box<dyn Fn(&ObjectKey) + Send + Sync>;

struct Site {
    reserved: Reserved,
    vms: BTreeMap<String, VmState>,
    workload: Option<Workload>,
}

#[derive(Default)]
struct Inner {
    sites: Mutex<BTreeMap<ObjectKey, Site>>,
    on_up: Mutex<Vec<UpListener>>,
    // Starting and stopping API servers takes awaits: one at a time per process keeps two control plane machines of one cluster
    // from making two servers.
    starting: tokio::sync::Mutex<()>,
}

/// The simulated cloud of a process. A clone is another handle to it.
#[derive(Clone, Default)]
pub struct Cloud(Arc<Inner>);

impl fmt::Debug for Cloud {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cloud").finish_non_exhaustive()
    }
}

impl Cloud {
    /// An empty cloud.
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls `listener` whenever an API server starts to answer.
    pub(crate) fn on_up(&self, listener: impl Fn(&ObjectKey) + Send + Sync + 'static) {
        self.0.on_up.lock().push(Box::new(listener));
    }

    /// Reserves the port of a cluster: the one it has, or the first that is free.
    pub(crate) fn reserve(&self, key: &ObjectKey, port: Option<u16>, taken: &BTreeSet<u16>) -> Result<u16, CloudError> {
        let mut sites = self.0.sites.lock();
        if let Some(site) = sites.get(key) {
            return Ok(site.reserved.port());
        }
        let reserved = if let Some(port) = port {
            Reserved::bind(port).map_err(|source| CloudError::Port {
                cluster: key.clone(),
                port,
                source,
            })?
        } else {
            let used: BTreeSet<u16> = sites.values().map(|site| site.reserved.port()).collect();
            let mut free = (FIRST_PORT..=u16::MAX).filter(|port| !taken.contains(port) && !used.contains(port));
            free.find_map(|port| Reserved::take(port).ok())
                .ok_or_else(|| CloudError::NoPort(key.clone()))?
        };
        let port = reserved.port();
        sites.insert(
            key.clone(),
            Site {
                reserved,
                vms: BTreeMap::new(),
                workload: None,
            },
        );
        Ok(port)
    }

    /// Ends everything of a cluster and gives its port back.
    pub(crate) async fn remove(&self, key: &ObjectKey) {
        let _one = self.0.starting.lock().await;
        let site = self.0.sites.lock().remove(key);
        if let Some(workload) = site.and_then(|site| site.workload) {
            workload.stop();
        }
    }

    /// Ends everything of all clusters, as the end of the process does.
    pub async fn shutdown(&self) {
        let _one = self.0.starting.lock().await;
        let sites = std::mem::take(&mut *self.0.sites.lock());
        let workloads: Vec<Workload> = sites.into_values().filter_map(|site| site.workload).collect();
        futures::future::join_all(workloads.iter().map(Workload::ended)).await;
    }

    /// What the cloud knows of a machine.
    pub(crate) fn vm(&self, key: &ObjectKey, name: &str) -> Option<VmState> {
        self.0.sites.lock().get(key)?.vms.get(name).cloned()
    }

    /// Whether the API server of a cluster answers.
    pub(crate) fn is_up(&self, key: &ObjectKey) -> bool {
        self.0.sites.lock().get(key).is_some_and(|site| site.workload.is_some())
    }

    /// Starts a virtual machine; one that is there goes on.
    pub(crate) fn start_vm(&self, key: &ObjectKey, name: &str, started: Timestamp) -> Result<(), CloudError> {
        let mut sites = self.0.sites.lock();
        let site = sites.get_mut(key).ok_or_else(|| CloudError::NoCluster(key.clone()))?;
        site.vms.entry(name.to_owned()).or_insert(VmState {
            started,
            ..VmState::default()
        });
        Ok(())
    }

    fn note(&self, key: &ObjectKey, name: &str, note: impl FnOnce(&mut VmState)) {
        if let Some(vm) = self.0.sites.lock().get_mut(key).and_then(|site| site.vms.get_mut(name)) {
            note(vm);
        }
    }

    fn workload(&self, key: &ObjectKey) -> Result<Workload, CloudError> {
        let sites = self.0.sites.lock();
        sites
            .get(key)
            .and_then(|site| site.workload.clone())
            .ok_or_else(|| CloudError::NotServing(key.clone()))
    }

    /// Starts the etcd member and the API server of a control plane machine. The first one of a cluster makes the server.
    pub(crate) async fn start_control_plane(
        &self,
        key: &ObjectKey,
        name: &str,
        authorities: &Authorities,
        version: &str,
        now: Timestamp,
    ) -> Result<(), CloudError> {
        let _one = self.0.starting.lock().await;
        let workload = if let Ok(workload) = self.workload(key) {
            workload
        } else {
            let listener = {
                let sites = self.0.sites.lock();
                let site = sites.get(key).ok_or_else(|| CloudError::NoCluster(key.clone()))?;
                site.reserved.listen().map_err(|source| CloudError::Port {
                    cluster: key.clone(),
                    port: site.reserved.port(),
                    source,
                })?
            };
            let workload = Workload::start(key, listener, authorities, version, now).await?;
            if let Some(site) = self.0.sites.lock().get_mut(key) {
                site.workload = Some(workload.clone());
            }
            workload
        };
        workload.join(name, version, now).await?;
        self.note(key, name, |vm| vm.api_server = true);
        for listener in self.0.on_up.lock().iter() {
            listener(key);
        }
        Ok(())
    }

    /// Registers a Node.
    pub(crate) async fn register_node(
        &self,
        key: &ObjectKey,
        node: &NodeSpec,
        now: Timestamp,
    ) -> Result<(), CloudError> {
        self.workload(key)?.register(node, now).await?;
        self.note(key, &node.name, |vm| vm.node = true);
        Ok(())
    }

    /// Switches a machine off and removes what it registered. The last control plane machine takes the API server with it.
    pub(crate) async fn delete_vm(&self, key: &ObjectKey, name: &str) -> Result<(), CloudError> {
        let _one = self.0.starting.lock().await;
        let (vm, last, workload) = {
            let sites = self.0.sites.lock();
            let Some(site) = sites.get(key) else { return Ok(()) };
            let last = !site.vms.iter().any(|(other, vm)| other != name && vm.api_server);
            (site.vms.get(name).cloned(), last, site.workload.clone())
        };
        if let (Some(vm), Some(workload)) = (vm, workload) {
            if vm.api_server && last {
                workload.stop();
                if let Some(site) = self.0.sites.lock().get_mut(key) {
                    site.workload = None;
                }
            } else {
                workload.leave(name, vm.api_server).await?;
            }
        }
        if let Some(site) = self.0.sites.lock().get_mut(key) {
            site.vms.remove(name);
        }
        Ok(())
    }
}
