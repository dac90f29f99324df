//! Fake providers, and the servers from which they are fetched, for tests and benchmarks.
//!
//! - [`provider`]: component files and metadata with the structure of real providers, small, at any version and contract, valid
//!   or with a [`Flaw`];
//! - [`ChartLike`]: charts, in repositories with an index and in registries;
//! - [`Forge`]: one server on loopback that plays GitHub, GitLab, a web server and a registry, depending on the requested host,
//!   with certificates of its own authority, credentials, tags, a log of requests, and faults;
//! - [`Proxy`]: an HTTP proxy;
//! - [`HookServer`]: a webhook with a certificate of its own authority.
//!
//! Nothing here uses the network: clients resolve every host to the forge's address.

mod answer;
mod chart;
mod forge;
mod github;
mod gitlab;
mod hooks;
pub mod provider;
mod proxy;
mod registry;
mod tls;
mod web;

pub use chart::ChartLike;
pub use forge::{Demand, Fault, Forge, Seen, hosts};
pub use hooks::{HookServer, Say};
pub use provider::{Flaw, LookAlike};
pub use proxy::Proxy;
