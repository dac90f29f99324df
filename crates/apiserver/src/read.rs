//! get and list.

use std::sync::Arc;

use base64::Engine as _;
use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};
use windlass_store::{ListQuery, Record};

use crate::accept::View;
use crate::body::{ApiBody, json_bytes};
use crate::convert::{put_served, served, served_bytes};
use crate::error::ApiError;
use crate::request::{ListOptions, VersionMatch};
use crate::resource::Resource;
use crate::selector::field_text;
use crate::server::Inner;
use crate::table;

/// Only the metadata of an object.
pub(crate) fn metadata_only(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": object.get("metadata").cloned().unwrap_or_else(|| json!({})),
    })
}

/// Answers with one stored object.
pub(crate) fn answer(
    server: &Inner,
    resource: &Resource,
    record: &Record,
    view: View,
    code: u16,
) -> Result<Response<ApiBody>, ApiError> {
    if view == View::Full {
        return Ok(json_bytes(code, served_bytes(resource, record)?));
    }
    Ok(answer_value(server, resource, &served(resource, record)?, view, code))
}

/// Answers with one object.
pub(crate) fn answer_value(
    server: &Inner,
    resource: &Resource,
    object: &Value,
    view: View,
    code: u16,
) -> Response<ApiBody> {
    match view {
        View::Full => crate::body::json(code, object),
        View::Metadata => crate::body::json(code, &metadata_only(object)),
        View::Table => {
            let meta = json!({"resourceVersion": crate::object::meta(object, "resourceVersion")});
            let rows = vec![table::row(resource, object, server.now(), table::Include::Metadata)];
            crate::body::json(code, &table::table(resource, &rows, &meta))
        }
    }
}

/// One stored object.
pub(crate) fn find(server: &Inner, resource: &Resource, namespace: &str, name: &str) -> Result<Arc<Record>, ApiError> {
    server
        .store
        .get(&resource.storage, namespace, name)
        .ok_or_else(|| ApiError::not_found(&resource.group, &resource.plural, name))
}

/// Refuses field selectors that the resource does not have.
pub(crate) fn check_fields(resource: &Resource, options: &ListOptions) -> Result<(), ApiError> {
    for term in &options.fields.0 {
        let known = term.field == "metadata.name"
            || (term.field == "metadata.namespace" && resource.namespaced)
            || resource.selectable.iter().any(|(label, _)| *label == term.field);
        if !known {
            return Err(ApiError::bad_request(format!(
                "field label not supported: {}",
                term.field
            )));
        }
    }
    Ok(())
}

/// Whether a stored object is selected.
pub(crate) fn selected(resource: &Resource, options: &ListOptions, record: &Record) -> bool {
    if !options.labels.matches(&record.header.labels) {
        return false;
    }
    let mut decoded: Option<Value> = None;
    options.fields.0.iter().all(|term| {
        let equal = match term.field.as_str() {
            "metadata.name" => record.key.name() == term.value,
            "metadata.namespace" => record.key.namespace() == term.value,
            field => {
                let object = decoded.get_or_insert_with(|| served(resource, record).unwrap_or(Value::Null));
                selectable_text(resource, field, object) == term.value
            }
        };
        equal == term.equal
    })
}

fn selectable_text(resource: &Resource, field: &str, object: &Value) -> String {
    match (resource.kind.as_str(), field) {
        // The event selector "source" looks into two places.
        ("Event", "source") => {
            let text = field_text(object, "source.component");
            if text.is_empty() {
                field_text(object, "reportingComponent")
            } else {
                text
            }
        }
        ("Node", "spec.unschedulable") => {
            let text = field_text(object, field);
            if text.is_empty() { "false".to_owned() } else { text }
        }
        ("ReplicaSet", "status.replicas") | ("Job", "status.successful") => {
            let text = field_text(object, field);
            if text.is_empty() { "0".to_owned() } else { text }
        }
        _ => field_text(object, field),
    }
}

const TOO_OLD: &str = "The provided continue parameter is too old to display a consistent list result. You must start a new list without the continue parameter.";

/// Where a continued list goes on.
struct Continue {
    revision: u64,
    namespace: String,
    name: String,
}

fn encode_continue(revision: u64, record: &Record) -> String {
    let text = json!({"v": "meta.k8s.io/v1", "rv": revision, "ns": record.key.namespace(), "start": record.key.name()});
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text.to_string())
}

/// Refuses a token that no list has given out.
pub(crate) fn check_continue(token: Option<&str>) -> Result<(), ApiError> {
    token.map_or(Ok(()), |token| decode_continue(token).map(drop))
}

fn decode_continue(token: &str) -> Result<Continue, ApiError> {
    let bad = || ApiError::bad_request("continue key is not valid: it was not made by this server");
    let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD
        .decode(token)
        .map_err(|_| bad())?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|_| bad())?;
    Ok(Continue {
        revision: value.get("rv").and_then(Value::as_u64).ok_or_else(bad)?,
        namespace: crate::object::text(&value, "ns").to_owned(),
        name: crate::object::text(&value, "start").to_owned(),
    })
}

/// A page of a list.
pub(crate) struct Listed {
    pub(crate) revision: u64,
    pub(crate) items: Vec<Arc<Record>>,
    continues: Option<String>,
    remaining: Option<usize>,
}

