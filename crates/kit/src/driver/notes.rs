//! The notes of plans: logged when they are new, emitted as events when the plan was applied.

use std::collections::HashMap;

use parking_lot::Mutex;

use super::typed::{Ended, Subject};
use crate::cx::Cx;
use crate::object::ObjectKey;
use crate::plan::Note;

/// The notes of each object's last reconcile.
#[derive(Debug, Default)]
pub(super) struct Notes(Mutex<HashMap<ObjectKey, Said>>);

#[derive(Debug, Default)]
struct Said {
    notes: Vec<Note>,
    /// Whether the plan was applied, and the events emitted.
    applied: bool,
}

impl Notes {
    /// Logs the notes that the last reconcile of the object did not have. Emits the events of those that no applied plan had before.
    pub(super) fn show(&self, cx: &Cx, key: &ObjectKey, object: &dyn Subject, ended: &Ended) {
        let before = self.replace(key, &ended.notes, ended.applied);
        for note in &ended.notes {
            let is_logged = before.notes.contains(note);
            if !is_logged {
                tracing::info!("{}", note.message);
            }
            if let (Some(event), true) = (&note.event, ended.applied)
                && !(is_logged && before.applied)
            {
                cx.event_about(object.reference(), event.kind, event.reason, note.message.as_str());
            }
        }
    }

    fn replace(&self, key: &ObjectKey, notes: &[Note], applied: bool) -> Said {
        let mut all = self.0.lock();
        let before = if notes.is_empty() {
            all.remove(key)
        } else {
            let notes = notes.to_vec();
            all.insert(key.clone(), Said { notes, applied })
        };
        before.unwrap_or_default()
    }

    /// Drops the notes of an object.
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.0.lock().remove(key);
    }
}
