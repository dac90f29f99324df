//! The form of objects in a response: whole, metadata only, or rows of a table.

use serde_json::{Value, json};
use windlass_store::Record;

use crate::error::ApiError;
use crate::objects::encoding::raw_metadata;

/// The form of objects in a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// Whole.
    Full,
    /// Only the metadata of an object.
    Metadata(Meta),
    /// Only the metadata of a list of objects.
    MetadataList(Meta),
    /// As rows of a table.
    Table(Meta, Include),
}

/// The version of the wrapper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meta {
    V1,
    V1beta1,
}

impl Meta {
    pub(crate) fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// The part of the object that its row includes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Include {
    /// The metadata.
    #[default]
    Metadata,
    /// The whole object.
    Object,
    /// Nothing.
    None,
}

impl Include {
    /// Parses the parameter; `None` if it has no valid value.
    pub(crate) fn parse(text: Option<&str>) -> Option<Self> {
        match text {
            None | Some("Metadata") => Some(Self::Metadata),
            Some("Object") => Some(Self::Object),
            Some("None") => Some(Self::None),
            Some(_) => None,
        }
    }
}

/// The kind of a response with only the metadata of an object.
pub(crate) const PARTIAL: &str = "PartialObjectMetadata";

/// Only the metadata of an object.
pub(crate) fn metadata_only(object: &Value, version: Meta) -> Value {
    json!({
        "kind": PARTIAL,
        "apiVersion": version.api_version(),
        "metadata": object.get("metadata").cloned().unwrap_or_else(|| json!({})),
    })
}

/// Appends the metadata of a stored object to a buffer.
pub(crate) fn put_metadata(record: &Record, version: Meta, out: &mut Vec<u8>) -> Result<(), ApiError> {
    let metadata = raw_metadata(record)?;
    let version = version.api_version();
    let start = format!("{{\"kind\":\"{PARTIAL}\",\"apiVersion\":\"{version}\",\"metadata\":{metadata}}}");
    out.extend_from_slice(start.as_bytes());
    Ok(())
}
