//! Owner references.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::object::Object;

/// A reference that makes `owner` the controller of what carries it.
pub fn controller_ref<K: Object>(owner: &K) -> OwnerReference {
    OwnerReference {
        controller: Some(true),
        block_owner_deletion: Some(true),
        ..owner_ref(owner)
    }
}

/// A reference to an owner that is not the controller.
pub fn owner_ref<K: Object>(owner: &K) -> OwnerReference {
    let meta = owner.meta();
    OwnerReference {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: meta.name.clone().unwrap_or_default(),
        uid: meta.uid.clone().unwrap_or_default(),
        controller: None,
        block_owner_deletion: None,
    }
}

/// The reference to the controller, if there is one.
pub fn controller_of(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references
        .iter()
        .flatten()
        .find(|owner| owner.controller == Some(true))
}

/// True when an owner with this uid is named.
pub fn is_owned_by(meta: &ObjectMeta, uid: &str) -> bool {
    meta.owner_references.iter().flatten().any(|owner| owner.uid == uid)
}

/// The first owner of this group and kind, whatever its version.
pub fn owner_of_kind<'a>(meta: &'a ObjectMeta, group: &str, kind: &str) -> Option<&'a OwnerReference> {
    meta.owner_references
        .iter()
        .flatten()
        .find(|owner| owner.kind == kind && same_group(owner, group))
}

/// Puts `owner` into the list: a reference to the same object (by group, kind and name) is replaced.
pub fn ensure(refs: &mut Vec<OwnerReference>, owner: OwnerReference) {
    let group = owner.api_version.split_once('/').map_or("", |(g, _)| g);
    let same = refs
        .iter_mut()
        .find(|r| r.kind == owner.kind && r.name == owner.name && same_group(r, group));
    match same {
        Some(old) => *old = owner,
        None => refs.push(owner),
    }
}

/// Takes the reference to the object with this uid out of the list.
pub fn remove(refs: &mut Vec<OwnerReference>, uid: &str) {
    refs.retain(|r| r.uid != uid);
}

fn same_group(owner: &OwnerReference, group: &str) -> bool {
    owner.api_version.split_once('/').map_or("", |(g, _)| g) == group
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Secret;

    fn secret(name: &str, uid: &str) -> Secret {
        Secret {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                uid: Some(uid.to_owned()),
                ..ObjectMeta::default()
            },
            ..Secret::default()
        }
    }

    #[test]
    fn a_reference_to_the_same_object_is_replaced() {
        let mut refs = vec![owner_ref(&secret("a", "1"))];
        ensure(&mut refs, controller_ref(&secret("a", "2")));
        ensure(&mut refs, owner_ref(&secret("b", "3")));
        assert_eq!(refs.len(), 2);
        assert_eq!(refs[0].uid, "2");
        assert_eq!(refs[0].controller, Some(true));
        remove(&mut refs, "2");
        assert_eq!(refs[0].uid, "3");
    }

    #[test]
    fn owners_are_found_by_uid_role_and_kind() {
        let meta = ObjectMeta {
            owner_references: Some(vec![owner_ref(&secret("a", "1")), controller_ref(&secret("b", "2"))]),
            ..ObjectMeta::default()
        };
        assert!(is_owned_by(&meta, "1"));
        assert!(!is_owned_by(&meta, "3"));
        assert_eq!(controller_of(&meta).unwrap().uid, "2");
        assert_eq!(owner_of_kind(&meta, "", "Secret").unwrap().uid, "1");
        assert!(owner_of_kind(&meta, "x.io", "Secret").is_none());
    }
}
