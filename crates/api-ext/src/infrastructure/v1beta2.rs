//! Version v1beta2 of the infrastructure group.

mod dev_cluster;
mod dev_cluster_template;
mod dev_ip_pool;
mod dev_machine;
mod dev_machine_pool;
mod dev_machine_pool_template;
mod dev_machine_template;

pub use dev_cluster::*;
pub use dev_cluster_template::*;
pub use dev_ip_pool::*;
pub use dev_machine::*;
pub use dev_machine_pool::*;
pub use dev_machine_pool_template::*;
pub use dev_machine_template::*;
