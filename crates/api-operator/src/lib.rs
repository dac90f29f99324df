//! The types of the provider operator.
//!
//! - [`operator`]: `operator.cluster.x-k8s.io/v1alpha2`, seven kinds.
//! - [`management`]: `management.cluster.x-k8s.io/v1alpha1`, four kinds.
//! - [`inventory`]: `clusterctl.cluster.x-k8s.io/v1alpha3`, the inventory of installed providers.
//! - [`ProviderType`]: the type of a provider, and the names that follow from it.
//! - [`Declared`]: the common model of both APIs, converted by [`ProviderObject::declared`].
//! - [`conditions`], [`reasons`], [`labels`], [`annotations`], [`finalizers`], [`keys`]: the names that are part of the
//!   API.
//!
//! The two APIs differ in their schemas and not in their meaning. The controllers use only [`Declared`]. Spec fields
//! that cannot be converted are reported as [`Problem`]s, by field.

pub mod annotations;
mod built_in;
pub mod common;
pub mod conditions;
mod declared;
pub mod finalizers;
pub mod inventory;
pub mod keys;
pub mod labels;
pub mod management;
pub mod operator;
mod provider_type;
pub mod reasons;
mod rules;
pub mod schema;

pub use built_in::{BUILT_IN, BuiltIn, CLUSTER_API, NAMESPACE};
pub use declared::{
    AdditionalDeployment, Api, ContainerSettings, Declared, DeploymentSettings, Fetch, ImageOverride, LeaderElection,
    PatchTarget, Patches, Problem, Problems, ProviderObject, Settings, StatusParts, TargetedPatch,
};
pub use provider_type::ProviderType;
