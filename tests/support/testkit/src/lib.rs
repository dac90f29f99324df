//! Test support: what `windlass up` runs, in the process of a test.
//!
//! [`Env`] is an API server of the test's own ([`Server`]: embedded, the same over a socket, or a real one) with all controllers, which
//! can be stopped and started again;
//! [`faults`] make their way to the server a bad one. [`Objects`] is access to a management cluster wherever it runs: tests wait by
//! watch ([`mod@wait`]), keep every version of an object ([`Life`]), and one that waits in vain fails with the conditions that
//! explain why. Nothing runs pods there: [`Deployments`] plays that, as tests tell it.

#![expect(clippy::panic, reason = "a test that cannot go on ends by a panic")]

mod cluster;
mod deployments;
mod env;
mod explain;
mod external;
pub mod faults;
mod life;
mod load;
mod objects;
mod prepared;
mod real;
pub mod seeds;
mod server;
pub mod wait;
mod workload;

pub use cluster::ClusterOf;
pub use deployments::{Deployments, Fate, KUBELET, Which};
pub use env::{Env, EnvBuilder};
pub use external::{ByHand, EXTERNAL_ROLE, ExternalSystem, reserved_port};
pub use life::{Life, Version};
pub use load::Load;
pub use objects::{CLASS, MANAGER, NAMESPACE, Objects};
pub use server::{Kind, Server, define};
pub use windlass_envtest::{Counted, Ledger, WriteTo};
pub use workload::Workload;
