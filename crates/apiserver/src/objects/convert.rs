//! Conversion between the stored form of an object and a served version.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use windlass_meta::beginning;
use windlass_meta::budget::{OBJECT_BYTES, OBJECT_DEPTH, PATH_BYTES};
use windlass_store::{Draft, Record};

use crate::crds::registry::Custom;
use crate::error::ApiError;
use crate::objects::conversion::Conversion;
use crate::objects::encoding::{decode, draft, revision_at};
use crate::objects::resource::Resource;
use crate::state::Inner;

/// The beginning of every stored object.
const START: &[u8] = b"{\"apiVersion\":\"";

fn set_version(object: &mut Value, api_version: &str) {
    if let Some(map) = object.as_object_mut() {
        map.insert("apiVersion".into(), api_version.into());
    }
}

/// Converts an object of the served version to the stored form.
pub(crate) fn to_storage(resource: &Resource, object: &mut Value) {
    if let Some(form) = &resource.strategy.stored {
        (form.to_storage)(object);
    }
    set_version(object, &resource.storage_api_version);
}

/// Converts a stored object to the served version.
pub(crate) fn from_storage(resource: &Resource, object: &mut Value) {
    if let Some(form) = &resource.strategy.stored {
        (form.from_storage)(object);
    }
    set_version(object, resource.api_version());
}

/// Whether a stored object needs no other change than its apiVersion.
pub(crate) fn is_ready(resource: &Resource, record: &Record) -> bool {
    let Some(conversion) = resource.conversion.as_deref() else {
        return true;
    };
    let stored = api_version_of(record);
    let wanted = resource.api_version();
    !is_misshapen(conversion, record) && (stored == wanted || conversion.is_same(stored, wanted))
}

/// Whether the schema of its version may have changed since an object was written.
fn is_misshapen(conversion: &Conversion, record: &Record) -> bool {
    let schema = || conversion.schema(api_version_of(record));
    record.revision <= conversion.since && schema().is_some_and(|schema| schema.shapes())
}

/// The apiVersion of a stored object.
pub(crate) fn api_version_of(record: &Record) -> &str {
    let rest = record.value.get(START.len()..).unwrap_or_default();
    let end = rest.iter().position(|b| *b == b'"').unwrap_or(0);
    std::str::from_utf8(&rest[..end]).unwrap_or("")
}

/// Prepares stored objects to be served: applies current defaults, drops fields that are not in the current schema, and converts
/// by webhook if the definition has one. Objects that need none of this, usually all, are unchanged. All objects that need
/// conversion are converted in one call.
pub(crate) async fn bring(
    server: &Inner,
    resource: &Resource,
    mut records: Vec<Arc<Record>>,
) -> Result<Vec<Arc<Record>>, ApiError> {
    let Some(conversion) = resource.conversion.as_deref() else {
        return Ok(records);
    };
    let wanted = resource.api_version();
    let (mut places, mut foreign) = (Vec::new(), Vec::new());
    let definitions = server.registry();
    for (place, record) in records.iter_mut().enumerate() {
        if is_ready(resource, record) {
            continue;
        }
        if let Some(converted) = convert_record(&definitions, conversion, record, wanted) {
            *record = Arc::new(converted?);
            continue;
        }
        let mut object = decode(record)?;
        if record.revision <= conversion.since {
            shape(conversion, &mut object);
        }
        if windlass_objects::metadata::text(&object, "apiVersion") == wanted {
            *record = Arc::new(record.in_form(draft(&object)));
        } else {
            places.push(place);
            foreign.push(object);
        }
    }
    if foreign.is_empty() {
        return Ok(records);
    }
    let converted = conversion.convert(server, foreign, wanted).await?;
    for (place, mut object) in places.into_iter().zip(converted) {
        tidy(conversion, &mut object);
        records[place] = Arc::new(records[place].in_form(draft(&object)));
    }
    Ok(records)
}

/// The form of a stored object in a version that is converted in this process; `None` if it is converted in another way, or not at all.
fn convert_record(
    definitions: &Custom,
    conversion: &Conversion,
    record: &Record,
    wanted: &str,
) -> Option<Result<Record, ApiError>> {
    let stored = api_version_of(record);
    if !conversion.is_in_process(stored, wanted) {
        return None;
    }
    let convert = || {
        let shaped;
        let mut object = &record.value;
        if is_misshapen(conversion, record) {
            let mut value = decode(record)?;
            shape(conversion, &mut value);
            shaped = record.in_form(draft(&value)).value;
            object = &shaped;
        }
        let encoded = conversion.encoded(definitions, object, stored, wanted);
        let encoded = encoded.unwrap_or_else(|| Ok(object.to_vec()))?;
        let at = revision_at(&encoded).and_then(|at| u32::try_from(at).ok());
        match at.filter(|_| encoded.starts_with(START)) {
            Some(at) => Ok(record.encoded(encoded, at)),
            None => Err(ApiError::internal(format!(
                "object {:?} has no revision after its conversion to {wanted}",
                record.key
            ))),
        }
    };
    Some(convert())
}

