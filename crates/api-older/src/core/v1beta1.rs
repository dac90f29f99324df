//! Version v1beta1 of the core group.

mod cluster;
mod cluster_class;
mod common;
mod machine;
mod machine_deployment;
mod machine_drain_rule;
mod machine_health_check;
mod machine_pool;
mod machine_set;

pub use cluster::*;
pub use cluster_class::*;
pub use common::*;
pub use machine::*;
pub use machine_deployment::*;
pub use machine_drain_rule::*;
pub use machine_health_check::*;
pub use machine_pool::*;
pub use machine_set::*;
