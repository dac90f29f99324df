//! Keeps a store equal to the API server's objects. It starts with a first list (streamed, if the server supports that). Then it
//! watches, and continues each watch where the last one ended. It lists again only when the server has forgotten that place.
//!
//! `kube::runtime::watcher` does not pass on bookmarks, and the own-writes guard needs them; hence this loop over the client.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use http::HeaderValue;
use http::header::ACCEPT_ENCODING;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kube::api::{ListParams, WatchParams};
use kube::core::Request;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;
use windlass_meta::beginning;
use windlass_meta::repeats::Repeats;

use super::events::{Event, Events, Name, Why, name};
use super::store::{List, Store};
use super::weights::Weights;
use crate::backoff::Backoff;
use crate::error::with_causes;
use crate::failing::Failing;
use crate::object::key_of;
use crate::request::{RequestError, TEXT, send_within};
use crate::transport::Bounds;

/// How long the server may keep a watch open.
const WATCH_SECONDS: u32 = 290;
/// After this time without an event, a watch counts as dead.
const SILENCE: Duration = Duration::from_secs(WATCH_SECONDS as u64 + 5);
/// Time limit for the beginning of an answer, and for each page of a list.
const ANSWER: Duration = Duration::from_secs(70);
/// How long a streamed list may be silent. A server that takes no notice of the parameters of streamed lists sends the objects, and never
/// says that these were all.
const PAUSE: Duration = Duration::from_secs(10);
/// How long a server that does not stream lists is asked for pages alone. It may be upgraded.
const PAGED: Duration = Duration::from_hours(1);
/// A watch that ends sooner, and without an event, counts as failed.
const SHORT: Duration = Duration::from_secs(1);
/// Objects per page of a list.
const PAGE: u32 = 500;
/// How many lists in a row may be refused for being older than the cache. The next one is accepted, as the server may run on a
/// restored backup.
const MOST_STALE: u32 = 5;

/// One watch of one kind.
pub(crate) struct Informer {
    pub(crate) client: kube::Client,
    /// `/api/v1/secrets`, or the namespaced form.
    pub(crate) url: String,
    pub(crate) store: Arc<Store>,
    /// Selects objects by fields or labels.
    pub(crate) selector: Selector,
    /// The objects that cannot be decoded, as far as they were logged.
    pub(crate) said: Repeats,
    /// Which part of the objects is requested.
    pub(crate) extent: Extent,
}

/// Which part of the objects a server is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Whole objects.
    #[default]
    Whole,
    /// Only their metadata. Their contents never leave the server.
    Metadata,
}

/// How lists are asked for.
#[derive(Debug, Default)]
struct Listing {
    /// The last streamed list was silent, so that this one is read page by page.
    was_silent: bool,
    /// Until when no list is streamed.
    paged_until: Option<Instant>,
}

impl Listing {
    fn streams(&self) -> bool {
        let is_paged = self.paged_until.is_some_and(|until| until > Instant::now());
        !self.was_silent && !is_paged
    }

    /// A list was read page by page, or was not. Only where it was did the silence mean that the server streams none: it may have been away.
    fn paged(&mut self, is_read: bool) {
        if std::mem::take(&mut self.was_silent) && is_read {
            self.refused();
        }
    }

    /// The server streams no lists.
    fn refused(&mut self) {
        self.paged_until = Some(Instant::now() + PAGED);
    }
}

/// A field and a label selector of a watch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selector {
    pub(crate) labels: Option<String>,
    pub(crate) fields: Option<String>,
}

/// Why one round of the loop ended.
#[derive(Debug)]
enum End {
    /// The server closed the watch in order: continue from here.
    Closed,
    /// The server has forgotten our resourceVersion: wait, then list again.
    Expired,
    /// The server does not support streamed lists.
    NoStreaming,
    /// A streamed list is silent: read this one page by page.
    Silent,
    /// The server does not serve the kind in this version: wait, then list again.
    NotServed(String),
    /// A failure: wait, then continue.
    Failed(String),
    /// An event that cannot be decoded: wait, then list again, as it would come again.
    Undecodable(String),
    /// A list that is older than the cache: wait, then list again.
    Stale(String),
    /// The server has gone back in time: wait, then list again, and accept what is older than the cache.
    WentBack(String),
}

