//! The kubeadm bootstrap provider: makes the data with which a machine becomes a node.

mod kubeadm_config;
mod workload;

use std::sync::Arc;

use windlass_controller_runtime::ControllerEntry;
use windlass_pki::KeyPool;

pub use workload::{OnChange, WorkloadClusters};

/// The controller of KubeadmConfigs, with the workload clusters that it makes tokens in and the keys that it uses.
pub fn entry(clusters: Arc<dyn WorkloadClusters>, keys: KeyPool) -> ControllerEntry {
    ControllerEntry::of(kubeadm_config::KubeadmConfigController::new(clusters, keys))
}
