//! The options of the demo.

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
    /// How long to wait after the creation; the writes of the controllers are counted meanwhile.
    pub idle: Option<Duration>,
    /// The timeout of each step.
    pub timeout: Duration,
    /// The output format.
    pub output: Output,
    /// Whether the text at the end has the writes to the API server and the memory.
    pub costs: bool,
    /// Keep running after the creation until the process is stopped.
    pub keep: bool,
}

/// The API server of the demo's management cluster.
#[derive(Clone, Debug)]
pub enum Server {
    /// The embedded one, with its objects in this folder or, without one, in a temporary folder that is removed at the end.
    Embedded(Option<PathBuf>),
    /// A running one.
    Running {
        /// Its kubeconfig.
        kubeconfig: PathBuf,
        /// The address of the webhook server, which the API server must be able to reach; without one there is no admission.
        webhook_address: Option<SocketAddr>,
    },
}

/// An output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// A tree on a terminal, lines of changes elsewhere.
    Text,
    /// One JSON document at the end.
    Json,
}
