//! Owner references: the object that they name, and whether the object with the uid has that name. Pure.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use serde::Deserialize;
use windlass_store::{Key, Record};

use super::Uid;

/// A hash of group, kind and name; 0 if they are unknown. A reference with the uid of an object but another name or kind has no
/// owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Called(u64);

impl Called {
    fn by(group: &str, kind: &str, name: &str) -> Self {
        if kind.is_empty() || name.is_empty() {
            return Self(0);
        }
        let mut hasher = DefaultHasher::new();
        (group, kind, name).hash(&mut hasher);
        Self(hasher.finish().max(1))
    }

    pub(super) fn fits(self, other: Self) -> bool {
        self == other || self.0 == 0 || other.0 == 0
    }
}

/// A reference to an owner.
#[derive(Debug, Clone)]
pub(super) struct Owner {
    pub(super) uid: Uid,
    /// Whether the dependent blocks the owner's foreground deletion.
    pub(super) blocks: bool,
    pub(super) called: Called,
}

/// The identity of a stored object.
pub(super) fn called(key: &Key, kind: &dyn Fn(&str) -> Option<String>) -> Called {
    let group = key.resource.split_once('.').map_or("", |(_, group)| group);
    let kind = kind(&key.resource).unwrap_or_default();
    Called::by(group, &kind, key.name())
}

#[derive(Deserialize)]
struct Shallow {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    owner_references: Vec<Reference>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Reference {
    api_version: String,
    kind: String,
    name: String,
}

/// The owners of a record. It is decoded only if its owners may differ from those before.
pub(super) fn owners(record: &Record, before: &[Owner]) -> Vec<Owner> {
    let links = &record.header.owners;
    // The writer of an object chooses how many owners it has, so nothing is searched for each of them.
    // Of several references to one owner, the first one counts.
    let mut first: HashMap<&str, &Owner> = HashMap::with_capacity(before.len());
    for owner in before {
        first.entry(owner.uid.as_ref()).or_insert(owner);
    }
    let known = |uid: &str| first.get(uid).copied();
    let decoded = if links.iter().all(|link| known(&link.uid).is_some()) {
        Vec::new()
    } else {
        serde_json::from_slice::<Shallow>(&record.value).map_or_else(|_| Vec::new(), |o| o.metadata.owner_references)
    };
    let called = |index: usize| {
        decoded.get(index).map_or(Called(0), |reference| {
            let group = reference.api_version.split_once('/').map_or("", |(group, _)| group);
            Called::by(group, &reference.kind, &reference.name)
        })
    };
    let owner = |(index, link): (usize, &windlass_store::OwnerLink)| {
        let old = known(&link.uid);
        Owner {
            uid: old.map_or_else(|| Uid::from(link.uid.as_ref()), |old| Arc::clone(&old.uid)),
            blocks: link.blocks,
            called: old.map_or_else(|| called(index), |old| old.called),
        }
    };
    links.iter().enumerate().map(owner).collect()
}
