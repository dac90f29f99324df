//! Requests about Nodes of workload clusters.

use std::time::Duration;

use windlass_api::k8s::Node;
use windlass_controller_runtime::{ApiClient, Budget, ObjectKey, RequestError};

/// For how long one reconcile sends requests about Nodes, as in Cluster API. A webhook that hangs would keep the worker from all other
/// objects.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// The pause between two requests to delete a Node.
const PAUSE: Duration = Duration::from_secs(2);

/// Deletes a Node. The time that is allowed for it has mostly passed when its host is gone, so that a single refused request would leave the
/// Node for ever: failures that may pass are tried again within the budget. A Node that is gone, or was registered again, needs nothing.
pub(crate) async fn delete(
    client: &ApiClient,
    name: &str,
    uid: Option<&str>,
    budget: &Budget,
) -> Result<(), RequestError> {
    let key = ObjectKey::cluster_scoped(name);
    loop {
        match client.delete::<Node>(&key, uid).await {
            Err(error) if error.is_not_found() || error.is_conflict() => return Ok(()),
            Err(error) if !budget.pause(PAUSE).await => return Err(error),
            Err(_) => {}
            Ok(()) => return Ok(()),
        }
    }
}
