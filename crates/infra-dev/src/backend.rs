//! The in-memory backend: what a cloud, its machines and what runs on them would be.
//!
//! As in other clouds, some calls concern the infrastructure of a whole cluster and others a single machine. The first make and
//! delete the load balancer of a cluster, which is an address of this host that belongs to the cluster. The others start and
//! delete machines, and put the API servers of control plane machines behind the cluster's address: its load balancer, or
//! without one the very address that the Cluster names. A handle to the cloud may be restricted to machines.
//!
//! Nothing answers at the address before a control plane machine runs. All of it lives in memory only: after a restart it is made
//! again from the objects of the management cluster, in whatever order they come.

mod calls;
mod endpoint;
mod etcd;
mod idle;
mod member;
mod nodes;
mod port;
mod site;
mod tls;
mod trouble;
mod workload;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use futures::future::BoxFuture;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use windlass_controller_runtime::ObjectKey;
use windlass_kubeadm::stored;
use windlass_pki::CertificateAuthority;

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

/// The authorities of a workload cluster.
#[derive(Clone, Debug)]
pub(crate) struct Authorities {
    /// Signs the API server's certificate and knows its clients.
    pub(crate) cluster: CertificateAuthority,
    /// The same for etcd.
    pub(crate) etcd: CertificateAuthority,
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

/// Calls for single machines. They need nothing that only the controller of the infrastructure cluster makes.
impl Cloud {
    /// Starts a virtual machine; one that is there goes on.
    pub(crate) async fn start_vm(&self, key: &ObjectKey, name: &str, started: Timestamp) -> Result<(), CloudError> {
        self.enter(Call::StartMachine, key).await?;
        let is_troubled = {
            let mut sites = self.inner.sites.lock();
            sites.entry(key.clone()).or_default().start(name, started)
        };
        if is_troubled {
            self.changed(key);
        }
        Ok(())
    }

    fn note(&self, key: &ObjectKey, name: &str, note: impl FnOnce(&mut VmState)) {
        let mut sites = self.inner.sites.lock();
        if let Some(vm) = sites.get_mut(key).and_then(|site| site.vms.get_mut(name)) {
            note(vm);
        }
    }

    fn workload(&self, key: &ObjectKey) -> Result<Workload, CloudError> {
        let sites = self.inner.sites.lock();
        sites
            .get(key)
            .and_then(|site| site.workload.clone())
            .ok_or_else(|| CloudError::NotServing(key.clone()))
    }

    /// Starts the etcd member and the API server of a control plane machine and puts it behind the address of the cluster. The
    /// first one of a cluster makes the server.
    pub(crate) async fn start_control_plane(
        &self,
        key: &ObjectKey,
        member: &Member<'_>,
        authorities: &Authorities,
        now: Timestamp,
    ) -> Result<(), CloudError> {
        self.enter(Call::RegisterMember, key).await?;
        self.check_kubeadm(key, member.name)?;
        let turn = self.turn(key);
        let _turn = turn.lock().await;
        let workload = if let Ok(workload) = self.workload(key) {
            workload
        } else {
            let listener = self.open(key, member.endpoint)?;
            let host = &member.endpoint.host;
            let configuration = {
                let version = nodes::kubeadm_version(member.version);
                stored::initial(&key.name, &member.endpoint.to_string(), version)
            };
            let workload = match configuration {
                Ok(configuration) => {
                    let kubeadm = (member.version, configuration.as_str());
                    Workload::start(key, listener, host, authorities, kubeadm, now).await
                }
                Err(error) => Err(CloudError::Kubeadm {
                    machine: member.name.to_owned(),
                    why: error.to_string(),
                }),
            };
            let mut sites = self.inner.sites.lock();
            let site = sites.entry(key.clone()).or_default();
            match &workload {
                Ok(workload) => site.workload = Some(workload.clone()),
                Err(_) => site.door.leave(),
            }
            drop(sites);
            workload?
        };
        if member.before == Before::Nothing {
            workload.read_configuration(member.name, member.version).await?;
        }
        let troubles = self.troubles(key, member.name);
        workload.join(member, &troubles, now).await?;
        self.note(key, member.name, |vm| vm.api_server = true);
        self.changed(key);
        Ok(())
    }

    /// Listens at the cluster's load balancer, or at the endpoint itself when it has none.
    fn open(&self, key: &ObjectKey, endpoint: &Endpoint) -> Result<TcpListener, CloudError> {
        let failed = |why: String| CloudError::Endpoint {
            cluster: key.clone(),
            endpoint: endpoint.to_string(),
            why,
        };
        let mut sites = self.inner.sites.lock();
        if let Some(Door::Balancer(held)) = sites.get(key).map(|site| &site.door) {
            return held.listen().map_err(|error| CloudError::Address {
                cluster: key.clone(),
                address: held.address(),
                why: error.to_string(),
            });
        }
        let address = endpoint.address();
        let address =
            address.ok_or_else(|| failed("it is no loopback address, and there is no load balancer".into()))?;
        let listen = |held: Reserved| Ok((held.listen().map_err(|error| error.to_string())?, held));
        let (listener, held) = reserved(&sites, address).and_then(listen).map_err(failed)?;
        sites.entry(key.clone()).or_default().door = Door::Machines(held);
        Ok(listener)
    }

    /// Registers a Node.
    pub(crate) async fn register_node(
        &self,
        key: &ObjectKey,
        node: &NodeSpec,
        now: Timestamp,
    ) -> Result<(), CloudError> {
        self.enter(Call::RegisterNode, key).await?;
        self.check_kubeadm(key, &node.name)?;
        self.workload(key)?.register(node, now).await?;
        self.note(key, &node.name, |vm| vm.node = true);
        Ok(())
    }

    /// Switches a machine off and removes what it registered. The last control plane machine takes the API server with it, and
    /// frees an address that no load balancer holds.
    pub(crate) async fn delete_vm(&self, key: &ObjectKey, name: &str) -> Result<(), CloudError> {
        let is_member = self.vm(key, name).is_some_and(|vm| vm.api_server);
        if is_member {
            self.enter(Call::DeregisterMember, key).await?;
        }
        self.enter(Call::DeleteMachine, key).await?;
        let turn = self.turn(key);
        let _turn = turn.lock().await;
        let (vm, last, workload) = {
            let sites = self.inner.sites.lock();
            let Some(site) = sites.get(key) else { return Ok(()) };
            (site.vms.get(name).cloned(), site.is_last(name), site.workload.clone())
        };
        if let (Some(vm), Some(workload)) = (vm, workload) {
            if vm.api_server && last {
                workload.ended().await;
                if let Some(site) = self.inner.sites.lock().get_mut(key) {
                    site.workload = None;
                    site.door.leave();
                }
            } else {
                workload.leave(name, vm.api_server).await?;
            }
        }
        let mut sites = self.inner.sites.lock();
        if let Some(site) = sites.get_mut(key) {
            site.vms.remove(name);
            if site.is_empty() {
                sites.remove(key);
            }
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
