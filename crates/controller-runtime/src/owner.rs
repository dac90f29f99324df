//! Owner references to typed objects; other functions for references are in [`windlass_api::owner`].

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use windlass_api::meta::MetaExt as _;
use windlass_api::owner;
pub use windlass_api::owner::{controller_of, ensure, is_owned_by, is_same, owner_of_kind, remove, renew};

use crate::object::Object;

/// A reference that makes `owner` the controller of the object that carries it.
pub fn controller_ref<K: Object>(owner: &K) -> OwnerReference {
    let meta = owner.meta();
    owner::controller(&K::api_version(&()), &K::kind(&()), meta.name(), meta.uid())
}

/// A reference to an owner that is not the controller.
pub fn owner_ref<K: Object>(owner: &K) -> OwnerReference {
    let meta = owner.meta();
    owner::reference(&K::api_version(&()), &K::kind(&()), meta.name(), meta.uid())
}
