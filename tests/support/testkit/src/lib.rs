//! Test support: runs what `windlass up` runs, in the process of a test.
//!
//! [`Env`] is an API server for one test ([`Server`]: embedded, embedded over a socket, or a real one) with all controllers,
//! which can be stopped and started again. [`faults`] disturb their connection to the server. [`Objects`] is access to any
//! management cluster. Tests wait by watch ([`mod@wait`]) and record every version of an object ([`Life`]). A test that waits in
//! vain fails with the conditions that explain why. No pods run there: [`Deployments`] simulates their status, as tests configure
//! it.

#![expect(clippy::panic, reason = "a test that cannot go on ends by a panic")]

mod cluster;
mod deployments;
mod env;
mod explain;
mod external;
pub mod faults;
mod go_provider;
mod keys;
pub mod leaks;
mod life;
mod load;
mod objects;
mod prepared;
mod real;
pub mod records;
pub mod rest;
pub mod seeds;
mod server;
mod simulated;
pub mod wait;
mod witness;
mod workload;

pub use cluster::ClusterOf;
pub use deployments::{Deployments, Fate, KUBELET, Which};
pub use env::{Env, EnvBuilder};
pub use external::{ByHand, EXTERNAL_ROLE, ExternalSystem, reserved_port};
pub use go_provider::{Built, GoProvider, go_module};
pub use keys::{keys, keys_of};
pub use life::{Life, Version};
pub use load::Load;
pub use objects::{CLASS, MANAGER, NAMESPACE, Objects};
pub use server::{Kind, Server, define, is_admitting};
pub use simulated::Simulated;
pub use windlass_envtest::{Counted, Ledger, Manager, WriteTo};
pub use witness::{Witness, Witnessed};
pub use workload::Workload;
