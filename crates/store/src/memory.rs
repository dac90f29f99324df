//! What is held in memory: the objects of each resource in order, and the log of recent changes.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use tokio::sync::watch;

use crate::record::{Event, Key, Record, path_of};
use crate::store::{Limits, ListQuery, Page};
use crate::watcher::Expired;

/// Everything that is stored, and its history.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) revision: u64,
    /// Nothing older than this is known: the revision at which the store was opened.
    base: u64,
    limits: Limits,
    tables: HashMap<Arc<str>, Table>,
}

/// The objects of one resource.
#[derive(Debug)]
struct Table {
    objects: BTreeMap<Arc<str>, Arc<Record>>,
    log: VecDeque<Arc<Event>>,
    log_bytes: usize,
    /// Changes up to this revision may be missing from the log.
    compacted: u64,
    changed: watch::Sender<u64>,
}

impl Table {
    fn new(base: u64) -> Self {
        Self {
            objects: BTreeMap::new(),
            log: VecDeque::new(),
            log_bytes: 0,
            compacted: base,
            changed: watch::Sender::new(base),
        }
    }

    fn push(&mut self, event: Arc<Event>, limits: Limits) {
        let revision = event.revision();
        self.log_bytes += weight(&event);
        self.log.push_back(event);
        while self.log.len() > limits.log_events || (self.log_bytes > limits.log_bytes && self.log.len() > 1) {
            let Some(old) = self.log.pop_front() else {
                break;
            };
            self.log_bytes -= weight(&old);
            self.compacted = old.revision();
        }
        self.changed.send_replace(revision);
    }
}

fn weight(event: &Event) -> usize {
    event.record.value.len() + 64
}

impl Memory {
    pub(crate) fn new(revision: u64, limits: Limits) -> Self {
        Self {
            revision,
            base: revision,
            limits,
            tables: HashMap::new(),
        }
    }

    /// Puts a record read from disk in its place, without an event.
    pub(crate) fn load(&mut self, record: Record) {
        let base = self.base;
        self.tables
            .entry(Arc::clone(&record.key.resource))
            .or_insert_with(|| Table::new(base))
            .objects
            .insert(Arc::clone(&record.key.path), Arc::new(record));
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<Record>> {
        self.tables.get(&key.resource)?.objects.get(&key.path)
    }

    pub(crate) fn find(&self, resource: &str, namespace: &str, name: &str) -> Option<&Arc<Record>> {
        self.tables
            .get(resource)?
            .objects
            .get(path_of(namespace, name).as_str())
    }

    /// Makes a change visible.
    pub(crate) fn apply(&mut self, event: &Arc<Event>) {
        let base = self.base;
        let record = &event.record;
        let table = self
            .tables
            .entry(Arc::clone(&record.key.resource))
            .or_insert_with(|| Table::new(base));
        if event.deleted {
            table.objects.remove(&record.key.path);
        } else {
            table.objects.insert(Arc::clone(&record.key.path), Arc::clone(record));
        }
        self.revision = event.revision();
        table.push(Arc::clone(event), self.limits);
    }

    pub(crate) fn subscribe(&mut self, resource: &Arc<str>) -> watch::Receiver<u64> {
        let base = self.base;
        self.tables
            .entry(Arc::clone(resource))
            .or_insert_with(|| Table::new(base))
            .changed
            .subscribe()
    }

    /// Changes of a resource after a revision, oldest first.
    pub(crate) fn events_after(&self, resource: &str, after: u64) -> Result<Vec<Arc<Event>>, Expired> {
        let Some(table) = self.tables.get(resource) else {
            return if after < self.base {
                Err(Expired { oldest: self.base })
            } else {
                Ok(Vec::new())
            };
        };
        if after < table.compacted {
            return Err(Expired {
                oldest: table.compacted,
            });
        }
        let start = table.log.partition_point(|e| e.revision() <= after);
        Ok(table.log.range(start..).cloned().collect())
    }

    pub(crate) fn count(&self, resource: &str) -> usize {
        self.tables.get(resource).map_or(0, |t| t.objects.len())
    }

    pub(crate) fn resources(&self) -> Vec<Arc<str>> {
        self.tables
            .iter()
            .filter(|(_, t)| !t.objects.is_empty())
            .map(|(r, _)| Arc::clone(r))
            .collect()
    }

    pub(crate) fn list(&self, query: &ListQuery<'_>) -> Result<Page, Expired> {
        let revision = query.at.unwrap_or(self.revision);
        let empty = Page {
            revision,
            items: Vec::new(),
        };
        let Some(table) = self.tables.get(query.resource) else {
            return if revision < self.base {
                Err(Expired { oldest: self.base })
            } else {
                Ok(empty)
            };
        };
        let undone = match query.at {
            Some(at) if at < self.revision => table.undone(at)?,
            _ => BTreeMap::new(),
        };
        let prefix = query.namespace.map(|ns| path_of(ns, "")).unwrap_or_default();
        let after = query.after.map(|(ns, name)| path_of(ns, name));
        let start: Bound<&str> = match &after {
            Some(path) => Bound::Excluded(path.as_str()),
            None => Bound::Included(prefix.as_str()),
        };
        let now = table
            .objects
            .range::<str, _>((start, Bound::Unbounded))
            .take_while(|(path, _)| path.starts_with(&prefix));
        if undone.is_empty() {
            return Ok(Page {
                revision,
                items: now.map(|(_, r)| Arc::clone(r)).collect(),
            });
        }
        let mut items: BTreeMap<Arc<str>, Arc<Record>> = now.map(|(p, r)| (Arc::clone(p), Arc::clone(r))).collect();
        for (path, record) in undone {
            let within = path.starts_with(&prefix) && after.as_ref().is_none_or(|a| path.as_ref() > a.as_str());
            match record {
                Some(record) if within => {
                    items.insert(path, record);
                }
                _ => {
                    items.remove(&path);
                }
            }
        }
        Ok(Page {
            revision,
            items: items.into_values().collect(),
        })
    }
}

impl Table {
    /// What was stored at a revision under each key that has changed since.
    fn undone(&self, at: u64) -> Result<BTreeMap<Arc<str>, Option<Arc<Record>>>, Expired> {
        if at < self.compacted {
            return Err(Expired { oldest: self.compacted });
        }
        let mut undone = BTreeMap::new();
        for event in self.log.iter().rev().take_while(|e| e.revision() > at) {
            undone.insert(Arc::clone(&event.record.key.path), event.previous.clone());
        }
        Ok(undone)
    }
}