/// Whether a stored object is converted to the served version in this process.
pub(crate) fn is_in_process(resource: &Resource, record: &Record) -> bool {
    let conversion = resource.conversion.as_deref();
    conversion.is_some_and(|known| known.is_in_process(api_version_of(record), resource.api_version()))
}

/// A stored object in the served version, if it is converted in this process at most: for what cannot wait. An object that only a webhook
/// can convert stays as it is.
pub(crate) fn brought_now(server: &Inner, resource: &Resource, record: &Arc<Record>) -> Result<Arc<Record>, ApiError> {
    let Some(conversion) = resource.conversion.as_deref().filter(|_| !is_ready(resource, record)) else {
        return Ok(Arc::clone(record));
    };
    let converted = convert_record(&server.registry(), conversion, record, resource.api_version());
    converted.map_or_else(|| Ok(Arc::clone(record)), |converted| converted.map(Arc::new))
}

/// An object of one version of a resource in another one, if it is converted in this process at most.
pub(crate) fn across_now(
    server: &Inner,
    from: &Resource,
    to: &Resource,
    object: &Value,
) -> Result<Option<Value>, ApiError> {
    let conversion = from.conversion.as_deref();
    let converted = conversion.and_then(|known| known.decoded(&server.registry(), object, to.api_version()));
    converted.transpose()
}

/// [`bring`] for one object.
pub(crate) async fn bring_one(
    server: &Inner,
    resource: &Resource,
    record: Arc<Record>,
) -> Result<Arc<Record>, ApiError> {
    if is_ready(resource, &record) {
        return Ok(record);
    }
    let mut brought = bring(server, resource, vec![Arc::clone(&record)]).await?;
    Ok(brought.pop().unwrap_or(record))
}

/// Drops fields that are not in the schema of its version.
fn tidy(conversion: &Conversion, object: &mut Value) {
    let version = windlass_objects::metadata::text(object, "apiVersion").to_owned();
    if let Some(schema) = conversion.schema(&version) {
        windlass_schema::prune(schema, object);
        windlass_schema::drop_nulls(schema, object);
    }
}

/// Applies the schema of its version to an object.
fn shape(conversion: &Conversion, object: &mut Value) {
    let version = windlass_objects::metadata::text(object, "apiVersion").to_owned();
    if let Some(schema) = conversion.schema(&version) {
        windlass_schema::prune(schema, object);
        windlass_schema::default(schema, object);
        windlass_schema::drop_nulls(schema, object);
    }
}

/// Converts an object from one version of a resource to another.
pub(crate) async fn across(
    server: &Inner,
    from: &Resource,
    to: &Resource,
    mut object: Value,
) -> Result<Value, ApiError> {
    let (is, wanted) = (from.api_version(), to.api_version());
    let Some(conversion) = from.conversion.as_deref().filter(|c| !c.is_same(is, wanted)) else {
        to_storage(from, &mut object);
        from_storage(to, &mut object);
        return Ok(object);
    };
    let converted = conversion.convert(server, vec![object], wanted).await?;
    Ok(converted.into_iter().next().unwrap_or_default())
}

/// Encodes an object of the served version for the store. An object that is stored in more bytes than one may have can become smaller:
/// `before` are the bytes of the one that it replaces.
pub(crate) async fn stored_form(
    server: &Inner,
    resource: &Resource,
    object: &Value,
    before: usize,
) -> Result<Draft, ApiError> {
    let wanted = &resource.storage_api_version;
    let is = resource.api_version();
    if !resource.converts() && is == *wanted && windlass_objects::metadata::text(object, "apiVersion") == is {
        return readable_draft(object, before);
    }
    let mut stored = object.clone();
    match foreign(resource) {
        Some(conversion) => {
            let is_in_process = conversion.is_in_process(is, wanted);
            stored = converted(server, conversion, stored, wanted).await?;
            if is_in_process {
                // What is stored now is not defaulted again when it is read.
                shape(conversion, &mut stored);
            }
        }
        None => to_storage(resource, &mut stored),
    }
    readable_draft(&stored, before)
}

/// Encodes an object that can be read again.
fn readable_draft(object: &Value, before: usize) -> Result<Draft, ApiError> {
    if let Some(path) = windlass_smd::deeper_than(object, OBJECT_DEPTH) {
        let path = beginning(path.trim_start_matches('.'), PATH_BYTES);
        return Err(ApiError::bad_request(format!(
            "the object is nested more than {OBJECT_DEPTH} levels deep, with its managed fields, at {path}"
        )));
    }
    let draft = draft(object);
    fits(draft.value.len(), before)?;
    Ok(draft)
}

