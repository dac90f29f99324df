//! Writes objects: server-side apply that is not sent if nothing would change, status, patches, deletion, finalizers.

mod apply;
mod body;
mod delete;
mod finalizer;
mod lock;
mod reclaim;
mod send;
mod target;

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use windlass_api::codec::Codec;

use crate::cache::typed;
use crate::cx::Ports;
use crate::error::{ErrorKind, WriteError};
use crate::journal::Journal;
use crate::object::{Dynamic, Gvk, Object, ObjectKey, gvk_from, key_of};
use apply::To;
pub(crate) use send::{Answer, look};
use send::{Call, Verb};
pub(crate) use target::Target;

/// Writes objects for one reconcile. Cheap to clone.
#[derive(Clone)]
pub struct Writer {
    ports: Arc<Ports>,
    journal: Journal,
    controller: &'static str,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer")
            .field("controller", &self.controller)
            .finish_non_exhaustive()
    }
}

/// The result of an apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// Not sent, as it would change nothing.
    Skipped,
    /// Sent, but it changed nothing.
    Unchanged,
    /// The object was created or changed.
    Changed,
}

/// The object after an apply.
#[derive(Clone, Debug)]
pub struct Applied<T> {
    /// The object of the server's answer, or the cached one if nothing was sent.
    pub object: T,
    /// The result.
    pub outcome: Write,
}

/// The result of a delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// The object is gone.
    Gone,
    /// The object has a deletion timestamp, and finalizers block the deletion.
    Going,
}

/// What happens to the objects that a deleted object owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They are deleted afterwards.
    Background,
    /// They are deleted first.
    Foreground,
    /// They stay.
    Orphan,
}

impl Writer {
    pub(crate) fn new(ports: Arc<Ports>, journal: Journal, controller: &'static str) -> Self {
        Self {
            ports,
            journal,
            controller,
        }
    }

    /// Server-side apply, with force. Creates the object if it does not exist. Status, resourceVersion, generation,
    /// creationTimestamp and managedFields are left out. A uid that is set means "only if it is still this object". Nothing is
    /// sent if nothing would change.
    pub async fn apply<K: Object>(&self, manager: &str, desired: &K) -> Result<Applied<Arc<K>>, WriteError> {
        let target = &Target::of::<K>(key_of(desired.metadata()));
        let to = To {
            manager,
            target,
            subresource: None,
            any_version: false,
        };
        match self.apply_object(to, desired).await? {
            Some((answer, outcome)) => Ok(Applied {
                object: decoded(Verb::Apply, target, &answer)?,
                outcome,
            }),
            None => self.skipped(target),
        }
    }

    /// [`Self::apply`] for a dynamic object with `apiVersion`, `kind` and `metadata.name`.
    pub async fn apply_value(&self, manager: &str, desired: &Value) -> Result<Applied<Arc<Dynamic>>, WriteError> {
        let target = &self.target_of_value(Verb::Apply, desired).await?;
        let to = To {
            manager,
            target,
            subresource: None,
            any_version: false,
        };
        match self.apply_dynamic(to, desired).await? {
            Some((answer, outcome)) => Ok(Applied {
                object: decoded(Verb::Apply, target, &answer)?,
                outcome,
            }),
            None => self.skipped_value(target),
        }
    }

    /// [`Self::apply_value`] for callers that need the object only if it was changed: else it is not read.
    pub async fn apply_changed(&self, manager: &str, desired: &Value) -> Result<Option<Arc<Dynamic>>, WriteError> {
        let target = &self.target_of_value(Verb::Apply, desired).await?;
        let to = To {
            manager,
            target,
            subresource: None,
            any_version: true,
        };
        match self.apply_dynamic(to, desired).await? {
            Some((answer, Write::Changed)) => decoded(Verb::Apply, target, &answer).map(Some),
            Some(_) | None => Ok(None),
        }
    }

    /// [`Self::apply_value`] that is always sent. Returns the object of the answer, with its managed fields.
    pub async fn apply_sent(&self, manager: &str, desired: &Value) -> Result<Value, WriteError> {
        let target = &self.target_of_value(Verb::Apply, desired).await?;
        let to = To {
            manager,
            target,
            subresource: None,
            any_version: false,
        };
        let mut body = body::for_apply(desired.clone());
        Ok(self.send_apply(to, &mut body).await?.value())
    }

