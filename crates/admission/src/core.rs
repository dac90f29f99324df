//! The core kinds.

pub mod cluster;
pub mod cluster_class;
pub mod machine;
pub mod machine_deployment;
pub mod machine_drain_rule;
pub mod machine_health_check;
pub mod machine_pool;
pub mod machine_set;
mod patches;
mod replicas;
