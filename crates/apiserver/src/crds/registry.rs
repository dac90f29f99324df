//! The registry of served resources: built-in ones and those of CRDs.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::builtin;
use crate::crds::definition::Definition;
use crate::objects::resource::Resource;

/// The resources of CRDs, by CRD name. Replaced as a whole when one changes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Custom {
    crds: BTreeMap<String, Arc<Definition>>,
    /// Counts changes: values derived from the registry are cached under this number.
    pub(crate) changes: u64,
}

impl Custom {
    /// Sets the resources of a CRD, or removes them with `None`.
    pub(crate) fn set(&mut self, crd: &str, definition: Option<Definition>) {
        self.changes += 1;
        match definition {
            Some(definition) => {
                self.crds.insert(crd.to_owned(), Arc::new(definition));
            }
            None => {
                self.crds.remove(crd);
            }
        }
    }

    /// The resources of a CRD, by its name.
    pub(crate) fn definition(&self, crd: &str) -> Option<&Definition> {
        self.crds.get(crd).map(AsRef::as_ref)
    }

    /// The resources of the definition of a kind, if it is established.
    pub(crate) fn of_kind(&self, group: &str, kind: &str) -> Option<&Definition> {
        let is = |resource: &Arc<Resource>| resource.kind == kind && resource.group == group;
        let mut all = self.crds.values();
        all.find(|definition| definition.stored.as_ref().is_some_and(is))
            .map(AsRef::as_ref)
    }

    /// All served custom resources, newest version of each first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.crds.values().flat_map(|d| d.served.iter())
    }

    /// A resource by its path.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        let built_in = builtin::resources()
            .iter()
            .find(|r| r.plural == plural && r.group == group && r.version == version);
        if let Some(found) = built_in {
            return Some(Arc::clone(found));
        }
        self.crds
            .get(&format!("{plural}.{group}"))?
            .served
            .iter()
            .find(|r| r.version == version)
            .map(Arc::clone)
    }

    /// A resource by its storage name. For custom resources this is the storage version, served or not.
    pub(crate) fn find_storage(&self, storage: &str) -> Option<Arc<Resource>> {
        if let Some(definition) = self.crds.get(storage) {
            return definition.stored.clone();
        }
        builtin::resources()
            .iter()
            .find(|r| r.storage.as_ref() == storage)
            .map(Arc::clone)
    }

    /// The other served versions of a resource.
    pub(crate) fn versions(&self, resource: &Resource) -> Vec<Arc<Resource>> {
        let is_other = |r: &&Arc<Resource>| r.group != resource.group || r.version != resource.version;
        if let Some(definition) = self.crds.get(resource.storage.as_ref()) {
            return definition.served.iter().filter(is_other).map(Arc::clone).collect();
        }
        let built_in = builtin::resources().iter().filter(|r| r.storage == resource.storage);
        built_in.filter(is_other).map(Arc::clone).collect()
    }

    /// All served resources: built-in ones, then custom ones.
    pub(crate) fn everything(&self) -> impl Iterator<Item = &Arc<Resource>> {
        builtin::resources().iter().chain(self.all())
    }
}
