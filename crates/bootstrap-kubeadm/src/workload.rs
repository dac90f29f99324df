//! The port to workload clusters: bootstrap tokens are made there.

use windlass_cluster_cache::Workload;
use windlass_controller_runtime::ObjectKey;

/// Calls back with the key of a Cluster whenever its connection changed.
pub type OnChange = Box<dyn Fn(&ObjectKey) + Send + Sync>;

/// Connections to workload clusters, as far as this crate needs them.
pub trait WorkloadClusters: Send + Sync + 'static {
    /// A client for the cluster of this Cluster object.
    fn workload(&self, cluster: &ObjectKey) -> Workload<kube::Client>;

    /// Has `callback` called whenever a connection comes up. Called once, before the first reconcile.
    fn on_change(&self, callback: OnChange);
}

impl WorkloadClusters for windlass_cluster_cache::Clusters {
    fn workload(&self, cluster: &ObjectKey) -> Workload<kube::Client> {
        Self::workload(self, cluster).map(|connection| connection.client().clone())
    }

    fn on_change(&self, callback: OnChange) {
        self.subscribe(move |event| {
            if let windlass_cluster_cache::RemoteEvent::Connected(cluster) = event {
                callback(cluster);
            }
        });
    }
}
