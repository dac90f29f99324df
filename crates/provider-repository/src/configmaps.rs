//! Provider files in ConfigMaps, for management clusters without access to other sources.
//!
//! A ConfigMap has one version: the one in its label `provider.cluster.x-k8s.io/version`, or else its own name. It has the keys
//! `metadata` and `components`. Components that are too long for a ConfigMap are compressed with gzip, under the same key of
//! `binaryData`, with the annotation `provider.cluster.x-k8s.io/compressed: "true"`. If they are still too long, they are split
//! into pieces, one ConfigMap each, all with the version's label and with a counting annotation `provider.cluster.x-k8s.io/part:
//! "1/3"`. The pieces are joined before they are decompressed, and one of them has the metadata.
//!
//! All of this is pure: the caller has read the ConfigMaps, and no request is made.

mod pack;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;

use bytes::Bytes;
use flate2::read::GzDecoder;
use k8s_openapi::api::core::v1::ConfigMap;
use windlass_api_operator::annotations::COMPRESSED;
use windlass_api_operator::keys::{COMPONENTS, METADATA};
use windlass_api_operator::labels::VERSION;

use crate::content;
use crate::error::Error;
use crate::repository::Files;
use crate::version;

pub use pack::{Pack, pack};

/// The annotation of pieces: `2/3` is the second of three.
pub const PART: &str = "provider.cluster.x-k8s.io/part";
/// The size limit. No provider publishes longer files, and the declared size of compressed data is not trusted.
const LONGEST: u64 = 64 << 20;

/// The versions in ConfigMaps.
#[derive(Debug, Clone)]
pub struct Shelf<'a> {
    namespace: &'a str,
    versions: BTreeMap<String, Vec<&'a ConfigMap>>,
    problems: Vec<Error>,
}

/// Sorts the ConfigMaps that match a selector by version. They must be of one namespace.
pub fn read<'a>(found: &'a [ConfigMap], namespace: &'a str, selector: &str) -> Result<Shelf<'a>, Error> {
    if found.is_empty() {
        return Err(Error::NoConfigMaps {
            namespace: namespace.to_owned(),
            selector: selector.to_owned(),
        });
    }
    let mut shelf = Shelf {
        namespace,
        versions: BTreeMap::new(),
        problems: Vec::new(),
    };
    for map in found {
        let label = map.metadata.labels.as_ref().and_then(|labels| labels.get(VERSION));
        let name = map.metadata.name.as_deref().unwrap_or_default();
        let (version, from) = label.map_or((name, "its name"), |label| (label.as_str(), "its label"));
        if version::parse(version).is_some() {
            shelf.versions.entry(version.to_owned()).or_default().push(map);
        } else {
            let from = if from == "its label" {
                format!("its label {VERSION}")
            } else {
                from.to_owned()
            };
            shelf.problems.push(Error::ConfigMapVersion {
                config_map: name_of(map),
                version: version.to_owned(),
                from,
            });
        }
    }
    Ok(shelf)
}

