//! What exists, as data ([`registry`]), and what runs it.
//!
//! Runs any set of controllers against any Kubernetes API server, or all of them with the embedded one.
//!
//! [`controllers::start`] needs only a client, for any server. [`embedded::Embedded`] is a server with a data folder,
//! certificates and a kubeconfig. [`up::start`] runs both in one process, connected without a socket, with admission in
//! process. [`webhooks::start`] serves admission to a server over the network. [`diagnostics::start`] serves metrics to users with rights.

mod admission;
pub mod change_over;
mod concurrency;
pub mod controllers;
mod conversion;
pub mod diagnostics;
pub mod embedded;
mod error;
mod fetching;
mod files;
mod gates;
mod helming;
mod identity;
pub mod network;
pub mod others;
pub mod registry;
pub mod snapshot;
mod tokens;
pub mod up;
pub mod webhooks;

pub use admission::InProcess;
pub use concurrency::{Concurrency, ConcurrencyOption, OPTIONS as CONCURRENCY_OPTIONS};
pub use controllers::{Running, Selection, Surroundings};
pub use conversion::OlderVersions;
pub use diagnostics::{DiagnosticsOptions, SetLogLevel};
pub use embedded::{Embedded, EmbeddedOptions};
pub use error::ManagerError;
pub use fetching::{Fetcher, Fetching};
pub use gates::FeatureGates;
pub use helming::Helming;
pub use others::Decision;
pub use tokens::columns;
pub use webhooks::WebhookOptions;
pub use windlass_bootstrap_kubeadm::TokenTtl;
pub use windlass_cluster_cache::{
    EtcdTimeouts, GracePeriods, Home, Limits, Network, OwnPod, Policy, Reach, ReadOnly, RefusedWrite,
};
pub use windlass_controller_runtime::Scope;
pub use windlass_core_controllers::crd_migration::{Phase, Phases};
pub use windlass_core_controllers::machine::{KeyPattern, NodeSync};
pub use windlass_core_controllers::machine_set::PreflightChecks;
pub use windlass_objects::names::label_problems;
pub use windlass_operator::BuiltIns;
pub use windlass_runtime_client::ClientIdentity;
pub use windlass_webhook::{Target as WebhookTarget, Webhooks};
