//! A real Kubernetes API server on loopback: etcd, kube-apiserver and kube-controller-manager as child processes.
//!
//! The embedded server is compared with it. [`ControlPlane::start`] creates certificates, starts the programs that `cargo xtask
//! tools` built, and returns when they are ready. The programs end with the [`ControlPlane`], also when its process is killed. A
//! real server does not report which client wrote, so a [`Ledger`] counts in front of its clients. This crate knows no kind of
//! Cluster API.

mod child;
mod control_plane;
mod error;
mod find;
mod flags;
mod identity;
mod ledger;
mod manager;
pub mod missing;
mod port;
mod state;
mod usage;

pub use control_plane::ControlPlane;
pub use error::StartError;
pub use find::Tools;
pub use flags::Options;
pub use ledger::{Counted, Ledger, See, WriteTo};
pub use manager::{Manager, Place};
pub use port::reserved_port;
pub use state::Baseline;
pub use usage::Usage;
