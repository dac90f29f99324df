//! The lines of a watch.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use windlass_meta::budget::{LIGHT_BYTES, REQUEST_TIME};
use windlass_store::{Event, Record};

use super::{Stream, too_old};
use crate::error::ApiError;
use crate::http::deadline;
use crate::http::heavy::at_once;
use crate::objects::convert::{bring, brought_now, is_in_process, is_ready, put_served, served, served_parts};
use crate::objects::table;
use crate::objects::view::{PARTIAL, View, put_metadata};
use crate::verbs::read::{TABLE_END, put_row, selected_by_fields, selected_by_key, table_start};
use crate::verbs::watch_lines::{Part, Shown};
use crate::verbs::watch_queue::{self, Batch};

/// About as much is encoded at the same time.
const PIECE: usize = 256 << 10;
/// Objects or changes that are encoded at the same time.
const BATCH: usize = 256;

impl Stream {
    /// Encodes the next part of the queue into `pending`.
    pub(super) async fn encode(&mut self) {
        let Some(batch) = watch_queue::next(&mut self.queue, BATCH, PIECE) else {
            return;
        };
        let done = match batch {
            Batch::Objects(records) => self.objects(records).await,
            Batch::Changes(events, shares) => self.changes(events, shares).await,
            Batch::Bookmark(revision, ends_initial) => {
                self.bookmark(revision, ends_initial);
                Ok(())
            }
            Batch::Forgotten(revision) => Err(too_old(revision, self.server.store.revision())),
        };
        if let Err(error) = done.and_then(|()| self.count()) {
            self.pending.clear();
            self.fail(&error);
        }
    }

    /// Counts the bytes that are about to be sent, if they are more than those of a piece. They may be of an object that is stored no more.
    fn count(&mut self) -> Result<(), ApiError> {
        self.unsent = None;
        let size: usize = self.pending.iter().map(Bytes::len).sum();
        if size > PIECE
            && let Some(place) = &self.place
        {
            self.unsent = Some(self.server.heavy.piece(place, size)?);
        }
        Ok(())
    }

    async fn objects(&mut self, records: Vec<Arc<Record>>) -> Result<(), ApiError> {
        let mut buffer = Vec::new();
        for record in self.brought(records).await? {
            self.put(&mut buffer, "ADDED", &Shows::now(&record), false).await;
        }
        self.flush(&mut buffer);
        Ok(())
    }

    async fn changes(&mut self, events: Vec<Arc<Event>>, shares: bool) -> Result<(), ApiError> {
        let mut buffer = Vec::new();
        for event in &self.brought_events(events).await? {
            let Some(kind) = self.kind(event, shares).await else {
                continue;
            };
            let shows = Shows::of(event, kind);
            if shares && self.view == View::Full && shows.record.value.len() <= LIGHT_BYTES {
                let line = self
                    .server
                    .lines
                    .get(shows.record, shows.revision, (&self.resource, kind), || {
                        let mut line = Vec::with_capacity(event.record.value.len() + 64);
                        put_line(kind, &mut line, |line| {
                            put_served(&self.resource, &shows.object(), line)
                        });
                        line
                    });
                // What was encoded before comes before.
                self.flush(&mut buffer);
                self.pending.push_back(line);
            } else {
                self.put(&mut buffer, kind, &shows, shares).await;
            }
        }
        self.flush(&mut buffer);
        Ok(())
    }

    /// The events with objects that are prepared to be served.
    async fn brought_events(&self, mut events: Vec<Arc<Event>>) -> Result<Vec<Arc<Event>>, ApiError> {
        if self.resource.conversion.is_none() {
            return Ok(events);
        }
        let selective = self.options.is_selective();
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
        if is_ready(&self.resource, record) {
            return Ok(None);
        }
        if !is_in_process(&self.resource, record) {
            return Ok(self.brought(vec![Arc::clone(record)]).await?.pop());
        }
        // Watches of the same version share the form.
        let (server, resource) = (&self.server, &self.resource);
        let form = || {
            server
                .forms
                .get(record, resource, || brought_now(server, resource, record))
        };
        if record.value.len() <= LIGHT_BYTES {
            return form().map(Some);
        }
        let form = deadline::within(REQUEST_TIME, async { at_once(form) });
        let turn = self.server.heavy.work(self.place.as_ref(), form);
        Box::pin(turn).await.map(Some)
    }

