//! Writing objects: server-side apply that is not sent when nothing would change, status, patches, deletion, finalizers.

mod body;
mod finalizer;
mod lock;
mod more;
mod send;

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::cache::{AnyStore, Memo};
use crate::cx::Ports;
use crate::error::{ErrorKind, WriteError};
use crate::guard::Need;
use crate::journal::Journal;
use crate::object::{Dynamic, Gvk, Object, ObjectKey, gvk_from, gvk_of, key_of};
use send::{Call, Verb};
pub(crate) use send::{fetch, look};

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

/// What an apply did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// Nothing was sent, as nothing would have changed.
    Skipped,
    /// It was sent and changed nothing.
    Unchanged,
    /// It created or changed the object.
    Changed,
}

/// The object after an apply.
#[derive(Clone, Debug)]
pub struct Applied<T> {
    /// As the server answered, or as it is cached when nothing was sent.
    pub object: T,
    /// What happened.
    pub outcome: Write,
}

/// What a delete did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// The object is gone.
    Gone,
    /// Finalizers hold it.
    Going,
}

/// What becomes of the objects that a deleted object owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They are collected afterwards.
    Background,
    /// They go first.
    Foreground,
    /// They stay.
    Orphan,
}

/// Where an object is written.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) gvk: Gvk,
    pub(crate) key: ObjectKey,
    pub(crate) plural: String,
}

impl Target {
    pub(crate) fn of<K: Object>(key: ObjectKey) -> Self {
        Self {
            gvk: gvk_of::<K>(),
            key,
            plural: K::plural(&()).into_owned(),
        }
    }

    /// The same kind, another object.
    pub(crate) fn at(&self, key: &ObjectKey) -> Self {
        Self {
            key: key.clone(),
            ..self.clone()
        }
    }

    pub(crate) fn url(&self, subresource: Option<&str>) -> String {
        let mut url = if self.gvk.group.is_empty() {
            format!("/api/{}", self.gvk.version)
        } else {
            format!("/apis/{}/{}", self.gvk.group, self.gvk.version)
        };
        if !self.key.namespace.is_empty() {
            url.push_str("/namespaces/");
            url.push_str(&self.key.namespace);
        }
        url.push('/');
        url.push_str(&self.plural);
        if !self.key.name.is_empty() {
            url.push('/');
            url.push_str(&self.key.name);
        }
        if let Some(subresource) = subresource {
            url.push('/');
            url.push_str(subresource);
        }
        url
    }
}

impl Writer {
    pub(crate) fn new(ports: Arc<Ports>, journal: Journal, controller: &'static str) -> Self {
        Self {
            ports,
            journal,
            controller,
        }
    }

    /// Server-side apply, with force. Creates the object when it is absent. Status, resourceVersion, generation,
    /// creationTimestamp and managedFields are left out; a uid that is set means "only if it is still this object". Nothing is
    /// sent when nothing would change.
    pub async fn apply<K: Object>(&self, manager: &str, desired: &K) -> Result<Applied<Arc<K>>, WriteError> {
        let target = Target::of::<K>(key_of(desired.meta()));
        let body = serde_json::to_value(desired)
            .map_err(|e| encoding(Verb::Apply, &target, &e))
            .map(body::for_apply)?;
        match self.apply_body(manager, &target, None, body).await? {
            Some((answer, outcome)) => Ok(Applied {
                object: Arc::new(decode(Verb::Apply, &target, answer)?),
                outcome,
            }),
            None => self.skipped(&target),
        }
    }

    /// [`Self::apply`] for a dynamic object, with `apiVersion`, `kind` and `metadata.name` in it.
    pub async fn apply_value(&self, manager: &str, desired: &Value) -> Result<Applied<Arc<Dynamic>>, WriteError> {
        let target = self.target_of_value(Verb::Apply, desired).await?;
        let body = body::for_apply(desired.clone());
        match self.apply_body(manager, &target, None, body).await? {
            Some((answer, outcome)) => Ok(Applied {
                object: Arc::new(dynamic(Verb::Apply, &target, answer)?),
                outcome,
            }),
            None => self.skipped_value(&target),
        }
    }

    /// Applies `.status`: what `manager` had there before and is not in `status` is removed. Not sent when nothing would change.
    pub async fn apply_status<K: Object>(
        &self,
        manager: &str,
        object: &K,
        status: Value,
    ) -> Result<Applied<Arc<K>>, WriteError> {
        let target = Target::of::<K>(key_of(object.meta()));
        let body = body::for_status(&target, object.meta().uid.as_deref(), status);
        match self.apply_body(manager, &target, Some("status"), body).await? {
            Some((answer, outcome)) => Ok(Applied {
                object: Arc::new(decode(Verb::ApplyStatus, &target, answer)?),
                outcome,
            }),
            None => self.skipped(&target),
        }
    }

