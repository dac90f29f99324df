//! Keeps a store equal to what the API server has: a first list (streamed where the server can), then a watch that is taken up
//! again where it ended, and a new list only when the server has forgotten that place.
//!
//! `kube::runtime::watcher` keeps bookmarks to itself, and the own-writes guard needs them; hence this loop over the client.

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, pin_mut};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::core::Request;
use serde::Deserialize;

use super::store::{Cached, Store};
use crate::backoff::Backoff;
use crate::error::with_causes;

/// How long the server may keep one watch open.
const WATCH_SECONDS: u32 = 290;
/// How long after that a silent watch counts as dead.
const SILENCE: Duration = Duration::from_secs(WATCH_SECONDS as u64 + 5);
/// How long the beginning of an answer may take, and each next object of a first list.
const ANSWER: Duration = Duration::from_secs(70);
/// Objects per page of a list.
const PAGE: u32 = 500;
/// Lists older than what was seen that are refused in a row, before they are believed (a restored backup).
const MOST_STALE: u32 = 5;

/// One watch of one kind.
pub(crate) struct Informer<T> {
    pub(crate) client: kube::Client,
    /// `/api/v1/secrets`, or the namespaced form.
    pub(crate) url: String,
    pub(crate) store: Arc<Store<T>>,
    /// Only objects with these fields or labels.
    pub(crate) selector: Selector,
    /// How much of them.
    pub(crate) extent: Extent,
}

/// How much of the objects a server is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All of it.
    #[default]
    Whole,
    /// Only their metadata: what they hold never leaves the server.
    Metadata,
}

/// Limits a watch to a part of the objects.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selector {
    pub(crate) labels: Option<String>,
    pub(crate) fields: Option<String>,
}

/// Why one round of the loop ended.
#[derive(Debug)]
enum End {
    /// The server closed the watch as it should: go on from here.
    Closed,
    /// The server has forgotten where we were: list again.
    Expired,
    /// The server cannot stream the first list.
    NoStreaming,
    /// Something failed: wait, then go on.
    Failed(String),
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
struct Page<T> {
    #[serde(default)]
    metadata: ListMeta,
    #[serde(default = "Vec::new")]
    items: Vec<serde_json::Value>,
    #[serde(skip)]
    decoded: Vec<T>,
    #[serde(default, rename = "apiVersion")]
    api_version: String,
    #[serde(default)]
    kind: String,
}

impl<T: Cached> Informer<T> {
    /// Runs until it is dropped.
    pub(crate) async fn run(self) {
        let mut failures = 0;
        let mut stale = 0;
        let mut version: Option<u64> = None;
        let mut streaming = true;
        loop {
            let before = version;
            let end = match version {
                None if streaming => self.stream_list(&mut version, stale >= MOST_STALE).await,
                None => self.list(&mut version, stale >= MOST_STALE).await,
                Some(_) => self.watch(&mut version).await,
            };
            if version != before {
                failures = 0;
                stale = 0;
            }
            match end {
                End::Closed => {}
                End::Expired => version = None,
                End::NoStreaming => streaming = false,
                End::Failed(why) => {
                    failures += 1;
                    if version.is_none() {
                        stale += 1;
                    }
                    let delay = Backoff::per_watch().jittered(failures);
                    tracing::debug!(kind = %self.store.kind(), %why, ?delay, "watch failed");
                    if failures == 5 {
                        tracing::warn!(kind = %self.store.kind(), %why, "watch keeps failing");
                    }
                    tokio::time::sleep(delay).await;
                }
            }
        }
    }

    fn watch_params(&self, initial: bool) -> WatchParams {
        WatchParams {
            label_selector: self.selector.labels.clone(),
            field_selector: self.selector.fields.clone(),
            // Many watches that began together do not end together.
            timeout: Some(rand::random_range(WATCH_SECONDS - 60..=WATCH_SECONDS)),
            bookmarks: true,
            send_initial_events: initial,
        }
    }

    fn watch_request(&self, initial: bool, from: &str) -> Result<http::Request<Vec<u8>>, kube::core::request::Error> {
        let (to, parameters) = (Request::new(&self.url), self.watch_params(initial));
        match self.extent {
            Extent::Whole => to.watch(&parameters, from),
            Extent::Metadata => to.watch_metadata(&parameters, from),
        }
    }

    /// The first list as a stream of events, and the watch that follows it on the same connection.
    async fn stream_list(&self, version: &mut Option<u64>, force: bool) -> End {
        let request = match self.watch_request(true, "") {
            Ok(request) => request,
            Err(error) => return End::Failed(with_causes(&error)),
        };
        let stream = match answer(self.client.request_events::<T>(request)).await {
            Ok(stream) => stream,
            Err(kube::Error::Api(status)) if matches!(status.code, 400 | 403 | 422) => {
                return End::NoStreaming;
            }
            Err(error) => return End::Failed(with_causes(&error)),
        };
        pin_mut!(stream);
        let mut objects = Vec::new();
        loop {
            let event = match tokio::time::timeout(ANSWER, stream.next()).await {
                Ok(Some(Ok(event))) => event,
                Ok(Some(Err(kube::Error::SerdeError(error)))) => {
                    self.unreadable(&error);
                    continue;
                }
                Ok(Some(Err(error))) => return End::Failed(with_causes(&error)),
                Ok(None) => return End::Failed("the list ended early".to_owned()),
                Err(_) => return End::Failed("no answer in time".to_owned()),
            };
            match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => objects.push(object),
                WatchEvent::Deleted(_) => {}
                WatchEvent::Bookmark(bookmark) => {
                    if !bookmark.metadata.annotations.contains_key("k8s.io/initial-events-end") {
                        continue;
                    }
                    let at = bookmark.metadata.resource_version.parse().unwrap_or(0);
                    if let Err(error) = self.store.replace(objects, at, force) {
                        return End::Failed(with_causes(&error));
                    }
                    *version = Some(at);
                    return self.follow(stream, version).await;
                }
                WatchEvent::Error(status) => return ended(&status),
            }
        }
    }

