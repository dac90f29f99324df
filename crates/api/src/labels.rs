//! Label keys, and values that go with them.

/// The name of the Cluster that an object belongs to.
pub const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
/// Marks control plane Machines; the value is empty.
pub const CONTROL_PLANE: &str = "cluster.x-k8s.io/control-plane";
/// The control plane object of a Machine (a hash when the name is longer than a label may be).
pub const CONTROL_PLANE_NAME: &str = "cluster.x-k8s.io/control-plane-name";
/// The MachineSet of a Machine (a hash when the name is longer than a label may be).
pub const MACHINE_SET_NAME: &str = "cluster.x-k8s.io/set-name";
/// The MachineDeployment of a MachineSet or Machine.
pub const MACHINE_DEPLOYMENT_NAME: &str = "cluster.x-k8s.io/deployment-name";
/// The MachinePool of a Machine (a hash when the name is longer than a label may be).
pub const MACHINE_POOL_NAME: &str = "cluster.x-k8s.io/pool-name";
/// Tells the MachineSets of a MachineDeployment apart.
pub const MACHINE_TEMPLATE_HASH: &str = "machine-template-hash";
/// Restricts an object to managers that were started with this filter.
pub const WATCH_FILTER: &str = "cluster.x-k8s.io/watch-filter";
/// The provider that an installed component belongs to.
pub const PROVIDER: &str = "cluster.x-k8s.io/provider";
/// Marks Nodes whose machines may vanish at any time.
pub const INTERRUPTIBLE: &str = "cluster.x-k8s.io/interruptible";
/// How a Pod is treated when its Node is drained.
pub const DRAIN: &str = "cluster.x-k8s.io/drain";
/// Value of [`DRAIN`]: leave the Pod alone.
pub const DRAIN_SKIP: &str = "skip";
/// Value of [`DRAIN`]: wait until the Pod has completed.
pub const DRAIN_WAIT_COMPLETED: &str = "wait-completed";
/// Adds the rules of a ClusterRole to those of the manager.
pub const AGGREGATE_TO_MANAGER: &str = "cluster.x-k8s.io/aggregate-to-manager";
/// Marks objects that the topology controller made; the value is empty.
pub const TOPOLOGY_OWNED: &str = "topology.cluster.x-k8s.io/owned";
/// The name of a MachineDeployment within the topology of its Cluster.
pub const TOPOLOGY_MACHINE_DEPLOYMENT_NAME: &str = "topology.cluster.x-k8s.io/deployment-name";
/// The name of a MachinePool within the topology of its Cluster.
pub const TOPOLOGY_MACHINE_POOL_NAME: &str = "topology.cluster.x-k8s.io/pool-name";
/// On a CRD: the versions (joined by `_`) that follow contract v1beta2.
pub const CONTRACT_V1BETA2: &str = "cluster.x-k8s.io/v1beta2";
/// On a CRD: the versions (joined by `_`) that follow contract v1beta1.
pub const CONTRACT_V1BETA1: &str = "cluster.x-k8s.io/v1beta1";
/// Marks objects that clusterctl installed.
pub const CLUSTERCTL: &str = "clusterctl.cluster.x-k8s.io";
/// Marks shared objects that clusterctl installed: its inventory, or cert-manager.
pub const CLUSTERCTL_CORE: &str = "clusterctl.cluster.x-k8s.io/core";
/// Objects of this CRD, or this object, are moved with a cluster.
pub const CLUSTERCTL_MOVE: &str = "clusterctl.cluster.x-k8s.io/move";
/// As [`CLUSTERCTL_MOVE`], and everything below in the owner tree.
pub const CLUSTERCTL_MOVE_HIERARCHY: &str = "clusterctl.cluster.x-k8s.io/move-hierarchy";
/// Machine labels with this prefix reach the Node: its roles.
pub const NODE_ROLE_PREFIX: &str = "node-role.kubernetes.io";
/// Machine labels of this domain and below reach the Node.
pub const NODE_RESTRICTION_DOMAIN: &str = "node-restriction.kubernetes.io";
/// Machine labels of this domain and below reach the Node.
pub const MANAGED_NODE_DOMAIN: &str = "node.cluster.x-k8s.io";

/// The contract versions that a manager of this version understands, newest first, with the label that CRDs carry.
pub const CONTRACTS: [(&str, &str); 2] = [("v1beta2", CONTRACT_V1BETA2), ("v1beta1", CONTRACT_V1BETA1)];

/// Which contract a CRD follows by its labels, and which of its versions is to be used for it: the newest contract
/// that is known, and the newest version in its label.
///
/// ```
/// let labels = [("cluster.x-k8s.io/v1beta2".to_owned(), "v1beta1_v1beta2".to_owned())].into();
/// assert_eq!(windlass_api::labels::contract_version(&labels), Some(("v1beta2", "v1beta2")));
/// ```
pub fn contract_version(labels: &std::collections::BTreeMap<String, String>) -> Option<(&'static str, &str)> {
    CONTRACTS.iter().find_map(|(contract, label)| {
        let newest = labels
            .get(*label)?
            .split('_')
            .filter(|v| !v.is_empty())
            .max_by_key(|v| version_rank(v))?;
        Some((*contract, newest))
    })
}

/// The order Kubernetes uses among API versions: v2 > v1 > v1beta2 > v1beta1 > v1alpha1 > anything else.
pub fn version_rank(version: &str) -> (u8, u32, u32) {
    let parse = || -> Option<(u8, u32, u32)> {
        let rest = version.strip_prefix('v')?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let major = rest[..digits].parse().ok()?;
        match &rest[digits..] {
            "" => Some((3, major, 0)),
            tail => {
                let (level, minor) = tail
                    .strip_prefix("beta")
                    .map(|m| (2, m))
                    .or_else(|| tail.strip_prefix("alpha").map(|m| (1, m)))?;
                Some((level, major, minor.parse().ok()?))
            }
        }
    };
    parse().unwrap_or((0, 0, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_known_contract_wins() {
        let check = |labels: &[(&str, &str)], expect: Option<(&str, &str)>| {
            let labels = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            assert_eq!(contract_version(&labels), expect);
        };
        check(&[], None);
        check(&[(CONTRACT_V1BETA1, "v1beta1")], Some(("v1beta1", "v1beta1")));
        check(
            &[(CONTRACT_V1BETA1, "v1alpha4_v1beta1"), (CONTRACT_V1BETA2, "v1beta2")],
            Some(("v1beta2", "v1beta2")),
        );
        check(&[(CONTRACT_V1BETA2, "v1beta2_v1_v1alpha1")], Some(("v1beta2", "v1")));
        check(&[("cluster.x-k8s.io/v1alpha4", "v1alpha4")], None);
    }

    #[test]
    fn versions_rank_as_in_kubernetes() {
        let ordered = ["x", "v1alpha1", "v1alpha4", "v1beta1", "v1beta2", "v2beta1", "v1", "v2"];
        assert!(ordered.is_sorted_by_key(|v| version_rank(v)));
    }
}
