//! The port to workload clusters: bootstrap tokens are made there.

use windlass_kit::ObjectKey;

/// Calls back with the key of a Cluster whenever its connection changed.
pub type OnChange = Box<dyn Fn(&ObjectKey) + Send + Sync>;

/// Connections to workload clusters, as far as this crate needs them.
pub trait WorkloadClusters: Send + Sync + 'static {
    /// A client for the cluster of this Cluster object, or why there is none at present.
    fn client(&self, cluster: &ObjectKey) -> Result<kube::Client, String>;

    /// Has `callback` called whenever a connection comes up. Called once, before the first reconcile.
    fn on_change(&self, callback: OnChange);
}

impl WorkloadClusters for windlass_remote::Clusters {
    fn client(&self, cluster: &ObjectKey) -> Result<kube::Client, String> {
        match self.get(cluster) {
            Ok(connection) => Ok(connection.client().clone()),
            Err(error) => Err(error.why),
        }
    }

    fn on_change(&self, callback: OnChange) {
        self.subscribe(move |event| {
            if let windlass_remote::RemoteEvent::Connected(cluster) = event {
                callback(cluster);
            }
        });
    }
}
