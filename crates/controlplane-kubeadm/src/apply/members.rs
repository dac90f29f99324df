//! etcd: moving leadership, removing members.

use windlass_etcd::EtcdError;

use super::ApplyError;
use crate::plan::{LeavingMember, MoveLeader};
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

/// Asks the other members to remove one, until the first does.
pub(super) async fn remove(connection: &dyn WorkloadCluster, leaving: &LeavingMember) -> Result<(), ApplyError> {
    let LeavingMember { id, name, through } = leaving;
    let mut last = format!("no other etcd member could be asked to remove {name}");
    for node in through {
        let endpoint = match connection.etcd(node).await {
            Ok(endpoint) => endpoint,
            Err(error) => {
                last = error;
                continue;
            }
        };
        match endpoint.remove_member(*id).await {
            Ok(()) | Err(EtcdError::NoSuchMember(_)) => {
                tracing::info!(member = %id, name, "removed etcd member");
                return Ok(());
            }
            Err(error) => last = error.to_string(),
        }
    }
    Err(ApplyError::Workload(last))
}