impl Shelf<'_> {
    /// The versions, in rising order. They are validated when their files are read.
    pub fn versions(&self) -> Result<Vec<String>, Error> {
        let versions = version::sorted(self.versions.keys().cloned());
        match (versions.is_empty(), self.problems.first()) {
            (true, Some(problem)) => Err(problem.clone()),
            _ => Ok(versions),
        }
    }

    /// Errors of ConfigMaps without a version.
    pub fn problems(&self) -> &[Error] {
        &self.problems
    }

    /// The files of a version.
    pub fn files(&self, version: &str) -> Result<Files, Error> {
        let Some(maps) = self.versions.get(version) else {
            return Err(Error::VersionNotFound {
                place: format!("the selected ConfigMaps of namespace {:?}", self.namespace),
                version: version.to_owned(),
                available: self.versions()?,
            });
        };
        let parts = self.parts(version, maps)?;
        let first = parts[0];
        let mut joined = Vec::new();
        for &part in &parts {
            joined.extend_from_slice(raw(part, COMPONENTS).ok_or_else(|| missing(part, COMPONENTS))?);
        }
        let with_metadata = parts.iter().find_map(|&part| Some((part, raw(part, METADATA)?)));
        let (of, metadata) = with_metadata.ok_or_else(|| missing(first, METADATA))?;
        let what = |map: &ConfigMap, key: &str| format!("key {key:?} of ConfigMap {}", name_of(map));
        let says = parts.iter().any(|part| annotation(part, COMPRESSED) == Some("true"));
        // A missing annotation is tolerated: YAML never starts with a gzip header.
        let components = if says || joined.starts_with(&[0x1f, 0x8b]) {
            decompressed(first, &joined)?
        } else {
            joined
        };
        Ok(Files {
            components: content::text(&what(first, COMPONENTS), &components.into())?,
            metadata: content::text(&what(of, METADATA), &Bytes::copy_from_slice(metadata))?,
            from: format!("ConfigMap {}", name_of(first)),
        })
    }

    /// The ConfigMaps of a version in the order of their pieces; usually there is one.
    fn parts<'b>(&self, version: &str, maps: &[&'b ConfigMap]) -> Result<Vec<&'b ConfigMap>, Error> {
        let parsed: Vec<_> = maps.iter().map(|map| annotation(map, PART)).collect();
        if let ([map], [None]) = (maps, parsed.as_slice()) {
            return Ok(vec![*map]);
        }
        let ambiguous = |maps: &[&ConfigMap]| Error::Ambiguous {
            version: version.to_owned(),
            namespace: self.namespace.to_owned(),
            config_maps: maps.iter().filter_map(|map| map.metadata.name.clone()).collect(),
        };
        let wrong = |why: String| Error::Parts {
            version: version.to_owned(),
            namespace: self.namespace.to_owned(),
            why,
        };
        if parsed.contains(&None) {
            return Err(ambiguous(maps));
        }
        let mut totals = BTreeSet::new();
        let mut by_number: BTreeMap<usize, &'b ConfigMap> = BTreeMap::new();
        for (&map, part) in maps.iter().zip(parsed.into_iter().flatten()) {
            let numbers = part
                .split_once('/')
                .and_then(|(n, of)| Some((n.parse().ok()?, of.parse::<usize>().ok()?)));
            let Some((number, total)) = numbers.filter(|(number, total)| (1..=*total).contains(number)) else {
                return Err(wrong(format!(
                    "the annotation {PART}: {part:?} of {} does not read as 1/3 does",
                    name_of(map)
                )));
            };
            totals.insert(total);
            if let Some(twin) = by_number.insert(number, map) {
                return Err(ambiguous(&[twin, map]));
            }
        }
        let total = totals.last().copied().unwrap_or_default();
        if totals.len() > 1 {
            return Err(wrong("they do not agree on how many pieces there are".to_owned()));
        }
        // Not a loop up to the number in an annotation, which may be huge.
        if by_number.len() < total {
            let gap = (1..=total)
                .find(|number| !by_number.contains_key(number))
                .unwrap_or_default();
            return Err(wrong(format!("piece {gap} of {total} is missing")));
        }
        Ok(by_number.into_values().collect())
    }
}

fn name_of(map: &ConfigMap) -> String {
    let name = map.metadata.name.as_deref().unwrap_or_default();
    match &map.metadata.namespace {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    }
}

fn annotation<'a>(map: &'a ConfigMap, key: &str) -> Option<&'a str> {
    map.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

fn raw<'a>(map: &'a ConfigMap, key: &str) -> Option<&'a [u8]> {
    let text = map.data.as_ref().and_then(|data| data.get(key)).map(String::as_bytes);
    text.or_else(|| {
        map.binary_data
            .as_ref()
            .and_then(|data| data.get(key))
            .map(|bytes| bytes.0.as_slice())
    })
}

fn missing(map: &ConfigMap, key: &'static str) -> Error {
    let text = map.data.iter().flat_map(BTreeMap::keys);
    let binary = map.binary_data.iter().flat_map(BTreeMap::keys);
    Error::MissingKey {
        config_map: name_of(map),
        key,
        keys: text.chain(binary).cloned().collect(),
    }
}

fn decompressed(map: &ConfigMap, content: &[u8]) -> Result<Vec<u8>, Error> {
    let wrong = |why: String| Error::NotCompressed {
        config_map: name_of(map),
        why,
    };
    let mut text = Vec::new();
    let read = GzDecoder::new(content).take(LONGEST + 1).read_to_end(&mut text);
    read.map_err(|error| wrong(error.to_string()))?;
    if text.len() as u64 > LONGEST {
        return Err(wrong(format!("they are longer than {LONGEST} bytes")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
