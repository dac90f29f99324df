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
use serde_json::json;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;
use windlass_store::{Record, Watcher};

use crate::error::ApiError;
use crate::http::body::{ApiBody, with_type};
use crate::http::per_user::Place;
use crate::objects::convert::bring;
use crate::objects::resource::Resource;
use crate::objects::view::View;
use crate::state::Inner;
use crate::verbs::options::ListOptions;
use crate::verbs::read::{check_fields, selected, selected_by_key};
use crate::verbs::watch_lines::Lines;
use crate::verbs::watch_queue::Source;

mod encode;

/// Interval of bookmarks of a quiet watch.
const BOOKMARK_EVERY: Duration = Duration::from_mins(1);
/// A watch lasts no longer than this, whatever its client asks for: a time may be too far away to be computed.
const LONGEST: Duration = Duration::from_hours(365 * 24);

struct Stream {
    server: Arc<Inner>,
    resource: Arc<Resource>,
    namespace: Option<String>,
    options: ListOptions,
    view: View,
    watcher: Option<Watcher>,
    /// What is to be sent after `pending`, not encoded yet.
    queue: VecDeque<Source>,
    /// What is encoded: no more than the client takes next.
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
    place: Option<Place<()>>,
    /// Counts the bytes of `pending`, if they are many.
    unsent: Option<Place<()>>,
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
        queue: VecDeque::new(),
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
        place,
        unsent: None,
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
        if self.options.initial_events == Some(true)
            && let Some(wanted) = self.wanted.filter(|rv| *rv > current)
        {
            self.fail(&ApiError::too_large(wanted, current));
            return;
        }
        if self.options.begins_with_objects() {
            let storage = &self.resource.storage;
            let (page, watcher) = self.server.store.list_and_watch(storage, self.namespace.as_deref());
            self.watcher = Some(watcher);
            if let Err(error) = self.select(&page.items).await {
                return self.fail(&error);
            }
            if self.options.initial_events == Some(true) && self.options.bookmarks {
                self.queue.push_back(Source::Bookmark(page.revision, true));
            }
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
            None => self.fail(&too_old(after, current)),
        }
    }

    /// Puts the objects that the watch selects into the queue.
    async fn select(&mut self, items: &[Arc<Record>]) -> Result<(), ApiError> {
        if !self.options.is_selective() {
            self.queue.extend(items.iter().map(Source::object));
            return Ok(());
        }
        let is_selected = |record: &&Arc<Record>| selected_by_key(&self.options, record);
        let items: Vec<Arc<Record>> = items.iter().filter(is_selected).map(Arc::clone).collect();
        if !self.options.needs_objects() {
            for record in &items {
                if self.in_namespace(record) {
                    self.queue.push_back(Source::object(record));
                }
            }
            return Ok(());
        }
        let brought = bring(&self.server, &self.resource, items.clone()).await?;
        for (stored, shown) in items.iter().zip(&brought) {
            if self.in_namespace(shown) && selected(&self.resource, &self.options, shown) {
                self.queue.push_back(Source::object(stored));
            }
        }
        Ok(())
    }

    /// Ends the watch with an error. No event follows.
    fn fail(&mut self, error: &ApiError) {
        let line = format!("{}\n", json!({"type": "ERROR", "object": error.status()}));
        self.queue.clear();
        self.pending.push_back(line.into());
        self.over = true;
    }

    fn in_namespace(&self, record: &Record) -> bool {
        self.namespace.as_deref().is_none_or(|ns| record.key.namespace() == ns)
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(piece) = self.pending.pop_front() {
                return Some(piece);
            }
            if !self.queue.is_empty() {
                self.encode().await;
                if self.pending.is_empty() {
                    // None of many changes was for this watch. Others have waited meanwhile.
                    tokio::task::yield_now().await;
                }
                continue;
            }
            if self.over {
                return None;
            }
            self.take();
            if !self.queue.is_empty() || self.over {
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
                    self.take();
                    self.over = true;
                }
                () = self.timer.as_mut() => self.on_time(),
            }
        }
    }

    fn on_time(&mut self) {
        let now = Instant::now();
        self.over = now >= self.ends;
        if self.options.bookmarks {
            self.next_bookmark = now + BOOKMARK_EVERY;
            let failed = !self.take();
            let position = self.watcher.as_ref().map_or(0, Watcher::position);
            if position > self.bookmarked && !failed {
                self.queue.push_back(Source::Bookmark(position, false));
            }
        }
    }

    /// Reads new events into the queue; false if they are no longer available.
    fn take(&mut self) -> bool {
        let Some(watcher) = self.watcher.as_mut() else {
            return true;
        };
        let events = match watcher.take() {
            Ok(events) => events,
            Err(expired) => {
                let error = too_old(watcher.position(), expired.oldest);
                self.fail(&error);
                return false;
            }
        };
        let decodes = self.view != View::Full || self.options.needs_objects();
        let shares = Lines::pays(watcher.followers(), events.len(), decodes);
        for event in &events {
            if self.in_namespace(&event.record) {
                self.queue.push_back(Source::change(event, shares));
            }
        }
        true
    }
}

/// The history after a revision is forgotten. What is known begins with the second one.
fn too_old(after: u64, known: u64) -> ApiError {
    ApiError::expired(format!("too old resource version: {after} ({known})"))
}
