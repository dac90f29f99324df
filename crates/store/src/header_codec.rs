//! The form of a record on disk: length of the header, header as JSON, position and value of the revision, object.

use bytes::Bytes;

use crate::record::{Header, Key, Record};

/// Encodes all of a record but its key.
pub(crate) fn encode(record: &Record) -> Vec<u8> {
    let header = serde_json::to_vec(&record.header).unwrap_or_default();
    let mut out = Vec::with_capacity(header.len() + record.value.len() + 16);
    out.extend_from_slice(&u32::try_from(header.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend_from_slice(&record.rv_at.to_le_bytes());
    out.extend_from_slice(&record.revision.to_le_bytes());
    out.extend_from_slice(&header);
    out.extend_from_slice(&record.value);
    out
}

/// Decodes a record; `None` when the bytes are not one.
pub(crate) fn decode(key: Key, bytes: &[u8]) -> Option<Record> {
    let header_len = u32::from_le_bytes(bytes.get(0..4)?.try_into().ok()?) as usize;
    let rv_at = u32::from_le_bytes(bytes.get(4..8)?.try_into().ok()?);
    let revision = u64::from_le_bytes(bytes.get(8..16)?.try_into().ok()?);
    let header: Header = serde_json::from_slice(bytes.get(16..16 + header_len)?).ok()?;
    let value = Bytes::copy_from_slice(bytes.get(16 + header_len..)?);
    let digits = revision.to_string();
    let at = rv_at as usize;
    if value.get(at..at + digits.len())? != digits.as_bytes() {
        return None;
    }
    Some(Record {
        key,
        revision,
        header,
        value,
        rv_at,
    })
}

/// The key's form on disk: resource, a zero byte, namespace, a zero byte, name.
pub(crate) fn encode_key(key: &Key) -> Vec<u8> {
    let mut out = Vec::with_capacity(key.resource.len() + key.path.len() + 1);
    out.extend_from_slice(key.resource.as_bytes());
    out.push(0);
    out.extend_from_slice(key.path.as_bytes());
    out
}

/// Splits a key read from disk into resource, namespace and name.
pub(crate) fn decode_key(bytes: &[u8]) -> Option<(&str, &str, &str)> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut parts = text.splitn(3, '\0');
    Some((parts.next()?, parts.next()?, parts.next()?))
}
