//! The in-memory backend: what a cloud, its machines and what runs on them would be.
//!
//! As in other clouds, some calls concern the infrastructure of a whole cluster and others a single machine. The first make and
//! delete the load balancer of a cluster, which is an address of this host that belongs to the cluster. The others start and
//! delete machines, and put the API servers of control plane machines behind the cluster's address: its load balancer, or
//! without one the very address that the Cluster names. A handle to the cloud may be restricted to machines.
//!
//! Nothing answers at the address before a control plane machine runs. All of it lives in memory only: after a restart it is made
//! again from the objects of the management cluster, in whatever order they come, and answers when the machines of before are back.

mod authority;
mod calls;
mod cluster_info;
mod endpoint;
mod etcd;
mod idle;
mod kubelets;
mod machines;
mod member;
mod nodes;
mod port;
mod returning;
mod site;
mod station;
mod tls;
mod trouble;
mod workload;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use windlass_controller_runtime::ObjectKey;

pub(crate) use authority::{Authorities, Authority};
pub use calls::{Call, CallCount, CallKey, Privileges};
pub(crate) use endpoint::Endpoint;
pub use etcd::EtcdState;
pub(crate) use member::{Before, Member};
pub(crate) use nodes::NodeSpec;
pub(crate) use site::VmState;
pub use trouble::Trouble;

use calls::Calls;
use port::Reserved;
use site::{Door, Site};
use workload::Workload;

/// The first port that simulated clusters get; the same as Cluster API's.
const FIRST_PORT: u16 = 20_000;
/// Who calls, unless a handle says otherwise.
const CALLER: &str = "windlass";

/// Why the simulated cloud did not do something.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CloudError {
    /// The credentials of the caller do not allow it.
    #[error(
        "{call} for cluster {cluster} is refused: the credentials of {caller} are for machines only; use credentials for \
         everything, or leave the infrastructure of the cluster to a system that has them and say so by the annotation \
         cluster.x-k8s.io/managed-by on the infrastructure cluster",
        call = call.name()
    )]
    Refused {
        /// What was asked for.
        call: Call,
        /// For which cluster.
        cluster: ObjectKey,
        /// Who asked.
        caller: &'static str,
    },
    /// The address of a load balancer cannot be had.
    #[error("the load balancer of cluster {cluster} cannot have {address}: {why}; free the port, or choose another")]
    Address {
        /// The cluster.
        cluster: ObjectKey,
        /// The address that was asked for.
        address: SocketAddr,
        /// Who has it, or what the system says.
        why: String,
    },
    /// The cluster has a load balancer elsewhere.
    #[error("cluster {cluster} has a load balancer at {address} already; delete it first")]
    Exists {
        /// The cluster.
        cluster: ObjectKey,
        /// Where.
        address: SocketAddr,
    },
    /// All ports are taken.
    #[error("no free port from {FIRST_PORT} upward on 127.0.0.1 for cluster {0}")]
    NoPort(ObjectKey),
    /// Nothing can listen where the Cluster says that its API server is.
    #[error(
        "spec.controlPlaneEndpoint of Cluster {cluster} is {endpoint}, where control plane machines cannot listen: {why}; free \
         the port, or create the Cluster with another endpoint"
    )]
    Endpoint {
        /// The Cluster.
        cluster: ObjectKey,
        /// The endpoint.
        endpoint: String,
        /// Who has it, or what the system says.
        why: String,
    },
    /// The API server of the cluster does not run.
    #[error("the simulated API server of cluster {0} does not run")]
    NotServing(ObjectKey),
    /// Certificates could not be made.
    #[error("certificates of simulated cluster {cluster}: {why}")]
    Certificates {
        /// The cluster.
        cluster: ObjectKey,
        /// What went wrong.
        why: String,
    },
    /// kubeadm fails on a machine, as it does on a real one.
    #[error("kubeadm on machine {machine}: {why}")]
    Kubeadm {
        /// The machine.
        machine: String,
        /// What it said.
        why: String,
    },
    /// The simulated API server refused something.
    #[error("the simulated API server of cluster {cluster}: {why}")]
    Server {
        /// The cluster.
        cluster: ObjectKey,
        /// What it said.
        why: String,
    },
}

type Listener = Box<dyn Fn(&ObjectKey) + Send + Sync>;
type Delay = Arc<dyn Fn(Call, &ObjectKey) -> BoxFuture<'static, ()> + Send + Sync>;

#[derive(Default)]
struct Inner {
    sites: Mutex<BTreeMap<ObjectKey, Site>>,
    calls: Calls,
    delay: Mutex<Option<Delay>>,
    listeners: Mutex<Vec<Listener>>,
}

/// A handle to the simulated cloud of a process. A clone is another one with the same privileges.
#[derive(Clone)]
pub struct Cloud {
    inner: Arc<Inner>,
    caller: &'static str,
    privileges: Privileges,
}

