//! The target of a write: kind, key and resource name.

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;

use super::Writer;
use super::body;
use super::send::Verb;
use crate::error::{ErrorKind, WriteError};
use crate::object::{Gvk, Object, ObjectKey, gvk_from, gvk_of};
use crate::seen::Seen;

/// The target of a write.
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

    /// Another object of the same kind.
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
    pub(super) async fn target_of_value(&self, verb: Verb, object: &Value) -> Result<Target, WriteError> {
        let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
        let gvk = gvk_from(&text(&object["apiVersion"]), &text(&object["kind"]));
        let meta = &object["metadata"];
        let key = ObjectKey::new(text(&meta["namespace"]), text(&meta["name"]));
        self.target(verb, gvk, key).await
    }

    pub(super) fn target(&self, verb: Verb, gvk: Gvk, key: ObjectKey) -> BoxFuture<'_, Result<Target, WriteError>> {
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

    /// The target of a write for a built-in kind, or for a kind so new that no cache has its definition.
    async fn discovered(&self, verb: Verb, gvk: Gvk, key: ObjectKey, unknown: &str) -> Result<Target, WriteError> {
        let (kind, why) = match self.ports.discovery.find(&self.ports.client, &gvk).await {
            Seen::Found(resource) => {
                let plural = resource.plural;
                return Ok(Target { gvk, key, plural });
            }
            Seen::NotFound => (ErrorKind::NotFound, unknown.to_owned()),
            Seen::Failed(why) => (ErrorKind::Transport, why),
        };
        Err(WriteError::new(kind, verb.word(), &gvk, &key, why))
    }
}
