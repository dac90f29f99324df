//! etcd: moving leadership, removing members.

use windlass_etcd::{EtcdError, MemberId};

use super::ApplyError;
use crate::observe::Observed;
use crate::plan::MoveLeader;
use crate::workload::WorkloadCluster;

/// Asks the leader to hand over, to the first candidate that takes it.
pub(super) async fn move_leader(connection: &dyn WorkloadCluster, leader: &MoveLeader) -> Result<(), ApplyError> {
    let endpoint = connection.etcd(&leader.from).await;
    let endpoint = endpoint.map_err(ApplyError::Workload)?;
    let mut last = String::new();
    for (member, node) in &leader.to {
        match endpoint.move_leader(*member).await {
            // Not the leader any more: that is what was wanted.
            Ok(()) | Err(EtcdError::NotLeader) => return Ok(()),
            Err(error) => last = format!("leadership does not move to Node {node}: {error}"),
        }
    }
    Err(ApplyError::Workload(last))
}

/// Asks any other member to remove one.
pub(super) async fn remove(
    connection: &dyn WorkloadCluster,
    seen: &Observed,
    id: MemberId,
    name: &str,
) -> Result<(), ApplyError> {
    let machines = seen.facts.iter().flat_map(|f| &f.machines);
    let nodes = machines
        .filter(|m| !m.deleting())
        .filter_map(|m| m.node.as_deref())
        .filter(|node| *node != name);
    let mut last = format!("no other etcd member could be asked to remove {name}");
    for node in nodes {
        let endpoint = match connection.etcd(node).await {
            Ok(endpoint) => endpoint,
            Err(error) => {
                last = error;
                continue;
            }
        };
        match endpoint.remove_member(id).await {
            Ok(()) | Err(EtcdError::NoSuchMember(_)) => {
                tracing::info!(member = %id, name, "removed etcd member");
                return Ok(());
            }
            Err(error) => last = error.to_string(),
        }
    }
    Err(ApplyError::Workload(last))
}
