//! Adds and removes finalizers of any field manager.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use super::send::{Answer, Verb, exchange, kind_of};
use super::{Target, Writer, decoded};
use crate::error::{ErrorKind, WriteError};
use crate::object::{Dynamic, Object, key_of};

/// How many times a write is repeated after a change by another client.
const TRIES: usize = 6;

impl Writer {
    /// Adds a finalizer when it is missing.
    pub async fn ensure_finalizer<K: Object>(
        &self,
        manager: &str,
        object: &K,
        finalizer: &str,
    ) -> Result<Arc<K>, WriteError> {
        let meta = object.metadata();
        if meta.finalizers.iter().flatten().any(|f| f == finalizer) {
            return Ok(Arc::new(object.clone()));
        }
        let target = Target::of::<K>(key_of(meta));
        let answer = self.add_finalizer(manager, &target, meta, finalizer).await?;
        decoded(Verb::MergePatch, &target, &answer)
    }

    /// Adds a missing finalizer, and returns the answer.
    pub(crate) async fn add_finalizer(
        &self,
        manager: &str,
        target: &Target,
        meta: &ObjectMeta,
        finalizer: &str,
    ) -> Result<Answer, WriteError> {
        let now = Finalizers::of(meta);
        let answer = self.change(manager, target, now, finalizer, true).await?;
        answer.ok_or_else(|| gone(target))
    }

    /// Removes a finalizer. Succeeds if the finalizer or the object does not exist.
    pub async fn remove_finalizer<K: Object>(
        &self,
        manager: &str,
        object: &K,
        finalizer: &str,
    ) -> Result<(), WriteError> {
        let target = Target::of::<K>(key_of(object.metadata()));
        let now = Finalizers::of(object.metadata());
        self.change(manager, &target, now, finalizer, false).await?;
        Ok(())
    }

    /// [`Self::remove_finalizer`] for a dynamic object.
    pub async fn remove_finalizer_value(
        &self,
        manager: &str,
        object: &Dynamic,
        finalizer: &str,
    ) -> Result<(), WriteError> {
        let target = self.target(Verb::MergePatch, object.gvk(), object.key()).await?;
        let now = Finalizers::of(object.metadata());
        self.change(manager, &target, now, finalizer, false).await?;
        Ok(())
    }

    /// `None` if the object is gone, or had no such finalizer.
    fn change<'a>(
        &'a self,
        manager: &'a str,
        target: &'a Target,
        now: Finalizers,
        finalizer: &'a str,
        wanted: bool,
    ) -> BoxFuture<'a, Result<Option<Answer>, WriteError>> {
        self.change_unboxed(manager, target, now, finalizer, wanted).boxed()
    }

    async fn change_unboxed(
        &self,
        manager: &str,
        target: &Target,
        mut now: Finalizers,
        finalizer: &str,
        wanted: bool,
    ) -> Result<Option<Answer>, WriteError> {
        let uid = now.uid.clone();
        let mut last = None;
        for _ in 0..TRIES {
            if now.list.iter().any(|f| f == finalizer) == wanted {
                return Ok(now.object);
            }
            let patch = now.patch(finalizer, wanted);
            match self.patch_body(manager, target, Verb::MergePatch, &patch).await {
                Ok(answer) => return Ok(Some(answer)),
                Err(error) if error.is_not_found() => return Ok(None),
                // The caller of a locked object must observe it again before it writes to the changed object.
                Err(error) if error.is_conflict() && self.is_locked(target) => return Err(error),
                Err(error) if error.is_conflict() => last = Some(error),
                Err(error) => return Err(error),
            }
            now = match self.read_finalizers(target).await? {
                Some(now) if now.uid == uid => now,
                _ => return Ok(None),
            };
        }
        Err(last.unwrap_or_else(|| gone(target)))
    }

    async fn read_finalizers(&self, target: &Target) -> Result<Option<Finalizers>, WriteError> {
        let error = |kind, why| WriteError::new(kind, "read", &target.gvk, &target.key, why);
        let request = http::Request::get(target.url(None)).body(Vec::new());
        let request = request.map_err(|e| error(ErrorKind::Encoding, e.to_string()))?;
        match exchange(self.client(), request).await {
            Ok(answer) => Ok(Some(Finalizers {
                list: answer.finalizers().to_vec(),
                uid: answer.uid().to_owned(),
                version: answer.version().to_owned(),
                object: Some(answer),
            })),
            Err(refused) if refused.is_not_found() => Ok(None),
            Err(refused) => Err(error(kind_of(&refused), refused.to_string())),
        }
    }

    fn client(&self) -> &kube::Client {
        &self.ports.client
    }
}

/// The finalizers of an object at one resourceVersion.
struct Finalizers {
    list: Vec<String>,
    uid: String,
    version: String,
    object: Option<Answer>,
}

impl Finalizers {
    fn of(meta: &ObjectMeta) -> Self {
        Self {
            list: meta.finalizers.clone().unwrap_or_default(),
            uid: meta.uid.clone().unwrap_or_default(),
            version: meta.resource_version.clone().unwrap_or_default(),
            object: None,
        }
    }

    /// A merge patch that fails if the object has changed since: it replaces the whole list.
    fn patch(&self, finalizer: &str, wanted: bool) -> Value {
        let mut list: Vec<&str> = self.list.iter().map(String::as_str).collect();
        if wanted {
            list.push(finalizer);
        } else {
            list.retain(|f| *f != finalizer);
        }
        json!({"metadata": {
            "finalizers": list,
            "resourceVersion": self.version,
            "uid": self.uid,
        }})
    }
}

fn gone(target: &Target) -> WriteError {
    let (gvk, key) = (&target.gvk, &target.key);
    WriteError::new(ErrorKind::NotFound, "patch", gvk, key, "the object is gone")
}
