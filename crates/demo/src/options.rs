//! What the demo is asked to do.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use windlass_meta::KubernetesVersion;

/// Options of the demo.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many clusters to create.
    pub clusters: u32,
    /// Control plane machines of each cluster.
    pub control_plane_replicas: u32,
    /// Worker machines of each cluster; one more after scaling up.
    pub workers: u32,
    /// The Kubernetes version to create; the upgrade goes to the next minor version.
    pub kubernetes_version: KubernetesVersion,
    /// A ClusterClass with its templates, in place of the built-in one.
    pub class: Option<PathBuf>,
    /// The infrastructure is externally managed: the demo writes endpoint and status in place of the provider.
    pub externally_managed: bool,
    /// The API server that the controllers run against.
    pub server: Server,
    /// How long to leave the clusters alone after the creation, counting what the controllers write meanwhile.
    pub idle: Option<Duration>,
    /// How long each step may take.
    pub timeout: Duration,
    /// The form of output.
    pub output: Output,
    /// Stay up after the creation until the process is asked to stop.
    pub keep: bool,
}

/// The API server of the demo's management cluster.
#[derive(Clone, Debug)]
pub enum Server {
    /// The embedded one, with its objects in this folder; without a folder, in a temporary one that is removed at the end.
    Embedded(Option<PathBuf>),
    /// A running one.
    Running {
        /// Its kubeconfig.
        kubeconfig: PathBuf,
        /// Where its admission reviews are answered, at an address that it can reach; without one there is no admission.
        webhook_address: Option<SocketAddr>,
    },
}

/// A form of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// A tree on a terminal, lines of changes elsewhere.
    Text,
    /// One JSON document at the end.
    Json,
}
