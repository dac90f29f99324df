//! Indexes of the objects of a resource by the values of labels.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::record::Record;

/// Indexes of one resource. One is kept for each label that is looked up: the rules of a program do that, not its clients, so they are few.
#[derive(Debug, Default)]
pub(crate) struct Labels(HashMap<Box<str>, Values>);

/// The paths of objects by the value of a label.
type Values = HashMap<Box<str>, BTreeSet<Arc<str>>>;

/// More labels are not kept: each object that is written is added to every index.
const MOST: usize = 8;

/// The label by which objects are looked up that have all of these: one with a value tells more than a mark.
pub(crate) fn telling(labels: &BTreeMap<String, String>) -> Option<(&String, &String)> {
    let with_value = labels.iter().find(|(_, value)| !value.is_empty());
    with_value.or_else(|| labels.iter().next())
}

/// Whether an object has all of these labels.
pub(crate) fn has_all(record: &Record, labels: &BTreeMap<String, String>) -> bool {
    labels.iter().all(|(key, value)| of(record, key) == Some(value))
}

fn of<'a>(record: &'a Record, key: &str) -> Option<&'a str> {
    let known = &record.header.labels;
    let found = known.binary_search_by(|(known, _)| (**known).cmp(key)).ok()?;
    Some(&known[found].1)
}

impl Labels {
    /// The paths of the objects with this label; none if there is no index of it.
    pub(crate) fn paths(&self, key: &str, value: &str) -> Option<impl Iterator<Item = &Arc<str>>> {
        let values = self.0.get(key)?;
        Some(values.get(value).into_iter().flatten())
    }

    /// Whether there is an index of this label, or none is made.
    pub(crate) fn is_full_or_has(&self, key: &str) -> bool {
        self.0.len() >= MOST || self.0.contains_key(key)
    }

    /// Makes an index of a label.
    pub(crate) fn index<'a>(&mut self, key: &str, objects: impl Iterator<Item = &'a Arc<Record>>) {
        let mut values = Values::new();
        for record in objects {
            add(&mut values, key, record);
        }
        self.0.insert(key.into(), values);
    }

    /// Adds an object that is stored.
    pub(crate) fn add(&mut self, record: &Record) {
        for (key, values) in &mut self.0 {
            add(values, key, record);
        }
    }

    /// Removes an object that is replaced or removed.
    pub(crate) fn remove(&mut self, record: &Record) {
        for (key, values) in &mut self.0 {
            let Some(value) = of(record, key) else { continue };
            let Some(paths) = values.get_mut(value) else { continue };
            paths.remove(&record.key.path);
            if paths.is_empty() {
                values.remove(value);
            }
        }
    }
}

fn add(values: &mut Values, key: &str, record: &Record) {
    let Some(value) = of(record, key) else { return };
    let path = Arc::clone(&record.key.path);
    match values.get_mut(value) {
        Some(paths) => {
            paths.insert(path);
        }
        None => {
            values.insert(value.into(), BTreeSet::from([path]));
        }
    }
}
