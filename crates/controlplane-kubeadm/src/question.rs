//! What a plan may ask for.

/// Facts that the plan lacks: only some plans need them, and each is a request to an API server, or to an
/// extension.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// Whether the control plane was deleted meanwhile, which caches may not show yet.
    pub deleted: bool,
    /// Nodes with an API server whose serving certificate has an unknown end, and the port on which it listens.
    pub certificates: Vec<(String, u16)>,
    /// The image of kube-proxy.
    pub kube_proxy: bool,
    /// The Deployment of CoreDNS.
    pub core_dns: bool,
    /// The Deployment of CoreDNS, if an update of it was begun and not ended.
    pub unfinished_core_dns: bool,
    /// Deployment and ConfigMap of CoreDNS, as they are now.
    pub core_dns_objects: bool,
    /// What machines that join must trust.
    pub cluster_info: bool,
    /// What aggregated API servers trust.
    pub extension_authorities: bool,
    /// A Machine that would be replaced, if no extension can update it in place.
    pub in_place: Option<String>,
}

impl Question {
    /// True when nothing is asked.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
