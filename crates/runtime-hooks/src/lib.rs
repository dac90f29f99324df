//! The hooks of the Runtime SDK of Cluster API v1.14: what Cluster API asks extensions, and what they answer.
//!
//! A hook is a type that implements [`Hook`], with a request and a response. A handler of an extension serves one hook; Cluster API sends it
//! the request by POST to [`path`]. [`CATALOG`] lists all hooks, and [`openapi::document`] describes them for other languages. Names, fields
//! and paths are those of Cluster API, so that its extensions work here and ours there.
//!
//! - [`discovery`]: what an extension serves.
//! - [`lifecycle`]: points in the life of a Cluster with a topology at which extensions can act, and mostly wait.
//! - [`topology`]: patches, checks and variables of ClusterClasses.
//! - [`upgrade_plan`]: the versions that an upgrade goes through.
//! - [`in_place`]: changes of Machines without a replacement.

mod catalog;
pub mod discovery;
mod hook;
pub mod in_place;
pub mod lifecycle;
mod message;
pub mod openapi;
#[cfg(test)]
mod tests;
pub mod topology;
pub mod upgrade_plan;

pub use catalog::{CATALOG, Described, path};
pub use hook::{Hook, Request, Response, Status};
pub use message::{Message, Undecodable};

/// The bytes of a patch, in base64 in JSON.
pub use k8s_openapi::ByteString;
/// The kinds in requests.
pub use windlass_api::core::{Cluster, ClusterClassVariable, Machine, MachineSet};

/// The API group of hooks.
pub const GROUP: &str = "hooks.runtime.cluster.x-k8s.io";
/// The version of the hooks of this crate.
pub const VERSION: &str = "v1alpha1";
/// Group and version, as in the `apiVersion` of requests.
pub const API_VERSION: &str = "hooks.runtime.cluster.x-k8s.io/v1alpha1";
/// How long a handler may take that sets no limit, in seconds.
pub const DEFAULT_TIMEOUT_SECONDS: i32 = 10;
/// The longest time that a handler may ask for, in seconds.
pub const LONGEST_TIMEOUT_SECONDS: i32 = 30;
