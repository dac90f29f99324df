//! What plans say: in the log when it is new, and as events.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::typed::{Planned, Subject};
use crate::cx::Cx;
use crate::events::EventType;
use crate::object::ObjectKey;
use crate::plan::Note;

/// A warning whose cause lasts is emitted again after this time: API servers drop events after an hour.
const AGAIN: Duration = Duration::from_mins(15);

/// What the last plan of each object said.
#[derive(Debug, Default)]
pub(super) struct Notes(Mutex<HashMap<ObjectKey, Vec<Said>>>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Said {
    note: Note,
    logged: bool,
    emitted: Option<Instant>,
}

/// What is to be said now.
#[derive(Debug, Default, PartialEq, Eq)]
struct News {
    log: Vec<Note>,
    emit: Vec<Note>,
}

impl Notes {
    /// Logs new notes and emits their events. A note with a Normal event announces what a plan has done: it counts once the plan was
    /// applied, unless it names a fact. A Warning names an obstacle: it counts whether the plan was applied or not, and is repeated as
    /// long as it lasts.
    pub(super) fn show(&self, cx: &Cx, key: &ObjectKey, object: &dyn Subject, planned: &Planned) {
        let news = self.update(key, &planned.notes, planned.applied, Instant::now());
        for note in &news.log {
            tracing::info!("{}", note.message);
        }
        for note in &news.emit {
            if let Some(event) = &note.event {
                cx.event_about(object.reference(), event.kind, event.reason, note.message.as_str());
            }
        }
    }

    fn update(&self, key: &ObjectKey, notes: &[Note], applied: bool, now: Instant) -> News {
        let mut all = self.0.lock();
        let before = all.remove(key).unwrap_or_default();
        let (mut said, mut news) = (Vec::new(), News::default());
        for note in notes {
            let known = before.iter().find(|known| known.note == *note);
            let mut known = known.cloned().unwrap_or_else(|| Said {
                note: note.clone(),
                logged: false,
                emitted: None,
            });
            let is_warning = note
                .event
                .as_ref()
                .is_some_and(|event| event.kind == EventType::Warning);
            let counts = applied || note.event.as_ref().is_none_or(|event| event.at_once);
            if counts && !known.logged {
                known.logged = true;
                news.log.push(note.clone());
            }
            let is_due = known
                .emitted
                .is_none_or(|at| is_warning && now.saturating_duration_since(at) >= AGAIN);
            if counts && note.event.is_some() && is_due {
                known.emitted = Some(now);
                news.emit.push(note.clone());
            }
            said.push(known);
        }
        if !said.is_empty() {
            all.insert(key.clone(), said);
        }
        news
    }

    /// Drops the notes of an object.
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.0.lock().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Case {
        notes: Notes,
        key: ObjectKey,
        now: Instant,
    }

    impl Case {
        fn new() -> Self {
            Self {
                notes: Notes::default(),
                key: ObjectKey::new("n", "a"),
                now: Instant::now(),
            }
        }

        /// The numbers of logged notes and of events.
        fn says(&self, notes: &[&Note], applied: bool) -> (usize, usize) {
            let notes: Vec<Note> = notes.iter().map(|note| (*note).clone()).collect();
            let news = self.notes.update(&self.key, &notes, applied, self.now);
            (news.log.len(), news.emit.len())
        }
    }

    #[test]
    fn a_note_is_logged_while_it_is_new() {
        let case = Case::new();
        let (a, b) = (Note::new("a"), Note::new("b"));
        assert_eq!(case.says(&[&a], false), (1, 0));
        assert_eq!(case.says(&[&a, &b], true), (1, 0));
        assert_eq!(case.says(&[&b], true), (0, 0));
        assert_eq!(case.says(&[&a], true), (1, 0));
        case.notes.forget(&case.key);
        assert_eq!(case.says(&[&a], true), (1, 0));
    }

    #[test]
    fn what_a_plan_has_done_is_announced_once_when_it_was_applied() {
        let case = Case::new();
        let done = Note::event(EventType::Normal, "Installed", "it is installed");
        assert_eq!(case.says(&[&done], false), (0, 0));
        assert_eq!(case.says(&[&done], true), (1, 1));
        assert_eq!(case.says(&[&done], false), (0, 0));
        assert_eq!(case.says(&[&done], true), (0, 0));
    }

    #[test]
    fn a_fact_is_announced_once_although_the_plan_was_not_applied() {
        let case = Case::new();
        let fact = Note::fact("SuccessfulSetNodeRef", "node-1");
        assert_eq!(case.says(&[&fact], false), (1, 1));
        assert_eq!(case.says(&[&fact], true), (0, 0));
        assert_eq!(case.says(&[], true), (0, 0));
    }

    #[test]
    fn an_obstacle_is_announced_at_once_and_again_while_it_lasts() {
        let mut case = Case::new();
        let obstacle = Note::event(EventType::Warning, "Unhealthy", "it waits");
        assert_eq!(case.says(&[&obstacle], false), (1, 1));
        assert_eq!(case.says(&[&obstacle], true), (0, 0));
        case.now += AGAIN;
        assert_eq!(case.says(&[&obstacle], false), (0, 1));
        assert_eq!(case.says(&[&obstacle], false), (0, 0));
    }
}
