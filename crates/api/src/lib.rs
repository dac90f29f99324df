//! The v1beta2 types of the core Cluster API groups, and the CRDs generated from them.
//!
//! - [`core`]: the hub types (`core::Cluster`, `core::Machine`, ...), one kind per file.
//! - [`addons`]: ClusterResourceSets, which are of the core provider.
//! - [`ipam`]: addresses from pools of IPAM providers.
//! - [`runtime`]: extensions of the Runtime SDK.
//! - [`labels`], [`annotations`], [`finalizers`]: the keys that are part of the API.
//! - [`conditions`], [`reasons`], [`phases`], [`values`]: condition types, reasons and enumerated values. [`v1beta1`]
//!   has those of the older generation.
//! - [`meta`], [`owner`]: reading metadata; building and comparing owner references.
//! - [`is_externally_managed`]: whether another system manages an InfraCluster.
//! - [`PendingHooks`]: the hooks of the Runtime SDK that are still to be called for an object.
//! - [`kind`]: the static facts of a kind, and the macro that declares them in one place.
//! - [`codec`](mod@codec): decodes and encodes objects, compiled once per kind. [`k8s`] has the codecs of Kubernetes' own kinds.
//! - [`crd`](mod@crd): builds CustomResourceDefinitions from those facts.
//!
//! Decoding is tolerant: unknown fields are skipped and enumerated strings stay strings, so one unexpected object never
//! prevents the decoding of a whole list. The API server validates writes with the schemas generated here.

pub mod addons;
pub mod annotations;
pub mod codec;
pub mod conditions;
pub mod core;
pub mod crd;
mod externally_managed;
pub mod finalizers;
pub mod ipam;
pub mod k8s;
pub mod kind;
pub mod labels;
pub mod meta;
pub mod owner;
pub mod patterns;
mod pending_hooks;
pub mod phases;
pub mod reasons;
pub mod rules;
pub mod runtime;
pub mod schema;
pub mod v1beta1;
pub mod values;
pub mod versions;

pub use externally_managed::{is_externally_managed, resource_is_not_externally_managed};
pub use pending_hooks::PendingHooks;

/// A condition of `status.conditions` in v1beta2.
pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

#[doc(hidden)]
pub mod macro_support {
    //! Items that the expansion of [`api_kind!`](crate::api_kind) refers to.
    pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    pub use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
    pub use kube_core::Resource;
    pub use schemars::SchemaGenerator;
    pub use serde;
    pub use serde_json;
    pub use serde_json::{Map, Value};
}

/// Doctests of the Rust code on the page for authors of providers.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/externally-managed-infrastructure.md")]
struct ExternallyManagedInfrastructure;
