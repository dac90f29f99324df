//! Trials: whether applying an intent to a template would change its spec.
//!
//! A template of Machines is not changed in place: a change of its spec needs a new template, and replaces Machines. Only the API
//! server knows whether an apply changes something: it has the schema, the fields of each field manager, conversions and webhooks.
//! So both sides are applied as a dry run: the intent, and the template as it is. What defaulting or a webhook makes of both is no
//! difference.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};
use windlass_meta::Moment;

use crate::diff::first_difference;
use crate::{keys, names};

/// Rotations of one template with the same inputs, within [`ROTATIONS_COUNT_FOR`], after which the controller waits.
const MOST_ROTATIONS: usize = 3;

/// How long a rotation counts. An extension or a webhook may have a good reason to change its answer a few times a year.
const ROTATIONS_COUNT_FOR: SignedDuration = SignedDuration::from_hours(1);

/// A pair of applies that are tried.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// The place of the template in the topology.
    pub place: String,
    /// The template as it is.
    pub have: Value,
    /// The intent for it.
    pub want: Value,
    /// The uid of the template.
    pub uid: String,
    /// Stands for the template as it is, and the intent.
    pub pair: Pair,
}

/// A template as it is, and an intent for it. What a trial of both has shown counts for every other one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The resourceVersion of the template.
    version: String,
    /// Stands for the intent.
    intent: String,
}

impl Pair {
    pub(crate) fn of(have: &Value, want: &Value) -> Self {
        Self {
            version: crate::model::text(have, "/metadata/resourceVersion").to_owned(),
            // All that the body of the intent has.
            intent: names::fingerprint(&(
                &want["apiVersion"],
                &want["kind"],
                IDENTITY.map(|field| have["metadata"].get(field)),
                OWN_METADATA.map(|field| want["metadata"].get(field)),
                &want["spec"],
            )),
        }
    }
}

/// The result of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The spec stays as it is.
    Same,
    /// The spec changes, first at this path.
    Changes(String),
    /// The template does not exist any more.
    Gone,
    /// The API server does not say, or refuses the change: why.
    Failed(String),
}

impl Trial {
    pub(crate) fn new(place: &str, have: &Value, want: &Value) -> Self {
        Self {
            place: place.to_owned(),
            uid: crate::model::text(have, "/metadata/uid").to_owned(),
            pair: Pair::of(have, want),
            have: body(have, have),
            want: body(have, want),
        }
    }
}

impl Verdict {
    /// The verdict from the objects that both dry runs gave.
    pub fn of(have: &Value, want: &Value) -> Self {
        match first_difference("spec", &have["spec"], &want["spec"]) {
            None => Self::Same,
            Some(path) => Self::Changes(path),
        }
    }
}

/// The metadata that selects a template.
const IDENTITY: [&str; 3] = ["name", "namespace", "uid"];
/// The metadata that this controller applies.
const OWN_METADATA: [&str; 3] = ["labels", "annotations", "ownerReferences"];

/// The part of an object that this controller applies, for exactly the template `have`. The annotation asks webhooks of providers to
/// leave out their checks of immutable fields.
fn body(have: &Value, object: &Value) -> Value {
    let mut metadata = Map::new();
    for field in IDENTITY {
        metadata.insert(field.to_owned(), have["metadata"][field].clone());
    }
    for field in OWN_METADATA {
        if let Some(value) = object["metadata"].get(field) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    let mut out = json!({
        "apiVersion": object["apiVersion"],
        "kind": object["kind"],
        "metadata": metadata,
        "spec": object["spec"],
    });
    out["metadata"]["annotations"][keys::DRY_RUN] = "".into();
    out
}

/// The replacement of one template by another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotation {
    /// The place of the template in the topology.
    pub place: String,
    /// Stands for everything that the content was computed from.
    pub inputs: String,
    /// Name of the new template.
    pub name: String,
}

/// The rotations at one place with the same inputs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rotations {
    inputs: String,
    /// When each template was made last, by its name.
    made: BTreeMap<String, Timestamp>,
}

