//! What many watches compute of the same change, shared among them: encoded events, and the parts of objects that need decoding.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::OnceCell;
use windlass_store::Record;

use crate::objects::resource::Resource;
use crate::objects::view::View;

/// With fewer watches, each one copies its own lines, and nothing is cached.
const MANY: usize = 16;
/// The number of cached lines.
const KEPT: usize = 16;
/// The number of objects of which parts are cached, and the bytes of these parts. The last one may have any size.
const KEPT_PARTS: usize = 64;
const KEPT_BYTES: usize = 8 << 20;
/// How many seconds a row of a table is served: it has the age of its object.
const KEPT_SECONDS: u64 = 5;
/// With more changes at once, a watch is catching up, and no other watch needs the same lines.
const FEW: usize = 8;

/// A line, with the change and form that it encodes.
struct Line {
    record: Arc<Record>,
    revision: u64,
    resource: Arc<Resource>,
    kind: &'static str,
    bytes: Bytes,
}

/// The most recent lines.
#[derive(Default)]
pub(crate) struct Lines(Mutex<VecDeque<Line>>);

impl Lines {
    /// Whether sharing what is computed of this many changes among this many watches saves work. To decode is more work than to copy.
    pub(crate) fn pays(followers: usize, changes: usize, decodes: bool) -> bool {
        followers >= (if decodes { 2 } else { MANY }) && changes <= FEW
    }

    /// The line of an object at a revision, in a version: from the cache, or from `write`.
    pub(crate) fn get(
        &self,
        record: &Arc<Record>,
        revision: u64,
        (resource, kind): (&Arc<Resource>, &'static str),
        write: impl FnOnce() -> Vec<u8>,
    ) -> Bytes {
        let mut lines = self.0.lock();
        let is = |line: &&Line| {
            Arc::ptr_eq(&line.record, record)
                && Arc::ptr_eq(&line.resource, resource)
                && (line.revision, line.kind) == (revision, kind)
        };
        let found = lines.iter().find(is);
        if let Some(line) = found {
            return line.bytes.clone();
        }
        let bytes = Bytes::from(write());
        if lines.len() == KEPT {
            lines.pop_back();
        }
        lines.push_front(Line {
            record: Arc::clone(record),
            revision,
            resource: Arc::clone(resource),
            kind,
            bytes: bytes.clone(),
        });
        bytes
    }
}

/// A part of an object.
#[derive(Debug, Clone)]
pub(crate) enum Shown {
    /// Its encoding in a view, without what differs between watches.
    Encoded(Bytes),
    /// The values of the fields that field selectors compare, in the order of [`Resource::selectable`].
    Fields(Arc<[String]>),
}

impl Shown {
    fn size(&self) -> usize {
        match self {
            Self::Encoded(bytes) => bytes.len(),
            Self::Fields(values) => values.iter().map(String::len).sum(),
        }
    }
}

/// The object, and the part of it.
#[derive(Debug)]
pub(crate) struct Part<'a> {
    pub(crate) record: &'a Arc<Record>,
    /// The revision that is shown, if it is not that of the object.
    pub(crate) revision: u64,
    pub(crate) resource: &'a Arc<Resource>,
    /// `None` for the fields.
    pub(crate) view: Option<View>,
    /// The time in seconds that the part shows.
    pub(crate) now: i64,
}

/// What is computed once. Others wait for it.
pub(crate) type Slot = Arc<OnceCell<Shown>>;

struct Kept {
    record: Weak<Record>,
    revision: u64,
    resource: Weak<Resource>,
    view: Option<View>,
    since: i64,
    slot: Slot,
}

impl Kept {
    fn is(&self, part: &Part<'_>) -> bool {
        // A row has the age of its object.
        let is_recent = !matches!(part.view, Some(View::Table(..))) || self.since.abs_diff(part.now) <= KEPT_SECONDS;
        std::ptr::eq(self.record.as_ptr(), Arc::as_ptr(part.record))
            && std::ptr::eq(self.resource.as_ptr(), Arc::as_ptr(part.resource))
            && (self.revision, self.view) == (part.revision, part.view)
            && is_recent
    }

    fn size(&self) -> usize {
        self.slot.get().map_or(0, Shown::size)
    }
}

/// The most recent parts of objects. The objects themselves are kept by the store.
#[derive(Default)]
pub(crate) struct Parts(Mutex<VecDeque<Kept>>);

impl Parts {
    /// The place of a part.
    pub(crate) fn slot(&self, part: &Part<'_>) -> Slot {
        let mut parts = self.0.lock();
        if let Some(found) = parts.iter().find(|kept| kept.is(part)) {
            return Arc::clone(&found.slot);
        }
        let mut bytes: usize = parts.iter().map(Kept::size).sum();
        while parts.len() >= KEPT_PARTS || bytes > KEPT_BYTES {
            let Some(oldest) = parts.pop_back() else {
                break;
            };
            bytes -= oldest.size().min(bytes);
        }
        let slot = Slot::default();
        parts.push_front(Kept {
            record: Arc::downgrade(part.record),
            revision: part.revision,
            resource: Arc::downgrade(part.resource),
            view: part.view,
            since: part.now,
            slot: Arc::clone(&slot),
        });
        slot
    }
}
