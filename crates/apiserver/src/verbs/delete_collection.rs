//! deletecollection: deletes every object of a list, many concurrently.

use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{StreamExt as _, TryStreamExt as _};
use windlass_store::Record;

use crate::error::ApiError;
use crate::http::body::ApiBody;
use crate::http::context::RequestContext;
use crate::objects::resource::Resource;
use crate::verbs::delete::DeleteOptions;
use crate::verbs::options::{ListOptions, WriteOptions};
use crate::verbs::read;

/// Concurrent deletions, which share syncs of the disk.
const AT_ONCE: usize = 64;

/// Deletes the objects that a list selects, and answers with the list.
pub(crate) async fn delete(
    asked: &RequestContext<'_>,
    resource: &Arc<Resource>,
    namespace: Option<&str>,
    options: &ListOptions,
    delete: &DeleteOptions,
) -> Result<http::Response<ApiBody>, ApiError> {
    let listed = read::collect(asked.server, resource, namespace, options).await?;
    let write = WriteOptions::default();
    let write = &write;
    let deletions: Vec<_> = listed
        .items
        .iter()
        .map(|record| one(asked, resource, record, write, delete))
        .collect();
    let mut warnings: Vec<String> = futures::stream::iter(deletions).buffered(AT_ONCE).try_concat().await?;
    let mut response = read::render(asked.server, resource, &listed, asked.view)?;
    warnings.dedup();
    for words in &warnings {
        crate::http::warnings::add(&mut response, words);
    }
    Ok(response)
}

/// Deletes an object; returns its warnings.
fn one<'a>(
    asked: &'a RequestContext<'_>,
    resource: &'a Arc<Resource>,
    record: &'a Record,
    write: &'a WriteOptions,
    delete: &'a DeleteOptions,
) -> BoxFuture<'a, Result<Vec<String>, ApiError>> {
    Box::pin(async move {
        let call = asked.call(resource, record.key.namespace(), write);
        match call.delete(record.key.name(), delete).await {
            Ok(done) => Ok(done.warnings),
            Err(error) if error.code == 404 => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    })
}
