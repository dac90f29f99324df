//! get and list.

use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};
use windlass_store::{ListQuery, Record};

use crate::error::ApiError;
use crate::http::body::{ApiBody, json_bytes};
use crate::objects::convert::{bring, bring_one, put_served, served, served_bytes};
use crate::objects::resource::Resource;
use crate::objects::table;
use crate::objects::view::metadata_only;
use crate::objects::view::put_metadata;
use crate::objects::view::{Include, Meta, View};
use crate::state::Inner;
use crate::verbs::continue_token::Continue;
use crate::verbs::options::{ListOptions, VersionMatch, is_of_key, revision_option};
use windlass_objects::selector::FieldTerm;

/// The response with one stored object.
pub(crate) fn answer(
    server: &Inner,
    resource: &Resource,
    record: &Record,
    view: View,
    code: u16,
) -> Result<Response<ApiBody>, ApiError> {
    match view {
        View::Full => Ok(json_bytes(code, served_bytes(resource, record)?)),
        View::Metadata(version) => {
            let mut out = Vec::new();
            put_metadata(record, version, &mut out)?;
            Ok(json_bytes(code, out))
        }
        View::MetadataList(_) | View::Table(..) => {
            answer_value(server, resource, &served(resource, record)?, view, code)
        }
    }
}

/// The response with one object.
pub(crate) fn answer_value(
    server: &Inner,
    resource: &Resource,
    object: &Value,
    view: View,
    code: u16,
) -> Result<Response<ApiBody>, ApiError> {
    Ok(match view {
        View::Full => crate::http::body::json(code, object),
        View::Metadata(version) => crate::http::body::json(code, &metadata_only(object, version)),
        View::MetadataList(_) => {
            return Err(ApiError::new(
                406,
                "NotAcceptable",
                format!(
                    "you requested PartialObjectMetadataList, but the requested object is not a list ({})",
                    type_name(resource, "")
                ),
            ));
        }
        View::Table(version, include) => {
            let meta = json!({"resourceVersion": windlass_objects::metadata::meta(object, "resourceVersion")});
            let rows = vec![table::row(resource, object, server.now(), version, include)];
            crate::http::body::json(code, &table::table(resource, version, &rows, &meta))
        }
    })
}

/// kube-apiserver's name for the type of an object or, with `List`, of a list.
fn type_name(resource: &Resource, suffix: &str) -> String {
    if resource.is_custom() {
        return format!("*unstructured.Unstructured{suffix}");
    }
    format!("*{}.{}{suffix}", resource.internal_package(), resource.kind)
}

/// Finds a stored object.
pub(crate) fn find(server: &Inner, resource: &Resource, namespace: &str, name: &str) -> Result<Arc<Record>, ApiError> {
    server
        .store
        .get(&resource.storage, namespace, name)
        .ok_or_else(|| ApiError::not_found(&resource.group, &resource.plural, name))
}

/// Finds a stored object, prepared to be served.
pub(crate) async fn find_served(
    server: &Inner,
    resource: &Resource,
    namespace: &str,
    name: &str,
) -> Result<Arc<Record>, ApiError> {
    bring_one(server, resource, find(server, resource, namespace, name)?).await
}

/// Checks the resourceVersion of a get. Only the current state is available.
pub(crate) fn check_version(server: &Inner, version: Option<&str>) -> Result<(), ApiError> {
    let wanted = version
        .map(revision_option)
        .transpose()
        .map_err(|why| ApiError::new(500, "", why))?;
    let current = server.store.revision();
    match wanted.filter(|rv| *rv > current) {
        Some(wanted) => Err(ApiError::too_large(wanted, current)),
        None => Ok(()),
    }
}

/// Refuses field selectors that the resource does not have.
pub(crate) fn check_fields(resource: &Resource, options: &ListOptions) -> Result<(), ApiError> {
    for term in &options.fields.0 {
        let known = term.field == "metadata.name"
            || (term.field == "metadata.namespace" && resource.namespaced)
            || resource.selectable.iter().any(|(label, _)| *label == term.field);
        if !known && resource.selectable.is_empty() && !resource.is_custom() {
            return Err(ApiError::bad_request(format!(
                "\"{}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
                term.field
            )));
        }
        if !known {
            return Err(ApiError::bad_request(format!(
                "field label not supported: {}",
                term.field
            )));
        }
    }
    Ok(())
}

