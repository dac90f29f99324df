//! Errors of connections.

use windlass_meta::ObjectKey;

/// There is no connection to a workload cluster.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("there is no connection to cluster {cluster}: {why}")]
pub struct NotConnected {
    /// Namespace and name of the Cluster.
    pub cluster: ObjectKey,
    /// The missing part or the failure.
    pub why: String,
}

/// A request over a connection failed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cluster {cluster}: failed to {what}: {why}")]
pub struct RemoteError {
    pub(crate) cluster: ObjectKey,
    pub(crate) what: String,
    pub(crate) why: String,
}

impl RemoteError {
    pub(crate) fn new(cluster: &ObjectKey, what: impl Into<String>, why: impl std::fmt::Display) -> Self {
        Self {
            cluster: cluster.clone(),
            what: what.into(),
            why: why.to_string(),
        }
    }
}
