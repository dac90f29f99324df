//! Provider repositories: the sources of provider files.
//!
//! A [`Source`] is a parsed address: releases on GitHub, packages on GitLab, web folders, artifacts in registries, local folders.
//! A [`Repository`] is a source for one provider, with a client: it lists versions, and fetches the two [`Files`] of a version.
//! [`configmaps`] does the same with ConfigMaps that the caller has read, and packs files into them. Files are returned as
//! published; other crates evaluate their contents.
//!
//! Every [`Error`] has a different remedy. Credentials are sent to the host in the address, over TLS (to a registry also without,
//! if its address says so), and never along a redirect; they are never printed.
//!
//! Requests use a small client of our own ([`Client`]) instead of a general one. General clients do not distinguish some errors
//! (an untrusted certificate, a proxy that refuses, a truncated response), and the rules for redirects and ETags are ours anyway;
//! hyper and rustls are in the program already. The same applies to registries: reading an artifact takes three requests and one
//! token.

pub mod configmaps;
mod content;
mod credentials;
mod digest;
mod error;
mod folder;
mod github;
mod gitlab;
mod http;
mod names;
mod oci;
mod repository;
mod source;
mod version;
mod web;

pub use credentials::{Credentials, OciCredentials};
pub use error::Error;
pub use http::{Client, Settings};
pub use names::{METADATA, Names};
pub use oci::publish::publish;
pub use repository::{Files, Repository};
pub use source::Source;
pub use version::candidates;
pub use windlass_http_client::{Proxies, Secret};
