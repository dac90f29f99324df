//! Annotation keys of changes in waves.

/// On a Cluster: the ClusterClassRevision that its topology is generated from, in the namespace of its class. The controller of
/// ClusterClassRollouts sets it; a user who sets it to another revision of the class moves the Cluster by hand.
pub const CLASS_REVISION: &str = "windlass.dev/class-revision";
/// On a Cluster: the ClusterClassRevision that its objects have been brought to. The controller of topologies sets it.
pub const RECONCILED_CLASS_REVISION: &str = "windlass.dev/reconciled-class-revision";
/// On a ClusterClassRollout that has stopped because of unhealthy Clusters: goes on. The controller removes it.
pub const RESUME: &str = "windlass.dev/resume";