/// Whether a list selects a stored object.
pub(crate) fn selected(resource: &Resource, options: &ListOptions, record: &Record) -> bool {
    if !selected_by_key(options, record) {
        return false;
    }
    if !options.needs_objects() {
        return true;
    }
    let object = served(resource, record).unwrap_or(Value::Null);
    selected_by_fields(options, |field| (resource.strategy.field)(&object, field))
}

/// Whether labels, name and namespace of a stored object are selected, which are known without decoding it.
pub(crate) fn selected_by_key(options: &ListOptions, record: &Record) -> bool {
    let holds = |term: &FieldTerm| {
        let equal = match term.field.as_str() {
            "metadata.name" => record.key.name() == term.value,
            "metadata.namespace" => record.key.namespace() == term.value,
            _ => return true,
        };
        equal == term.equal
    };
    options.labels.matches(&record.header.labels) && options.fields.0.iter().all(holds)
}

/// Whether the other fields of an object are selected.
pub(crate) fn selected_by_fields(options: &ListOptions, value: impl Fn(&str) -> String) -> bool {
    let others = options.fields.0.iter().filter(|term| !is_of_key(&term.field));
    others
        .into_iter()
        .all(|term| (value(&term.field) == term.value) == term.equal)
}

const TOO_OLD: &str = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/// The error for a continued list whose revision is no longer available. It has a token that continues with the current state.
fn token_expired(token: &Continue) -> ApiError {
    let mut error = ApiError::expired(TOO_OLD);
    let present = Continue {
        revision: None,
        ..token.clone()
    };
    error.details = Some(Box::new(crate::error::Details {
        continues: Some(present.encode()),
        ..Default::default()
    }));
    error
}

/// A page of a list.
pub(crate) struct Listed {
    pub(crate) revision: u64,
    pub(crate) items: Vec<Arc<Record>>,
    continues: Option<String>,
    remaining: Option<usize>,
}

/// Reads the objects of a list.
pub(crate) async fn collect(
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
    let wanted = options
        .revision()
        .map_err(|why| ApiError::bad_request(format!("invalid resource version: {why}")))?;
    let token = options.continues.as_deref().map(Continue::decode).transpose()?;
    if token.is_some() && wanted.is_some_and(|rv| rv > 0) {
        return Err(ApiError::bad_request(
            "specifying resource version is not allowed when using continue",
        ));
    }
    let current = server.store.revision();
    if let Some(wanted) = wanted.filter(|rv| *rv > current) {
        return Err(ApiError::too_large(wanted, current));
    }
    if let Some(token) = token.as_ref().filter(|t| t.revision.is_some_and(|rv| rv > current)) {
        // The token is from before the server lost its history.
        return Err(token_expired(token));
    }
    let at = match &token {
        Some(token) => token.revision,
        None => exact_revision(options, wanted),
    };
    let after = token.as_ref().map(|t| match namespace {
        Some(namespace) => (namespace, t.name.as_str()),
        None => (t.namespace.as_str(), t.name.as_str()),
    });
    let page = server
        .store
        .list(&ListQuery {
            resource: &resource.storage,
            namespace,
            after,
            at: at.filter(|at| *at < current),
        })
        .map_err(|_| match &token {
            Some(token) => token_expired(token),
            None => ApiError::expired("The resourceVersion for the provided list is too old."),
        })?;
    let revision = at.unwrap_or(page.revision);
    let selective = options.is_selective();
    // Any revision is acceptable, so the limit is ignored.
    let whole = wanted == Some(0) && token.is_none();
    let limit = options.limit.filter(|_| !whole).unwrap_or(usize::MAX);
    let mut found = page.items;
    if selective {
        found.retain(|record| selected_by_key(options, record));
    }
    if options.needs_objects() {
        found = bring(server, resource, found).await?;
        found.retain(|record| selected(resource, options, record));
    }
    let left = found.len().saturating_sub(limit);
    found.truncate(limit);
    let items = if options.needs_objects() {
        found
    } else {
        // Only what the page has is converted.
        bring(server, resource, found).await?
    };
    let continues = (left > 0)
        .then(|| {
            items.last().map(|last| {
                let place = if namespace.is_some() { "" } else { last.key.namespace() };
                Continue {
                    revision: Some(revision),
                    namespace: place.to_owned(),
                    name: last.key.name().to_owned(),
                }
                .encode()
            })
        })
        .flatten();
    Ok(Listed {
        revision,
        items,
        continues,
        remaining: (left > 0 && !selective).then_some(left),
    })
}

