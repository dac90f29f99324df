//! The state in memory: the objects of each resource in order, and the log of recent changes.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use tokio::sync::watch;

use crate::labels::{self, Labels};
use crate::record::{Event, Key, Record, path_of};
use crate::store::{Limits, ListQuery, Page, Sizes};
use crate::watcher::Expired;

/// All objects and their history.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) revision: u64,
    /// The oldest known revision: that of the base from which the store was loaded.
    base: u64,
    limits: Limits,
    tables: HashMap<Arc<str>, Table>,
    /// The bytes that the logs of all tables keep in memory.
    log_bytes: usize,
}

/// The objects of one resource.
#[derive(Debug)]
pub(crate) struct Table {
    objects: BTreeMap<Arc<str>, Arc<Record>>,
    labels: Labels,
    /// The bytes of the encodings of `objects`.
    bytes: usize,
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
            labels: Labels::default(),
            bytes: 0,
            log: VecDeque::new(),
            log_bytes: 0,
            compacted: base,
            changed: watch::Sender::new(base),
        }
    }

    fn insert(&mut self, record: Arc<Record>) {
        self.bytes += record.value.len();
        if let Some(old) = self.objects.get(&record.key.path) {
            self.labels.remove(old);
        }
        self.labels.add(&record);
        if let Some(old) = self.objects.insert(Arc::clone(&record.key.path), record) {
            self.bytes -= old.value.len();
        }
    }

    fn remove(&mut self, path: &str) {
        if let Some(old) = self.objects.remove(path) {
            self.bytes -= old.value.len();
            self.labels.remove(&old);
        }
    }

    /// Objects in order, after a place or from it on.
    fn range<'a>(
        &'a self,
        start: Bound<&str>,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<Record>)> {
        let from_there = self.objects.range::<str, _>((start, Bound::Unbounded));
        from_there.take_while(move |(path, _)| path.starts_with(prefix))
    }

    fn push(&mut self, event: Arc<Event>) {
        self.log_bytes += weight(&event);
        self.changed.send_replace(event.revision());
        self.log.push_back(event);
    }

    /// Drops the oldest change. Returns the bytes that it kept in memory.
    fn forget(&mut self) -> usize {
        let Some(old) = self.log.pop_front() else {
            return 0;
        };
        let bytes = weight(&old);
        self.log_bytes -= bytes;
        self.compacted = old.revision();
        bytes
    }

    fn is_over(&self, limits: Limits) -> bool {
        self.log.len() > limits.log_events || (self.log_bytes > limits.log_bytes && self.log.len() > 1)
    }
}

/// The bytes that only a change keeps in memory: the previous object, and the last state of a removed one.
fn weight(event: &Event) -> usize {
    const OF_A_RECORD: usize = 400;
    let previous = event.previous.as_ref().map_or(0, |p| p.value.len() + OF_A_RECORD);
    let removed = if event.deleted {
        event.record.value.len() + OF_A_RECORD
    } else {
        0
    };
    previous + removed + size_of::<Event>() + 24
}

impl Memory {
    pub(crate) fn new(revision: u64, limits: Limits) -> Self {
        Self {
            revision,
            base: revision,
            limits,
            tables: HashMap::new(),
            log_bytes: 0,
        }
    }

