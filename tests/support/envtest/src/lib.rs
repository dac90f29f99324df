//! A real Kubernetes API server on loopback: etcd, kube-apiserver and kube-controller-manager as child processes.
//!
//! It is what the embedded server is compared with. [`ControlPlane::start`] makes certificates, starts the programs that
//! `cargo xtask tools` built, and returns when they are ready; the programs end with the [`ControlPlane`], also when the process that holds it
//! is killed. A real server does not tell who wrote what, so a [`Ledger`] in front of its clients does. Nothing here knows a kind of Cluster API.

mod child;
mod control_plane;
mod error;
mod find;
mod flags;
mod identity;
mod ledger;
pub mod missing;
mod port;
mod state;
mod usage;

pub use control_plane::ControlPlane;
pub use error::StartError;
pub use find::Tools;
pub use flags::Options;
pub use ledger::{Counted, Ledger, WriteTo};
pub use port::reserved_port;
pub use state::Baseline;
pub use usage::Usage;