/// For writes whose object may have any size: a deletion adds a timestamp, and has to be possible.
pub(crate) const ANY_SIZE: usize = usize::MAX;

/// Refuses an object with too many bytes. Each limit of a request assumes that what it changes is no larger than what it may send.
fn fits(size: usize, before: usize) -> Result<(), ApiError> {
    if size <= OBJECT_BYTES.max(before) {
        return Ok(());
    }
    Err(ApiError::new(
        413,
        "RequestEntityTooLarge",
        format!("the object would have {size} bytes, with its managed fields: limit is {OBJECT_BYTES}"),
    ))
}

/// The object of the served version as a later read would return it. This is the response to a dry run.
pub(crate) async fn as_if_stored(
    server: &Inner,
    resource: &Resource,
    object: Value,
    before: usize,
) -> Result<Value, ApiError> {
    fits(draft(&object).value.len(), before)?;
    let Some(conversion) = foreign(resource) else {
        return Ok(object);
    };
    let stored = converted(server, conversion, object, &resource.storage_api_version).await?;
    converted(server, conversion, stored, resource.api_version()).await
}

/// The conversion between the served and the stored version, if it may change more than the apiVersion.
fn foreign(resource: &Resource) -> Option<&Conversion> {
    let (is, wanted) = (resource.api_version(), &resource.storage_api_version);
    let conversion = resource.conversion.as_deref()?;
    (is != *wanted && !conversion.is_same(is, wanted)).then_some(conversion)
}

async fn converted(server: &Inner, conversion: &Conversion, object: Value, wanted: &str) -> Result<Value, ApiError> {
    let mut objects = conversion.convert(server, vec![object], wanted).await?;
    let mut object = objects.pop().unwrap_or(Value::Null);
    tidy(conversion, &mut object);
    Ok(object)
}

/// Decodes a stored object into the form of the served version.
pub(crate) fn served(resource: &Resource, record: &Record) -> Result<Value, ApiError> {
    let mut object = decode(record)?;
    from_storage(resource, &mut object);
    Ok(object)
}

/// Whether a stored object already has a version, and where the version ends in its encoding.
fn version_in(value: &[u8], wanted: &str) -> (bool, usize) {
    let rest = value.get(START.len()..).unwrap_or_default();
    if rest.starts_with(wanted.as_bytes()) && rest.get(wanted.len()) == Some(&b'"') {
        return (true, START.len() + wanted.len());
    }
    let end = rest.iter().position(|b| *b == b'"').unwrap_or(0);
    (false, START.len() + end)
}

/// The encoding of a stored object in the served version: usually the stored bytes themselves.
pub(crate) fn served_bytes(resource: &Resource, record: &Record) -> Result<Bytes, ApiError> {
    if !resource.converts() && version_in(&record.value, resource.api_version()).0 {
        return Ok(record.value.clone());
    }
    let mut out = Vec::with_capacity(record.value.len() + resource.api_version().len());
    put_served(resource, record, &mut out)?;
    Ok(out.into())
}

/// The encoding of a stored object in the served version in two parts. The second one is shared with the store. `None` if the object has to
/// be decoded.
pub(crate) fn served_parts(resource: &Resource, record: &Record) -> Option<(Vec<u8>, Bytes)> {
    if resource.converts() {
        return None;
    }
    let wanted = resource.api_version();
    let (_, end) = version_in(&record.value, wanted);
    let rest = record.value.slice(end.min(record.value.len())..);
    Some(([START, wanted.as_bytes()].concat(), rest))
}

/// [`served_bytes`], appended to a buffer.
pub(crate) fn put_served(resource: &Resource, record: &Record, out: &mut Vec<u8>) -> Result<(), ApiError> {
    let wanted = resource.api_version();
    if resource.converts() {
        let object = served(resource, record)?;
        return serde_json::to_writer(out, &object).map_err(ApiError::internal);
    }
    let (is_wanted, end) = version_in(&record.value, wanted);
    if is_wanted {
        out.extend_from_slice(&record.value);
    } else {
        out.extend_from_slice(START);
        out.extend_from_slice(wanted.as_bytes());
        out.extend_from_slice(record.value.get(end..).unwrap_or_default());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_found_where_objects_begin() {
        let check = |value: &str, wanted: &str, is_wanted: bool, rest: &str| {
            let (is, end) = version_in(value.as_bytes(), wanted);
            assert_eq!((is, &value[end..]), (is_wanted, rest));
        };
        check(r#"{"apiVersion":"a/v1","kind":"A"}"#, "a/v1", true, r#"","kind":"A"}"#);
        check(
            r#"{"apiVersion":"a/v1","kind":"A"}"#,
            "a/v1beta1",
            false,
            r#"","kind":"A"}"#,
        );
        check(
            r#"{"apiVersion":"a/v1beta1","kind":"A"}"#,
            "a/v1",
            false,
            r#"","kind":"A"}"#,
        );
    }
}
