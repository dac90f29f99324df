//! What can be set about connections to workload clusters.

use std::time::Duration;

use windlass_controller_runtime::Backoff;
use windlass_etcd::DEFAULT_CALL_TIMEOUT;

use crate::own_pod::OwnPod;
use crate::read_only::ReadOnly;
use crate::workload::GracePeriods;

/// How long etcd members may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EtcdTimeouts {
    /// To be reached: the port-forward of the API server, and the handshake in it.
    pub dial: Duration,
    /// To answer a call.
    pub call: Duration,
}

impl Default for EtcdTimeouts {
    fn default() -> Self {
        Self {
            dial: Duration::from_secs(10),
            call: DEFAULT_CALL_TIMEOUT,
        }
    }
}

/// Options of connections.
#[derive(Clone, Debug)]
pub struct Options {
    /// Time between two probes.
    pub interval: Duration,
    /// How long the answer to a probe may take.
    pub timeout: Duration,
    /// How long the first list of Nodes may take before the Nodes count as out of reach. The list goes on.
    pub first_list: Duration,
    /// Number of consecutive failed probes that close a connection.
    pub threshold: u32,
    /// Delays between attempts to connect.
    pub backoff: Backoff,
    /// Delays before the next attempt to connect to one that exceeded a limit.
    pub penalty: Backoff,
    /// The pod of this process, if it is known: the cluster that it runs in is reached from inside.
    pub own_pod: Option<OwnPod>,
    /// When an outage is reported.
    pub grace: GracePeriods,
    /// How long etcd members may take.
    pub etcd: EtcdTimeouts,
    /// Refuses what would be written, if nothing may be.
    pub read_only: Option<ReadOnly>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(10),
            timeout: Duration::from_secs(5),
            first_list: Duration::from_mins(5),
            threshold: 5,
            backoff: Backoff::new(Duration::from_millis(200), Duration::from_secs(30)),
            penalty: Backoff::new(Duration::from_secs(30), Duration::from_mins(15)),
            own_pod: None,
            grace: GracePeriods::default(),
            etcd: EtcdTimeouts::default(),
            read_only: None,
        }
    }
}
