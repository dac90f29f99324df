//! Encoded watch events, shared by all watches of the same change.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use windlass_store::Event;

use crate::objects::resource::Resource;

/// With fewer watches, each one encodes its own lines, and nothing is cached.
const MANY: usize = 16;
/// The number of cached lines.
const KEPT: usize = 16;
/// With more changes at once, a watch is catching up, and no other watch needs the same lines.
const FEW: usize = 8;

/// A line, with the change and form that it encodes.
struct Line {
    event: Arc<Event>,
    resource: Arc<Resource>,
    kind: &'static str,
    bytes: Bytes,
}

/// The most recent lines.
#[derive(Default)]
pub(crate) struct Lines(Mutex<VecDeque<Line>>);

impl Lines {
    /// Whether sharing lines of this many changes among this many watches saves work.
    pub(crate) fn pays(followers: usize, changes: usize) -> bool {
        followers >= MANY && changes <= FEW
    }

    /// The line of a change in a version: from the cache, or from `write`.
    pub(crate) fn get(
        &self,
        event: &Arc<Event>,
        resource: &Arc<Resource>,
        kind: &'static str,
        write: impl FnOnce() -> Vec<u8>,
    ) -> Bytes {
        let mut lines = self.0.lock();
        let found = lines
            .iter()
            .find(|l| Arc::ptr_eq(&l.event, event) && Arc::ptr_eq(&l.resource, resource) && l.kind == kind);
        if let Some(line) = found {
            return line.bytes.clone();
        }
        let bytes = Bytes::from(write());
        if lines.len() == KEPT {
            lines.pop_back();
        }
        lines.push_front(Line {
            event: Arc::clone(event),
            resource: Arc::clone(resource),
            kind,
            bytes: bytes.clone(),
        });
        bytes
    }
}
