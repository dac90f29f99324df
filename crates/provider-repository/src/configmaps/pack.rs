//! Packs files into ConfigMaps.

use std::collections::BTreeMap;
use std::io::Write as _;

use flate2::{Compression, GzBuilder};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use windlass_api_operator::annotations::COMPRESSED;
use windlass_api_operator::keys::{COMPONENTS, METADATA};
use windlass_api_operator::labels::{NAME, TYPE, VERSION};

use super::PART;
use crate::error::Error;
use crate::names::Names;
use crate::repository::Files;

/// API servers accept 1 MiB of values, and requests that are not much longer.
const LONGEST: usize = 1_000_000;

/// What to pack.
#[derive(Debug, Clone)]
pub struct Pack<'a> {
    /// The provider of the files.
    pub names: &'a Names,
    /// Their version.
    pub version: &'a str,
    /// The target namespace.
    pub namespace: &'a str,
    /// Labels in addition to the version's and the provider's, for a selector.
    pub labels: BTreeMap<String, String>,
}

/// The ConfigMaps with the files: one, compressed if necessary, or as many as needed.
pub fn pack(what: &Pack<'_>, files: &Files) -> Result<Vec<ConfigMap>, Error> {
    pack_within(what, files, LONGEST)
}

pub(super) fn pack_within(what: &Pack<'_>, files: &Files, longest: usize) -> Result<Vec<ConfigMap>, Error> {
    let proper = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if what.version.len() > 63 || !what.version.chars().all(proper) {
        return Err(Error::NoLabel {
            version: what.version.to_owned(),
        });
    }
    let metadata = BTreeMap::from([(METADATA.to_owned(), files.metadata.clone())]);
    if files.components.len() + files.metadata.len() <= longest {
        let mut map = empty(what, "");
        let mut data = metadata;
        data.insert(COMPONENTS.to_owned(), files.components.clone());
        map.data = Some(data);
        return Ok(vec![map]);
    }
    let compressed = compressed(files.components.as_bytes());
    let room = longest.saturating_sub(files.metadata.len()).max(1);
    let pieces: Vec<&[u8]> = compressed.chunks(room).collect();
    let piece = |(index, piece): (usize, &&[u8])| {
        let parts = pieces.len() > 1;
        let mut map = empty(
            what,
            &if parts {
                format!("-{}", index + 1)
            } else {
                String::new()
            },
        );
        let mut annotations = BTreeMap::from([(COMPRESSED.to_owned(), "true".to_owned())]);
        if parts {
            annotations.insert(PART.to_owned(), format!("{}/{}", index + 1, pieces.len()));
        }
        map.metadata.annotations = Some(annotations);
        map.data = (index == 0).then(|| metadata.clone());
        map.binary_data = Some(BTreeMap::from([(COMPONENTS.to_owned(), ByteString(piece.to_vec()))]));
        map
    };
    Ok(pieces.iter().enumerate().map(piece).collect())
}

fn empty(what: &Pack<'_>, suffix: &str) -> ConfigMap {
    let (family, name) = (what.names.type_().word(), what.names.name());
    let mut labels = what.labels.clone();
    for (key, value) in [(VERSION, what.version), (TYPE, family), (NAME, name)] {
        labels.insert(key.to_owned(), value.to_owned());
    }
    let name = format!("{family}-{name}-{}{suffix}", what.version)
        .to_ascii_lowercase()
        .replace('_', "-");
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(what.namespace.to_owned()),
            labels: Some(labels),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}

/// Compresses a text. The same text always gives the same bytes.
fn compressed(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzBuilder::new().write(Vec::new(), Compression::best());
    let written = encoder.write_all(text).and_then(|()| encoder.finish());
    written.unwrap_or_else(|error| unreachable!("writing to memory does not fail: {error}"))
}
