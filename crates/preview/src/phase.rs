//! From writes to what is said about them.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_topology::plan::{Action, Step};

use crate::fields;
use crate::model::{FieldChange, ObjectChange, Phase, Rotated, Verb};
use crate::names::{Id, text};
use crate::shadow::{Shadow, Written};

/// The writes of a phase, each object once.
pub(crate) async fn of(shadow: &Shadow, written: &[Written], steps: &[Step]) -> Phase {
    let reasons = reasons(steps);
    let mut phase = Phase::default();
    let merged = merged(written);
    for one in &merged {
        let (verb, fields) = match (&one.before, &one.after) {
            (None, Some(_)) => (Verb::Created, Vec::new()),
            (Some(before), Some(after)) if is_going(after) && !is_going(before) => (Verb::Deleted, Vec::new()),
            (Some(before), Some(after)) => (Verb::Changed, fields::changes(before, after)),
            (Some(_), None) => (Verb::Deleted, Vec::new()),
            (None, None) => continue,
        };
        if verb == Verb::Changed && fields.is_empty() {
            continue;
        }
        let reason = reasons.get(&one.id).filter(|_| verb != Verb::Changed).cloned();
        phase.objects.push(ObjectChange {
            verb,
            object: one.id.clone(),
            reason,
            fields,
        });
    }
    rotations(shadow, &merged, &mut phase).await;
    phase
}

pub(crate) fn is_going(object: &Value) -> bool {
    !text(object, "/metadata/deletionTimestamp").is_empty()
}

/// The first state before and the last state after of each object, in the order of the first writes.
fn merged(written: &[Written]) -> Vec<Written> {
    let mut out: Vec<Written> = Vec::new();
    for one in written {
        match out.iter_mut().find(|known| known.id == one.id) {
            Some(known) => known.after.clone_from(&one.after),
            None => out.push(one.clone()),
        }
    }
    out
}

/// The reasons of the steps, without the words about what is done.
fn reasons(steps: &[Step]) -> BTreeMap<Id, String> {
    let mut out = BTreeMap::new();
    for step in steps {
        let id = match &step.action {
            Action::Apply(object) => Id::of(object),
            Action::Delete(target) => Id {
                kind: target.kind.clone(),
                group: target
                    .api_version
                    .split_once('/')
                    .map(|(group, _)| group.to_owned())
                    .unwrap_or_default(),
                namespace: target.namespace.clone(),
                name: target.name.clone(),
            },
            Action::PatchCluster(_) => continue,
        };
        if let Some((_, reason)) = step.note.split_once(": ") {
            out.insert(id, reason.to_owned());
        }
    }
    out
}

/// Templates to which a reference changes from another template are replacements: not two objects, but one that is rotated.
async fn rotations(shadow: &Shadow, written: &[Written], phase: &mut Phase) {
    let mut rotated = Vec::new();
    for change in &phase.objects {
        for field in change.fields.iter().filter(|field| field.path.ends_with("Ref.name")) {
            let Some((from, to)) = names(field) else { continue };
            let created = written
                .iter()
                .find(|one| one.before.is_none() && one.id.name == to && one.id.namespace == change.object.namespace);
            let Some(created) = created.filter(|one| one.id.kind.ends_with("Template")) else {
                continue;
            };
            let old = Id {
                name: from.to_owned(),
                ..created.id.clone()
            };
            let deleted = written
                .iter()
                .find(|one| one.id == old)
                .and_then(|one| one.before.clone());
            let before = match deleted {
                Some(before) => Some(before),
                None => shadow.like(created.after.as_ref(), from).await,
            };
            let fields = match (before, &created.after) {
                (Some(before), Some(after)) => fields::spec_changes(&before, after),
                _ => Vec::new(),
            };
            rotated.push(Rotated {
                kind: created.id.kind.clone(),
                namespace: created.id.namespace.clone(),
                from: from.to_owned(),
                to: to.to_owned(),
                user: change.object.clone(),
                fields,
            });
        }
    }
    phase.objects.retain(|change| {
        !rotated.iter().any(|one: &Rotated| {
            let is_one = change.object.kind == one.kind && change.object.namespace == one.namespace;
            is_one
                && (change.verb == Verb::Created && change.object.name == one.to
                    || change.verb == Verb::Deleted && change.object.name == one.from)
        })
    });
    phase.rotated = rotated;
}

fn names(field: &FieldChange) -> Option<(&str, &str)> {
    Some((field.from.as_ref()?.as_str()?, field.to.as_ref()?.as_str()?))
}