/// A page of a list. Its objects are decoded one by one, so that an object that cannot be decoded does not affect the others.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    #[serde(default)]
    metadata: ListMeta,
    // A server whose list has no items may say `null`.
    #[serde(default, borrow)]
    items: Option<Vec<&'a RawValue>>,
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
}

/// `apiVersion` and `kind` of an object.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfKind {
    #[serde(default)]
    api_version: Option<String>,
}

impl Page<'_> {
    /// The objects as texts. Items of a list of a built-in kind lack the kind, so it is added from the list.
    fn objects(&self) -> Vec<String> {
        let items = self.items.as_deref().unwrap_or_default();
        let first = items.first().map(|item| serde_json::from_str::<OfKind>(item.get()));
        let says_kind = first.is_none_or(|first| first.unwrap_or_default().api_version.is_some());
        let of = |item: &RawValue| item.get().trim_start().to_owned();
        if says_kind {
            return items.iter().map(|item| of(item)).collect();
        }
        let kind = self.kind.strip_suffix("List").unwrap_or_default();
        let says = format!("{{\"apiVersion\":{:?},\"kind\":{kind:?},", self.api_version);
        let completed = |item: &RawValue| match of(item).strip_prefix('{').map(str::trim_start) {
            Some(rest) if !rest.starts_with('}') => format!("{says}{rest}"),
            _ => of(item),
        };
        items.iter().map(|item| completed(item)).collect()
    }
}

