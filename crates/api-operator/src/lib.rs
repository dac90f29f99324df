//! The types of the provider operator.
//!
//! - [`operator`]: `operator.cluster.x-k8s.io/v1alpha2`, seven kinds.
//! - [`management`]: `management.cluster.x-k8s.io/v1alpha1`, four kinds.
//! - [`inventory`]: `clusterctl.cluster.x-k8s.io/v1alpha3`, what is installed.
//! - [`ProviderType`]: what sort of provider something is, and the names that follow from it.
//! - [`Declared`]: the one model that a declaration of either API is read into, by [`ProviderObject::declared`].
//! - [`conditions`], [`reasons`], [`labels`], [`annotations`], [`finalizers`], [`keys`]: the exact words that others read.
//!
//! What the schemas of the two APIs allow differs; what a declaration means does not. So whoever acts on declarations
//! knows [`Declared`] only, and what cannot be read into it is told as [`Problem`]s, by field.

pub mod annotations;
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

pub use declared::{
    AdditionalDeployment, Api, ContainerSettings, Declared, DeploymentSettings, Fetch, ImageOverride, LeaderElection,
    PatchTarget, Patches, Problem, Problems, ProviderObject, Settings, StatusParts, TargetedPatch,
};
pub use provider_type::ProviderType;