    /// [`Self::apply_status`] for a dynamic object.
    pub async fn apply_status_value(
        &self,
        manager: &str,
        object: &Dynamic,
        status: Value,
    ) -> Result<Applied<Arc<Dynamic>>, WriteError> {
        let target = self.target(Verb::ApplyStatus, object.gvk(), object.key()).await?;
        let uid = object.metadata().uid.as_deref();
        let body = body::for_status(&target, uid, status);
        match self.apply_body(manager, &target, Some("status"), body).await? {
            Some((answer, outcome)) => Ok(Applied {
                object: Arc::new(dynamic(Verb::ApplyStatus, &target, answer)?),
                outcome,
            }),
            None => self.skipped_value(&target),
        }
    }

    /// Creates an object; [`WriteError::is_already_exists`] when there is one of this name.
    pub async fn create<K: Object>(&self, manager: &str, object: &K) -> Result<Arc<K>, WriteError> {
        let target = Target::of::<K>(key_of(object.meta()));
        let body = serde_json::to_value(object).map_err(|e| encoding(Verb::Create, &target, &e))?;
        let answer = self.create_body(manager, &target, body).await?;
        Ok(Arc::new(decode(Verb::Create, &target, answer)?))
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
        Ok(Arc::new(decode(Verb::MergePatch, &target, answer)?))
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
        Ok(Arc::new(dynamic(Verb::MergePatch, &target, answer)?))
    }

    /// JSON patch: an array of operations. A `test` first makes it safe against changes by others.
    pub async fn patch_json<K: Object>(
        &self,
        manager: &str,
        key: &ObjectKey,
        operations: &Value,
    ) -> Result<Arc<K>, WriteError> {
        let target = Target::of::<K>(key.clone());
        let answer = self.patch_body(manager, &target, Verb::JsonPatch, operations).await?;
        Ok(Arc::new(decode(Verb::JsonPatch, &target, answer)?))
    }

    /// Deletes exactly this object (its uid is the condition); what it owns is collected afterwards. An object that is gone
    /// already, or whose name belongs to another object by now, is [`Deleted::Gone`].
    pub async fn delete<K: Object>(&self, object: &K) -> Result<Deleted, WriteError> {
        self.delete_with(object, Propagation::Background).await
    }

    /// [`Self::delete`] with another propagation.
    pub async fn delete_with<K: Object>(&self, object: &K, propagation: Propagation) -> Result<Deleted, WriteError> {
        let target = Target::of::<K>(key_of(object.meta()));
        let uid = object.meta().uid.as_deref();
        self.delete_target(&target, uid, propagation).await
    }

    /// [`Self::delete`] for a dynamic object.
    pub async fn delete_value(&self, object: &Dynamic) -> Result<Deleted, WriteError> {
        let target = self.target(Verb::Delete, object.gvk(), object.key()).await?;
        let uid = object.metadata().uid.as_deref();
        self.delete_target(&target, uid, Propagation::Background).await
    }

    /// The object as it is stored, with its managed fields, which caches leave out.
    pub(crate) async fn read_value(&self, object: &Value) -> Result<Value, WriteError> {
        let target = self.target_of_value(Verb::Read, object).await?;
        let call = Call {
            verb: Verb::Read,
            target: &target,
            url: target.url(None),
            body: None,
        };
        self.send(&call).await
    }

    // ---- below: shared by the typed and the dynamic forms. What is boxed is compiled here, and not again wherever it is awaited ----