impl fmt::Debug for Cloud {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cloud")
            .field("caller", &self.caller)
            .field("privileges", &self.privileges)
            .finish_non_exhaustive()
    }
}

impl Default for Cloud {
    fn default() -> Self {
        Self {
            inner: Arc::default(),
            caller: CALLER,
            privileges: Privileges::All,
        }
    }
}

/// Calls that need no privileges.
impl Cloud {
    /// An empty cloud, and a handle to it that may do everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// A handle to the same cloud with the credentials of `caller`.
    #[must_use]
    pub fn handle(&self, caller: &'static str, privileges: Privileges) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            caller,
            privileges,
        }
    }

    /// How often who called for what, since the cloud is there.
    pub fn calls(&self) -> BTreeMap<CallKey, CallCount> {
        self.inner.calls.snapshot()
    }

    /// From now on calls take time: each begins by waiting for what `delay` returns.
    pub fn delay(&self, delay: impl Fn(Call, &ObjectKey) -> BoxFuture<'static, ()> + Send + Sync + 'static) {
        *self.inner.delay.lock() = Some(Arc::new(delay));
    }

    /// The address of a cluster's load balancer, if it has one.
    pub fn load_balancer(&self, cluster: &ObjectKey) -> Option<SocketAddr> {
        self.inner.sites.lock().get(cluster)?.door.balancer()
    }

    /// The address that the load balancer of a cluster has, or takes over from machines of the cluster that listen on this host.
    pub(crate) fn address(&self, cluster: &ObjectKey, host: Ipv4Addr) -> Option<SocketAddr> {
        let sites = self.inner.sites.lock();
        let door = &sites.get(cluster)?.door;
        let of_machines = || door.address().filter(|address| address.ip() == host);
        door.balancer().or_else(of_machines)
    }

    /// The machines of a cluster that run, and whether they are behind its address.
    pub fn machines(&self, cluster: &ObjectKey) -> BTreeMap<String, bool> {
        let sites = self.inner.sites.lock();
        let vms = sites.get(cluster).map(|site| &site.vms);
        let named = vms.into_iter().flatten();
        named.map(|(name, vm)| (name.clone(), vm.api_server)).collect()
    }

    /// What the cloud knows of a machine.
    pub(crate) fn vm(&self, key: &ObjectKey, name: &str) -> Option<VmState> {
        self.inner.sites.lock().get(key)?.vms.get(name).cloned()
    }

    /// Whether the API server of a cluster answers.
    pub(crate) fn is_up(&self, key: &ObjectKey) -> bool {
        self.inner
            .sites
            .lock()
            .get(key)
            .is_some_and(|site| site.workload.is_some())
    }

    /// Calls `listener` whenever an API server starts to answer or a load balancer appears.
    pub(crate) fn on_change(&self, listener: impl Fn(&ObjectKey) + Send + Sync + 'static) {
        self.inner.listeners.lock().push(Box::new(listener));
    }

    /// Starting and stopping API servers takes awaits. Callers take turns with others of the cluster, lest two control plane machines make
    /// two servers.
    fn turn(&self, key: &ObjectKey) -> Arc<tokio::sync::Mutex<()>> {
        let sites = self.inner.sites.lock();
        sites.get(key).map(|site| Arc::clone(&site.turn)).unwrap_or_default()
    }

    fn changed(&self, key: &ObjectKey) {
        for listener in self.inner.listeners.lock().iter() {
            listener(key);
        }
    }

    /// Begins a call: is it allowed, and how long does it take?
    async fn enter(&self, call: Call, cluster: &ObjectKey) -> Result<(), CloudError> {
        let allowed = self.privileges.allow(call);
        let key = CallKey {
            caller: self.caller,
            cluster: cluster.clone(),
            call,
        };
        self.inner.calls.add(key, allowed);
        if !allowed {
            return Err(CloudError::Refused {
                call,
                cluster: cluster.clone(),
                caller: self.caller,
            });
        }
        let delay = self.inner.delay.lock().clone();
        if let Some(delay) = delay {
            delay(call, cluster).await;
        }
        Ok(())
    }

    /// Cuts the network between a cluster's API server and its clients: connections end, and new ones are refused until
    /// [`Cloud::reconnect`]. The cluster itself runs on.
    pub async fn disconnect(&self, cluster: &ObjectKey) {
        let turn = self.turn(cluster);
        let _turn = turn.lock().await;
        if let Ok(workload) = self.workload(cluster) {
            workload.cut().await;
        }
        if let Some(site) = self.inner.sites.lock().get_mut(cluster)
            && let Err(error) = site.door.keep()
        {
            let what = "the address of a disconnected cluster could not be kept";
            site::lost(&cluster.to_string(), &error, what);
        }
    }

    /// Ends what [`Cloud::disconnect`] began. Fails when the address is gone, or when no API server runs.
    pub async fn reconnect(&self, cluster: &ObjectKey) -> Result<(), CloudError> {
        let turn = self.turn(cluster);
        let _turn = turn.lock().await;
        let workload = self.workload(cluster)?;
        let listener = {
            let sites = self.inner.sites.lock();
            let door = sites.get(cluster).map(|site| site.door.listen());
            door.unwrap_or_else(|| Err(std::io::ErrorKind::NotFound.into()))
        };
        workload.answer(listener.map_err(|error| CloudError::Server {
            cluster: cluster.clone(),
            why: format!("it cannot listen again: {error}"),
        })?);
        Ok(())
    }

    /// Ends everything of all clusters, as the end of the process does.
    pub async fn shutdown(&self) {
        let sites = std::mem::take(&mut *self.inner.sites.lock());
        let workloads: Vec<Workload> = sites.into_values().filter_map(|site| site.workload).collect();
        futures::future::join_all(workloads.iter().map(Workload::ended)).await;
    }
}

