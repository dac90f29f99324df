//! Annotation keys of the dev provider.

/// On DevCluster: the listener that serves the simulated workload cluster.
pub const LISTENER: &str = "inmemorycluster.infrastructure.cluster.x-k8s.io/listener";
/// On DevMachine: its weight in the load balancer (container backend only).
pub const LOAD_BALANCER_WEIGHT: &str = "devmachine.infrastructure.cluster.x-k8s.io/weight";
/// On the DevMachine of a DevMachinePool: the Kubernetes version that it was made for.
pub const MACHINE_POOL_VERSION: &str = "devmachinepool.infrastructure.cluster.x-k8s.io/version";
/// On a simulated etcd pod: the ID of the etcd cluster.
pub const ETCD_CLUSTER_ID: &str = "etcd.inmemory.infrastructure.cluster.x-k8s.io/cluster-id";
/// On a simulated etcd pod: the ID of the member.
pub const ETCD_MEMBER_ID: &str = "etcd.inmemory.infrastructure.cluster.x-k8s.io/member-id";
/// On a simulated etcd pod: the time since which the member is the leader.
pub const ETCD_LEADER_FROM: &str = "etcd.inmemory.infrastructure.cluster.x-k8s.io/leader-from";
/// On a simulated machine: the bootstrap has completed.
pub const MACHINE_BOOTSTRAPPED: &str = "machine.inmemory.infrastructure.cluster.x-k8s.io/bootstrapped";