    /// Objects, prepared to be served. That takes a turn if large ones are not stored as they are served.
    async fn brought(&self, records: Vec<Arc<Record>>) -> Result<Vec<Arc<Record>>, ApiError> {
        let is_heavy = |record: &Arc<Record>| record.value.len() > LIGHT_BYTES && !is_ready(&self.resource, record);
        if !records.iter().any(is_heavy) {
            return bring(&self.server, &self.resource, records).await;
        }
        let mut brought = Box::pin(bring(&self.server, &self.resource, records));
        let brought = std::future::poll_fn(move |cx| at_once(|| brought.as_mut().poll(cx)));
        // The watch waits for its turn as long as it takes. Only the conversion has a time limit.
        let heavy = &self.server.heavy;
        Box::pin(heavy.work(self.place.as_ref(), deadline::within(REQUEST_TIME, brought))).await
    }

    /// The type of event that a change is for this watch, if any.
    async fn kind(&self, event: &Event, shares: bool) -> Option<&'static str> {
        if !self.in_namespace(&event.record) {
            return None;
        }
        let had = match &event.previous {
            Some(previous) => self.wants(previous, shares).await,
            None => false,
        };
        let has = !event.deleted && self.wants(&event.record, shares).await;
        match (had, has) {
            (false, false) => None,
            (false, true) => Some("ADDED"),
            (true, true) => Some("MODIFIED"),
            (true, false) => Some("DELETED"),
        }
    }

    /// Whether the watch selects an object of its namespace.
    async fn wants(&self, record: &Arc<Record>, shares: bool) -> bool {
        if !selected_by_key(&self.options, record) {
            return false;
        }
        if !self.options.needs_objects() {
            return true;
        }
        let (resource, shows) = (&self.resource, Shows::now(record));
        let values = self.part(&shows, None, shares, || {
            let object = served(resource, record).unwrap_or(Value::Null);
            let value = |(field, _): &(String, String)| (resource.strategy.field)(&object, field);
            Ok(Shown::Fields(resource.selectable.iter().map(value).collect()))
        });
        let Ok(Shown::Fields(values)) = values.await else {
            return false;
        };
        selected_by_fields(&self.options, |field| {
            let mut known = resource.selectable.iter().zip(values.iter());
            known
                .find(|((name, _), _)| name == field)
                .map(|(_, value)| value.clone())
                .unwrap_or_default()
        })
    }

    /// A part of an object: computed once for all watches that show it, if the object is large or `shares`, and in a turn if it is large.
    async fn part(
        &self,
        shows: &Shows<'_>,
        view: Option<View>,
        shares: bool,
        compute: impl FnOnce() -> Result<Shown, ApiError>,
    ) -> Result<Shown, ApiError> {
        let is_large = shows.record.value.len() > LIGHT_BYTES;
        if !is_large && !shares {
            return compute();
        }
        let slot = self.server.parts.slot(&Part {
            record: shows.record,
            revision: shows.revision,
            resource: &self.resource,
            view,
            now: self.server.now().as_second(),
        });
        if let Some(known) = slot.get() {
            return Ok(known.clone());
        }
        if !is_large {
            let made = compute()?;
            // Another watch may have been as fast.
            let _ = slot.set(made.clone());
            return Ok(made);
        }
        // Each waits for a turn of its own user, so that none waits for the turn of another one.
        let made = slot.get_or_try_init(async || at_once(compute));
        self.server.heavy.work(self.place.as_ref(), made).await.cloned()
    }

    /// Writes the line of a change.
    async fn put(&mut self, buffer: &mut Vec<u8>, kind: &str, shows: &Shows<'_>, shares: bool) {
        let is_large = shows.record.value.len() > LIGHT_BYTES;
        let is_stored = self.view == View::Full && !self.resource.converts() && shows.is_stored();
        if is_stored
            && is_large
            && let Some((start, rest)) = served_parts(&self.resource, shows.record)
        {
            // The bytes of large objects are those of the store.
            begin_line(kind, buffer);
            buffer.extend_from_slice(&start);
            self.flush(buffer);
            self.pending.push_back(rest);
            buffer.extend_from_slice(LINE_END);
            return;
        }
        if is_stored {
            put_line(kind, buffer, |line| put_served(&self.resource, shows.record, line));
            return;
        }
        let (resource, view, now) = (&self.resource, self.view, self.server.now());
        let encode = |out: &mut Vec<u8>| match view {
            View::Full => put_served(resource, &shows.object(), out),
            View::Metadata(version) | View::MetadataList(version) => put_metadata(&shows.object(), version, out),
            View::Table(version, include) => put_row(resource, &shows.object(), now, version, include, out),
        };
        begin_line(kind, buffer);
        let begun = buffer.len();
        let has_columns = !self.sent_columns;
        if let View::Table(version, _) = view {
            // Only the first event of a stream has column definitions.
            let meta = json!({"resourceVersion": shows.revision.to_string()});
            buffer.extend_from_slice(table_start(resource, version, has_columns, &meta).as_bytes());
        }
        let done = if is_large || shares {
            let part = self.part(shows, Some(view), shares, || {
                let mut out = Vec::new();
                encode(&mut out)?;
                Ok(Shown::Encoded(out.into()))
            });
            part.await.map(Some)
        } else {
            encode(buffer).map(|()| None)
        };
        match done {
            Ok(part) => {
                if let Some(Shown::Encoded(bytes)) = part {
                    self.append(buffer, bytes);
                }
                if matches!(view, View::Table(..)) {
                    buffer.extend_from_slice(TABLE_END);
                    self.sent_columns = true;
                }
            }
            Err(error) => {
                buffer.truncate(begun);
                buffer.extend_from_slice(error.status().to_string().as_bytes());
            }
        }
        buffer.extend_from_slice(LINE_END);
    }

    /// Appends bytes that many watches share. Many of them are not copied.
    fn append(&mut self, buffer: &mut Vec<u8>, bytes: Bytes) {
        if bytes.len() > LIGHT_BYTES {
            self.flush(buffer);
            self.pending.push_back(bytes);
        } else {
            buffer.extend_from_slice(&bytes);
        }
    }

    fn bookmark(&mut self, revision: u64, ends_initial: bool) {
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
            if ends_initial {
                object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
            }
        }
        self.bookmarked = revision;
        let line = format!("{{\"type\":\"BOOKMARK\",\"object\":{object}}}\n");
        self.pending.push_back(line.into());
    }

    fn flush(&mut self, buffer: &mut Vec<u8>) {
        if !buffer.is_empty() {
            self.pending.push_back(Bytes::from(std::mem::take(buffer)));
        }
    }
}

