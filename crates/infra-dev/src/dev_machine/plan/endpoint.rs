//! Where the API server of a control plane machine serves: pure. The contract says it, not the controller of the infrastructure
//! cluster: what the DevCluster's spec names, the Cluster takes over.

use windlass_api::core::{APIEndpoint, Cluster};
use windlass_api_ext::reasons;

use super::super::observe::Observed;
use crate::backend::Endpoint;

/// The field of both the DevCluster and the Cluster.
const FIELD: &str = "spec.controlPlaneEndpoint";

/// The endpoint, or the reason and the words for waiting.
pub(super) fn endpoint(seen: &Observed) -> Result<Endpoint, (&'static str, String)> {
    let wait = |message: String| Err((reasons::WAITING_FOR_CONTROL_PLANE_ENDPOINT, message));
    let Some(cluster) = seen.cluster.as_deref() else {
        return wait("Waiting for the Cluster to exist".to_owned());
    };
    let given = cluster.spec.control_plane_endpoint.as_ref();
    let host = given
        .and_then(|endpoint| endpoint.host.as_deref())
        .filter(|host| !host.is_empty());
    let port = given
        .and_then(|endpoint| u16::try_from(endpoint.port?).ok())
        .filter(|port| *port > 0);
    let (Some(host), Some(port)) = (host, port) else {
        return wait(missing(seen, cluster));
    };
    let endpoint = Endpoint {
        host: host.to_owned(),
        port,
    };
    if !seen.balanced && endpoint.address().is_none() {
        return wait(format!(
            "{FIELD}.host of {} is {host:?}, where simulated machines cannot listen: they need a load balancer in the \
             simulated cloud, or a Cluster whose endpoint is a loopback address or localhost",
            of("Cluster", &cluster.metadata)
        ));
    }
    Ok(endpoint)
}

fn of(kind: &str, metadata: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta) -> String {
    let (namespace, name) = (metadata.namespace.as_deref(), metadata.name.as_deref());
    format!("{kind} {}/{}", namespace.unwrap_or_default(), name.unwrap_or_default())
}

/// Which fields are missing, and where.
fn missing(seen: &Observed, cluster: &Cluster) -> String {
    let own = fields(cluster.spec.control_plane_endpoint.as_ref());
    let cluster = of("Cluster", &cluster.metadata);
    let Some(infrastructure) = seen.infrastructure.as_deref() else {
        return format!("Waiting for {own} of {cluster} to be set");
    };
    let spec = infrastructure.spec.as_ref();
    let given = spec.and_then(|spec| spec.control_plane_endpoint.as_ref());
    let infrastructure = of("DevCluster", &infrastructure.metadata);
    if given.is_some_and(APIEndpoint::is_complete) {
        return format!("Waiting for {cluster} to take {FIELD} over from {infrastructure}");
    }
    format!(
        "Waiting for {} of {infrastructure} to be set by the system that manages it, and for {own} of {cluster}, which is taken over \
         from there",
        fields(given)
    )
}

/// The fields of an endpoint that are not set.
fn fields(endpoint: Option<&APIEndpoint>) -> String {
    let host = endpoint.and_then(|endpoint| endpoint.host.as_deref());
    let has_host = host.is_some_and(|host| !host.is_empty());
    let has_port = endpoint.and_then(|endpoint| endpoint.port).is_some_and(|port| port > 0);
    match (has_host, has_port) {
        (false, true) => format!("{FIELD}.host"),
        (true, false) => format!("{FIELD}.port"),
        _ => format!("{FIELD}.host and {FIELD}.port"),
    }
}
