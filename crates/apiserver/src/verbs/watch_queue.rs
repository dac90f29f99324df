//! What a watch has still to send. It is kept by the store and not by the watch, so a watch that its client does not read keeps nothing in
//! memory: when the store forgets an object or a change, the watch is too slow and ends.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use windlass_store::{Event, Record};

/// One thing to send.
#[derive(Debug)]
pub(crate) enum Source {
    /// An object that was stored when the watch began, and its revision.
    Object(Weak<Record>, u64),
    /// A change, its revision, and whether what is computed of it is shared with other watches.
    Change(Weak<Event>, u64, bool),
    /// A bookmark at a revision, and whether it ends the objects with which the watch began.
    Bookmark(u64, bool),
}

impl Source {
    pub(crate) fn object(record: &Arc<Record>) -> Self {
        Self::Object(Arc::downgrade(record), record.revision)
    }

    pub(crate) fn change(event: &Arc<Event>, shares: bool) -> Self {
        Self::Change(Arc::downgrade(event), event.revision(), shares)
    }
}

/// What is encoded together.
#[derive(Debug)]
pub(crate) enum Batch {
    Objects(Vec<Arc<Record>>),
    /// Changes, and whether what is computed of them is shared.
    Changes(Vec<Arc<Event>>, bool),
    Bookmark(u64, bool),
    /// The store has forgotten something: the revision of the object or change.
    Forgotten(u64),
}

/// Takes the next things of the same kind, up to a number and a size.
pub(crate) fn next(queue: &mut VecDeque<Source>, most: usize, bytes: usize) -> Option<Batch> {
    let mut size = 0;
    match queue.front()? {
        Source::Bookmark(revision, ends_initial) => {
            let batch = Batch::Bookmark(*revision, *ends_initial);
            queue.pop_front();
            Some(batch)
        }
        Source::Object(..) => {
            let mut objects = Vec::new();
            while size < bytes
                && objects.len() < most
                && let Some(Source::Object(record, revision)) = queue.front()
            {
                let Some(record) = record.upgrade() else {
                    return Some(Batch::Forgotten(*revision));
                };
                size += record.value.len();
                objects.push(record);
                queue.pop_front();
            }
            Some(Batch::Objects(objects))
        }
        Source::Change(_, _, shares) => {
            let (mut changes, shares) = (Vec::new(), *shares);
            while size < bytes
                && changes.len() < most
                && let Some(Source::Change(event, revision, shared)) = queue.front()
                && *shared == shares
            {
                let Some(event) = event.upgrade() else {
                    return Some(Batch::Forgotten(*revision));
                };
                size += event.record.value.len();
                changes.push(event);
                queue.pop_front();
            }
            Some(Batch::Changes(changes, shares))
        }
    }
}
