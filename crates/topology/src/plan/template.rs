//! Templates of which Machines are made: what is created, replaced and left as it is.

use serde_json::Value;

use super::spot::Spot;
use super::{LeftAsItIs, Plan, group_kind};
use crate::current::{Current, is_deleting};
use crate::diff::compare_metadata;
use crate::error::Error;
use crate::model::{name_of, text};
use crate::target::Target;
use crate::trial::{Pair, Rotation, Trial, Verdict};

/// What was planned about a template.
pub(super) struct PlannedTemplate {
    /// The name to refer to.
    pub(super) name: Value,
    /// The template that it replaces.
    pub(super) replaces: Option<Target>,
}

impl Plan {
    /// A template of which Machines are made: a change in its spec needs a new name.
    pub(super) fn template(
        &mut self,
        spot: &Spot<'_>,
        have: Option<&Value>,
        mut want: Value,
    ) -> Result<PlannedTemplate, LeftAsItIs> {
        let kept = PlannedTemplate {
            name: want["metadata"]["name"].clone(),
            replaces: None,
        };
        let Some(have) = have else {
            let note = format!("create {}: it does not exist", name_of(&want));
            self.create(want, note, "");
            self.part(None);
            return Ok(kept);
        };
        let changed = if group_kind(have) != group_kind(&want) {
            Some("kind")
        } else if have["spec"] == want["spec"] {
            None
        } else {
            match spot.input.current.verdicts.get(&spot.place) {
                Some(Verdict::Same) => None,
                Some(Verdict::Changes(field)) => Some(field.as_str()),
                Some(Verdict::Gone) => {
                    let why = format!(
                        "does not exist any more, and {} is left as it is until it is made again",
                        spot.user
                    );
                    self.failed_trials.push(Error::new(name_of(have), "", why));
                    return Err(LeftAsItIs);
                }
                Some(Verdict::Failed(why)) => {
                    let why = format!(
                        "the dry run of its change failed, and {} is left as it is: {why}",
                        spot.user
                    );
                    self.failed_trials.push(Error::new(name_of(have), "", why));
                    return Err(LeftAsItIs);
                }
                None if is_known_same(spot.input.current, have, &want) => None,
                None => {
                    self.trials.push(Trial::new(&spot.place, have, &want));
                    return Ok(kept);
                }
            }
        };
        let Some(field) = changed else {
            if is_deleting(have) {
                self.wait_until_gone(&name_of(have));
            } else {
                let change = compare_metadata(have, &want);
                self.keep(have, want, change, "");
                self.part(None);
            }
            return Ok(kept);
        };
        let old = text(have, "/metadata/name").to_owned();
        let rotation = Rotation {
            place: spot.place.clone(),
            inputs: spot.inputs(),
            name: spot.fresh_name(&old, &want),
        };
        let before = spot.input.current.rotations.get(&spot.place);
        if before.is_some_and(|before| before.refuse(&rotation, spot.input.now)) {
            let message = format!(
                "is not what was applied, although the template was replaced three times within an hour for the same content; a webhook, \
                 a default or a patch gives this field another value each time. The template and its Machines are left as they are \
                 until the hour is over, or {}, an extension that patches it or the Cluster changes",
                spot.input.blueprint.class.name
            );
            self.left.push(Error::new(name_of(have), field, message));
            return Ok(kept);
        }
        want["metadata"]["name"] = rotation.name.as_str().into();
        let note = format!(
            "create {}: its {field} differs from {old}, and templates of Machines are not changed in place",
            name_of(&want)
        );
        let name = want["metadata"]["name"].clone();
        self.create(
            want,
            note,
            &format!(" as a replacement for {old:?} (template rotation)"),
        );
        self.part(Some(rotation));
        Ok(PlannedTemplate {
            name,
            replaces: (!is_deleting(have)).then(|| Target::of(have)),
        })
    }

    /// Marks the last step as a part of a later one.
    pub(super) fn part(&mut self, rotation: Option<Rotation>) {
        if let Some(step) = self.steps.last_mut() {
            step.is_part = true;
            step.rotation = rotation;
        }
    }

    pub(super) fn delete_replaced(&mut self, old: Option<Target>) {
        if let Some(old) = old {
            let note = format!("delete {} {}/{}: it was replaced", old.kind, old.namespace, old.name);
            self.delete(old, note);
        }
    }
}

/// Whether an earlier trial has shown that an intent changes nothing in a template.
fn is_known_same(current: &Current, have: &Value, want: &Value) -> bool {
    let known = current.same.get(text(have, "/metadata/uid"));
    known.is_some_and(|known| *known == Pair::of(have, want))
}
