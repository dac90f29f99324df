//! Conversion of encoded objects, for every kind the same way.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_core::Resource as _;
use serde::Deserialize;
use serde_json::Value;
use windlass_api::codec::Codec;
use windlass_api::crd::older_version;
use windlass_api::kind::ApiKind;
use windlass_meta::GroupKind;

use crate::{gaps, head, list, position};

/// The annotation of an object in an older version that has its hub form as JSON, without the metadata.
pub const DATA: &str = "cluster.x-k8s.io/conversion-data";

/// Which version references of older versions name.
pub trait References {
    /// The apiVersion of a kind, by the contract labels of its CRD. The error says why it is not known, in words that follow a colon.
    fn api_version(&self, kind: &GroupKind) -> Result<String, String>;
}

/// Why an object cannot be converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ConversionError {
    /// Path of the field, such as `spec.infrastructureRef`. Empty for the object as a whole.
    pub field: String,
    /// What is wrong, and what is expected.
    pub message: String,
}

impl ConversionError {
    /// An error of a field.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            message: message.into(),
        }
    }
}

impl fmt::Display for ConversionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.field, self.message)
        }
    }
}

/// A kind in a version before the hub version.
pub trait Spoke: ApiKind {
    /// The kind in the hub version.
    type Hub: ApiKind;

    /// Whether an object in this version carries its hub form in [`DATA`]. Not if this version can express everything.
    const CARRIES_HUB: bool = true;
    /// Whether the API server warns of requests in this version.
    const DEPRECATED: bool = true;

    /// The object in the hub version, except for its metadata. `kept` is the hub form from which this object was made earlier, if it is known.
    fn into_hub(self, kept: Option<Self::Hub>) -> Result<Self::Hub, ConversionError>;

    /// The object in this version, except for its metadata. `namespace` is that of the object: references of older versions name it.
    fn from_hub(hub: Self::Hub, namespace: &str, references: &dyn References) -> Result<Self, ConversionError>;

    /// Brings the hub form that is carried in [`DATA`] into the form in which v1.14 writes it, if the hub type leaves a choice.
    fn carried(_hub: &mut Self::Hub) {}

    /// Moves what this version has in the metadata, and the hub version in a field.
    fn metadata_into_hub(_metadata: &mut ObjectMeta, _hub: &mut Self::Hub) {}

    /// Moves what the hub version has in a field, and this version in the metadata.
    fn metadata_from_hub(_hub: &Self::Hub, _metadata: &mut ObjectMeta) {}
}

/// A version before the hub version, as data.
#[derive(Clone, Copy, Debug)]
pub struct OlderVersion {
    /// The API group.
    pub group: &'static str,
    /// The version.
    pub version: &'static str,
    /// `GROUP/VERSION`.
    pub api_version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The resource name.
    pub plural: &'static str,
    /// `GROUP/VERSION` of the hub version.
    pub hub_version: &'static str,
    /// Creates the entry in `spec.versions` of the CRD.
    pub definition: fn() -> Value,
    to_hub: fn(&[u8]) -> Encoded,
    from_hub: fn(&[u8], &dyn References) -> Encoded,
}

/// An encoded object.
type Encoded = Result<Vec<u8>, ConversionError>;

impl OlderVersion {
    pub(crate) const fn of<S: Spoke>() -> Self {
        Self {
            group: S::GROUP,
            version: S::VERSION,
            api_version: S::API_VERSION,
            kind: S::KIND,
            plural: S::PLURAL,
            hub_version: <S::Hub as ApiKind>::API_VERSION,
            definition: || without_zero_defaults(older_version::<S>(S::DEPRECATED)),
            to_hub: to_hub::<S>,
            from_hub: from_hub::<S>,
        }
    }
}

