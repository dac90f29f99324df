//! Server-side apply: decides whether it would change anything, sends it, and records the result.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;
use windlass_api::codec::{Stored, parse};

use super::body::{self, Hash};
use super::send::{Answer, Call, Verb};
use super::{Target, Write, Writer, query};
use crate::cache::{Memo, Store};
use crate::error::{ErrorKind, WriteError};
use crate::guard::Need;
use crate::object::ObjectKey;

/// The target of an apply: an object, a subresource and a field manager.
#[derive(Clone, Copy)]
pub(super) struct To<'a> {
    pub(super) manager: &'a str,
    pub(super) target: &'a Target,
    pub(super) subresource: Option<&'a str>,
    /// Whether a cache of the kind in another version may show that the apply would change nothing: the caller needs no object.
    pub(super) any_version: bool,
}

/// All are boxed, so that they are compiled once.
impl Writer {
    /// Applies an object; `None` when nothing was sent.
    pub(super) fn apply_object<'a>(
        &'a self,
        to: To<'a>,
        desired: &'a dyn Stored,
    ) -> BoxFuture<'a, Result<Option<(Answer, Write)>, WriteError>> {
        async move {
            let json = desired.encode().map_err(|e| {
                let (gvk, key) = (&to.target.gvk, &to.target.key);
                WriteError::new(ErrorKind::Encoding, Verb::Apply.word(), gvk, key, e.to_string())
            })?;
            let text = body::hash_of_text(&json);
            if self.is_applied(to, text) {
                return Ok(None);
            }
            let body = body::for_apply(parse(&json));
            self.apply_known(to, body, Some(text)).await
        }
        .boxed()
    }

    /// [`Self::apply_object`] for a dynamic object.
    pub(super) fn apply_dynamic<'a>(
        &'a self,
        to: To<'a>,
        desired: &'a Value,
    ) -> BoxFuture<'a, Result<Option<(Answer, Write)>, WriteError>> {
        async move {
            let text = body::hash(desired);
            if self.is_applied(to, text) {
                return Ok(None);
            }
            let body = body::for_apply(desired.clone());
            self.apply_known(to, body, Some(text)).await
        }
        .boxed()
    }

    /// True if an apply has the same text as the one before, and the object has not changed since. Most reconciles need no more than this.
    fn is_applied(&self, to: To<'_>, text: Hash) -> bool {
        let store = self.store(to).filter(|store| !store.is_lost(&to.target.key));
        let is_applied = store.is_some_and(|store| is_known_text(&store, to, text));
        if is_applied {
            self.ports.metrics.write_skipped(self.controller);
        }
        is_applied
    }

    /// Applies a body; `None` when nothing was sent.
    pub(super) fn apply_body<'a>(
        &'a self,
        to: To<'a>,
        body: Value,
    ) -> BoxFuture<'a, Result<Option<(Answer, Write)>, WriteError>> {
        self.apply_known(to, body, None).boxed()
    }

    fn store(&self, to: To<'_>) -> Option<Arc<Store>> {
        let gvk = &to.target.gvk;
        let stores = self.ports.caches.holding(&gvk.group_kind());
        let of_version = stores.iter().find(|store| store.gvk() == gvk);
        of_version.or(stores.first().filter(|_| to.any_version)).cloned()
    }

    async fn apply_known(
        &self,
        to: To<'_>,
        mut body: Value,
        text: Option<Hash>,
    ) -> Result<Option<(Answer, Write)>, WriteError> {
        let target = to.target;
        let desired = body::desired_hash(&body);
        let store = self.store(to);
        let before = store.as_ref().and_then(|s| s.identity(&target.key));
        body::keep_order_of_finalizers(&mut body, || store.as_ref()?.value(&target.key));
        if let Some(store) = &store
            && !store.is_lost(&target.key)
            && is_known_unchanged(store, to, &body, desired, text)
        {
            self.ports.metrics.write_skipped(self.controller);
            return Ok(None);
        }
        let answer = self.send_apply(to, &mut body).await?;
        let after = (answer.uid().to_owned(), answer.version().to_owned());
        let changed = before.as_ref() != Some(&after);
        if let Some(store) = store {
            let live = (!changed)
                .then(|| store.value(&target.key))
                .flatten()
                .map(|live| body::live_hash(&live, to.subresource));
            let (uid, version) = after;
            let memo = Memo {
                desired,
                text,
                uid,
                version,
                live,
            };
            store.remember(&target.key, &slot(to), memo);
        }
        let outcome = if changed { Write::Changed } else { Write::Unchanged };
        Ok(Some((answer, outcome)))
    }

    /// Sends an apply, and restores `managedFields` that were lost.
    pub(super) async fn send_apply(&self, to: To<'_>, body: &mut Value) -> Result<Answer, WriteError> {
        let answer = self.send_only_apply(to, body).await?;
        self.reclaim(to, body, answer).await
    }

    /// Sends an apply.
    pub(super) async fn send_only_apply(&self, to: To<'_>, body: &mut Value) -> Result<Answer, WriteError> {
        let verb = if to.subresource.is_some() {
            Verb::ApplyStatus
        } else {
            Verb::Apply
        };
        self.lock_body(verb, to.target, body);
        let url = to.target.url(to.subresource);
        let call = Call {
            verb,
            target: to.target,
            url: format!("{url}?fieldManager={}&force=true", query(to.manager)),
            body: Some(body),
        };
        let answer = self.send_safe(&call).await?;
        self.note(to.target, &answer);
        Ok(answer)
    }

    /// Applies a status.
    pub(crate) async fn write_status(
        &self,
        manager: &str,
        target: &Target,
        uid: Option<&str>,
        status: Value,
    ) -> Result<Write, WriteError> {
        let to = To {
            manager,
            target,
            subresource: Some("status"),
            any_version: false,
        };
        let applied = self.apply_body(to, body::for_status(target, uid, status)).await?;
        Ok(applied.map_or(Write::Skipped, |(_, outcome)| outcome))
    }

    /// Makes the next reconcile wait until the caches have seen this.
    pub(super) fn note(&self, target: &Target, answer: &Answer) {
        let (gvk, key) = (&target.gvk, &target.key);
        self.journal.relock(gvk, key, answer.version(), answer.generation());
        let version = answer.version().parse().unwrap_or(0);
        let key = match answer.name() {
            Some(name) => ObjectKey::new(target.key.namespace.as_str(), name),
            None => target.key.clone(),
        };
        self.journal.wrote(&target.gvk, &key, Need::Version(version));
    }

    /// The cached object, for an apply that was not sent.
    pub(super) fn cached_value(&self, target: &Target) -> Result<Value, WriteError> {
        let stores = self.ports.caches.holding(&target.gvk.group_kind());
        let mut of_version = stores.iter().filter(|s| s.gvk() == &target.gvk);
        of_version.find_map(|store| store.value(&target.key)).ok_or_else(|| {
            // Deleted between the decision and now.
            let (gvk, key) = (&target.gvk, &target.key);
            WriteError::new(ErrorKind::NotFound, "read", gvk, key, "it was just deleted")
        })
    }
}

