//! The events of a watch without a cache, however the server divides them into lines and pieces. The client library reads a watch line by line,
//! and not every server writes an event into one line.

use futures::stream::{BoxStream, StreamExt as _, try_unfold};
use http_body_util::BodyExt as _;
use kube::Api;
use kube::api::{Request, WatchEvent, WatchParams};
use serde::de::DeserializeOwned;

use crate::cache::documents::{Documents, LONGEST};
use crate::error::with_causes;
use crate::request::{RequestError, begin};

/// Watches from a version on. The stream ends with the watch, and after an error.
pub async fn watch_events<K>(
    api: &Api<K>,
    params: &WatchParams,
    version: &str,
) -> Result<BoxStream<'static, Result<WatchEvent<K>, String>>, RequestError>
where
    K: kube::Resource + Clone + DeserializeOwned + Send + 'static,
{
    let request = Request::new(api.resource_url()).watch(params, version);
    let request = request.map_err(|error| RequestError::Transport(with_causes(&error)))?;
    let answer = begin(&api.clone().into_client(), request).await?;
    let parts = (answer.into_body().into_data_stream(), Documents::default());
    let events = try_unfold(parts, |(mut body, mut documents)| async move {
        loop {
            if let Some(document) = documents.next() {
                let event = serde_json::from_slice(&document);
                let event = event.map_err(|error| format!("an event cannot be decoded: {error}"))?;
                return Ok(Some((event, (body, documents))));
            }
            if documents.is_too_long() {
                return Err(format!("an event is larger than {} MiB", LONGEST >> 20));
            }
            match body.next().await {
                Some(Ok(bytes)) => documents.push(&bytes),
                Some(Err(error)) => return Err(with_causes(&error)),
                None => return Ok(None),
            }
        }
    });
    Ok(events.boxed())
}
