//! `metadata.managedFields`.

use std::collections::HashMap;
use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::error::ApplyError;
use crate::field_set::FieldSet;

/// The limit of separate entries of updaters.
const MAX_UPDATERS: usize = 10;

/// The operation by which a manager owns fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Server-side apply.
    Apply,
    /// Any other write.
    Update,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// The fields of one manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The manager's name.
    pub manager: String,
    /// The operation of the writer.
    pub operation: Operation,
    /// The apiVersion of the field names.
    pub api_version: String,
    /// The subresource of the writes; empty for the main resource.
    pub subresource: String,
    /// The time of the last change.
    pub time: Option<Timestamp>,
    /// The owned fields.
    pub fields: FieldSet,
}

impl Entry {
    /// Whether two entries belong to the same manager: appliers have one entry for all versions.
    pub(crate) fn is_same_manager(
        &self,
        manager: &str,
        operation: Operation,
        api_version: &str,
        subresource: &str,
    ) -> bool {
        self.operation == operation
            && self.manager == manager
            && self.subresource == subresource
            && (operation == Operation::Apply || self.api_version == api_version)
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.is_same_manager(&other.manager, other.operation, &other.api_version, &other.subresource)
    }

    /// The form of conflict messages: `"kubectl" with subresource "status" using apps/v1`.
    pub fn display(&self) -> String {
        let mut out = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            let _ = write!(out, " with subresource {:?}", self.subresource);
        }
        if self.operation == Operation::Update {
            let _ = write!(out, " using {}", self.api_version);
        }
        out
    }

    /// What two entries of the same manager have in common.
    pub(crate) fn identity(&self) -> Identity<'_> {
        let api_version = match self.operation {
            Operation::Apply => "",
            Operation::Update => &self.api_version,
        };
        (self.operation, &self.manager, &self.subresource, api_version)
    }

    fn to_value(&self) -> Value {
        let mut out = Map::new();
        out.insert("manager".to_owned(), self.manager.clone().into());
        out.insert("operation".to_owned(), self.operation.name().into());
        out.insert("apiVersion".to_owned(), self.api_version.clone().into());
        if let Some(time) = self.time {
            out.insert(
                "time".to_owned(),
                time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into(),
            );
        }
        out.insert("fieldsType".to_owned(), "FieldsV1".into());
        out.insert("fieldsV1".to_owned(), self.fields.to_value());
        if !self.subresource.is_empty() {
            out.insert("subresource".to_owned(), self.subresource.clone().into());
        }
        Value::Object(out)
    }

    fn from_value(value: &Value, index: usize) -> Result<Self, ApplyError> {
        let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
        let bad = |message: String| Err(ApplyError::BadFields(message));
        let operation = match text("operation") {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return bad("operation must be `Apply` or `Update`".to_owned()),
        };
        if text("apiVersion").is_empty() {
            return bad("apiVersion must not be empty".to_owned());
        }
        match text("fieldsType") {
            "FieldsV1" => {}
            "" => {
                return bad(format!("missing fieldsType in managed fields entry {index}"));
            }
            other => {
                return bad(format!("invalid fieldsType {other:?} in managed fields entry {index}"));
            }
        }
        Ok(Self {
            manager: text("manager").to_owned(),
            operation,
            api_version: text("apiVersion").to_owned(),
            subresource: text("subresource").to_owned(),
            time: text("time").parse().ok(),
            fields: FieldSet::from_value(value.get("fieldsV1").unwrap_or(&Value::Null))?,
        })
    }
}

/// Operation, name, subresource, and the version unless all versions have one entry.
pub(crate) type Identity<'a> = (Operation, &'a str, &'a str, &'a str);

/// Of several entries of a manager, the last one, in the place of the first.
pub(crate) fn last_of_each(entries: Vec<Entry>) -> Vec<Entry> {
    /// So few are compared with each other.
    const FEW: usize = 16;
    let is_unique = if entries.len() <= FEW {
        let is_first = |(at, entry): (usize, &Entry)| !entries[..at].iter().any(|other| other.is_same(entry));
        entries.iter().enumerate().all(is_first)
    } else {
        false
    };
    if is_unique {
        return entries;
    }
    let mut last: HashMap<Identity<'_>, usize> = HashMap::new();
    let mut order = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        if last.insert(entry.identity(), at).is_none() {
            order.push(entry.identity());
        }
    }
    let order: Vec<usize> = order.iter().map(|identity| last[identity]).collect();
    let mut entries: Vec<Option<Entry>> = entries.into_iter().map(Some).collect();
    order.into_iter().filter_map(|at| entries[at].take()).collect()
}

/// The field owners of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ManagedFields {
    /// The entries, in the order of the API object.
    pub entries: Vec<Entry>,
}

impl ManagedFields {
    /// Parses `metadata.managedFields` of an object.
    pub fn of(object: &Value) -> Result<Self, ApplyError> {
        match object.get("metadata").and_then(|m| m.get("managedFields")) {
            Some(list) => Self::from_value(list),
            None => Ok(Self::default()),
        }
    }

    /// Parses the list.
    pub fn from_value(list: &Value) -> Result<Self, ApplyError> {
        let items = list.as_array().map(Vec::as_slice).unwrap_or_default();
        let mut entries: Vec<Entry> = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            entries.push(Entry::from_value(item, index)?);
        }
        Ok(Self {
            entries: last_of_each(entries),
        })
    }

    /// The list.
    pub fn to_value(&self) -> Value {
        Value::Array(self.entries.iter().map(Entry::to_value).collect())
    }

    /// Writes the list to an object; an empty one is omitted.
    pub fn write(&self, object: &mut Value) {
        let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
            return;
        };
        if self.entries.is_empty() {
            metadata.remove("managedFields");
        } else {
            metadata.insert("managedFields".to_owned(), self.to_value());
        }
    }

    /// The fields of a manager.
    pub fn get(&self, manager: &str, operation: Operation, subresource: &str) -> Option<&Entry> {
        self.entries
            .iter()
            .find(|e| e.manager == manager && e.operation == operation && e.subresource == subresource)
    }

    pub(crate) fn sort(&mut self) {
        self.entries.retain(|entry| !entry.fields.is_empty());
        let seconds = |entry: &Entry| entry.time.map_or(0, Timestamp::as_second);
        self.entries.sort_by(|a, b| {
            (a.operation, seconds(a), &a.manager, &a.api_version, &a.subresource).cmp(&(
                b.operation,
                seconds(b),
                &b.manager,
                &b.api_version,
                &b.subresource,
            ))
        });
    }

    /// Merges the oldest updaters if there are too many.
    pub(crate) fn cap(&mut self) {
        let mut updaters = self.entries.iter().filter(|e| e.operation == Operation::Update).count();
        if updaters <= MAX_UPDATERS {
            return;
        }
        self.sort();
        let mut first: Vec<(String, Entry)> = Vec::new();
        let mut kept = Vec::with_capacity(self.entries.len());
        for entry in std::mem::take(&mut self.entries) {
            if entry.operation == Operation::Apply || updaters <= MAX_UPDATERS {
                kept.push(entry);
                continue;
            }
            match first.iter_mut().find(|(version, _)| *version == entry.api_version) {
                Some((_, bucket)) => {
                    "ancient-changes".clone_into(&mut bucket.manager);
                    bucket.subresource.clear();
                    bucket.fields.extend(&entry.fields);
                    bucket.time = entry.time;
                    updaters -= 1;
                }
                None => first.push((entry.api_version.clone(), entry)),
            }
        }
        kept.extend(first.into_iter().map(|(_, entry)| entry));
        self.entries = kept;
        self.sort();
    }
}
