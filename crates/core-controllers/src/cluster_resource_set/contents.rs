//! The contents of a resource: the objects in it, and their digest. Pure.

use std::fmt::Write as _;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use windlass_provider_components::manifest::{self, ManifestError};
use windlass_provider_components::object;

/// Kinds that others depend on, in the order in which they are created. All others come after them, in the order of the text.
const FIRST: [&str; 12] = [
    "Namespace",
    "CustomResourceDefinition",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Secret",
    "ConfigMap",
    "ServiceAccount",
    "LimitRange",
    "Pod",
    "ReplicaSet",
    "Endpoint",
];

/// What a resource has.
#[derive(Clone, PartialEq)]
pub struct Contents {
    /// Digest of all values, in the order of their keys: `sha256:...`.
    pub hash: String,
    /// The objects, in the order of their creation; or why they cannot be read.
    pub objects: Result<Arc<[Value]>, String>,
}

/// Objects may be secret.
impl std::fmt::Debug for Contents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let objects = self.objects.as_ref().map(|objects| objects.len());
        f.debug_struct("Contents")
            .field("hash", &self.hash)
            .field("objects", &objects)
            .finish()
    }
}

/// The contents of a ConfigMap: the values of `data`.
pub(super) fn of_config_map(map: &ConfigMap) -> Contents {
    let data = map.data.iter().flatten();
    of(
        data.map(|(key, value)| (key.as_str(), value.as_bytes())),
        &ManifestError::to_string,
    )
}

/// The contents of a Secret. No error shows a part of them.
pub(super) fn of_secret(secret: &Secret) -> Contents {
    let data = secret.data.iter().flatten();
    of(
        data.map(|(key, value)| (key.as_str(), value.0.as_slice())),
        &without_text,
    )
}

fn of<'a>(values: impl Iterator<Item = (&'a str, &'a [u8])>, say: &dyn Fn(&ManifestError) -> String) -> Contents {
    let mut hash = Sha256::new();
    let mut objects = Ok(Vec::new());
    let mut is_empty = true;
    for (key, value) in values {
        is_empty = false;
        hash.update(value);
        let found = objects_of(value, say).map_err(|why| format!("data[{key}]: {why}"));
        objects = match (objects, found) {
            (Ok(mut all), Ok(found)) => {
                all.extend(found);
                Ok(all)
            }
            (Err(why), _) | (Ok(_), Err(why)) => Err(why),
        };
    }
    let mut digest = "sha256:".to_owned();
    for byte in hash.finalize() {
        let _ = write!(digest, "{byte:02x}");
    }
    let objects = objects.map(Arc::from);
    Contents {
        hash: digest,
        objects: if is_empty {
            Err("it has no data".to_owned())
        } else {
            objects
        },
    }
}

/// The objects in a value, in the order of their creation.
fn objects_of(value: &[u8], say: &dyn Fn(&ManifestError) -> String) -> Result<Vec<Value>, String> {
    let text = std::str::from_utf8(value).map_err(|_| say(&ManifestError::Binary))?;
    let mut objects = manifest::parse_any(text).map_err(|error| say(&error))?;
    objects.sort_by_key(|one| {
        let place = FIRST.iter().position(|kind| *kind == object::kind(one));
        place.unwrap_or(FIRST.len())
    });
    Ok(objects)
}

/// An error without the text that it is about.
fn without_text(error: &ManifestError) -> String {
    match error {
        ManifestError::Syntax { document, line, .. } => format!("document {document}, line {line}: it is not YAML"),
        ManifestError::Missing {
            document, line, field, ..
        } => format!("document {document}, line {line}: an object has no {field}, which must be a text"),
        ManifestError::Twice { first, second, .. } => {
            format!("line {second}: an object is there twice, first in line {first}")
        }
        ManifestError::Empty
        | ManifestError::Html { .. }
        | ManifestError::Binary
        | ManifestError::Tab { .. }
        | ManifestError::Truncated { .. }
        | ManifestError::NotAnObject { .. } => error.to_string(),
    }
}
