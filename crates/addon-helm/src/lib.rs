//! The Helm add-on provider.
//!
//! - A HelmChartProxy selects the Clusters for a chart. Its controller creates one HelmReleaseProxy for each of them, with the values for that
//!   Cluster. It reads and writes the management cluster only, and never calls Helm.
//! - A HelmReleaseProxy is one release on one Cluster. Its controller makes the release match the HelmReleaseProxy, and never reads
//!   HelmChartProxies.
//!
//! What both agree on is here: [`names`], [`desired`], and the [`rules`] that admission applies as well.

pub mod chart_proxy;
mod cluster;
pub mod desired;
pub mod lookup;
pub mod names;
pub mod release_proxy;
pub mod rules;
mod steps;
mod version;