    /// `None` when nothing was sent.
    fn apply_body<'a>(
        &'a self,
        manager: &'a str,
        target: &'a Target,
        subresource: Option<&'a str>,
        body: Value,
    ) -> BoxFuture<'a, Result<Option<(Value, Write)>, WriteError>> {
        self.apply_once(manager, target, subresource, body).boxed()
    }

    async fn apply_once(
        &self,
        manager: &str,
        target: &Target,
        subresource: Option<&str>,
        mut body: Value,
    ) -> Result<Option<(Value, Write)>, WriteError> {
        let desired = body::desired_hash(&body);
        let slot = match subresource {
            Some(subresource) => format!("{manager}/{subresource}"),
            None => manager.to_owned(),
        };
        let stores = self.ports.caches.holding(&target.gvk.group_kind());
        let store = stores.iter().find(|s| s.gvk() == &target.gvk);
        let before = store.and_then(|s| s.identity(&target.key));
        if let Some(store) = store
            && is_known_unchanged(&**store, target, &slot, &body, desired, subresource)
        {
            self.ports.metrics.write_skipped(self.controller);
            return Ok(None);
        }
        let (answer, (uid, version)) = self.send_apply(manager, target, subresource, &mut body).await?;
        let changed = before.as_ref() != Some(&(uid.clone(), version.clone()));
        if let Some(store) = store {
            let live = (!changed)
                .then(|| store.value(&target.key))
                .flatten()
                .map(|live| body::live_hash(&live, subresource));
            let memo = Memo {
                desired,
                uid,
                version,
                live,
            };
            store.remember(&target.key, &slot, memo);
        }
        let outcome = if changed { Write::Changed } else { Write::Unchanged };
        Ok(Some((answer, outcome)))
    }

    /// The answer, with its uid and resourceVersion.
    async fn send_apply(
        &self,
        manager: &str,
        target: &Target,
        subresource: Option<&str>,
        body: &mut Value,
    ) -> Result<(Value, (String, String)), WriteError> {
        let verb = if subresource.is_some() {
            Verb::ApplyStatus
        } else {
            Verb::Apply
        };
        self.lock_body(verb, target, body);
        let call = Call {
            verb,
            target,
            url: format!("{}?fieldManager={}&force=true", target.url(subresource), query(manager)),
            body: Some(body),
        };
        let answer = match self.send(&call).await {
            Err(error) if error.kind().is_ambiguous() => self.send_again(&call, error).await?,
            other => other?,
        };
        let identity = identity(&answer);
        self.note(target, &answer);
        Ok((answer, identity))
    }

    async fn create_body(&self, manager: &str, target: &Target, mut body: Value) -> Result<Value, WriteError> {
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

    async fn patch_body(&self, manager: &str, target: &Target, verb: Verb, patch: &Value) -> Result<Value, WriteError> {
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

    /// Whether the object with this uid is stored.
    async fn is_there(&self, target: &Target, uid: Option<&str>) -> Result<bool, WriteError> {
        let call = Call {
            verb: Verb::Read,
            target,
            url: target.url(None),
            body: None,
        };
        match self.send(&call).await {
            Ok(stored) => Ok(stored["metadata"]["uid"].as_str() == uid),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn delete_target<'a>(
        &'a self,
        target: &'a Target,
        uid: Option<&'a str>,
        propagation: Propagation,
    ) -> BoxFuture<'a, Result<Deleted, WriteError>> {
        self.delete_once(target, uid, propagation).boxed()
    }

    async fn delete_once(
        &self,
        target: &Target,
        uid: Option<&str>,
        propagation: Propagation,
    ) -> Result<Deleted, WriteError> {
        let policy = match propagation {
            Propagation::Background => "Background",
            Propagation::Foreground => "Foreground",
            Propagation::Orphan => "Orphan",
        };
        let mut body = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": policy,
        });
        if let Some(uid) = uid {
            body["preconditions"] = json!({ "uid": uid });
        }
        self.lock_body(Verb::Delete, target, &mut body);
        let call = Call {
            verb: Verb::Delete,
            target,
            url: target.url(None),
            body: Some(&body),
        };
        let answer = match self.send(&call).await {
            Err(error) if error.kind().is_ambiguous() => self.send_again(&call, error).await,
            other => other,
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) if error.is_not_found() => json!({ "kind": "Status" }),
            // The name belongs to another object by now, unless the server refused for a reason of its own.
            Err(error) if error.is_conflict() && uid.is_some() => {
                if self.is_there(target, uid).await? {
                    return Err(error);
                }
                json!({ "kind": "Status" })
            }
            Err(error) => return Err(error),
        };
        if answer["kind"] == "Status" || answer["metadata"]["deletionTimestamp"].is_null() {
            if let Some(uid) = uid {
                let need = Need::Gone(uid.to_owned());
                self.journal.wrote(&target.gvk, &target.key, need);
            }
            return Ok(Deleted::Gone);
        }
        self.note(target, &answer);
        Ok(Deleted::Going)
    }

    /// Has the next reconcile wait until the caches have seen this.
    fn note(&self, target: &Target, answer: &Value) {
        let (_, version) = identity(answer);
        let generation = answer["metadata"]["generation"].as_i64();
        self.journal.relock(&target.gvk, &target.key, &version, generation);
        let version = version.parse().unwrap_or(0);
        let key = match answer["metadata"]["name"].as_str() {
            Some(name) => ObjectKey::new(target.key.namespace.as_str(), name),
            None => target.key.clone(),
        };
        self.journal.wrote(&target.gvk, &key, Need::Version(version));
    }

    fn skipped<K: Object>(&self, target: &Target) -> Result<Applied<Arc<K>>, WriteError> {
        let typed = self.ports.caches.known::<K>();
        let object = match typed.and_then(|store| store.get(&target.key)) {
            Some(object) => object,
            None => Arc::new(decode(Verb::Apply, target, self.cached_value(target)?)?),
        };
        Ok(Applied {
            object,
            outcome: Write::Skipped,
        })
    }

    fn cached_value(&self, target: &Target) -> Result<Value, WriteError> {
        let stores = self.ports.caches.holding(&target.gvk.group_kind());
        let mut of_version = stores.iter().filter(|s| s.gvk() == &target.gvk);
        of_version.find_map(|store| store.value(&target.key)).ok_or_else(|| {
            // Deleted between the decision and now.
            let (gvk, key) = (&target.gvk, &target.key);
            WriteError::new(ErrorKind::NotFound, "read", gvk, key, "it was just deleted")
        })
    }

    async fn target_of_value(&self, verb: Verb, object: &Value) -> Result<Target, WriteError> {
        let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
        let gvk = gvk_from(&text(&object["apiVersion"]), &text(&object["kind"]));
        let meta = &object["metadata"];
        let key = ObjectKey::new(text(&meta["namespace"]), text(&meta["name"]));
        self.target(verb, gvk, key).await
    }

    fn target(&self, verb: Verb, gvk: Gvk, key: ObjectKey) -> BoxFuture<'_, Result<Target, WriteError>> {
        self.find_target(verb, gvk, key).boxed()
    }

    async fn find_target(&self, verb: Verb, gvk: Gvk, key: ObjectKey) -> Result<Target, WriteError> {
        if let Some(plural) = body::built_in_plural(&gvk) {
            return Ok(Target {
                plural: plural.to_owned(),
                gvk,
                key,
            });
        }
        match self.ports.caches.definition(&gvk.group_kind()).await {
            Ok(crd) => Ok(Target {
                plural: crd.spec.names.plural.clone(),
                gvk,
                key,
            }),
            Err(error) => self.discovered(verb, gvk, key, &error.to_string()).await,
        }
    }
}