fn exact_revision(options: &ListOptions, wanted: Option<u64>) -> Option<u64> {
    let revision = wanted.filter(|rv| *rv > 0)?;
    match options.matching {
        Some(VersionMatch::Exact) => Some(revision),
        Some(VersionMatch::NotOlderThan) => None,
        // Without a match rule a limit makes an old revision exact.
        None => options.limit.is_some().then_some(revision),
    }
}

/// Answers a list.
pub(crate) async fn list(
    server: &Inner,
    resource: &Resource,
    namespace: Option<&str>,
    options: &ListOptions,
    view: View,
) -> Result<Response<ApiBody>, ApiError> {
    let listed = collect(server, resource, namespace, options).await?;
    render(server, resource, &listed, view)
}

/// Writes a list.
pub(crate) fn render(
    server: &Inner,
    resource: &Resource,
    listed: &Listed,
    view: View,
) -> Result<Response<ApiBody>, ApiError> {
    if matches!(view, View::Metadata(_)) {
        return Err(ApiError::new(
            406,
            "NotAcceptable",
            format!(
                "you requested PartialObjectMetadata, but the requested object is a list ({})",
                type_name(resource, "List")
            ),
        ));
    }
    let mut meta = json!({"resourceVersion": listed.revision.to_string()});
    if let Some(token) = &listed.continues {
        meta["continue"] = token.clone().into();
    }
    if let Some(remaining) = listed.remaining {
        meta["remainingItemCount"] = remaining.into();
    }
    if let View::Table(version, include) = view {
        let now = server.now();
        let mut out = table_start(resource, version, true, &meta).into_bytes();
        for (i, record) in listed.items.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            // One object is decoded at a time.
            put_row(resource, record, now, version, include, &mut out)?;
        }
        out.extend_from_slice(TABLE_END);
        return Ok(json_bytes(200, Bytes::from(out)));
    }
    let (kind, version) = match view {
        View::MetadataList(version) => ("PartialObjectMetadataList", version.api_version()),
        _ => (resource.list_kind.as_str(), resource.api_version()),
    };
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
        if let View::MetadataList(version) = view {
            put_metadata(record, version, &mut out)?;
        } else {
            put_served(resource, record, &mut out)?;
        }
    }
    out.extend_from_slice(b"]}");
    Ok(json_bytes(200, Bytes::from(out)))
}

/// The beginning of a table, up to its rows, which [`TABLE_END`] follows.
pub(crate) fn table_start(resource: &Resource, version: Meta, has_columns: bool, meta: &Value) -> String {
    let columns = if has_columns {
        table::table(resource, version, &[], meta)["columnDefinitions"].take()
    } else {
        Value::Null
    };
    format!(
        "{{\"kind\":\"Table\",\"apiVersion\":\"{}\",\"metadata\":{meta},\"columnDefinitions\":{columns},\"rows\":[",
        version.api_version()
    )
}

pub(crate) const TABLE_END: &[u8] = b"]}";

/// Writes the row of a stored object.
pub(crate) fn put_row(
    resource: &Resource,
    record: &Record,
    now: jiff::Timestamp,
    version: Meta,
    include: Include,
    out: &mut Vec<u8>,
) -> Result<(), ApiError> {
    let row = table::row(resource, &served(resource, record)?, now, version, include);
    serde_json::to_writer(out, &row).map_err(ApiError::internal)
}
