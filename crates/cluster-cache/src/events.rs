//! What happens to workload clusters.

use std::sync::Arc;

use windlass_api::k8s::Node;
use windlass_controller_runtime::ObjectKey;

/// An event of a workload cluster.
#[derive(Clone, Debug)]
pub enum RemoteEvent {
    /// A connection was established.
    Connected(ObjectKey),
    /// It was closed.
    Disconnected(ObjectKey),
    /// The Nodes of a connected cluster were listed for the first time, or were not in time.
    Listed(ObjectKey),
    /// A probe or an attempt to connect failed, or succeeded for the first time after a failure. Repeated successes are silent.
    Probed(ObjectKey),
    /// A Node changed. Without `old` it was created, without `new` it was deleted.
    Node {
        /// The Cluster.
        cluster: ObjectKey,
        /// The Node before the change.
        old: Option<Arc<Node>>,
        /// The Node after the change.
        new: Option<Arc<Node>>,
    },
}