    /// Adds a record from disk, without an event.
    pub(crate) fn load(&mut self, record: Record) {
        let base = self.base;
        self.tables
            .entry(Arc::clone(&record.key.resource))
            .or_insert_with(|| Table::new(base))
            .insert(Arc::new(record));
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

    /// Whether changes leave the objects within their limit, or make them smaller.
    pub(crate) fn has_room_for(&self, events: &[Arc<Event>]) -> bool {
        let most = self.limits.object_bytes;
        if most == usize::MAX {
            return true;
        }
        let size = |record: &Record| record.value.len();
        let added: usize = events.iter().filter(|e| !e.deleted).map(|e| size(&e.record)).sum();
        let removed: usize = events.iter().filter_map(|e| e.previous.as_deref()).map(size).sum();
        let all: usize = self.tables.values().map(|table| table.bytes).sum();
        added <= removed || all + added - removed <= most
    }

    /// Publishes a change.
    pub(crate) fn apply(&mut self, event: &Arc<Event>) {
        let base = self.base;
        let record = &event.record;
        let table = self
            .tables
            .entry(Arc::clone(&record.key.resource))
            .or_insert_with(|| Table::new(base));
        if event.deleted {
            table.remove(&record.key.path);
        } else {
            table.insert(Arc::clone(record));
        }
        self.revision = event.revision();
        self.log_bytes += weight(event);
        table.push(Arc::clone(event));
        while table.is_over(self.limits) {
            self.log_bytes -= table.forget();
        }
        while self.log_bytes > self.limits.all_log_bytes {
            // The resource with the most changes has the longest history, so losing a part of it matters least.
            let longest = self.tables.values_mut().max_by_key(|t| t.log_bytes);
            match longest.map_or(0, Table::forget) {
                0 => break,
                bytes => self.log_bytes -= bytes,
            }
        }
    }

    /// All objects, in a stable order.
    pub(crate) fn records(&self) -> Vec<Arc<Record>> {
        let mut tables: Vec<_> = self.tables.iter().collect();
        tables.sort_unstable_by_key(|(resource, _)| Arc::clone(resource));
        tables
            .into_iter()
            .flat_map(|(_, table)| table.objects.values().cloned())
            .collect()
    }

    pub(crate) fn subscribe(&mut self, resource: &Arc<str>) -> watch::Receiver<u64> {
        let base = self.base;
        self.tables
            .entry(Arc::clone(resource))
            .or_insert_with(|| Table::new(base))
            .changed
            .subscribe()
    }

    /// The table of a resource, if its history after a revision is complete.
    pub(crate) fn known_after(&self, resource: &str, after: u64) -> Result<Option<&Table>, Expired> {
        let table = self.tables.get(resource);
        let oldest = table.map_or(self.base, |table| table.compacted);
        if after < oldest {
            return Err(Expired { oldest });
        }
        Ok(table)
    }

    /// Changes of a resource after a revision, oldest first.
    pub(crate) fn events_after(&self, resource: &str, after: u64) -> Result<Vec<Arc<Event>>, Expired> {
        let Some(table) = self.known_after(resource, after)? else {
            return Ok(Vec::new());
        };
        let start = table.log.partition_point(|e| e.revision() <= after);
        Ok(table.log.range(start..).cloned().collect())
    }

    /// Number of watchers of a resource.
    pub(crate) fn followers(&self, resource: &str) -> usize {
        self.tables.get(resource).map_or(0, |t| t.changed.receiver_count())
    }

    /// The objects of a namespace that have all of these labels, in order. None if there is no index of them yet.
    pub(crate) fn labelled(
        &self,
        resource: &str,
        namespace: &str,
        labels: &BTreeMap<String, String>,
    ) -> Option<Vec<Arc<Record>>> {
        let Some(table) = self.tables.get(resource) else {
            return Some(Vec::new());
        };
        let prefix = path_of(namespace, "");
        let found = |record: &&Arc<Record>| labels::has_all(record, labels);
        let indexed = labels::telling(labels).and_then(|(key, value)| table.labels.paths(key, value));
        if let Some(paths) = indexed {
            let of_namespace = paths.filter(|path| path.starts_with(&prefix));
            let records = of_namespace.filter_map(|path| table.objects.get(path));
            return Some(records.filter(found).cloned().collect());
        }
        let may_have_one = labels::telling(labels).is_some_and(|(key, _)| !table.labels.is_full_or_has(key));
        if may_have_one {
            return None;
        }
        let all = table.range(Bound::Included(&prefix), &prefix);
        Some(all.map(|(_, record)| record).filter(found).cloned().collect())
    }

    /// Makes the index by which objects with these labels are looked up.
    pub(crate) fn index(&mut self, resource: &str, labels: &BTreeMap<String, String>) {
        if let (Some(table), Some((key, _))) = (self.tables.get_mut(resource), labels::telling(labels))
            && !table.labels.is_full_or_has(key)
        {
            table.labels.index(key, table.objects.values());
        }
    }

    pub(crate) fn sizes(&self, resource: &str) -> Sizes {
        self.tables.get(resource).map_or_else(Sizes::default, |table| Sizes {
            objects: table.objects.len(),
            bytes: table.bytes,
            history: table.log_bytes,
        })
    }

    pub(crate) fn is_more(
        &self,
        resource: &str,
        namespace: Option<&str>,
        most: usize,
        weigh: impl Fn(&Record) -> usize,
    ) -> bool {
        let Some(table) = self.tables.get(resource) else {
            return false;
        };
        let prefix = namespace.map(|ns| path_of(ns, "")).unwrap_or_default();
        let mut sum: usize = 0;
        table.range(Bound::Included(&prefix), &prefix).any(|(_, record)| {
            sum = sum.saturating_add(weigh(record));
            sum > most
        })
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
            return self.known_after(query.resource, revision).map(|_| empty);
        };
        let undone = match query.at {
            Some(at) if at < self.revision => {
                self.known_after(query.resource, at)?;
                table.undone(at)
            }
            _ => BTreeMap::new(),
        };
        let prefix = query.namespace.map(|ns| path_of(ns, "")).unwrap_or_default();
        let after = query.after.map(|(ns, name)| path_of(ns, name));
        let start: Bound<&str> = match &after {
            Some(path) => Bound::Excluded(path.as_str()),
            None => Bound::Included(prefix.as_str()),
        };
        let now = table.range(start, &prefix);
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
    /// The object at a revision, for each key that has changed since.
    fn undone(&self, at: u64) -> BTreeMap<Arc<str>, Option<Arc<Record>>> {
        let mut undone = BTreeMap::new();
        for event in self.log.iter().rev().take_while(|e| e.revision() > at) {
            undone.insert(Arc::clone(&event.record.key.path), event.previous.clone());
        }
        undone
    }
}