    /// [`Self::apply_value`] as a dry run, always sent. Returns the object as it would be.
    pub async fn try_apply_value(&self, manager: &str, desired: &Value) -> Result<Value, WriteError> {
        let target = self.target_of_value(Verb::Apply, desired).await?;
        let body = body::for_apply(desired.clone());
        let (url, manager) = (target.url(None), query(manager));
        let call = Call {
            verb: Verb::Apply,
            target: &target,
            url: format!("{url}?fieldManager={manager}&force=true&dryRun=All"),
            body: Some(&body),
        };
        Ok(self.send(&call).await?.value())
    }

    /// Applies `.status`. Fields that `manager` owned before and that are not in `status` are removed. Not sent if nothing would
    /// change.
    pub async fn apply_status<K: Object>(
        &self,
        manager: &str,
        object: &K,
        status: Value,
    ) -> Result<Applied<Arc<K>>, WriteError> {
        let target = &Target::of::<K>(key_of(object.metadata()));
        let body = body::for_status(target, object.metadata().uid.as_deref(), status);
        let to = To {
            manager,
            target,
            subresource: Some("status"),
            any_version: false,
        };
        match self.apply_body(to, body).await? {
            Some((answer, outcome)) => Ok(Applied {
                object: decoded(Verb::ApplyStatus, target, &answer)?,
                outcome,
            }),
            None => self.skipped(target),
        }
    }

    /// Creates an object. Fails with [`WriteError::is_already_exists`] if the name is taken.
    pub async fn create<K: Object>(&self, manager: &str, object: &K) -> Result<Arc<K>, WriteError> {
        let target = Target::of::<K>(key_of(object.metadata()));
        let answer = self.create_body(manager, &target, object.to_json()).await?;
        decoded(Verb::Create, &target, &answer)
    }

    /// JSON merge patch.
    pub async fn merge_patch<K: Object>(
        &self,
        manager: &str,
        key: &ObjectKey,
        patch: &Value,
    ) -> Result<Arc<K>, WriteError> {
        let target = Target::of::<K>(key.clone());
        let answer = self.patch_body(manager, &target, Verb::MergePatch, patch).await?;
        decoded(Verb::MergePatch, &target, &answer)
    }

    /// [`Self::merge_patch`] for a dynamic object.
    pub async fn merge_patch_value(
        &self,
        manager: &str,
        gvk: &Gvk,
        key: &ObjectKey,
        patch: &Value,
    ) -> Result<Arc<Dynamic>, WriteError> {
        let target = self.target(Verb::MergePatch, gvk.clone(), key.clone()).await?;
        let answer = self.patch_body(manager, &target, Verb::MergePatch, patch).await?;
        decoded(Verb::MergePatch, &target, &answer)
    }

    /// Sends a JSON merge patch of metadata to the status of an object, which changes nothing: the server stores the object again.
    pub async fn touch_status(
        &self,
        manager: &str,
        gvk: &Gvk,
        key: &ObjectKey,
        patch: &Value,
    ) -> Result<(), WriteError> {
        let target = self.target(Verb::MergePatch, gvk.clone(), key.clone()).await?;
        let call = Call {
            verb: Verb::MergePatch,
            target: &target,
            url: format!("{}?fieldManager={}", target.url(Some("status")), query(manager)),
            body: Some(patch),
        };
        let answer = self.send_or_doubt(&call).await?;
        self.note(&target, &answer);
        Ok(())
    }

    /// Deletes exactly this object (its uid is the condition); objects that it owns are deleted afterwards. If the object is gone
    /// already, or its name belongs to another object by now, the result is [`Deleted::Gone`].
    pub async fn delete<K: Object>(&self, object: &K) -> Result<Deleted, WriteError> {
        self.delete_with(object, Propagation::Background).await
    }

    /// [`Self::delete`] with another propagation.
    pub async fn delete_with<K: Object>(&self, object: &K, propagation: Propagation) -> Result<Deleted, WriteError> {
        let target = Target::of::<K>(key_of(object.metadata()));
        let uid = object.metadata().uid.as_deref();
        self.delete_target(&target, uid, propagation).await
    }

    /// [`Self::delete`] for a dynamic object.
    pub async fn delete_value(&self, object: &Dynamic) -> Result<Deleted, WriteError> {
        let target = self.target(Verb::Delete, object.gvk(), object.key()).await?;
        let uid = object.metadata().uid.as_deref();
        self.delete_target(&target, uid, Propagation::Background).await
    }

    /// The stored object with its managed fields, which caches leave out.
    pub(crate) async fn read_value(&self, object: &Value) -> Result<Value, WriteError> {
        let target = self.target_of_value(Verb::Read, object).await?;
        let call = Call {
            verb: Verb::Read,
            target: &target,
            url: target.url(None),
            body: None,
        };
        Ok(self.send(&call).await?.value())
    }

