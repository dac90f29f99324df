//! Encoded watch events, shared by all watches of the same change.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use windlass_store::Event;

use crate::objects::resource::Resource;

/// With fewer followers each writes its own lines, and nothing is kept.
const MANY: usize = 16;
/// How many lines are kept.
const KEPT: usize = 16;
/// More changes at once are a watch that catches up, alone.
const FEW: usize = 8;

/// A line, and what it is the line of.
struct Line {
    event: Arc<Event>,
    resource: Arc<Resource>,
    kind: &'static str,
    bytes: Bytes,
}

/// The lines that were written last.
#[derive(Default)]
pub(crate) struct Lines(Mutex<VecDeque<Line>>);

impl Lines {
    /// Whether lines of so many changes for so many followers are worth sharing.
    pub(crate) fn pays(followers: usize, changes: usize) -> bool {
        followers >= MANY && changes <= FEW
    }

    /// The line of a change in a version: as somebody else wrote it, or as `write` does.
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
