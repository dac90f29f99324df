//! Trials: whether applying an intent to a template would change its spec.
//!
//! A template of Machines is not changed in place: a change of its spec needs a new template, and replaces Machines. Only the API
//! server knows whether an apply changes something: it has the schema, the fields of each field manager, conversions and webhooks.
//! So both sides are applied as a dry run: the intent, and the template as it is. What defaulting or a webhook makes of both is no
//! difference.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::diff::first_difference;
use crate::{keys, names};

/// Rotations of one template with the same inputs after which the controller stops.
const MOST_ROTATIONS: usize = 3;

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
    /// The resourceVersion of the template.
    pub version: String,
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
        let text = |pointer: &str| crate::model::text(have, pointer).to_owned();
        Self {
            place: place.to_owned(),
            uid: text("/metadata/uid"),
            version: text("/metadata/resourceVersion"),
            have: body(have, have),
            want: body(have, want),
        }
    }

    /// Stands for the intent; equal intents give equal texts.
    pub fn fingerprint(&self) -> String {
        names::fingerprint(&self.want)
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

/// The part of an object that this controller applies, for exactly the template `have`. The annotation asks webhooks of providers to
/// leave out their checks of immutable fields.
fn body(have: &Value, object: &Value) -> Value {
    let mut metadata = Map::new();
    for field in ["name", "namespace", "uid"] {
        metadata.insert(field.to_owned(), have["metadata"][field].clone());
    }
    for field in ["labels", "annotations", "ownerReferences"] {
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
    names: BTreeSet<String>,
}

impl Rotations {
    /// Adds a rotation. Other inputs start again.
    pub fn add(&mut self, rotation: &Rotation) {
        if self.inputs != rotation.inputs {
            self.names.clear();
            self.inputs.clone_from(&rotation.inputs);
        }
        self.names.insert(rotation.name.clone());
    }

    /// Whether one more rotation is too many: new templates with the same inputs do not keep their content.
    pub(crate) fn refuse(&self, next: &Rotation) -> bool {
        self.inputs == next.inputs && self.names.len() >= MOST_ROTATIONS && !self.names.contains(&next.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_rotations_with_the_same_inputs_are_enough() {
        let rotation = |inputs: &str, name: &str| Rotation {
            place: "machines/md-0".into(),
            inputs: inputs.into(),
            name: name.into(),
        };
        let mut done = Rotations::default();
        for name in ["a", "b", "b", "c"] {
            assert!(!done.refuse(&rotation("i", name)));
            done.add(&rotation("i", name));
        }
        assert!(done.refuse(&rotation("i", "d")));
        assert!(
            !done.refuse(&rotation("i", "c")),
            "the repetition of a rotation that broke off"
        );
        assert!(!done.refuse(&rotation("j", "d")));
        done.add(&rotation("j", "d"));
        assert!(!done.refuse(&rotation("j", "e")));
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
