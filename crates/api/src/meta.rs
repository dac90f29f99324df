//! Reading an object's metadata: what is not set reads as empty.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::Timestamp;

/// Access to [`ObjectMeta`] without its options.
pub trait MetaExt {
    /// The name; empty for an object that has none yet.
    fn name(&self) -> &str;
    /// The namespace; empty for what lives in none.
    fn namespace(&self) -> &str;
    /// The uid; empty for an object that is not stored.
    fn uid(&self) -> &str;
    /// The value of a label.
    fn label(&self, key: &str) -> Option<&str>;
    /// The value of an annotation.
    fn annotation(&self, key: &str) -> Option<&str>;
    /// Whether there is such an annotation, whatever its value.
    fn has_annotation(&self, key: &str) -> bool {
        self.annotation(key).is_some()
    }
    /// When the object was created; the end of time for one that is not stored.
    fn created(&self) -> Timestamp;
    /// Whether its deletion has begun.
    fn is_deleting(&self) -> bool;
}

impl MetaExt for ObjectMeta {
    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }

    fn uid(&self) -> &str {
        self.uid.as_deref().unwrap_or_default()
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.labels.as_ref()?.get(key).map(String::as_str)
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.as_ref()?.get(key).map(String::as_str)
    }

    fn created(&self) -> Timestamp {
        self.creation_timestamp.as_ref().map_or(Timestamp::MAX, |time| time.0)
    }

    fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }
}
