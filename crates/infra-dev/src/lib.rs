//! The dev infrastructure provider: DevCluster, DevMachine and DevMachinePool with the in-memory backend, and
//! addresses from a DevIPPool.
//!
//! A simulated workload cluster is an instance of the embedded API server on a loopback port of its own, with certificates
//! from the Cluster's Secrets, Nodes, the objects kubeadm leaves in kube-system, and etcd members behind a simulated endpoint.

mod backend;
pub mod dev_cluster;
pub mod dev_ip_pool;
pub mod dev_machine;
pub mod dev_machine_pool;
pub mod dev_machine_template;
mod legacy;

pub use backend::{Call, CallCount, CallKey, Cloud, CloudError, EtcdState, Privileges, Trouble};
