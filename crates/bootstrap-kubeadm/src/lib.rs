//! The kubeadm bootstrap provider: makes the data with which a machine becomes a node.

mod kubeadm_config;
mod workload;

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use windlass_controller_runtime::ControllerEntry;
use windlass_pki::KeyPool;

pub use workload::{OnChange, WorkloadClusters};

/// How long a bootstrap token lives unless it is extended: 15 minutes, as in Cluster API, if no other time is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenTtl(SignedDuration);

impl TokenTtl {
    /// A shorter life could end between two extensions.
    const SHORTEST: Duration = Duration::from_mins(1);
    /// Kubernetes prints dates with years of four digits only.
    const LONGEST: Duration = Duration::from_hours(24 * 365 * 100);

    /// Another life. The error is the bound that it is beyond.
    pub fn new(life: Duration) -> Result<Self, String> {
        if life < Self::SHORTEST {
            return Err("1m at least is expected".to_owned());
        }
        if life > Self::LONGEST {
            return Err("100 years at most are expected".to_owned());
        }
        SignedDuration::try_from(life)
            .map(Self)
            .map_err(|error| error.to_string())
    }
}

impl Default for TokenTtl {
    fn default() -> Self {
        Self(SignedDuration::from_mins(15))
    }
}

/// The controller of KubeadmConfigs, with the workload clusters that it makes tokens in, the keys that it uses, and the life of its tokens.
pub fn entry(clusters: Arc<dyn WorkloadClusters>, keys: KeyPool, tokens: TokenTtl) -> ControllerEntry {
    ControllerEntry::of(kubeadm_config::KubeadmConfigController::new(clusters, keys, tokens.0))
}
