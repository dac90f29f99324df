//! A manager that runs in a cluster that it manages: it reaches the API server of that cluster as all pods there do.
//!
//! The address in the kubeconfig is for clients outside: pods may have no way to it, such as to a load balancer that does not lead back to its own
//! hosts. Cluster API does the same for addresses that answer (`controllers/clustercache/cluster_accessor_client.go`).

use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use windlass_controller_runtime::with_causes;

/// The pod of this process, and the way to the API server of the cluster that it runs in.
#[derive(Clone)]
pub struct OwnPod {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid. Another cluster may have a pod with the same name.
    pub uid: String,
    /// The configuration of a client in there. It is asked for with each connection, as authorities are replaced over the years.
    pub home: Home,
}

/// The configuration of a client in the cluster of the pod, or why there is none.
pub type Home = Arc<dyn Fn() -> Result<kube::Config, String> + Send + Sync>;

impl fmt::Debug for OwnPod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnPod({}/{} {})", self.namespace, self.name, self.uid)
    }
}

impl OwnPod {
    /// Whether this process runs in the cluster of that client. An error if the cluster does not say.
    pub(crate) async fn runs_in(&self, client: &kube::Client) -> Result<bool, String> {
        let pods: Api<Pod> = Api::namespaced(client.clone(), &self.namespace);
        match pods.get_metadata_opt(&self.name).await {
            Ok(pod) => Ok(pod.is_some_and(|pod| pod.metadata.uid.as_ref() == Some(&self.uid))),
            Err(error) => Err(format!("Pod {}/{}: {}", self.namespace, self.name, with_causes(&error))),
        }
    }

    /// The same user at the address inside.
    pub(crate) fn at_home(&self, config: &kube::Config) -> Result<kube::Config, String> {
        let home = (self.home)()?;
        let mut config = config.clone();
        config.cluster_url = home.cluster_url;
        config.root_cert = home.root_cert;
        config.tls_server_name = home.tls_server_name;
        config.proxy_url = home.proxy_url;
        config.accept_invalid_certs = false;
        Ok(config)
    }
}

/// Whether two configurations trust the same authority: then they may lead to the same cluster.
pub(crate) fn share_authority(one: &kube::Config, other: &kube::Config) -> bool {
    let mut authorities = one.root_cert.iter().flatten();
    authorities.any(|authority| other.root_cert.iter().flatten().any(|known| known == authority))
}
