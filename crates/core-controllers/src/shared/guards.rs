//! Values that admission of v1.14 refuses, and that would destroy something if a controller acted on them. The controller changes nothing
//! then, and says in a condition which field is wrong and what to do.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_api::owner;
use windlass_controller_runtime::{Blocked, Until};

/// Whether an object was moved to another Cluster. Its Machines run in the one that its owner reference names.
pub(crate) fn moved(meta: &ObjectMeta, cluster_name: &str) -> Option<String> {
    let owner = owner::owner_of_kind(meta, "cluster.x-k8s.io", "Cluster");
    let owner = owner.filter(|owner| owner.name != cluster_name)?;
    Some(immutable(cluster_name, &owner.name))
}

/// That the name of the Cluster has to be set back.
pub(crate) fn immutable(now: &str, before: &str) -> String {
    format!("spec.clusterName {now} is not the Cluster {before} that the object belongs to: set it back to {before}")
}

/// What the driver does about such a value: it waits for another one.
pub(crate) fn blocked(why: &str) -> Blocked {
    Blocked {
        reason: "InvalidSpec",
        message: why.to_owned(),
        until: Until::Event,
    }
}
