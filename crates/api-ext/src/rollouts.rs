//! The group `windlass.dev`: changes of a ClusterClass in waves.
//!
//! - [`v1alpha1`]: ClusterClassRollout (how the Clusters of a class get its changes) and ClusterClassRevision (a class and its templates as
//!   they were at one time).
//! - [`annotations`]: the keys that are part of the API.
//!
//! No other implementation of Cluster API has this group. Without a ClusterClassRollout, all Clusters get a change of their class at once.

pub mod annotations;
pub mod v1alpha1;

pub use v1alpha1::*;
