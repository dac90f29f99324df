//! Checks of ClusterClassRollouts.

use std::collections::BTreeSet;

use windlass_schema::FieldErrors;
use windlass_topology::revision;
use windlass_topology::waves::OTHERS;

use crate::common;
use crate::field::Field;
use crate::{Change, Unread, Verdict};

/// Checks a ClusterClassRollout: its sizes, its selectors, stages that no Cluster can be in, and what it aborts.
pub fn check_class_rollout(change: &Change<'_>) -> Result<Verdict, Unread> {
    let spec = Field::of(change.new).child("spec");
    let stages = spec.child("stages");
    let mut errors = FieldErrors::new();
    wave_size(&spec, &mut errors);
    let mut takes_all = BTreeSet::new();
    for stage in stages.items() {
        let name = stage.child("name");
        if name.text() == OTHERS {
            errors.add(|| name.invalid("is the stage of Clusters that no other stage selects"));
        }
        if let Some(before) = takes_all.first() {
            errors.add(|| name.invalid(format!("no Cluster is left for it: stage {before} selects all of them")));
        }
        wave_size(&stage, &mut errors);
        let selector = stage.child("selector");
        common::selector(&selector, &mut errors);
        let has_labels = selector
            .child("matchLabels")
            .map()
            .is_some_and(|labels| !labels.is_empty());
        if !has_labels && selector.child("matchExpressions").is_empty() {
            takes_all.insert(name.text().to_owned());
        }
    }
    aborted(change, &mut errors);
    Ok(errors.into())
}

/// Checks that an abort names what can be a revision of the class: one that never exists would abort nothing.
fn aborted(change: &Change<'_>, errors: &mut FieldErrors) {
    let abort = |object| Field::of(object).child("spec.abort.revision");
    let (revision, before) = (abort(change.new), abort(change.old));
    let class = Field::of(change.new).child("metadata.name");
    if revision.is_set() && revision.text() != before.text() && !revision::is_of(class.text(), revision.text()) {
        let class = class.text();
        errors.add(|| {
            revision.invalid(format!(
                "is no ClusterClassRevision of ClusterClass {class}; the one that is rolled out is in status.updateRevision"
            ))
        });
    }
}

/// Checks how many Clusters a wave has. None at all would be a rollout that never ends.
fn wave_size(of: &Field<'_>, errors: &mut FieldErrors) {
    let size = of.child("waveSize");
    let percent = size
        .text()
        .strip_suffix('%')
        .and_then(|percent| percent.parse::<u8>().ok());
    let is_good =
        size.number().is_some_and(|number| number >= 1) || percent.is_some_and(|percent| (1..=100).contains(&percent));
    if size.is_set() && !is_good {
        errors.add(|| size.invalid("must be a number from 1, or a percentage from 1% to 100%"));
    }
}