/// The key of the record of a manager's last apply to a part of an object.
fn slot(to: To<'_>) -> String {
    match to.subresource {
        Some(subresource) => format!("{}/{subresource}", to.manager),
        None => to.manager.to_owned(),
    }
}

/// True if exactly this text was applied last, and the object has not changed since.
fn is_known_text(store: &Store, to: To<'_>, text: Hash) -> bool {
    let memo = store.memo(&to.target.key, &slot(to));
    let live = store.identity(&to.target.key);
    memo.is_some_and(|memo| memo.text == Some(text) && live == Some((memo.uid, memo.version)))
}

/// True if the cached object and the record of the last apply show that applying `body` would change nothing.
fn is_known_unchanged(store: &Store, to: To<'_>, body: &Value, desired: Hash, text: Option<Hash>) -> bool {
    let key: &ObjectKey = &to.target.key;
    let slot = slot(to);
    // Without a record it is unknown which fields this manager owns, and whether one would have to be removed.
    let (Some((uid, version)), Some(memo)) = (store.identity(key), store.memo(key, &slot)) else {
        return false;
    };
    if memo.desired != desired || memo.uid != uid {
        return false;
    }
    let same = memo.version == version || {
        let Some(live) = store.value(key) else {
            return false;
        };
        let live_hash = || body::live_hash(&live, to.subresource);
        let is_in_live = || store.gvk() == &to.target.gvk && windlass_smd::differs(body, &live).is_none();
        is_in_live() || memo.live.is_some_and(|hash| hash == live_hash())
    };
    if same && (memo.version != version || memo.text != text) {
        let text = text.or(memo.text);
        store.remember(key, &slot, Memo { text, version, ..memo });
    }
    same
}