    /// The first list page by page.
    async fn list(&self, version: &mut Option<u64>, force: bool) -> End {
        let mut objects = Vec::new();
        let mut params = ListParams {
            label_selector: self.selector.labels.clone(),
            field_selector: self.selector.fields.clone(),
            limit: Some(PAGE),
            ..ListParams::default()
        };
        let at = loop {
            let page = match self.page(&params).await {
                Ok(page) => page,
                Err(kube::Error::Api(status)) if status.code == 410 => return End::Expired,
                Err(error) => return End::Failed(with_causes(&error)),
            };
            objects.extend(page.decoded);
            params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
            if params.continue_token.is_none() {
                let version = page.metadata.resource_version.unwrap_or_default();
                break version.parse().unwrap_or(0);
            }
        };
        match self.store.replace(objects, at, force) {
            Ok(()) => {
                *version = Some(at);
                End::Closed
            }
            Err(error) => End::Failed(with_causes(&error)),
        }
    }

    async fn page(&self, params: &ListParams) -> kube::Result<Page<T>> {
        let to = Request::new(&self.url);
        let request = match self.extent {
            Extent::Whole => to.list(params),
            Extent::Metadata => to.list_metadata(params),
        };
        let request = request.map_err(kube::Error::BuildRequest)?;
        let mut page: Page<T> = answer(self.client.request(request)).await?;
        let kind = page.kind.strip_suffix("List").unwrap_or_default().to_owned();
        for mut item in std::mem::take(&mut page.items) {
            // Items of a list do not repeat what the list says.
            if let Some(fields) = item.as_object_mut() {
                fields
                    .entry("apiVersion")
                    .or_insert_with(|| page.api_version.clone().into());
                fields.entry("kind").or_insert_with(|| kind.clone().into());
            }
            match serde_json::from_value(item) {
                Ok(object) => page.decoded.push(object),
                Err(error) => self.unreadable(&error),
            }
        }
        Ok(page)
    }

    /// One object that this program cannot read must not blind it for the others.
    fn unreadable(&self, error: &serde_json::Error) {
        tracing::error!(kind = %self.store.kind(), %error, "cannot decode an object; it is left out");
    }

    /// A watch from where the last one ended.
    async fn watch(&self, version: &mut Option<u64>) -> End {
        let from = version.unwrap_or(0).to_string();
        let request = match self.watch_request(false, &from) {
            Ok(request) => request,
            Err(error) => return End::Failed(with_causes(&error)),
        };
        let stream = match answer(self.client.request_events::<T>(request)).await {
            Ok(stream) => stream,
            Err(kube::Error::Api(status)) => return ended(&status),
            Err(error) => return End::Failed(with_causes(&error)),
        };
        self.follow(stream, version).await
    }

    async fn follow(
        &self,
        stream: impl futures::Stream<Item = kube::Result<WatchEvent<T>>>,
        version: &mut Option<u64>,
    ) -> End {
        let stream = stream.into_stream();
        pin_mut!(stream);
        loop {
            let event = match tokio::time::timeout(SILENCE, stream.next()).await {
                Ok(Some(Ok(event))) => event,
                Ok(Some(Err(kube::Error::SerdeError(error)))) => {
                    self.unreadable(&error);
                    continue;
                }
                Ok(Some(Err(error))) => return End::Failed(with_causes(&error)),
                Ok(None) => return End::Closed,
                Err(_) => return End::Failed("the watch was silent for too long".to_owned()),
            };
            match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    advance(version, object.meta().resource_version.as_deref());
                    self.store.apply(object);
                }
                WatchEvent::Deleted(object) => {
                    advance(version, object.meta().resource_version.as_deref());
                    self.store.delete(&object);
                }
                WatchEvent::Bookmark(bookmark) => {
                    advance(version, Some(&bookmark.metadata.resource_version));
                    self.store.saw(version.unwrap_or(0));
                }
                WatchEvent::Error(status) => return ended(&status),
            }
        }
    }
}

/// A server that never answers is asked anew.
async fn answer<T>(asked: impl Future<Output = kube::Result<T>>) -> kube::Result<T> {
    let late = |_| Err(kube::Error::Service("no answer in time".into()));
    tokio::time::timeout(ANSWER, asked).await.unwrap_or_else(late)
}

fn advance(version: &mut Option<u64>, seen: Option<&str>) {
    if let Some(seen) = seen.and_then(|v| v.parse().ok()) {
        *version = Some(seen);
    }
}

fn ended(status: &kube::core::Status) -> End {
    if status.code == 410 || status.reason == "Expired" || status.reason == "Gone" {
        End::Expired
    } else {
        End::Failed(format!("{} ({})", status.message, status.reason))
    }
}