    /// Sets the stored versions in the status of a definition.
    pub async fn stored_versions(&self, manager: &str, definition: &str, versions: &[&str]) -> Result<(), WriteError> {
        let gvk = gvk_from("apiextensions.k8s.io/v1", "CustomResourceDefinition");
        let target = self
            .target(Verb::MergePatch, gvk, ObjectKey::new("", definition))
            .await?;
        let patch = json!({ "status": { "storedVersions": versions } });
        let call = Call {
            verb: Verb::MergePatch,
            target: &target,
            url: format!("{}?fieldManager={}", target.url(Some("status")), query(manager)),
            body: Some(&patch),
        };
        let answer = self.send_or_doubt(&call).await?;
        self.note(&target, &answer);
        Ok(())
    }

    /// Boxed, as the other requests are, so that it is compiled once.
    fn create_body<'a>(
        &'a self,
        manager: &'a str,
        target: &'a Target,
        body: Value,
    ) -> BoxFuture<'a, Result<Answer, WriteError>> {
        self.create_once(manager, target, body).boxed()
    }

    async fn create_once(&self, manager: &str, target: &Target, mut body: Value) -> Result<Answer, WriteError> {
        body::for_create(&mut body);
        let collection = target.at(&ObjectKey::new(target.key.namespace.as_str(), ""));
        let call = Call {
            verb: Verb::Create,
            target,
            url: format!("{}?fieldManager={}", collection.url(None), query(manager)),
            body: Some(&body),
        };
        let answer = self.send_or_doubt(&call).await?;
        self.note(target, &answer);
        Ok(answer)
    }

    fn patch_body<'a>(
        &'a self,
        manager: &'a str,
        target: &'a Target,
        verb: Verb,
        patch: &'a Value,
    ) -> BoxFuture<'a, Result<Answer, WriteError>> {
        self.patch_once(manager, target, verb, patch).boxed()
    }

    async fn patch_once(
        &self,
        manager: &str,
        target: &Target,
        verb: Verb,
        patch: &Value,
    ) -> Result<Answer, WriteError> {
        let patch = self.locked_patch(verb, target, patch);
        let call = Call {
            verb,
            target,
            url: format!("{}?fieldManager={}", target.url(None), query(manager)),
            body: Some(&patch),
        };
        let answer = self.send_or_doubt(&call).await?;
        self.note(target, &answer);
        Ok(answer)
    }

    fn skipped<K: Object>(&self, target: &Target) -> Result<Applied<Arc<K>>, WriteError> {
        let store = self.ports.caches.known::<K>();
        let object = match store.and_then(|store| store.get(&target.key)).and_then(typed) {
            Some(object) => object,
            None => Arc::new(K::from_json(&self.cached_value(target)?).map_err(|e| encoding(Verb::Apply, target, &e))?),
        };
        Ok(Applied {
            object,
            outcome: Write::Skipped,
        })
    }

    fn skipped_value(&self, target: &Target) -> Result<Applied<Arc<Dynamic>>, WriteError> {
        let cached = self.ports.caches.known_dynamic(&target.gvk);
        let object = if let Some(object) = cached.and_then(|store| store.get(&target.key)).and_then(typed) {
            object
        } else {
            let object = Dynamic::new(self.cached_value(target)?);
            Arc::new(object.map_err(|e| encoding(Verb::Apply, target, &e))?)
        };
        Ok(Applied {
            object,
            outcome: Write::Skipped,
        })
    }
}

/// Decodes the object of an answer.
pub(crate) fn decoded<T: Codec>(verb: Verb, target: &Target, answer: &Answer) -> Result<Arc<T>, WriteError> {
    let object = T::decode_stored(answer.json()).map_err(|e| encoding(verb, target, &e))?;
    typed(object).ok_or_else(|| {
        let (gvk, key) = (&target.gvk, &target.key);
        WriteError::new(
            ErrorKind::Encoding,
            verb.word(),
            gvk,
            key,
            "its codec gave another type",
        )
    })
}

fn encoding(verb: Verb, target: &Target, error: &serde_json::Error) -> WriteError {
    let (gvk, key) = (&target.gvk, &target.key);
    WriteError::new(ErrorKind::Encoding, verb.word(), gvk, key, error.to_string())
}

/// Decodes the object of an answer to a patch.
pub(crate) fn patched<K: Object>(target: &Target, answer: &Answer) -> Result<Arc<K>, WriteError> {
    decoded(Verb::MergePatch, target, answer)
}

/// A field manager as part of a query. Names of managers are words with dashes, dots and slashes.
fn query(manager: &str) -> String {
    manager.replace('%', "%25").replace('/', "%2F").replace(' ', "%20")
}
