//! The Helm add-on provider.
//!
//! - A HelmChartProxy says which chart goes to which Clusters; its controller makes one HelmReleaseProxy for each of them, with the
//!   values for that Cluster. It talks to the management cluster alone, never to Helm.
//! - A HelmReleaseProxy is one release on one Cluster; its controller makes the release what the HelmReleaseProxy says. It never
//!   reads HelmChartProxies.
//!
//! What both agree on is here: [`names`], [`desired`], and the [`rules`] that admission applies as well.

pub mod chart_proxy;
pub mod desired;
pub mod names;
pub mod release_proxy;
pub mod rules;
mod steps;
mod version;
