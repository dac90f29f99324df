//! Stored data: keys, records, events, and the writes that create them.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

/// The key of an object: resource (for example `deployments.apps`), namespace (empty for cluster scope) and name.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Resource and group.
    pub resource: Arc<str>,
    /// Namespace, a zero byte, name: sorts as (namespace, name).
    pub(crate) path: Arc<str>,
}

impl Key {
    /// Builds a key; `namespace` is empty for cluster scope.
    pub fn new(resource: &Arc<str>, namespace: &str, name: &str) -> Self {
        Self {
            resource: Arc::clone(resource),
            path: path_of(namespace, name).into(),
        }
    }

    /// The namespace, empty for cluster scope.
    pub fn namespace(&self) -> &str {
        self.path.split_once('\0').map_or("", |(ns, _)| ns)
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.path.split_once('\0').map_or("", |(_, name)| name)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.resource, self.namespace(), self.name())
    }
}

pub(crate) fn path_of(namespace: &str, name: &str) -> String {
    let mut path = String::with_capacity(namespace.len() + name.len() + 1);
    path.push_str(namespace);
    path.push('\0');
    path.push_str(name);
    path
}

/// One owner of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerLink {
    /// Uid of the owner.
    pub uid: Box<str>,
    /// The owner waits for this object when it is deleted in the foreground.
    pub blocks: bool,
}

/// The parts of an object that are available without decoding it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header {
    /// Uid of the object.
    pub uid: Box<str>,
    /// Labels, sorted by key.
    pub labels: Box<[(Box<str>, Box<str>)]>,
    /// Owner references.
    pub owners: Box<[OwnerLink]>,
    /// Finalizers.
    pub finalizers: Box<[Box<str>]>,
    /// The object has a deletion timestamp.
    pub deleting: bool,
}

/// An object to store: its encoding lacks the revision, which the store inserts at `rv_at`.
#[derive(Debug, Clone)]
pub struct Draft {
    /// Its header.
    pub header: Header,
    /// The encoding, without the digits of its revision.
    pub value: Vec<u8>,
    /// The position of the digits.
    pub rv_at: u32,
}

/// A stored object.
#[derive(Debug)]
pub struct Record {
    /// Its key.
    pub key: Key,
    /// The revision that wrote it or, in a deletion event, deleted it.
    pub revision: u64,
    /// Its header.
    pub header: Header,
    /// Its encoding.
    pub value: Bytes,
    pub(crate) rv_at: u32,
}

/// An encoding with its revision inserted, without spare capacity, as it is kept.
fn with_revision(before: &[u8], revision: u64, after: &[u8]) -> Bytes {
    [before, revision.to_string().as_bytes(), after].concat().into()
}

impl Record {
    pub(crate) fn from_draft(key: Key, revision: u64, draft: Draft) -> Self {
        let (before, after) = draft.value.split_at(draft.rv_at as usize);
        Self {
            key,
            revision,
            header: draft.header,
            value: with_revision(before, revision, after),
            rv_at: draft.rv_at,
        }
    }

    /// The same object in another encoding, which is never stored. Its revision has to be at `rv_at`.
    #[must_use]
    pub fn encoded(&self, value: Vec<u8>, rv_at: u32) -> Self {
        Self {
            key: self.key.clone(),
            revision: self.revision,
            header: self.header.clone(),
            value: value.into(),
            rv_at,
        }
    }

    /// Whether the encoding has the revision at its position.
    pub(crate) fn shows_revision(&self) -> bool {
        let digits = self.revision.to_string();
        let at = self.rv_at as usize;
        self.value.get(at..at + digits.len()) == Some(digits.as_bytes())
    }

    /// The same object in another form, which is never stored.
    #[must_use]
    pub fn in_form(&self, form: Draft) -> Self {
        Self::from_draft(self.key.clone(), self.revision, form)
    }

    /// Whether another record is the result of [`Record::deleted_at`] on this one.
    pub(crate) fn is_same_but_revision(&self, other: &Self) -> bool {
        let cut = |record: &Self| {
            let at = record.rv_at as usize;
            (at, at + record.revision.to_string().len())
        };
        let ((at, end), (other_at, other_end)) = (cut(self), cut(other));
        at == other_at
            && self.value.get(..at) == other.value.get(..at)
            && self.value.get(end..) == other.value.get(other_end..)
            && self.header == other.header
    }

    /// The object in the form of its deletion event at `revision`.
    #[must_use]
    pub fn deleted_at(&self, revision: u64) -> Self {
        let (before, rest) = self.value.split_at(self.rv_at as usize);
        let (_, after) = rest.split_at(self.revision.to_string().len());
        Self {
            key: self.key.clone(),
            revision,
            header: self.header.clone(),
            value: with_revision(before, revision, after),
            rv_at: self.rv_at,
        }
    }
}

/// The precondition of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// No object is stored under the key.
    Absent,
    /// The stored object was written by this revision.
    Revision(u64),
}

/// The operation of a write.
#[derive(Debug, Clone)]
pub enum Change {
    /// Stores an object.
    Put(Draft),
    /// Removes the object; the draft, if any, is its last state.
    Delete(Option<Draft>),
    /// Changes nothing and only checks the precondition.
    Check,
}

/// One write of a transaction.
#[derive(Debug, Clone)]
pub struct Write {
    /// The key.
    pub key: Key,
    /// Precondition.
    pub expect: Expect,
    /// The operation.
    pub change: Change,
}

/// One change, as watchers see it.
#[derive(Debug)]
pub struct Event {
    /// The stored object; for a deletion the last one, with the revision of the deletion.
    pub record: Arc<Record>,
    /// The previous object.
    pub previous: Option<Arc<Record>>,
    /// The object is gone.
    pub deleted: bool,
}

impl Event {
    /// The revision of this change.
    pub fn revision(&self) -> u64 {
        self.record.revision
    }
}
