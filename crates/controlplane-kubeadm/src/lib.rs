//! The KubeadmControlPlane controller: certificates, Machines one after another, etcd members, upgrades and repairs.
//!
//! - [`facts`]: what is known, and [`question`]: what a plan may ask for in addition. [`health`]: what that says of each Machine.
//! - [`core_dns`]: CoreDNS inside the workload cluster.
//! - [`plan`](mod@plan): what to do next, decided purely; at most one disruptive action at a time.
//! - [`status`]: what is said of the control plane.

mod apply;
mod can_update;
mod controller;
pub mod core_dns;
pub mod desired;
pub mod facts;
pub mod finding;
pub mod health;
pub mod names;
mod observe;
pub mod plan;
pub mod preview;
pub mod question;
pub mod rotation;
pub mod status;
pub mod up_to_date;
pub mod workload;

pub use controller::ControlPlaneController;
pub use observe::Observed;
pub use workload::remote::RemoteClusters;
