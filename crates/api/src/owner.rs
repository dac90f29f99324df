//! Owner references: making, finding, adding and renewing them. Pure.
//!
//! A reference names an object by group, kind and name; its uid tells objects apart that had the same name one after the other. Restored
//! objects have new uids, so a reference to the same name with another uid is one to be renewed ([`renew`]).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

/// A reference to an owner that is not the controller.
pub fn reference(api_version: &str, kind: &str, name: &str, uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        controller: None,
        block_owner_deletion: None,
    }
}

/// A reference that makes the owner the controller of what carries it, and keeps the owner in foreground deletion.
pub fn controller(api_version: &str, kind: &str, name: &str, uid: &str) -> OwnerReference {
    OwnerReference {
        controller: Some(true),
        block_owner_deletion: Some(true),
        ..reference(api_version, kind, name, uid)
    }
}

fn all(meta: &ObjectMeta) -> impl Iterator<Item = &OwnerReference> {
    meta.owner_references.iter().flatten()
}

/// The reference to the controller, if there is one.
pub fn controller_of(meta: &ObjectMeta) -> Option<&OwnerReference> {
    all(meta).find(|owner| owner.controller == Some(true))
}

/// Whether the object with this uid is the controller.
pub fn is_controlled_by(meta: &ObjectMeta, uid: &str) -> bool {
    controller_of(meta).is_some_and(|owner| owner.uid == uid)
}

/// Whether an owner with this uid is named.
pub fn is_owned_by(meta: &ObjectMeta, uid: &str) -> bool {
    all(meta).any(|owner| owner.uid == uid)
}

/// The first owner of this group and kind, whatever its version.
pub fn owner_of_kind<'a>(meta: &'a ObjectMeta, group: &str, kind: &str) -> Option<&'a OwnerReference> {
    all(meta).find(|owner| owner.kind == kind && group_of(owner) == group)
}

/// Whether two references name the same object, by group, kind and name: versions and uids do not count.
pub fn is_same(one: &OwnerReference, other: &OwnerReference) -> bool {
    one.kind == other.kind && one.name == other.name && group_of(one) == group_of(other)
}

/// Puts `owner` into the list: a reference to the same object is replaced.
pub fn ensure(references: &mut Vec<OwnerReference>, owner: OwnerReference) {
    match references.iter_mut().find(|one| is_same(one, &owner)) {
        Some(old) => *old = owner,
        None => references.push(owner),
    }
}

/// Brings the uid and version of a reference to `owner` up to date where there is one, and keeps whether it is the controller; gives
/// whether something changed.
pub fn renew(references: &mut [OwnerReference], owner: &OwnerReference) -> bool {
    let Some(old) = references.iter_mut().find(|one| is_same(one, owner)) else {
        return false;
    };
    let changed = old.uid != owner.uid || old.api_version != owner.api_version;
    old.uid.clone_from(&owner.uid);
    old.api_version.clone_from(&owner.api_version);
    changed
}

/// Takes the reference to the object with this uid out of the list.
pub fn remove(references: &mut Vec<OwnerReference>, uid: &str) {
    references.retain(|one| one.uid != uid);
}

fn group_of(owner: &OwnerReference) -> &str {
    owner.api_version.split_once('/').map_or("", |(group, _)| group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_to_the_same_object_is_replaced() {
        let mut refs = vec![reference("v1", "Secret", "a", "1")];
        ensure(&mut refs, controller("v1", "Secret", "a", "2"));
        ensure(&mut refs, reference("v1", "Secret", "b", "3"));
        // Another group is another object.
        ensure(&mut refs, reference("x.io/v1", "Secret", "a", "4"));
        assert_eq!(refs.len(), 3);
        assert_eq!(refs[0].uid, "2");
        assert_eq!(refs[0].controller, Some(true));
        remove(&mut refs, "2");
        assert_eq!(refs[0].uid, "3");
    }

    #[test]
    fn owners_are_found_by_uid_role_and_kind() {
        let meta = ObjectMeta {
            owner_references: Some(vec![
                reference("v1", "Secret", "a", "1"),
                controller("v1", "Secret", "b", "2"),
            ]),
            ..ObjectMeta::default()
        };
        assert!(is_owned_by(&meta, "1") && !is_controlled_by(&meta, "1"));
        assert!(is_owned_by(&meta, "2") && is_controlled_by(&meta, "2"));
        assert!(!is_owned_by(&meta, "3"));
        assert_eq!(controller_of(&meta).map(|owner| owner.uid.as_str()), Some("2"));
        assert_eq!(
            owner_of_kind(&meta, "", "Secret").map(|owner| owner.uid.as_str()),
            Some("1")
        );
        assert_eq!(owner_of_kind(&meta, "x.io", "Secret"), None);
    }

    #[test]
    fn a_stale_uid_is_renewed_and_nothing_else() {
        let mut refs = vec![
            controller("cluster.x-k8s.io/v1beta1", "Cluster", "a", "old"),
            reference("v1", "Secret", "b", "3"),
        ];
        let now = reference("cluster.x-k8s.io/v1beta2", "Cluster", "a", "new");
        assert!(renew(&mut refs, &now));
        assert_eq!(refs[0], controller("cluster.x-k8s.io/v1beta2", "Cluster", "a", "new"));
        assert!(!renew(&mut refs, &now), "nothing is left to do");
        assert!(
            !renew(&mut refs, &reference("v1", "Secret", "c", "4")),
            "no reference is added"
        );
        assert_eq!(refs[1], reference("v1", "Secret", "b", "3"));
    }
}
