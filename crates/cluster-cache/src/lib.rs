//! Connections to workload clusters: one per Cluster, made from its kubeconfig Secret, probed, and closed when it fails.
//!
//! A controller asks [`Clusters::get`] and gets a connection or the reason why there is none; [`Clusters::watch`] triggers
//! reconciles of its objects when the connection or Nodes change.

mod certificate;
mod clusters;
mod connection;
mod error;
mod etcd;
mod events;
mod health;
pub mod kubeconfig;
mod metrics;
mod next;
mod options;
mod own_pod;
mod read_only;
mod tunnel;
mod workload;

pub use clusters::Clusters;
pub use connection::RemoteCluster;
pub use error::{NotConnected, RemoteError};
pub use events::RemoteEvent;
pub use health::Health;
pub use metrics::METRICS;
pub use options::{EtcdTimeouts, Options};
pub use own_pod::{Home, OwnPod};
pub use read_only::{ReadOnly, RefusedWrite};
pub use windlass_controller_runtime::transport::{Limits, Policy};
pub use windlass_http_client::{Network, Reach};
pub use workload::{GracePeriods, Outage, Workload};