impl Informer {
    /// Runs until it is dropped.
    pub(crate) fn run(self) -> BoxFuture<'static, ()> {
        Box::pin(self.forever())
    }

    async fn forever(self) {
        let (mut failures, mut failing) = (0, Failing::default());
        let mut stale = 0;
        let mut version: Option<u64> = None;
        let mut listing = Listing::default();
        let mut weights = Weights::default();
        loop {
            let (before, began) = (version, Instant::now());
            let end = match version {
                None if listing.streams() => {
                    weights = Weights::default();
                    let force = stale >= MOST_STALE;
                    self.stream_list(&mut weights, &mut version, force, &mut failing).await
                }
                None => {
                    weights = Weights::default();
                    let end = self.list(&mut weights, &mut version, stale >= MOST_STALE).await;
                    listing.paged(version.is_some());
                    end
                }
                Some(_) => self.watch(&mut weights, &mut version, &mut failing).await,
            };
            if version.is_some() {
                stale = 0;
            }
            // A list alone is no sign of health: the watch after it may fail each time.
            let has_lasted = began.elapsed() >= SHORT;
            let is_well = match end {
                End::Closed if has_lasted => true,
                // Each of them costs a list.
                End::Undecodable(_) => false,
                _ => version != before && (before.is_some() || has_lasted),
            };
            if is_well {
                failures = 0;
                self.works(&mut failing);
            }
            let why = match end {
                End::NoStreaming => {
                    listing.refused();
                    continue;
                }
                End::Silent => {
                    tracing::debug!(
                        kind = self.store.kind(),
                        "the streamed list has no end: it is read page by page"
                    );
                    listing.was_silent = true;
                    continue;
                }
                End::Closed if is_well || before.is_none() => continue,
                End::Closed => "the server ended the watch at once".to_owned(),
                End::Expired => {
                    version = None;
                    "the server has forgotten the place of the watch".to_owned()
                }
                End::NotServed(why) => {
                    version = None;
                    self.store.stop();
                    why
                }
                End::Failed(why) => why,
                End::Undecodable(why) => {
                    version = None;
                    why
                }
                End::Stale(why) => {
                    stale += 1;
                    why
                }
                End::WentBack(why) => {
                    let kind = self.store.kind();
                    if let Some(repeated) = self.said.line("", &why, Instant::now().into_std()) {
                        tracing::warn!(%kind, repeated, "{why}; all objects are listed again");
                    }
                    version = None;
                    stale = MOST_STALE;
                    why
                }
            };
            failures += 1;
            self.back_off(failures, &mut failing, &why).await;
        }
    }

    /// Logs the end of failures that were logged.
    fn works(&self, failing: &mut Failing) {
        if failing.ended(Instant::now().into_std()) {
            tracing::info!(kind = self.store.kind(), "the watch works again");
        }
    }

    async fn back_off(&self, failures: u32, failing: &mut Failing, why: &str) {
        let delay = Backoff::per_watch().jittered(failures);
        let kind = self.store.kind();
        if let Some(repeated) = failing.failed(why, delay, Instant::now().into_std()) {
            tracing::warn!(kind, reason = why, retry_in = ?delay, failures, repeated, "the watch fails");
        } else {
            tracing::debug!(kind, reason = why, retry_in = ?delay, failures, "the watch fails");
        }
        tokio::time::sleep(delay).await;
    }

    fn watch_params(&self, initial: bool) -> WatchParams {
        WatchParams {
            label_selector: self.selector.labels.clone(),
            field_selector: self.selector.fields.clone(),
            // Watches that began together must not end together.
            timeout: Some(rand::random_range(WATCH_SECONDS - 60..=WATCH_SECONDS)),
            bookmarks: true,
            send_initial_events: initial,
        }
    }

    /// Opens a watch.
    async fn events(&self, initial: bool, from: &str) -> Result<Events, RequestError> {
        let (to, parameters) = (Request::new(&self.url), self.watch_params(initial));
        let request = match self.extent {
            Extent::Whole => to.watch(&parameters, from),
            Extent::Metadata => to.watch_metadata(&parameters, from),
        };
        let mut request = request.map_err(|e| RequestError::Transport(with_causes(&e)))?;
        // Compression makes some decoders end the stream after the first event.
        let plain = HeaderValue::from_static("identity");
        request.headers_mut().insert(ACCEPT_ENCODING, plain);
        let late = |_| Err(RequestError::Late(ANSWER));
        let begun = tokio::time::timeout(ANSWER, Events::begin(&self.client, request));
        begun.await.unwrap_or_else(late)
    }

    /// Receives the first list as a stream of events, and the watch that follows it on the same connection.
    async fn stream_list(
        &self,
        weights: &mut Weights,
        version: &mut Option<u64>,
        force: bool,
        failing: &mut Failing,
    ) -> End {
        let mut events = match self.events(true, "").await {
            Ok(events) => events,
            Err(error) if matches!(error.code(), 400 | 403 | 422) => return End::NoStreaming,
            Err(error) => return refused(&error),
        };
        let mut list = List::default();
        // Changes of objects that came already do not count: a server that does not end streamed lists sends them as well.
        let mut came = HashSet::new();
        let mut progress = Instant::now();
        loop {
            // A large object may take longer on a slow connection.
            let patience = if events.is_inside() { ANSWER } else { PAUSE };
            let event = match tokio::time::timeout_at(progress + patience, events.next(&self.store)).await {
                Ok(Ok(event)) => event,
                Ok(Err(Why::Failed(why))) => return End::Failed(why),
                Err(_) if patience < ANSWER && events.is_inside() => continue,
                Ok(Err(Why::Closed)) | Err(_) => return End::Silent,
            };
            match event {
                Event::Set(object) => {
                    if came.insert(key_of(object.metadata())) {
                        progress = Instant::now();
                    }
                    if let Err(why) = weights.listed(&*object, events.bounds()) {
                        return End::Failed(why);
                    }
                    list.objects.push(object);
                }
                Event::Deleted(name) => {
                    list.objects.retain(|object| key_of(object.metadata()) != name.key);
                    list.undecoded.retain(|other| other.key != name.key);
                    weights.remove(&name.key);
                }
                Event::Bookmark { version: at, ends_list } => {
                    if !ends_list {
                        continue;
                    }
                    let at = at.unwrap_or(0);
                    if let Err(error) = self.store.replace(list, at, force) {
                        return End::Stale(with_causes(&error));
                    }
                    weights.list_ended();
                    *version = Some(at);
                    return self.follow(events, weights, version, failing).await;
                }
                Event::Error { expired: true, .. } => return End::Expired,
                Event::Error { why, .. } => return End::Failed(why),
                Event::Undecodable(name, error) => {
                    if let Err(why) = weights.undecodable_listed(&name, events.bounds()) {
                        return End::Failed(why);
                    }
                    self.undecodable(&mut list, Ok(name), &error);
                }
                Event::Unreadable(error) => self.undecodable(&mut list, Err(()), &error),
                Event::Garbled(error) => return End::Failed(undecodable(&error)),
            }
        }
    }

    /// Reads the first list page by page.
    async fn list(&self, weights: &mut Weights, version: &mut Option<u64>, force: bool) -> End {
        let mut list = List::default();
        let mut params = ListParams {
            label_selector: self.selector.labels.clone(),
            field_selector: self.selector.fields.clone(),
            limit: Some(PAGE),
            ..ListParams::default()
        };
        let at = loop {
            let meta = match self.page(&params, weights, &mut list).await {
                Ok(meta) => meta,
                Err(error) => return refused(&error),
            };
            params.continue_token = meta.continue_.filter(|token| !token.is_empty());
            if params.continue_token.is_none() {
                break meta.resource_version.unwrap_or_default().parse().unwrap_or(0);
            }
        };
        match self.store.replace(list, at, force) {
            Ok(()) => {
                weights.list_ended();
                *version = Some(at);
                End::Closed
            }
            Err(error) => End::Stale(with_causes(&error)),
        }
    }

    /// Reads a page and adds its objects.
    async fn page(
        &self,
        params: &ListParams,
        weights: &mut Weights,
        list: &mut List,
    ) -> Result<ListMeta, RequestError> {
        let to = Request::new(&self.url);
        let request = match self.extent {
            Extent::Whole => to.list(params),
            Extent::Metadata => to.list_metadata(params),
        };
        let request = request.map_err(|e| RequestError::Transport(with_causes(&e)))?;
        let answer = send_within(&self.client, request, ANSWER).await?;
        let bounds = answer.extensions().get::<Bounds>().cloned();
        let page: Page<'_> = serde_json::from_slice(answer.body())?;
        for object in page.objects() {
            match self.store.decode(object.as_bytes()) {
                Ok(decoded) => {
                    let weighed = weights.listed(&*decoded, bounds.as_ref());
                    weighed.map_err(RequestError::Transport)?;
                    list.objects.push(decoded);
                }
                Err(error) => {
                    let name = name(object.as_bytes());
                    if let Ok(name) = &name {
                        let weighed = weights.undecodable_listed(name, bounds.as_ref());
                        weighed.map_err(RequestError::Transport)?;
                    }
                    self.undecodable(list, name.map_err(drop), &error);
                }
            }
        }
        Ok(page.metadata)
    }

    /// Records an object of a list that cannot be decoded.
    fn undecodable(&self, list: &mut List, name: Result<Name, ()>, error: &serde_json::Error) {
        self.unreadable(name.as_ref().ok(), error);
        match name {
            Ok(name) => list.undecoded.push(name),
            Err(()) => list.has_nameless = true,
        }
    }

    /// Logs an object that cannot be decoded. The other objects are still cached.
    fn unreadable(&self, name: Option<&Name>, error: &serde_json::Error) {
        // It may quote a value.
        let error = error.to_string();
        let error = beginning(&error, TEXT);
        let object = name.map(|name| name.key.to_string()).unwrap_or_default();
        if let Some(repeated) = self.said.line(&object, &error, Instant::now().into_std()) {
            let kind = self.store.kind();
            tracing::error!(kind = %kind, object, %error, repeated, "cannot decode an object; its last known version is kept, if there is one");
        }
    }

    /// Watches from where the last watch ended.
    async fn watch(&self, weights: &mut Weights, version: &mut Option<u64>, failing: &mut Failing) -> End {
        let from = version.unwrap_or(0).to_string();
        match self.events(false, &from).await {
            Ok(events) => self.follow(events, weights, version, failing).await,
            Err(error) => refused(&error),
        }
    }

    async fn follow(
        &self,
        mut events: Events,
        weights: &mut Weights,
        version: &mut Option<u64>,
        failing: &mut Failing,
    ) -> End {
        loop {
            let event = match tokio::time::timeout(SILENCE, events.next(&self.store)).await {
                Ok(Ok(event)) => event,
                Ok(Err(Why::Closed)) => return End::Closed,
                Ok(Err(Why::Failed(why))) => return End::Failed(why),
                Err(_) => return End::Failed("the watch was silent for too long".to_owned()),
            };
            match event {
                Event::Set(object) => {
                    if let Err(why) = advance(version, number(object.metadata().resource_version.as_deref())) {
                        return End::WentBack(why);
                    }
                    if let Err(why) = weights.set(&*object, events.bounds()) {
                        return End::Failed(why);
                    }
                    self.store.apply(object);
                }
                // Not every server gives a deleted object the version of its deletion.
                Event::Deleted(name) => {
                    *version = (*version).max(name.version);
                    weights.remove(&name.key);
                    self.store.delete(&name.key, name.version);
                }
                // What cannot be read is not gone: its owners would replace it. So the last version stays until the object is deleted.
                Event::Undecodable(name, error) => {
                    self.unreadable(Some(&name), &error);
                    if let Err(why) = advance(version, name.version) {
                        return End::WentBack(why);
                    }
                    if let Err(why) = weights.undecodable(&name, events.bounds()) {
                        return End::Failed(why);
                    }
                    self.store.undecodable(&name);
                }
                Event::Bookmark { version: at, .. } => {
                    if let Err(why) = advance(version, at) {
                        return End::WentBack(why);
                    }
                    self.store.saw(version.unwrap_or(0));
                }
                Event::Error { expired: true, .. } => return End::Expired,
                Event::Error { why, .. } => return End::Failed(why),
                Event::Unreadable(error) | Event::Garbled(error) => return End::Undecodable(undecodable(&error)),
            }
            self.works(failing);
        }
    }
}

