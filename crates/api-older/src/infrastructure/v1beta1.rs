//! Version v1beta1 of the development provider's kinds.

mod backend;
mod dev_cluster;
mod dev_cluster_template;
mod dev_machine;
mod dev_machine_template;

pub use dev_cluster::*;
pub use dev_cluster_template::*;
pub use dev_machine::*;
pub use dev_machine_template::*;
