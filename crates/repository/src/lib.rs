//! Provider repositories: the sources of provider files.
//!
//! A [`Source`] is an address, read by its form: releases on GitHub, packages on GitLab, folders in the web, artifacts in
//! registries, folders of this machine. A [`Repository`] is a source for one provider, with what it takes to fetch from there: it
//! says which versions there are, and gives the two [`Files`] of one of them. [`configmaps`] does the same with ConfigMaps that the
//! caller has read, and packs files into them. Files are given as they were published; what they say is for others to judge.
//!
//! Every [`Error`] is something else that a person can do. Credentials are sent to the host that the address names, over TLS (to
//! a registry also without, if its address says so), and never along a redirect; they never print.
//!
//! Requests are made with `windlass-http-client` rather than a general client. What has to be told apart (a certificate that is not
//! trusted, a proxy that refuses, an answer cut short) is below what general clients report, and the rules for redirects and tags
//! are ours anyway. The same goes for registries: reading an artifact takes three requests and one token.

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