impl Rotations {
    /// Adds a rotation. Other inputs start again.
    pub fn add(&mut self, rotation: &Rotation, at: Timestamp) {
        if self.inputs != rotation.inputs {
            self.made.clear();
            self.inputs.clone_from(&rotation.inputs);
        }
        self.made.insert(rotation.name.clone(), at);
        // Those before these have no part in the decision.
        while self.made.len() > MOST_ROTATIONS {
            let oldest = self
                .made
                .iter()
                .min_by_key(|(_, at)| **at)
                .map(|(name, _)| name.clone());
            self.made.remove(&oldest.unwrap_or_default());
        }
    }

    /// Whether one more rotation is too many for now: new templates with the same inputs do not keep their content.
    pub(crate) fn refuse(&self, next: &Rotation, now: &Moment) -> bool {
        let is_another = self.inputs == next.inputs && !self.made.contains_key(&next.name);
        is_another
            && self.made.len() >= MOST_ROTATIONS
            && self.made.values().all(|at| !now.elapsed(*at, ROTATIONS_COUNT_FOR))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rotation(inputs: &str, name: &str) -> Rotation {
        Rotation {
            place: "machines/md-0".into(),
            inputs: inputs.into(),
            name: name.into(),
        }
    }

    fn at(minute: i64) -> Timestamp {
        Timestamp::constant(1_800_000_000 + 60 * minute, 0)
    }

    #[test]
    fn three_rotations_with_the_same_inputs_are_enough() {
        let now = Moment::at(at(0));
        let mut done = Rotations::default();
        for name in ["a", "b", "b", "c"] {
            assert!(!done.refuse(&rotation("i", name), &now));
            done.add(&rotation("i", name), at(0));
        }
        assert!(done.refuse(&rotation("i", "d"), &now));
        assert!(
            !done.refuse(&rotation("i", "c"), &now),
            "the repetition of a rotation that broke off"
        );
        assert!(!done.refuse(&rotation("j", "d"), &now));
        done.add(&rotation("j", "d"), at(0));
        assert!(!done.refuse(&rotation("j", "e"), &now));
    }

    #[test]
    fn rotations_count_for_an_hour_and_the_end_of_the_wait_is_scheduled() {
        let mut done = Rotations::default();
        for (name, minute) in [("a", 0), ("b", 10), ("c", 20), ("d", 65)] {
            let now = Moment::at(at(minute));
            assert!(!done.refuse(&rotation("i", name), &now), "{name}");
            done.add(&rotation("i", name), at(minute));
        }
        // The first of the last three was made at 10 minutes.
        let now = Moment::at(at(66));
        assert!(done.refuse(&rotation("i", "e"), &now));
        assert_eq!(now.next_deadline(), Some(at(70)));
        assert!(!done.refuse(&rotation("i", "e"), &Moment::at(at(70))));
    }

    #[test]
    fn a_trial_is_about_one_object_and_names_itself() {
        let have = json!({
            "apiVersion": "x/v1", "kind": "T", "metadata": {"name": "t", "namespace": "n", "uid": "u", "resourceVersion": "7",
            "finalizers": ["f"]}, "spec": {"a": 1}, "status": {},
        });
        let want = json!({"apiVersion": "x/v1", "kind": "T", "metadata": {"name": "t", "annotations": {"b": "c"}}, "spec": {"a": 2}});
        let trial = Trial::new("p", &have, &want);
        let annotation = keys::DRY_RUN;
        assert_eq!(
            trial.have,
            json!({"apiVersion": "x/v1", "kind": "T",
                "metadata": {"name": "t", "namespace": "n", "uid": "u", "annotations": {annotation: ""}}, "spec": {"a": 1}})
        );
        assert_eq!(trial.want["metadata"]["uid"], "u");
        assert_eq!(trial.want["metadata"]["annotations"], json!({"b": "c", annotation: ""}));
        assert_eq!(Verdict::of(&trial.have, &trial.want), Verdict::Changes("spec.a".into()));
        assert_eq!(Verdict::of(&trial.have, &trial.have), Verdict::Same);
    }
}
