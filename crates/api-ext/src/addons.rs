//! The types of the Helm add-on provider: the group `addons.cluster.x-k8s.io`.
//!
//! - [`v1alpha1`]: HelmChartProxy (a chart, and the clusters that get it) and HelmReleaseProxy (its release on one cluster).
//! - [`conditions`], [`reasons`], [`labels`], [`annotations`], [`finalizers`], [`values`]: the exact words that others read.
//!
//! A field that stands for something else when it is left out has a method that says what it means. Controllers and admission
//! ask the method, so that it makes no difference whether a webhook has filled the field in.

pub mod annotations;
pub mod conditions;
pub mod finalizers;
pub mod labels;
pub mod reasons;
pub mod v1alpha1;
pub mod values;

pub use v1alpha1::*;