/// Why a watch is given up whose event cannot be decoded.
fn undecodable(error: &serde_json::Error) -> String {
    // It may quote a value.
    format!("an event cannot be decoded: {}", beginning(&error.to_string(), TEXT))
}

/// What the refusal of a list or of a watch means.
fn refused(error: &RequestError) -> End {
    match error.code() {
        404 => End::NotServed(error.to_string()),
        410 => End::Expired,
        _ => End::Failed(error.to_string()),
    }
}

/// Moves the place of a watch forward. The versions of a watch grow: a lower one comes from a server that runs on a restored backup.
fn advance(version: &mut Option<u64>, seen: Option<u64>) -> Result<(), String> {
    match (*version, seen) {
        (Some(place), Some(seen)) if seen < place => Err(format!(
            "the server has gone back from resourceVersion {place} to {seen}, as after the restore of a backup"
        )),
        _ => {
            *version = seen.or(*version);
            Ok(())
        }
    }
}

/// A resourceVersion as a number.
pub(super) fn number(version: Option<&str>) -> Option<u64> {
    version.and_then(|v| v.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_of_a_list_say_their_kind() {
        let check = |page: &str, expect: &[&str]| {
            let page: Page<'_> = serde_json::from_str(page).unwrap();
            assert_eq!(page.objects(), expect);
        };
        let built_in = r#"{"apiVersion":"v1","kind":"SecretList","items":[{"metadata":{}},{}, {"a":1}]}"#;
        let says = r#""apiVersion":"v1","kind":"Secret","#;
        let (first, last) = (format!("{{{says}\"metadata\":{{}}}}"), format!("{{{says}\"a\":1}}"));
        check(built_in, &[&first, "{}", &last]);
        let custom = r#"{"apiVersion":"x/v1","kind":"AList","items":[{"apiVersion":"x/v1","kind":"A"}]}"#;
        check(custom, &[r#"{"apiVersion":"x/v1","kind":"A"}"#]);
        check(r#"{"metadata":{}}"#, &[]);
        check(r#"{"items":null}"#, &[]);
    }
}
