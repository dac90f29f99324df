//! The v1beta2 types of the core Cluster API groups and the CRDs generated from them.
//!
//! - [`core`]: the hub types (`core::Cluster`, `core::Machine`, ...), one kind a file.
//! - [`labels`], [`annotations`], [`finalizers`]: the exact keys other programs read and write.
//! - [`conditions`], [`reasons`], [`phases`], [`values`]: the words used in them; [`v1beta1`] has the older generation.
//! - [`meta`], [`owner`]: reading metadata; making and comparing owner references.
//! - [`is_externally_managed`]: whether an InfraCluster is somebody else's to manage.
//! - [`kind`]: what a kind knows about itself, and the macro that says it in one place.
//! - [`crd`](mod@crd): CustomResourceDefinitions built from those facts.
//!
//! Reading is tolerant: unknown fields are skipped and enumerated strings stay strings, so one odd object never
//! keeps a whole list from being read. The API server checks what is written, by the schemas generated here.

pub mod annotations;
pub mod conditions;
pub mod core;
pub mod crd;
mod externally_managed;
pub mod finalizers;
pub mod kind;
pub mod labels;
pub mod meta;
pub mod owner;
pub mod patterns;
pub mod phases;
pub mod reasons;
pub mod rules;
pub mod schema;
pub mod v1beta1;
pub mod values;

pub use externally_managed::{is_externally_managed, resource_is_not_externally_managed};

/// A condition as every v1beta2 `status.conditions` holds it.
pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

#[doc(hidden)]
pub mod macro_support {
    //! What the expansion of [`api_kind!`](crate::api_kind) refers to.
    pub use k8s_openapi::NamespaceResourceScope;
    pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    pub use kube_core::Resource;
    pub use schemars::SchemaGenerator;
    pub use serde;
    pub use serde_json::{Map, Value};
}

/// The Rust of the page for authors of providers.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/externally-managed-infrastructure.md")]
struct ExternallyManagedInfrastructure;
