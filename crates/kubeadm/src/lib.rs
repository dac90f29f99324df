//! kubeadm's configuration formats, and the cloud-config or Ignition configuration that carries them to a machine.
//!
//! [`render_init`] and [`render_join`] convert a `KubeadmConfigSpec` and facts about the cluster to bootstrap data. They are
//! pure: the contents of Secrets are parameters, and no clock is read. [`stored`] converts the configuration that kubeadm keeps in the
//! cluster, in both directions. [`coredns`] brings the configuration of CoreDNS to another release.

pub mod administrator;
mod cloud_config;
pub mod convert;
pub mod coredns;
mod corefile;
pub mod discovery;
mod ignition;
mod object;
mod render;
pub mod resolve;
pub mod stored;
pub mod version;

pub use convert::ClusterFacts;
pub use render::{BootstrapData, WriteFile, render_init, render_join};
pub use resolve::{Resolved, SecretReference, referenced_secrets, resolve};
pub use version::KubeadmVersion;

/// Why bootstrap data cannot be rendered. No text contains the contents of a Secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KubeadmError {
    /// The Kubernetes version is missing or not semantic.
    #[error("{field}: \"{version}\" is not a Kubernetes version such as v1.35.0")]
    Version {
        /// The field.
        field: &'static str,
        /// Its value.
        version: String,
    },
    /// The Kubernetes version is older than any kubeadm configuration known here.
    #[error("Kubernetes {0} is too old: kubeadm configurations are written for v1.22 and later")]
    TooOld(String),
    /// The format has no renderer.
    #[error("spec.format: bootstrap data in format \"{0}\" is not known; use cloud-config (the default) or ignition")]
    Format(String),
    /// A field has a value that cannot be rendered.
    #[error("{field}: {why}")]
    Field {
        /// Path of the field.
        field: String,
        /// The problem and its remedy.
        why: String,
    },
}
