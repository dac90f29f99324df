//! watch: a stream of changes.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use http::Response;
use rand::RngExt as _;
use serde_json::{Value, json};
use tokio::time::{Instant, Sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;
use windlass_store::{Event, Record, Watcher};

use crate::error::ApiError;
use crate::http::body::{ApiBody, with_type};
use crate::http::per_user::Place;
use crate::objects::convert::{bring, bring_one, put_served, served};
use crate::objects::resource::Resource;
use crate::objects::table;
use crate::objects::view::View;
use crate::objects::view::{PARTIAL, put_metadata};
use crate::state::Inner;
use crate::verbs::options::ListOptions;
use crate::verbs::read::{check_fields, selected};
use crate::verbs::watch_lines::Lines;

/// Interval of bookmarks of a quiet watch.
const BOOKMARK_EVERY: Duration = Duration::from_mins(1);
/// A watch lasts no longer than this, whatever its client asks for: a time may be too far away to be computed.
const LONGEST: Duration = Duration::from_hours(365 * 24);
/// A batch is split into pieces of about this size.
const PIECE: usize = 256 << 10;

struct Stream {
    server: Arc<Inner>,
    resource: Arc<Resource>,
    namespace: Option<String>,
    options: ListOptions,
    view: View,
    watcher: Option<Watcher>,
    pending: VecDeque<Bytes>,
    shutdown: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Resolves when the definition of the resource is changed or deleted.
    retired: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    /// Fires at the timeout or for the next bookmark.
    timer: Pin<Box<Sleep>>,
    wanted: Option<u64>,
    ends: Instant,
    next_bookmark: Instant,
    bookmarked: u64,
    over: bool,
    sent_columns: bool,
    /// Counts the watch until it ends.
    _place: Option<Place<()>>,
}

/// Handles a watch.
pub(crate) async fn watch(
    server: &Arc<Inner>,
    resource: &Arc<Resource>,
    namespace: Option<&str>,
    options: ListOptions,
    view: View,
    place: Option<Place<()>>,
) -> Result<Response<ApiBody>, ApiError> {
    check_fields(resource, &options)?;
    let wanted = options.revision().map_err(|why| ApiError::new(500, "", why))?;
    let timeout = options.timeout.map_or_else(
        || Duration::from_secs(rand::rng().random_range(1800..3600)),
        |seconds| Duration::from_secs(seconds).min(LONGEST),
    );
    let now = Instant::now();
    let mut out = Stream {
        server: Arc::clone(server),
        resource: Arc::clone(resource),
        namespace: namespace
            .or_else(|| options.fields.exact("metadata.namespace"))
            .filter(|_| resource.namespaced)
            .map(str::to_owned),
        options,
        view,
        watcher: None,
        pending: VecDeque::new(),
        shutdown: Box::pin(server.shutdown.clone().cancelled_owned()),
        retired: resource
            .conversion
            .as_ref()
            .map(|conversion| Box::pin(conversion.retired.clone().cancelled_owned())),
        timer: Box::pin(tokio::time::sleep_until(now + timeout)),
        wanted,
        ends: now + timeout,
        next_bookmark: now + BOOKMARK_EVERY,
        bookmarked: 0,
        over: false,
        sent_columns: false,
        _place: place,
    };
    out.begin().await;
    let body = stream::unfold(out, |mut s| async move { s.next().await.map(|b| (b, s)) });
    let body: BoxStream<'static, Bytes> = body.boxed();
    let mut response = with_type(200, "application/json", Bytes::new());
    *response.body_mut() = ApiBody::stream(body);
    Ok(response)
}

/// Waits for an optional end; without one, forever.
async fn end(of: &mut Option<Pin<Box<WaitForCancellationFutureOwned>>>) {
    match of {
        Some(end) => end.as_mut().await,
        None => std::future::pending().await,
    }
}

impl Stream {
    async fn begin(&mut self) {
        let current = self.server.store.revision();
        let from_start = match (self.options.initial_events, self.wanted) {
            (Some(initial), _) => initial,
            (None, revision) => matches!(revision, None | Some(0)),
        };
        if self.options.initial_events == Some(true)
            && let Some(wanted) = self.wanted.filter(|rv| *rv > current)
        {
            self.fail(&ApiError::too_large(wanted, current));
            return;
        }
        if from_start {
            let storage = &self.resource.storage;
            let (page, watcher) = self.server.store.list_and_watch(storage, self.namespace.as_deref());
            let mut buffer = Vec::new();
            let items = match bring(&self.server, &self.resource, page.items).await {
                Ok(items) => items,
                Err(error) => return self.fail(&error),
            };
            for record in &items {
                if self.wants(record) {
                    self.put(&mut buffer, "ADDED", record);
                    self.cut(&mut buffer);
                }
            }
            if self.options.initial_events == Some(true) && self.options.bookmarks {
                self.bookmark(&mut buffer, page.revision, true);
            }
            if !buffer.is_empty() {
                self.pending.push_back(buffer.into());
            }
            self.watcher = Some(watcher);
            return;
        }
        let after = match self.wanted {
            Some(rv) if rv > 0 => rv,
            _ => current,
        };
        let watcher = if after > current {
            None
        } else {
            self.server.store.watch(&self.resource.storage, after).ok()
        };
        match watcher {
            Some(watcher) => self.watcher = Some(watcher),
            None => self.fail(&ApiError::expired(format!(
                "too old resource version: {after} ({current})"
            ))),
        }
    }

    fn fail(&mut self, error: &ApiError) {
        let line = format!("{}\n", json!({"type": "ERROR", "object": error.status()}));
        self.pending.push_back(line.into());
        self.over = true;
    }

    fn in_namespace(&self, record: &Record) -> bool {
        self.namespace.as_deref().is_none_or(|ns| record.key.namespace() == ns)
    }

    fn wants(&self, record: &Record) -> bool {
        self.in_namespace(record) && selected(&self.resource, &self.options, record)
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(piece) = self.pending.pop_front() {
                return Some(piece);
            }
            if self.over {
                return None;
            }
            self.take().await;
            if !self.pending.is_empty() {
                continue;
            }
            let watcher = self.watcher.as_mut()?;
            let wakes = if self.options.bookmarks {
                self.ends.min(self.next_bookmark)
            } else {
                self.ends
            };
            // The timer is reset only if it changes: one write wakes thousands of watches.
            if self.timer.deadline() != wakes {
                self.timer.as_mut().reset(wakes);
            }
            tokio::select! {
                biased;
                () = watcher.changed() => {}
                () = self.shutdown.as_mut() => return None,
                // Clients reconnect and get the current definition.
                () = end(&mut self.retired) => {
                    self.take().await;
                    self.over = true;
                }
                () = self.timer.as_mut() => self.on_time().await,
            }
        }
    }

    async fn on_time(&mut self) {
        let now = Instant::now();
        self.over = now >= self.ends;
        if self.options.bookmarks {
            self.next_bookmark = now + BOOKMARK_EVERY;
            let failed = !self.take().await;
            let position = self.watcher.as_ref().map_or(0, Watcher::position);
            // No event follows an error.
            if position > self.bookmarked && !failed {
                let mut buffer = Vec::new();
                self.bookmark(&mut buffer, position, false);
                self.pending.push_back(buffer.into());
            }
        }
    }

    /// Reads new events into `pending`; false if they are no longer available.
    async fn take(&mut self) -> bool {
        let Some(watcher) = self.watcher.as_mut() else {
            return true;
        };
        let events = match watcher.take() {
            Ok(events) => events,
            Err(expired) => {
                let error = ApiError::expired(format!(
                    "too old resource version: {} ({})",
                    watcher.position(),
                    expired.oldest
                ));
                self.fail(&error);
                return false;
            }
        };
        let shares = self.view == View::Full && Lines::pays(watcher.followers(), events.len());
        let events = match self.brought(events).await {
            Ok(events) => events,
            Err(error) => {
                self.fail(&error);
                return false;
            }
        };
        let mut buffer = Vec::new();
        for event in &events {
            let Some(kind) = self.kind(event) else {
                continue;
            };
            if shares {
                let line = self.server.lines.get(event, &self.resource, kind, || {
                    let mut line = Vec::with_capacity(event.record.value.len() + 64);
                    let record = shown(event, kind);
                    put_line(kind, &mut line, |line| put_served(&self.resource, &record, line));
                    line
                });
                self.pending.push_back(line);
            } else {
                let record = shown(event, kind);
                self.put(&mut buffer, kind, &record);
                self.cut(&mut buffer);
            }
        }
        if !buffer.is_empty() {
            self.pending.push_back(buffer.into());
        }
        true
    }

    /// The events with objects that are prepared to be served.
    async fn brought(&self, mut events: Vec<Arc<Event>>) -> Result<Vec<Arc<Event>>, ApiError> {
        if self.resource.conversion.is_none() {
            return Ok(events);
        }
        // Objects that are not shown are not sent to a webhook.
        events.retain(|event| self.in_namespace(&event.record));
        let selective = !self.options.labels.is_empty() || !self.options.fields.0.is_empty();
        for event in &mut events {
            let record = self.brought_one(&event.record).await?;
            let previous = match event.previous.as_ref().filter(|_| selective) {
                Some(previous) => self.brought_one(previous).await?,
                None => None,
            };
            if record.is_some() || previous.is_some() {
                *event = Arc::new(Event {
                    record: record.unwrap_or_else(|| Arc::clone(&event.record)),
                    previous: previous.or_else(|| event.previous.clone()),
                    deleted: event.deleted,
                });
            }
        }
        Ok(events)
    }

    /// The object, prepared to be served, if it needs that.
    async fn brought_one(&self, record: &Arc<Record>) -> Result<Option<Arc<Record>>, ApiError> {
        let brought = bring_one(&self.server, &self.resource, Arc::clone(record)).await?;
        Ok(Some(brought).filter(|brought| !Arc::ptr_eq(brought, record)))
    }

    /// The type of event that a change is for this watch, if any.
    fn kind(&self, event: &Event) -> Option<&'static str> {
        if !self.in_namespace(&event.record) {
            return None;
        }
        let had = event.previous.as_deref().is_some_and(|p| self.wants(p));
        let has = !event.deleted && self.wants(&event.record);
        match (had, has) {
            (false, false) => None,
            (false, true) => Some("ADDED"),
            (true, true) => Some("MODIFIED"),
            (true, false) => Some("DELETED"),
        }
    }

    fn put(&mut self, buffer: &mut Vec<u8>, kind: &str, record: &Record) {
        let put = |buffer: &mut Vec<u8>| match self.view {
            View::Full => put_served(&self.resource, record, buffer),
            View::Metadata(version) | View::MetadataList(version) => put_metadata(record, version, buffer),
            View::Table(version, include) => {
                let object = served(&self.resource, record)?;
                let row = table::row(&self.resource, &object, self.server.now(), version, include);
                let meta = json!({"resourceVersion": record.revision.to_string()});
                let mut table = table::table(&self.resource, version, &[row], &meta);
                if self.sent_columns {
                    // Only the first event of a stream has column definitions.
                    table["columnDefinitions"] = Value::Null;
                }
                buffer.extend_from_slice(table.to_string().as_bytes());
                Ok(())
            }
        };
        put_line(kind, buffer, put);
        self.sent_columns = true;
    }

    fn bookmark(&mut self, buffer: &mut Vec<u8>, revision: u64, initial_end: bool) {
        let mut object = match self.view {
            View::Full => json!({"kind": self.resource.kind, "apiVersion": self.resource.api_version()}),
            View::Metadata(version) | View::MetadataList(version) => {
                json!({"kind": PARTIAL, "apiVersion": version.api_version()})
            }
            View::Table(version, _) => {
                let meta = json!({"resourceVersion": revision.to_string()});
                table::table(&self.resource, version, &[], &meta)
            }
        };
        if !matches!(self.view, View::Table(..)) {
            object["metadata"] = json!({"resourceVersion": revision.to_string()});
            if initial_end {
                object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
            }
        }
        self.bookmarked = revision;
        let line = format!("{{\"type\":\"BOOKMARK\",\"object\":{object}}}\n");
        buffer.extend_from_slice(line.as_bytes());
    }

    fn cut(&mut self, buffer: &mut Vec<u8>) {
        if buffer.len() >= PIECE {
            self.pending.push_back(std::mem::take(buffer).into());
        }
    }
}

/// The object to show for a change.
fn shown(event: &Event, kind: &str) -> Arc<Record> {
    match &event.previous {
        // The object as it was when last selected: the client has not seen its later state.
        Some(last) if kind == "DELETED" && !event.deleted => Arc::new(last.deleted_at(event.revision())),
        _ => Arc::clone(&event.record),
    }
}

/// Writes the line of a change. An object that cannot be encoded becomes an ERROR event.
fn put_line(kind: &str, line: &mut Vec<u8>, put: impl FnOnce(&mut Vec<u8>) -> Result<(), ApiError>) {
    line.extend_from_slice(b"{\"type\":\"");
    line.extend_from_slice(kind.as_bytes());
    line.extend_from_slice(b"\",\"object\":");
    let before = line.len();
    if let Err(error) = put(line) {
        line.truncate(before);
        line.extend_from_slice(error.status().to_string().as_bytes());
    }
    line.extend_from_slice(b"}\n");
}
