//! A Kubernetes-compatible API server with the built-in kinds only.
//!
//! An [`ApiServer`] serves the objects of a store: the built-in kinds, and those that stored CustomResourceDefinitions define. Within
//! a process, [`ApiServer::client_service`] answers a `kube::Client` without a socket; [`ApiServer::serve`] answers over TLS. The README
//! of the crate describes the modules. Decisions about an object are pure functions (`objects::prepare`, `objects::validate`,
//! `verbs::delete::plan`, the strategies of `windlass_builtin_kinds`); the code around them reads the store, and commits with the revision
//! it read as precondition.

mod admission;
mod auth;
mod builtin;
mod codec;
mod controllers;
mod crds;
mod error;
mod http;
mod import;
pub mod input;
mod objects;
mod server;
mod state;
mod verbs;

pub use admission::hook::{AdmissionHook, AdmissionRequest, AdmissionVerb, Lookup};
pub use auth::authorizer::Authorization;

pub use error::ApiError;
pub use http::body::{ApiBody, BoxError};
pub use http::counters::{Counters, RequestKey};
pub use http::listener::{ChooseTls, tls_config};
pub use http::pod_tunnel::{PodConnection, PodStream, PodTunnel};
pub use http::service::ClientService;
pub use http::webhook_client::WebhookServices;
pub use objects::converter::{Converter, Defined, Definitions};
pub use server::ApiServer;
pub use state::Options;
pub use windlass_rbac::UserInfo;
pub use windlass_rbac::attributes::{Attributes, Target};
