//! Storage versions: objects are stored as their definition said when they were last written. Before a definition loses a version,
//! what is stored in it is written again; after an upgrade, everything is, once what converts runs.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use windlass_controller_runtime::{Gvk, ObjectKey, Seen, gvk_from, key_of};

use super::{Run, refused, unread};
use crate::kept::walk;
use crate::names::{MANAGER, reasons};
use crate::objects::ObjectRef;
use crate::provider::blocked::{Blocked, Stage};

impl Run<'_> {
    /// Before the next release is installed: brings objects out of the versions that its definitions no longer have. What converts is
    /// still the release before.
    pub(super) async fn migrate_before(&mut self) -> Result<(), Blocked> {
        let Some(next) = self.kept.next.clone() else {
            return Ok(());
        };
        let sealed = self.load(&next).await?;
        for object in walk(&sealed.packed) {
            let object = object.map_err(|error| unread(error.to_string()))?;
            if !ObjectRef::of(&object).is_definition() {
                continue;
            }
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let Some(live) = self.definition(name).await? else {
                continue;
            };
            if !lost(&live, &object, &next.version)?.is_empty() {
                self.migrate(name, &live).await?;
            }
        }
        Ok(())
    }

    /// A definition as the server takes it before anything is migrated: with the versions that objects are brought out of until it
    /// is installed.
    pub(super) async fn before_migration(&self, mut object: Value, version: &str) -> Result<Value, Blocked> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let Some(live) = self.definition(name).await? else {
            return Ok(object);
        };
        let lost = lost(&live, &object, version)?;
        let versions = live["spec"]["versions"].as_array().into_iter().flatten();
        let lost: Vec<_> = versions
            .filter(|version| version["name"].as_str().is_some_and(|name| lost.contains(&name)))
            .cloned()
            .collect();
        if let Some(versions) = object.pointer_mut("/spec/versions").and_then(Value::as_array_mut) {
            versions.extend(lost);
        }
        Ok(object)
    }

    /// After an upgrade, once all runs: brings everything into the version that is stored now.
    pub(super) async fn settle(&mut self) -> Result<(), Blocked> {
        let Some(mut current) = self.kept.current.clone() else {
            return Ok(());
        };
        // It came up: there is no going back any more, even if stored objects cannot be written yet.
        if let Some(previous) = self.kept.previous.take() {
            self.drop_secrets(&previous.secrets).await?;
        }
        for object in current.index.iter().filter(|object| object.is_definition()) {
            if let Some(live) = self.definition(&object.name).await?
                && stored(&live).count() > 1
            {
                self.migrate(&object.name, &live).await?;
            }
        }
        current.migrated = true;
        current.failure = None;
        self.update(&current).await?;
        self.kept.current = Some(current);
        self.drop_vouched().await
    }

    pub(super) async fn definition(&self, name: &str) -> Result<Option<Value>, Blocked> {
        let gvk = gvk_from("apiextensions.k8s.io/v1", "CustomResourceDefinition");
        match self.cx.read_value(&gvk, &ObjectKey::new("", name)).await {
            Seen::Found(live) => Ok(Some(live)),
            Seen::NotFound => Ok(None),
            Seen::Failed(why) => Err(unread(why)),
        }
    }

    /// Writes all objects of a kind as they are, which stores them in today's version, and notes that no other is left.
    async fn migrate(&self, name: &str, live: &Value) -> Result<(), Blocked> {
        let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
        let storage = storage_version(live).unwrap_or_default();
        let version = written_version(live).unwrap_or(storage);
        let gvk = Gvk {
            group: text(&live["spec"]["group"]),
            version: version.to_owned(),
            kind: text(&live["spec"]["names"]["kind"]),
        };
        let objects = match self.cx.metadata_of(&gvk, "", u32::MAX).await {
            Seen::Found(objects) => objects,
            // The definition exists. So its objects are there, although this API server does not show them.
            Seen::NotFound => {
                let message = format!(
                    "CustomResourceDefinition {name}: the API server does not serve {version} of {}, so stored objects cannot be \
                     written in version {storage} yet",
                    gvk.kind
                );
                return Err(unread(message));
            }
            Seen::Failed(why) => return Err(unread(why)),
        };
        for meta in &objects {
            let key = key_of(meta);
            let written = self
                .cx
                .writer()
                .merge_patch_value(MANAGER, &gvk, &key, &json!({}))
                .await;
            match written {
                Err(error) if !error.is_not_found() => {
                    return Err(refused(&error, &format!("{} {key}", gvk.kind)));
                }
                _ => {}
            }
        }
        self.cx
            .writer()
            .stored_versions(MANAGER, name, &[storage])
            .await
            .map_err(|error| refused(&error, &format!("CustomResourceDefinition {name}")))
    }
}

/// The versions that objects may be stored in and that a release of this version no longer has. What is stored from now on must not be
/// among them.
fn lost<'a>(live: &'a Value, next: &Value, version: &str) -> Result<Vec<&'a str>, Blocked> {
    let has: BTreeSet<_> = names_of(&next["spec"]["versions"]).collect();
    let lost: Vec<_> = stored(live).filter(|version| !has.contains(version)).collect();
    let storage = storage_version(live).unwrap_or_default();
    if lost.is_empty() || has.contains(storage) {
        return Ok(lost);
    }
    let message = format!(
        "{}: objects are stored as {storage}, which version {version} of the provider no longer has; upgrade to a version in \
         between first",
        ObjectRef::of(next)
    );
    Err(Blocked::new(Stage::Install, reasons::APPLY_ERROR, message))
}

pub(super) fn names_of(versions: &Value) -> impl Iterator<Item = &str> {
    versions
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|version| version["name"].as_str())
}

pub(super) fn stored(definition: &Value) -> impl Iterator<Item = &str> {
    let stored = definition["status"]["storedVersions"].as_array();
    stored.into_iter().flatten().filter_map(Value::as_str)
}

fn storage_version(definition: &Value) -> Option<&str> {
    version_with(definition, |version| version["storage"] == true)
}

/// A version in which objects can be written: the storage version, or another one if that is not served. Whatever the version of a
/// write, the object is stored in the storage version.
fn written_version(definition: &Value) -> Option<&str> {
    let is_served = |version: &Value| version["served"] == true;
    let stored = version_with(definition, |version| version["storage"] == true && is_served(version));
    stored.or_else(|| version_with(definition, is_served))
}

fn version_with(definition: &Value, is_meant: impl Fn(&Value) -> bool) -> Option<&str> {
    let versions = definition["spec"]["versions"].as_array()?;
    versions.iter().find(|version| is_meant(version))?["name"].as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_written_in_a_version_that_is_served() {
        let check = |versions: &[(&str, bool, bool)], expect: Option<&str>| {
            let versions = versions
                .iter()
                .map(|(name, served, storage)| json!({"name": name, "served": served, "storage": storage}));
            let versions: Value = versions.collect();
            let definition = json!({"spec": {"versions": versions}});
            assert_eq!(written_version(&definition), expect);
        };
        check(&[("v1", true, false), ("v2", true, true)], Some("v2"));
        check(&[("v1", true, false), ("v2", false, true)], Some("v1"));
        check(&[("v1", false, true)], None);
    }
}