/// What a line shows: an object at a revision.
struct Shows<'a> {
    record: &'a Arc<Record>,
    revision: u64,
}

impl<'a> Shows<'a> {
    fn now(record: &'a Arc<Record>) -> Self {
        Self {
            record,
            revision: record.revision,
        }
    }

    fn of(event: &'a Event, kind: &str) -> Self {
        match &event.previous {
            // The object as it was when last selected: the client has not seen its later state.
            Some(last) if kind == "DELETED" && !event.deleted => Self {
                record: last,
                revision: event.revision(),
            },
            _ => Self::now(&event.record),
        }
    }

    /// Whether the line shows the object as it is stored.
    fn is_stored(&self) -> bool {
        self.revision == self.record.revision
    }

    /// The object with the revision that is shown.
    fn object(&self) -> Arc<Record> {
        if self.is_stored() {
            return Arc::clone(self.record);
        }
        Arc::new(self.record.deleted_at(self.revision))
    }
}

const LINE_END: &[u8] = b"}\n";

fn begin_line(kind: &str, line: &mut Vec<u8>) {
    line.extend_from_slice(b"{\"type\":\"");
    line.extend_from_slice(kind.as_bytes());
    line.extend_from_slice(b"\",\"object\":");
}

/// Writes the line of a change. An object that cannot be encoded becomes an ERROR event.
fn put_line(kind: &str, line: &mut Vec<u8>, put: impl FnOnce(&mut Vec<u8>) -> Result<(), ApiError>) {
    begin_line(kind, line);
    let before = line.len();
    if let Err(error) = put(line) {
        line.truncate(before);
        line.extend_from_slice(error.status().to_string().as_bytes());
    }
    line.extend_from_slice(LINE_END);
}
