//! The lines of a watch.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use windlass_meta::budget::LIGHT_BYTES;
use windlass_store::{Event, Record};

use super::{Stream, too_old};
use crate::error::ApiError;
use crate::objects::convert::{bring, bring_one, put_served, served, served_parts};
use crate::objects::table;
use crate::objects::view::{PARTIAL, View, put_metadata};
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
        for record in bring(&self.server, &self.resource, records).await? {
            self.put(&mut buffer, "ADDED", &record);
        }
        self.flush(&mut buffer);
        Ok(())
    }

    async fn changes(&mut self, events: Vec<Arc<Event>>, shares: bool) -> Result<(), ApiError> {
        let mut buffer = Vec::new();
        for event in &self.brought(events).await? {
            let Some(kind) = self.kind(event) else {
                continue;
            };
            let record = shown(event, kind);
            if shares {
                let line = self.server.lines.get(event, &self.resource, kind, || {
                    let mut line = Vec::with_capacity(event.record.value.len() + 64);
                    put_line(kind, &mut line, |line| put_served(&self.resource, &record, line));
                    line
                });
                self.pending.push_back(line);
            } else {
                self.put(&mut buffer, kind, &record);
            }
        }
        self.flush(&mut buffer);
        Ok(())
    }

    /// The events with objects that are prepared to be served.
    async fn brought(&self, mut events: Vec<Arc<Event>>) -> Result<Vec<Arc<Event>>, ApiError> {
        if self.resource.conversion.is_none() {
            return Ok(events);
        }
        let selective = self.is_selective();
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
        if self.view == View::Full
            && record.value.len() > LIGHT_BYTES
            && let Some((start, rest)) = served_parts(&self.resource, record)
        {
            // The bytes of large objects are those of the store.
            begin_line(kind, buffer);
            buffer.extend_from_slice(&start);
            self.flush(buffer);
            self.pending.push_back(rest);
            buffer.extend_from_slice(LINE_END);
            return;
        }
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

/// The object to show for a change.
fn shown(event: &Event, kind: &str) -> Arc<Record> {
    match &event.previous {
        // The object as it was when last selected: the client has not seen its later state.
        Some(last) if kind == "DELETED" && !event.deleted => Arc::new(last.deleted_at(event.revision())),
        _ => Arc::clone(&event.record),
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
