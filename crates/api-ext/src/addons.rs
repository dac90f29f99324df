//! The types of the Helm add-on provider: the group `addons.cluster.x-k8s.io`.
//!
//! - [`v1alpha1`]: HelmChartProxy (a chart and its matching Clusters) and HelmReleaseProxy (its release on one
//!   Cluster).
//! - [`conditions`], [`reasons`], [`labels`], [`annotations`], [`finalizers`], [`values`]: the names that are part of
//!   the API.
//!
//! A field with a default has a method that returns the effective value. Controllers and admission use the method, so
//! it makes no difference whether a webhook has set the default.

pub mod annotations;
pub mod conditions;
pub mod finalizers;
pub mod labels;
pub mod reasons;
pub mod v1alpha1;
pub mod values;

pub use v1alpha1::*;
