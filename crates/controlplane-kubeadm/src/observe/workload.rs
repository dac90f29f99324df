//! Reads the workload cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::join_all;
use jiff::Timestamp;

use crate::facts::{ControlPlane, CpMachine, Etcd, Reached};
use crate::names::machine::ETCD_MEMBER;
use crate::workload::WorkloadCluster;

/// Why Nodes and pods of a cluster in which `kubeadm init` has not finished are unknown.
const UNREAD: &str = "kubeadm has not initialized the cluster yet";

/// Reads what the planner needs to know, and no more: what depends on an earlier answer is asked only when it matters.
pub(super) async fn read(
    connection: &dyn WorkloadCluster,
    control_plane: &ControlPlane,
    machines: &[Arc<CpMachine>],
) -> Reached {
    let mut reached = Reached {
        kubeadm_config: Ok(true),
        nodes: Err(UNREAD.to_owned()),
        pods: Err(UNREAD.to_owned()),
        etcd: Etcd::NotAsked,
    };
    if !control_plane.initialized {
        reached.kubeadm_config = connection.has_kubeadm_config().await;
        if reached.kubeadm_config != Ok(true) {
            return reached;
        }
    }
    let named: BTreeSet<String> = machines.iter().filter_map(|m| m.node.clone()).collect();
    reached.nodes = connection.nodes(&named).await;
    reached.pods = connection.pods().await;
    if control_plane.managed_etcd {
        reached.etcd = etcd(connection, machines).await;
    }
    reached
}

/// When the serving certificates of the API servers on some Nodes expire. All are asked at the same time, so that one that does not
/// answer delays no other.
pub(super) async fn expiries(
    connection: &dyn WorkloadCluster,
    nodes: Vec<(String, u16)>,
) -> BTreeMap<String, Result<Timestamp, String>> {
    let reads = nodes.into_iter().map(async |(node, port)| {
        let expiry = connection.certificate_expiry(&node, port).await;
        (node, expiry)
    });
    join_all(reads).await.into_iter().collect()
}

/// Asks the member that answered last time first; every member knows all the others.
async fn etcd(connection: &dyn WorkloadCluster, machines: &[Arc<CpMachine>]) -> Etcd {
    let healthy = |m: &CpMachine| m.condition(ETCD_MEMBER).is_some_and(|c| c.status == "True");
    let mut candidates: Vec<&Arc<CpMachine>> = machines.iter().filter(|m| m.node.is_some()).collect();
    candidates.sort_by_key(|m| (m.deleting(), !healthy(m), m.created));
    let mut last = Etcd::NotAsked;
    for node in candidates.iter().filter_map(|m| m.node.as_deref()) {
        match ask(connection, node).await {
            Ok(etcd) => return etcd,
            Err(error) => last = Etcd::Failed(error),
        }
    }
    last
}

async fn ask(connection: &dyn WorkloadCluster, node: &str) -> Result<Etcd, String> {
    let member = connection.etcd(node).await?;
    let list = member.members().await.map_err(|e| e.to_string())?;
    let status = member.status().await.map_err(|e| e.to_string())?;
    let alarms = member.alarms().await.map_err(|e| e.to_string())?;
    if !list.members.iter().any(|m| m.id == status.leader) {
        return Err("etcd has no leader".to_owned());
    }
    Ok(Etcd::Members {
        members: list.members,
        alarms,
        leader: status.leader,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::Barrier;

    use super::*;
    use crate::workload::testing::FakeWorkload;

    #[tokio::test]
    async fn certificates_of_all_nodes_are_read_at_the_same_time() {
        let fake = FakeWorkload::default();
        fake.state().certificate_reads = Some(Arc::new(Barrier::new(3)));
        let nodes = ["a", "b", "c"].map(str::to_owned).to_vec();
        let asked = nodes.iter().map(|node| (node.clone(), 6443)).collect();
        let read = tokio::time::timeout(Duration::from_secs(20), expiries(&fake, asked)).await;
        let read = read.expect("one read waits for the end of another");
        assert!(read.keys().eq(&nodes) && read.values().all(Result::is_ok), "{read:?}");
    }
}