/// True when the cached object and the memory of the last apply say that applying `body` would change nothing.
fn is_known_unchanged(
    store: &dyn AnyStore,
    target: &Target,
    slot: &str,
    body: &Value,
    desired: [u8; 16],
    subresource: Option<&str>,
) -> bool {
    let Some((uid, version)) = store.identity(&target.key) else {
        return false;
    };
    // Without a memory nobody knows what this manager owns, and whether something would have to be removed.
    let Some(memo) = store.memo(&target.key, slot) else {
        return false;
    };
    if memo.desired != desired || memo.uid != uid {
        return false;
    }
    if memo.version == version {
        return true;
    }
    let Some(live) = store.value(&target.key) else {
        return false;
    };
    let same = windlass_smd::differs(body, &live).is_none()
        || memo
            .live
            .is_some_and(|hash| hash == body::live_hash(&live, subresource));
    if same {
        store.remember(&target.key, slot, Memo { version, ..memo });
    }
    same
}

/// uid and resourceVersion of an answer.
fn identity(answer: &Value) -> (String, String) {
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    let meta = &answer["metadata"];
    (text(&meta["uid"]), text(&meta["resourceVersion"]))
}

fn encoding(verb: Verb, target: &Target, error: &serde_json::Error) -> WriteError {
    let (gvk, key) = (&target.gvk, &target.key);
    WriteError::new(ErrorKind::Encoding, verb.word(), gvk, key, error.to_string())
}

fn decode<K: Object>(verb: Verb, target: &Target, answer: Value) -> Result<K, WriteError> {
    let mut object: K = serde_json::from_value(answer).map_err(|e| encoding(verb, target, &e))?;
    object.meta_mut().managed_fields = None;
    Ok(object)
}

/// What a patch made of an object.
pub(crate) fn patched<K: Object>(target: &Target, answer: Value) -> Result<K, WriteError> {
    decode(Verb::MergePatch, target, answer)
}

fn dynamic(verb: Verb, target: &Target, answer: Value) -> Result<Dynamic, WriteError> {
    Dynamic::new(answer).map_err(|e| encoding(verb, target, &e))
}

/// A field manager as part of a query. Names of managers are words with dashes, dots and slashes.
fn query(manager: &str) -> String {
    manager.replace('%', "%25").replace('/', "%2F").replace(' ', "%20")
}