/// A schema without defaults of Go's zero values. They stand for "always written" in the types of older versions; the server sets none of them.
fn without_zero_defaults(mut schema: Value) -> Value {
    fn is_zero(value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::Bool(flag) => !flag,
            Value::Number(number) => number.as_f64() == Some(0.0),
            Value::String(text) => text.is_empty() || text == "0s",
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.values().all(is_zero),
        }
    }
    fn strip(node: &mut Value) {
        match node {
            Value::Object(fields) => {
                let is_schema =
                    fields.contains_key("type") || fields.contains_key("x-kubernetes-preserve-unknown-fields");
                if is_schema && fields.get("default").is_some_and(is_zero) {
                    fields.remove("default");
                }
                // References of Kubernetes itself have published defaults.
                if fields.get("x-kubernetes-map-type") != Some(&Value::from("atomic")) {
                    fields.values_mut().for_each(strip);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    strip(&mut schema);
    schema
}

impl OlderVersion {
    /// An encoded object of this version in the hub version. References are not looked up for that.
    pub fn hub_form(&self, object: &[u8]) -> Result<Vec<u8>, ConversionError> {
        (self.to_hub)(object)
    }
}

/// The names in an object.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Names<'a> {
    #[serde(borrow, default)]
    api_version: std::borrow::Cow<'a, str>,
    #[serde(borrow, default)]
    kind: std::borrow::Cow<'a, str>,
}

/// The names in an object, which has to be JSON.
fn names(object: &[u8]) -> Result<Names<'_>, ConversionError> {
    serde_json::from_slice(object).map_err(|error| ConversionError::new("", format!("the object is not JSON: {error}")))
}

/// Converts an encoded object to another version of its kind. Metadata passes unchanged, except for the annotation [`DATA`].
pub fn convert(object: &[u8], wanted: &str, references: &dyn References) -> Result<Vec<u8>, ConversionError> {
    // API servers write the names first. A decoder finds what is no JSON as well, and then it is read again for the error.
    if let Some((from, kind)) = head::names(object).filter(|(from, _)| *from != wanted) {
        let converted = convert_named(object, from, kind, wanted, references);
        return converted.map_err(|error| names(object).err().unwrap_or(error));
    }
    let names = names(object)?;
    if names.api_version == wanted {
        return Ok(object.to_vec());
    }
    convert_named(object, &names.api_version, &names.kind, wanted, references)
}

fn convert_named(object: &[u8], from: &str, kind: &str, wanted: &str, references: &dyn References) -> Encoded {
    let unknown = |version: &str| {
        ConversionError::new(
            "apiVersion",
            format!(
                "no conversion of {kind} between {from} and {wanted} is known: {version} is not a version of the kind that is served"
            ),
        )
    };
    match (list::older(from, kind), list::older(wanted, kind)) {
        (Some(older), None) if older.hub_version == wanted => (older.to_hub)(object),
        (None, Some(to)) if to.hub_version == from => (to.from_hub)(object, references),
        (Some(older), Some(to)) if older.hub_version == to.hub_version => {
            let hub = (older.to_hub)(object)?;
            (to.from_hub)(&hub, references)
        }
        (Some(_), _) => Err(unknown(wanted)),
        (None, _) => Err(unknown(from)),
    }
}

/// The most structures that an object may have: each may take some kilobytes of memory, and any client can send many that are empty.
const STRUCTURES: usize = 100_000;

/// Refuses an object with too many structures, before they take memory.
fn check_structures(object: &[u8]) -> Result<(), ConversionError> {
    // Nearly all objects have few, also with the braces in their texts, which are counted many times faster.
    let braces = |part: &[u8]| part.iter().map(|byte| u8::from(*byte == b'{')).sum::<u8>();
    let most: usize = object.chunks(255).map(|part| usize::from(braces(part))).sum();
    if most <= STRUCTURES {
        return Ok(());
    }
    let mut count = 0_usize;
    let mut bytes = object.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'{' => count += 1,
            b'"' => {
                while let Some(byte) = bytes.next() {
                    match byte {
                        b'"' => break,
                        b'\\' => drop(bytes.next()),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    if count > STRUCTURES {
        let message = format!("the object has {count} structures: limit is {STRUCTURES}");
        return Err(ConversionError::new("", message));
    }
    Ok(())
}

fn decode<K: ApiKind>(object: &[u8]) -> Result<K, ConversionError> {
    check_structures(object)?;
    let failed = |object: &[u8], error: &serde_json::Error| {
        ConversionError::new(position::path(object, error.column()), position::reason(error))
    };
    match K::decode(object) {
        Ok(decoded) => Ok(decoded),
        Err(error) => match gaps::filled::<K>(object) {
            Some(filled) => K::decode(&filled).map_err(|error| failed(&filled, &error)),
            None => Err(failed(object, &error)),
        },
    }
}

fn encode<K: Codec>(object: &K) -> Encoded {
    object
        .encode()
        .map_err(|error| ConversionError::new("", format!("the object cannot be encoded: {error}")))
}

fn to_hub<S: Spoke>(object: &[u8]) -> Encoded {
    // In a version that never carries its hub form, the annotation is not ours.
    let taken = S::CARRIES_HUB.then(|| head::take_data(object)).flatten();
    let mut older: S = decode(taken.as_ref().map_or(object, |taken| &taken.rest))?;
    let mut metadata = std::mem::take(older.meta_mut());
    let left = metadata
        .annotations
        .as_mut()
        .filter(|_| S::CARRIES_HUB)
        .and_then(|annotations| annotations.remove(DATA));
    let data = left.or(taken.map(|taken| taken.data));
    let kept = data.map(|data| kept::<S::Hub>(&data)).transpose()?;
    let mut hub = older.into_hub(kept)?;
    S::metadata_into_hub(&mut metadata, &mut hub);
    drop_empty(&mut metadata);
    *hub.meta_mut() = metadata;
    encode(&hub)
}

/// Drops the map of labels or annotations with its last entry.
fn drop_empty(metadata: &mut ObjectMeta) {
    for map in [&mut metadata.labels, &mut metadata.annotations] {
        if map.as_ref().is_some_and(BTreeMap::is_empty) {
            *map = None;
        }
    }
}

fn kept<K: ApiKind>(data: &str) -> Result<K, ConversionError> {
    // Serde would also take an array, for the values of the fields in order.
    let hub = if data.trim_start().starts_with('{') {
        decode(data.as_bytes())
    } else {
        Err(ConversionError::new("", "expected an object as JSON"))
    };
    hub.map_err(|error| {
        ConversionError::new(
            format!("metadata.annotations[{DATA}]"),
            format!("{error}; remove the annotation to go on without the fields that only newer versions have"),
        )
    })
}

fn from_hub<S: Spoke>(object: &[u8], references: &dyn References) -> Encoded {
    let mut hub: S::Hub = decode(object)?;
    let mut metadata = std::mem::take(hub.meta_mut());
    let mut data = None;
    if S::CARRIES_HUB {
        S::carried(&mut hub);
        data = Some(carried(encode(&hub)?));
        // The text is long: it comes in when all the rest is encoded.
        metadata
            .annotations
            .get_or_insert_default()
            .insert(DATA.to_owned(), String::new());
    }
    S::metadata_from_hub(&hub, &mut metadata);
    let mut older = S::from_hub(hub, metadata.namespace.as_deref().unwrap_or_default(), references)?;
    *older.meta_mut() = metadata;
    let encoded = encode(&older)?;
    let Some(data) = data else { return Ok(encoded) };
    let carrying = head::with_data(&encoded, &data);
    carrying.ok_or_else(|| ConversionError::new("", "the object cannot be encoded: its annotations are lost"))
}

/// The text of the annotation: the encoded hub form without its empty metadata.
fn carried(mut encoded: Vec<u8>) -> Vec<u8> {
    const EMPTY: &[u8] = br#""metadata":{},"#;
    if let Some(at) = encoded.windows(EMPTY.len()).position(|bytes| bytes == EMPTY) {
        encoded.drain(at..at + EMPTY.len());
    }
    encoded
}
