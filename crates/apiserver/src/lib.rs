//! A Kubernetes-compatible API server that knows no kind but the built-in ones.
//!
//! An [`ApiServer`] serves the objects of a store: the kinds that Kubernetes itself has, and those that definitions stored in it
//! define. Within a process, [`ApiServer::client_service`] answers a `kube::Client` without a socket; [`ApiServer::serve`]
//! answers over TLS. What a write does to an object is decided by pure functions (`prepare`, `validate`, `builtin::rules`, `delete::plan`,
//! `crd`, `graph`); what is around them reads the store, and commits with the revision it has read as precondition.

mod accept;
mod admission;
mod admit;
mod authorize;
mod body;
mod builtin;
mod change;
mod collection;
mod continues;
mod convert;
mod counters;
mod crd;
mod deadline;
mod decoding;
mod delete;
mod discovery;
mod dispatch;
mod edge;
mod embedded;
mod error;
mod go;
mod graph;
mod health;
mod impersonate;
pub mod input;
mod jsonpath;
mod lifecycle;
mod lookup;
mod names;
mod namespace;
mod object;
mod openapi;
mod openapi_v2;
mod options;
mod owners;
mod patience;
mod pods;
mod portforward;
mod prepare;
mod protobuf;
mod rbac;
mod read;
mod registry;
mod request;
mod resource;
mod respond;
mod review;
mod scale;
mod selector;
mod server;
mod service;
mod table;
mod user;
mod validate;
mod warnings;
mod watch;
mod watch_lines;
mod webhook;
mod yaml;

pub use admission::{AdmissionHook, AdmissionRequest, AdmissionVerb};
pub use authorize::Authorization;
pub use body::{ApiBody, BoxError};
pub use builtin::built_in_resources;
pub use builtin::schema::references as schema_references;
pub use counters::{Counters, RequestKey};
pub use edge::tls_config;
pub use error::ApiError;
pub use portforward::{PodConnection, PodStream, PodTunnel};
pub use server::{ApiServer, Options};
pub use service::ClientService;
pub use user::UserInfo;
pub use webhook::WebhookServices;
