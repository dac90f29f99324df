//! Test support: what `windlass up` runs, in the process of a test.
//!
//! [`Env`] is an embedded API server on a data folder of its own with all controllers, which can be stopped and started again;
//! [`faults`] make their way to the server a bad one. [`Objects`] is access to a management cluster wherever it runs: tests wait by
//! watch ([`mod@wait`]), keep every version of an object ([`Life`]), and one that waits in vain fails with the conditions that
//! explain why.

#![expect(clippy::panic, reason = "a test that cannot go on ends by a panic")]

mod cluster;
mod env;
mod explain;
mod external;
pub mod faults;
mod ledger;
mod life;
mod load;
mod objects;
pub mod wait;

pub use cluster::ClusterOf;
pub use env::{Env, EnvBuilder};
pub use external::{ByHand, EXTERNAL_ROLE, ExternalSystem, free_port};
pub use ledger::WriteTo;
pub use life::{Life, Version};
pub use objects::{CLASS, MANAGER, NAMESPACE, Objects};
