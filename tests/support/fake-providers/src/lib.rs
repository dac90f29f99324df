//! Look-alikes of providers and of the servers that they are fetched from, for tests and benchmarks.
//!
//! - [`provider`]: component files and metadata with the shapes of real providers, small, at any version and contract, whole or
//!   with a [`Flaw`];
//! - [`ChartLike`]: charts, in repositories with an index and in registries;
//! - [`Forge`]: one server on loopback that is GitHub, GitLab, a folder in the web and a registry, by the name that it is asked as, with
//!   certificates of an authority of its own, credentials, tags, a log of requests, and faults to switch on;
//! - [`Proxy`]: what stands between.
//!
//! Nothing here asks anything of the network: clients are told that every host is at the forge's address.

mod answer;
mod chart;
mod forge;
mod github;
mod gitlab;
pub mod provider;
mod proxy;
mod registry;
mod tls;
mod web;

pub use chart::ChartLike;
pub use forge::{Demand, Fault, Forge, Seen, hosts};
pub use provider::{Flaw, LookAlike};
pub use proxy::Proxy;
