//! Owner references that name an object as it was before it was restored: the uid is another one.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::{Value, json};
use windlass_controller_runtime::owner;

/// Whether a reference names the owner with another uid.
pub(crate) fn is_stale(metadata: &ObjectMeta, want: &OwnerReference) -> bool {
    let mut owners = metadata.owner_references.iter().flatten();
    owners.any(|have| owner::is_same(have, want) && have.uid != want.uid)
}

/// The merge patch with all owner references of an object, those to the owner as it is now. It is refused when the object has changed.
pub(crate) fn renewed(metadata: &ObjectMeta, want: &OwnerReference) -> Value {
    let mut owners = metadata.owner_references.clone().unwrap_or_default();
    if owners.iter().any(|one| one.uid == want.uid) {
        owners.retain(|one| one.uid == want.uid || !owner::is_same(one, want));
    } else {
        owner::renew(&mut owners, want);
    }
    json!({"metadata": {
        "uid": metadata.uid, "resourceVersion": metadata.resource_version, "ownerReferences": owners,
    }})
}
