//! Reading and writing objects as JSON, compiled once for each kind.
//!
//! `serde` is generic: every crate that decodes a kind by it compiles the whole decoder of the kind again. So the crate that has a type
//! implements [`Codec`] for it (by [`api_kind!`](crate::api_kind) or [`codec!`](crate::codec!)) as plain functions, and everything that
//! caches, reads and writes objects calls these.

use std::any::Any;
use std::fmt::Debug;
use std::str::Utf8Error;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::{DeserializeOwned, Error as _};
use serde_json::{Error, Result, Value};

/// The annotation in which `kubectl apply` without server-side apply keeps a second copy of the object.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// An object of any kind, as caches hold it.
pub trait Stored: Any + Debug + Send + Sync {
    /// The object's metadata.
    fn metadata(&self) -> &ObjectMeta;

    /// The object as JSON text.
    fn encode(&self) -> Result<Vec<u8>>;

    /// The object as a JSON value; `null` when it cannot be encoded.
    fn to_json(&self) -> Value {
        self.encode().map_or(Value::Null, |json| parse(&json))
    }
}

/// A type that objects are read into and written from.
pub trait Codec: Stored + Clone + Sized {
    /// Reads an object from JSON text. Nothing is left out, but unknown fields.
    fn decode(json: &[u8]) -> Result<Self>;

    /// [`Self::decode`] for a cache: without managed fields and the copy that `kubectl apply` leaves, which no controller reads.
    /// A type that keeps only a part of an object has left that out already.
    fn decode_stored(json: &[u8]) -> Result<Arc<dyn Stored>> {
        Ok(Arc::new(Self::decode(json)?))
    }

    /// Reads an object from a JSON value.
    fn from_json(value: &Value) -> Result<Self> {
        Self::decode(&serde_json::to_vec(value)?)
    }
}

/// A part of an object, such as a status, that is written as a JSON value.
pub trait Part {
    /// The part as a JSON value; `null` when it cannot be encoded.
    fn to_json(&self) -> Value;
}

/// A JSON value from text; `null` when it is none.
#[doc(hidden)]
pub fn parse(json: &[u8]) -> Value {
    serde_json::from_slice(json).unwrap_or_default()
}

/// Reads a value from JSON text. The text is checked at once: checking each of its strings takes a tenth of all the time.
#[doc(hidden)]
#[inline]
pub fn read<T: DeserializeOwned>(json: &[u8]) -> Result<T> {
    match std::str::from_utf8(json) {
        Ok(text) => serde_json::from_str(text),
        Err(error) => Err(not_text(json, error)),
    }
}

/// The error of JSON that is no text.
#[cold]
fn not_text(json: &[u8], error: Utf8Error) -> Error {
    let read: Result<Value> = serde_json::from_slice(json);
    read.err().unwrap_or_else(|| Error::custom(error))
}

/// Drops what no controller reads.
#[doc(hidden)]
pub fn strip(metadata: &mut ObjectMeta) {
    metadata.managed_fields = None;
    if let Some(annotations) = &mut metadata.annotations {
        annotations.remove(LAST_APPLIED);
    }
}

/// Implements [`Codec`] for types with a field `metadata` that `serde` can read and write.
#[macro_export]
macro_rules! codec {
    ($($kind:ty),+ $(,)?) => {
        $(
            impl $crate::codec::Stored for $kind {
                fn metadata(&self) -> &$crate::macro_support::ObjectMeta {
                    &self.metadata
                }

                #[inline(never)]
                fn encode(&self) -> $crate::macro_support::serde_json::Result<Vec<u8>> {
                    $crate::macro_support::serde_json::to_vec(self)
                }
            }

            impl $crate::codec::Codec for $kind {
                #[inline(never)]
                fn decode(json: &[u8]) -> $crate::macro_support::serde_json::Result<Self> {
                    $crate::codec::read(json)
                }

                #[inline(never)]
                fn decode_stored(
                    json: &[u8],
                ) -> $crate::macro_support::serde_json::Result<::std::sync::Arc<dyn $crate::codec::Stored>> {
                    let mut object = Self::decode(json)?;
                    $crate::codec::strip(&mut object.metadata);
                    Ok(::std::sync::Arc::new(object))
                }
            }
        )+
    };
}

/// Implements [`Part`] for types that `serde` can write.
#[macro_export]
macro_rules! parts {
    ($($part:ty),+ $(,)?) => {
        $(
            impl $crate::codec::Part for $part {
                #[inline(never)]
                fn to_json(&self) -> $crate::macro_support::Value {
                    $crate::macro_support::serde_json::to_vec(self)
                        .map_or($crate::macro_support::Value::Null, |json| $crate::codec::parse(&json))
                }
            }
        )+
    };
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::core::Machine;

    #[test]
    fn caches_do_not_hold_what_no_controller_reads() {
        let json = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "metadata": {
                "name": "a", "namespace": "n", "managedFields": [{"manager": "m"}],
                "annotations": {LAST_APPLIED: "{}", "keep": "1"},
            },
            "spec": {"clusterName": "c", "bootstrap": {"dataSecretName": "d"}, "infrastructureRef": {"apiGroup": "g", "kind": "K", "name": "i"}},
        });
        let text = serde_json::to_vec(&json).unwrap();
        let whole = Machine::decode(&text).unwrap();
        assert_eq!(whole.metadata.managed_fields.as_ref().map(Vec::len), Some(1));
        let stored = Machine::decode_stored(&text).unwrap().to_json();
        assert_eq!(stored["metadata"]["managedFields"], Value::Null);
        assert_eq!(stored["metadata"]["annotations"], json!({"keep": "1"}));
        assert_eq!(stored["spec"], json["spec"]);
        assert_eq!(Machine::from_json(&json).unwrap(), whole);
    }

    #[test]
    fn what_is_no_text_is_no_object() {
        let check = |json: &[u8], expect: &str| {
            let error = Machine::decode(json).unwrap_err().to_string();
            assert!(error.starts_with(expect), "{error}");
        };
        check(b"{\"spec\":{\"clusterName\":\"\xff\"}}", "invalid unicode code point");
        check(b"{\"spec\":{}}\xff", "trailing characters");
        check(b"{\"spec\":7}", "invalid type");
    }
}