/// Finds what a list asks for.
pub(crate) fn collect(
    server: &Inner,
    resource: &Resource,
    namespace: Option<&str>,
    options: &ListOptions,
) -> Result<Listed, ApiError> {
    check_fields(resource, options)?;
    let namespace = namespace.or_else(|| {
        resource
            .namespaced
            .then(|| options.fields.exact("metadata.namespace"))
            .flatten()
    });
    let token = options.continues.as_deref().map(decode_continue).transpose()?;
    let current = server.store.revision();
    if options.revision.is_some_and(|rv| rv > current) && token.is_none() {
        return Err(too_large(options.revision.unwrap_or(0), current));
    }
    if token.as_ref().is_some_and(|token| token.revision > current) {
        // Of a server that has forgotten everything since.
        return Err(ApiError::expired(TOO_OLD));
    }
    let at = match &token {
        Some(token) if token.revision > 0 => Some(token.revision),
        Some(_) => None,
        None => exact_revision(options),
    };
    let expired = |_| match &token {
        Some(_) => ApiError::expired(TOO_OLD),
        None => ApiError::expired("The resourceVersion for the provided list is too old."),
    };
    let page = server
        .store
        .list(&ListQuery {
            resource: &resource.storage,
            namespace,
            after: token.as_ref().map(|t| (t.namespace.as_str(), t.name.as_str())),
            at: at.filter(|at| *at < current),
        })
        .map_err(expired)?;
    let revision = at.unwrap_or(page.revision);
    let selective = !options.labels.is_empty() || !options.fields.0.is_empty();
    let limit = options.limit.unwrap_or(usize::MAX);
    let mut rest = page
        .items
        .into_iter()
        .filter(|r| !selective || selected(resource, options, r));
    let items: Vec<Arc<Record>> = rest.by_ref().take(limit).collect();
    let left = rest.count();
    let continues = (left > 0)
        .then(|| items.last().map(|last| encode_continue(revision, last)))
        .flatten();
    Ok(Listed {
        revision,
        items,
        continues,
        remaining: (left > 0 && !selective).then_some(left),
    })
}

fn exact_revision(options: &ListOptions) -> Option<u64> {
    let revision = options.revision.filter(|rv| *rv > 0)?;
    match options.matching {
        Some(VersionMatch::Exact) => Some(revision),
        Some(VersionMatch::NotOlderThan) => None,
        // Without a match rule a limit makes an old revision exact.
        None => options.limit.is_some().then_some(revision),
    }
}

pub(crate) fn too_large(wanted: u64, current: u64) -> ApiError {
    let mut error = ApiError::new(
        504,
        "Timeout",
        format!("Too large resource version: {wanted}, current: {current}"),
    );
    error.details = Some(Box::new(crate::error::Details {
        causes: vec![crate::error::Cause {
            reason: "ResourceVersionTooLarge".to_owned(),
            message: "Too large resource version".to_owned(),
            field: String::new(),
        }],
        retry_after: Some(1),
        ..Default::default()
    }));
    error
}

/// Answers a list.
pub(crate) fn list(
    server: &Inner,
    resource: &Resource,
    namespace: Option<&str>,
    options: &ListOptions,
    view: View,
    include: table::Include,
) -> Result<Response<ApiBody>, ApiError> {
    let listed = collect(server, resource, namespace, options)?;
    render(server, resource, &listed, view, include)
}

/// Writes a list.
pub(crate) fn render(
    server: &Inner,
    resource: &Resource,
    listed: &Listed,
    view: View,
    include: table::Include,
) -> Result<Response<ApiBody>, ApiError> {
    let mut meta = json!({"resourceVersion": listed.revision.to_string()});
    if let Some(token) = &listed.continues {
        meta["continue"] = token.clone().into();
    }
    if let Some(remaining) = listed.remaining {
        meta["remainingItemCount"] = remaining.into();
    }
    if view == View::Table {
        let now = server.now();
        let mut rows = Vec::with_capacity(listed.items.len());
        for record in &listed.items {
            rows.push(table::row(resource, &served(resource, record)?, now, include));
        }
        return Ok(crate::body::json(200, &table::table(resource, &rows, &meta)));
    }
    let (kind, version) = match view {
        View::Metadata => ("PartialObjectMetadataList", "meta.k8s.io/v1".to_owned()),
        _ => (resource.list_kind.as_str(), resource.api_version()),
    };
    let wanted = resource.api_version();
    let size: usize = listed.items.iter().map(|r| r.value.len() + 1).sum();
    let mut out = Vec::with_capacity(size + 256);
    out.extend_from_slice(
        format!(
            "{{\"kind\":{},\"apiVersion\":{},\"metadata\":{meta},\"items\":[",
            json!(kind),
            json!(version)
        )
        .as_bytes(),
    );
    for (i, record) in listed.items.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        if view == View::Metadata {
            let object = metadata_only(&served(resource, record)?);
            out.extend_from_slice(object.to_string().as_bytes());
        } else {
            put_served(resource, &wanted, record, &mut out)?;
        }
    }
    out.extend_from_slice(b"]}");
    Ok(json_bytes(200, Bytes::from(out)))
}
