//! What the cloud has of one cluster.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use tokio::net::TcpListener;
use windlass_controller_runtime::Repeats;

use super::port::Reserved;
use super::trouble::Trouble;
use super::workload::Workload;

/// What the cloud knows of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct VmState {
    /// When it was started.
    pub(crate) started: Timestamp,
    /// Whether its Node is registered.
    pub(crate) node: bool,
    /// Whether its etcd member and its API server run.
    pub(crate) api_server: bool,
    /// What is wrong with it.
    pub(crate) troubles: BTreeSet<Trouble>,
}

/// Who has the address that a cluster is reached at.
#[derive(Debug, Default)]
pub(super) enum Door {
    /// No holder yet.
    #[default]
    None,
    /// Its control plane machines, while they run.
    Machines(Reserved),
    /// Its load balancer.
    Balancer(Reserved),
}

impl Door {
    /// The address.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::None => None,
            Self::Machines(held) | Self::Balancer(held) => Some(held.address()),
        }
    }

    /// The address of the load balancer.
    pub(super) fn balancer(&self) -> Option<SocketAddr> {
        match self {
            Self::Balancer(held) => Some(held.address()),
            Self::None | Self::Machines(_) => None,
        }
    }

    /// Keeps the address although nothing listens on it.
    pub(super) fn keep(&self) -> io::Result<()> {
        match self {
            Self::None => Ok(()),
            Self::Machines(held) | Self::Balancer(held) => held.hold(),
        }
    }

    /// Listens on the address again.
    pub(super) fn listen(&self) -> io::Result<TcpListener> {
        match self {
            Self::None => Err(io::ErrorKind::NotFound.into()),
            Self::Machines(held) | Self::Balancer(held) => held.listen(),
        }
    }

    /// Lets a load balancer take over the address that machines have, if it is the right one.
    pub(super) fn adopt(&mut self, is_right: impl Fn(SocketAddr) -> bool) -> Option<SocketAddr> {
        let address = self.address().filter(|address| is_right(*address))?;
        *self = match std::mem::take(self) {
            Self::Machines(held) => Self::Balancer(held),
            other => other,
        };
        Some(address)
    }

    /// The last listener is gone: a load balancer keeps its address, machines do not.
    pub(super) fn leave(&mut self) {
        match self {
            Self::Balancer(held) => {
                if let Err(error) = held.hold() {
                    lost(&held.address().to_string(), &error, "a load balancer lost its port");
                }
            }
            Self::None | Self::Machines(_) => *self = Self::None,
        }
    }
}

/// Logs that something at an address does not work. What is cut and connected again and again fails as often.
pub(super) fn lost(address: &str, error: &io::Error, what: &'static str) {
    static SAID: Repeats = Repeats::new();
    if let Some(repeated) = SAID.line(&format!("{what} {address}"), &error.to_string(), Instant::now()) {
        tracing::warn!(%error, address, repeated, "{what}");
    }
}

/// One cluster.
#[derive(Default)]
pub(super) struct Site {
    pub(super) door: Door,
    pub(super) vms: BTreeMap<String, VmState>,
    /// The troubles of machines that are still to start.
    pub(super) coming: VecDeque<Trouble>,
    pub(super) workload: Option<Workload>,
    pub(super) turn: Arc<tokio::sync::Mutex<()>>,
}

impl Site {
    /// Starts a machine; one that is there goes on. Returns whether it took a trouble that others may have expected.
    pub(super) fn start(&mut self, name: &str, started: Timestamp) -> bool {
        if self.vms.contains_key(name) {
            return false;
        }
        let vm = VmState {
            started,
            troubles: self.coming.pop_front().into_iter().collect(),
            ..VmState::default()
        };
        let is_troubled = !vm.troubles.is_empty();
        self.vms.insert(name.to_owned(), vm);
        is_troubled
    }

    /// Whether no control plane machine runs but this one.
    pub(super) fn is_last(&self, name: &str) -> bool {
        !self.vms.iter().any(|(other, vm)| other != name && vm.api_server)
    }

    /// Whether nothing is left to know of the cluster.
    pub(super) fn is_empty(&self) -> bool {
        self.vms.is_empty() && self.door.balancer().is_none()
    }
}
