//! Connections to workload clusters: one per Cluster, made from its kubeconfig Secret, probed, and given up when it fails.
//!
//! A controller asks [`Clusters::get`] and gets a connection or the reason why there is none; [`Clusters::watch`] wakes its
//! objects when that changes, and when Nodes change.

mod certificate;
mod clusters;
mod connection;
mod error;
mod etcd;
mod health;
mod kubeconfig;
mod metrics;

pub use clusters::{Clusters, Options, RemoteEvent};
pub use connection::RemoteCluster;
pub use error::{NotConnected, RemoteError};
pub use health::Health;
pub use metrics::METRICS;