/// Calls for the infrastructure of a whole cluster.
impl Cloud {
    /// Makes the load balancer of a cluster at an address of this host; port 0 is any that is free. One that is there already is
    /// found, and an address on which machines of the cluster listen is taken over from them; machines that listen elsewhere go
    /// on there.
    pub async fn create_load_balancer(
        &self,
        cluster: &ObjectKey,
        address: SocketAddr,
    ) -> Result<SocketAddr, CloudError> {
        self.enter(Call::CreateLoadBalancer, cluster).await?;
        let is_it = |other: SocketAddr| address == other || address.port() == 0 && address.ip() == other.ip();
        let found = self.balance(cluster, is_it, |sites| {
            let reserved = reserved(sites, address);
            reserved.map_err(|why| CloudError::Address {
                cluster: cluster.clone(),
                address,
                why,
            })
        })?;
        if is_it(found) {
            Ok(found)
        } else {
            Err(CloudError::Exists {
                cluster: cluster.clone(),
                address: found,
            })
        }
    }

    /// Makes the load balancer of a cluster on the lowest port of the loopback interface that no cluster and no other program has, and
    /// that is not among those taken. One that is there already is found, wherever it is. The port is chosen and reserved at once, so that
    /// clusters that are made at the same time get different ones.
    pub(crate) async fn create_load_balancer_on_free_port(
        &self,
        cluster: &ObjectKey,
        taken: &BTreeSet<u16>,
    ) -> Result<SocketAddr, CloudError> {
        self.enter(Call::CreateLoadBalancer, cluster).await?;
        let local = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let is_local = |other: SocketAddr| other.ip() == Ipv4Addr::LOCALHOST;
        self.balance(cluster, is_local, |sites| {
            let used: BTreeSet<SocketAddr> = sites.values().filter_map(|site| site.door.address()).collect();
            let mut free =
                (FIRST_PORT..=u16::MAX).filter(|port| !taken.contains(port) && !used.contains(&local(*port)));
            free.find_map(|port| Reserved::take(local(port)).ok())
                .ok_or_else(|| CloudError::NoPort(cluster.clone()))
        })
    }

    /// The load balancer that a cluster has, or that takes over what its machines have when `adopts` says so, or a new one.
    fn balance(
        &self,
        key: &ObjectKey,
        adopts: impl Fn(SocketAddr) -> bool,
        new: impl FnOnce(&BTreeMap<ObjectKey, Site>) -> Result<Reserved, CloudError>,
    ) -> Result<SocketAddr, CloudError> {
        let address = {
            let mut sites = self.inner.sites.lock();
            let site = sites.get_mut(key);
            if let Some(address) = site.as_ref().and_then(|site| site.door.balancer()) {
                return Ok(address);
            }
            let adopted = site.and_then(|site| site.door.adopt(&adopts));
            if let Some(address) = adopted {
                address
            } else {
                let reserved = new(&sites)?;
                let address = reserved.address();
                sites.entry(key.clone()).or_default().door = Door::Balancer(reserved);
                address
            }
        };
        self.changed(key);
        Ok(address)
    }

    /// Deletes the load balancer of a cluster, and whatever is still there of the cluster with it.
    pub async fn delete_load_balancer(&self, cluster: &ObjectKey) -> Result<(), CloudError> {
        self.enter(Call::DeleteLoadBalancer, cluster).await?;
        let turn = self.turn(cluster);
        let _turn = turn.lock().await;
        let site = self.inner.sites.lock().remove(cluster);
        if let Some(workload) = site.and_then(|site| site.workload) {
            workload.ended().await;
        }
        Ok(())
    }
}

/// Reserves an address, unless another cluster of this cloud or another program has it.
fn reserved(sites: &BTreeMap<ObjectKey, Site>, address: SocketAddr) -> Result<Reserved, String> {
    // The system alone does not tell clusters apart that share an address of this process.
    let holder = sites.iter().find(|(_, site)| site.door.address() == Some(address));
    match holder {
        Some((key, _)) => Err(format!("cluster {key} has it")),
        None => Reserved::bind(address).map_err(|error| error.to_string()),
    }
}

#[cfg(test)]
mod tests;
