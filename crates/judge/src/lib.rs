//! A real Kubernetes API server on loopback: etcd, kube-apiserver and kube-controller-manager as child processes.
//!
//! It is what the embedded server is compared with. [`Judge::start`] makes certificates, starts the programs that
//! `cargo xtask tools` built, and returns when they are ready; the programs end with the [`Judge`], also when the process that holds it
//! is killed. Nothing here knows a kind of Cluster API.

mod child;
mod error;
mod find;
mod flags;
mod identity;
mod judge;
mod usage;

pub use error::JudgeError;
pub use find::Tools;
pub use flags::Options;
pub use judge::Judge;
pub use usage::Usage;
