//! Objects as the driver handles them: kinds known at compile time, dynamic objects, and their keys.

use std::any::TypeId;
use std::sync::Arc;

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize as _;
use serde_json::Value;
use windlass_api::codec::{Codec, LAST_APPLIED, Stored};
use windlass_api::meta::MetaExt as _;

pub use windlass_meta::{GroupKind, GroupVersionKind as Gvk, ObjectKey};

/// A kind known at compile time. Implemented for every such type that has a codec.
pub trait Object: kube::Resource<DynamicType = (), Scope: 'static> + Codec {}

impl<K: kube::Resource<DynamicType = (), Scope: 'static> + Codec> Object for K {}

/// The key of an object's metadata; empty parts where the metadata has none.
pub fn key_of(meta: &ObjectMeta) -> ObjectKey {
    ObjectKey {
        namespace: meta.namespace.clone().unwrap_or_default(),
        name: meta.name.clone().unwrap_or_default(),
    }
}

/// The group, version and kind of `K`.
pub fn gvk_of<K: Object>() -> Gvk {
    Gvk {
        group: K::group(&()).into_owned(),
        version: K::version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
    }
}

/// Whether objects of `K` are in namespaces.
pub(crate) fn is_namespaced<K: Object>() -> bool {
    TypeId::of::<K::Scope>() != TypeId::of::<ClusterResourceScope>()
}

/// Group, version and kind from `apiVersion` and `kind`.
pub fn gvk_from(api_version: &str, kind: &str) -> Gvk {
    Gvk::from_api_version(api_version, kind)
}

/// An object of a kind that is known at run time only: the whole JSON value, and its decoded metadata.
#[derive(Clone, Debug, PartialEq)]
pub struct Dynamic {
    value: Arc<Value>,
    meta: ObjectMeta,
}

impl Dynamic {
    /// Wraps an object. Fails when `metadata` is not an object's metadata.
    pub fn new(mut value: Value) -> Result<Self, serde_json::Error> {
        if let Some(meta) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            meta.remove("managedFields");
            if let Some(annotations) = meta.get_mut("annotations").and_then(Value::as_object_mut) {
                annotations.remove(LAST_APPLIED);
            }
        }
        let meta = match value.get("metadata") {
            Some(meta) => ObjectMeta::deserialize(meta)?,
            None => ObjectMeta::default(),
        };
        Ok(Self {
            value: Arc::new(value),
            meta,
        })
    }

    /// An object of a kind known at compile time, as read from a cache. The value is empty if the object cannot be encoded.
    pub fn of<K: Object>(object: &K) -> Self {
        Self {
            value: Arc::new(object.to_json()),
            meta: object.metadata().clone(),
        }
    }

    /// The whole object.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The whole object, to keep it without a copy.
    pub fn shared(&self) -> Arc<Value> {
        self.value.clone()
    }

    /// The object's metadata.
    pub fn metadata(&self) -> &ObjectMeta {
        &self.meta
    }

    /// Namespace and name.
    pub fn key(&self) -> ObjectKey {
        key_of(&self.meta)
    }

    /// The uid, empty for an object that is not stored.
    pub fn uid(&self) -> &str {
        self.meta.uid()
    }

    /// The name, empty for an object without one.
    pub fn name(&self) -> &str {
        self.meta.name()
    }

    /// `apiVersion` and `kind`.
    pub fn gvk(&self) -> Gvk {
        gvk_from(self.api_version(), self.kind())
    }

    /// The kind.
    pub fn kind(&self) -> &str {
        self.value.get("kind").and_then(Value::as_str).unwrap_or_default()
    }

    /// `group/version`.
    pub fn api_version(&self) -> &str {
        self.value.get("apiVersion").and_then(Value::as_str).unwrap_or_default()
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.meta.label(key)
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.meta.annotation(key)
    }

    /// True while the object is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.meta.is_deleting()
    }
}

impl Stored for Dynamic {
    fn metadata(&self) -> &ObjectMeta {
        &self.meta
    }

    fn encode(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&*self.value)
    }

    fn to_json(&self) -> Value {
        (*self.value).clone()
    }
}

impl Codec for Dynamic {
    fn decode(json: &[u8]) -> serde_json::Result<Self> {
        Self::new(serde_json::from_slice(json)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn dynamic_drops_managed_fields() {
        let object = Dynamic::new(json!({
            "apiVersion": "x.io/v1", "kind": "Foo",
            "metadata": {
                "name": "a", "namespace": "n", "managedFields": [{"manager": "m"}],
                "annotations": {LAST_APPLIED: "{}", "keep": "1"},
            },
        }))
        .unwrap();
        assert_eq!(object.value()["metadata"].get("managedFields"), None);
        assert_eq!(object.annotation(LAST_APPLIED), None);
        assert_eq!(object.annotation("keep"), Some("1"));
        assert_eq!(object.gvk(), gvk_from("x.io/v1", "Foo"));
    }
}
