//! Admission rules, as data.

use serde_json::Value;
use windlass_schema::{FieldError, FieldErrors, MOST_ERRORS};

use crate::decoded::{Decode, undecodable};
use crate::field::Field;
use crate::forgiven::drop_known;
use crate::rights::{Reference, Refers};
use crate::view::{Unread, View};

/// A kind of write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A new object.
    Create,
    /// A changed object.
    Update,
    /// An object to remove.
    Delete,
}

impl Operation {
    /// The name in reviews and configurations.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// A write under review.
#[derive(Clone, Copy)]
pub struct Change<'a> {
    /// Resource and group of the object, in the form of `kubectl`: `devclusters.infrastructure.cluster.x-k8s.io`.
    pub resource: &'a str,
    /// What is done.
    pub operation: Operation,
    /// Whether nothing will be stored.
    pub dry_run: bool,
    /// The stored object; `null` for a creation.
    pub old: &'a Value,
    /// The new object; `null` for a deletion. A rule of defaults gets it as the object that it changes, and here `null`.
    pub new: &'a Value,
    /// Other objects.
    pub view: &'a dyn View,
}

impl std::fmt::Debug for Change<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The objects may have secrets.
        f.debug_struct("Change")
            .field("resource", &self.resource)
            .field("operation", &self.operation)
            .field("dry_run", &self.dry_run)
            .finish_non_exhaustive()
    }
}

impl Change<'_> {
    /// Whether an object with an older state is written.
    pub fn is_update(&self) -> bool {
        self.operation == Operation::Update
    }
}

/// The verdict about a write.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// The errors; the write is allowed if there are none.
    pub errors: Vec<FieldError>,
    /// The reason why the write is refused as a whole, with status 403.
    pub forbidden: Option<String>,
    /// Warnings for the user, for allowed and for refused writes.
    pub warnings: Vec<String>,
    /// Whether errors refuse an update that were there before: they are about something else now.
    pub forgives_nothing: bool,
}

impl Verdict {
    /// Whether the write goes on.
    pub fn is_allowed(&self) -> bool {
        self.errors.is_empty() && self.forbidden.is_none()
    }

    /// Drops the errors that there were before about what has not changed: an object that came before a rule, or was right before its class
    /// changed, can still be changed elsewhere, and be deleted.
    fn forgive(&mut self, before: &Self, old: &Value, new: &Value) {
        if self.forgives_nothing {
            return;
        }
        drop_known(&mut self.errors, &before.errors, old, new);
    }
}

impl From<FieldErrors> for Verdict {
    fn from(errors: FieldErrors) -> Self {
        errors.into_vec().into()
    }
}

impl From<Vec<FieldError>> for Verdict {
    fn from(errors: Vec<FieldError>) -> Self {
        Self {
            errors,
            ..Self::default()
        }
    }
}

/// A pure function that completes an object. It may refuse the write.
pub type Complete = fn(&Change<'_>, &mut Value) -> Result<Verdict, Unread>;
/// A pure function that checks a write.
pub type Check = fn(&Change<'_>) -> Result<Verdict, Unread>;
/// A pure function that checks a new number of replicas of an object, written through its scale subresource. A text refuses it.
pub type CheckScale = fn(replicas: i64, object: &Value) -> Option<String>;

/// The operations that complete an object.
pub const WRITES: &[Operation] = &[Operation::Create, Operation::Update];

/// What is done with writes of a kind before they are stored.
#[derive(Clone, Copy, Debug)]
pub struct Admission {
    /// Sets defaults, in created and updated objects.
    pub complete: Option<Complete>,
    /// The operations that are checked.
    pub operations: &'static [Operation],
    /// The check. It sees an object that is complete and conforms to its schema.
    pub check: Check,
    /// The check of writes of the scale subresource.
    pub scale: Option<CheckScale>,
    /// What a write newly refers to, so that the user needs rights there.
    pub refers: Option<Refers>,
}

impl Admission {
    /// Checks of these operations, and nothing else.
    pub const fn checking(operations: &'static [Operation], check: Check) -> Self {
        Self {
            complete: None,
            operations,
            check,
            scale: None,
            refers: None,
        }
    }

    /// With defaults.
    #[must_use]
    pub const fn completing(mut self, complete: Complete) -> Self {
        self.complete = Some(complete);
        self
    }

    /// With a check of the scale subresource.
    #[must_use]
    pub const fn scaling(mut self, scale: CheckScale) -> Self {
        self.scale = Some(scale);
        self
    }

    /// With rights that the user needs.
    #[must_use]
    pub const fn referring(mut self, refers: Refers) -> Self {
        self.refers = Some(refers);
        self
    }
}

/// The admission of one kind.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The API group.
    pub group: &'static str,
    /// The version in which the rule sees objects. API servers convert others to it.
    pub version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The resource name.
    pub resource: &'static str,
    /// What is done.
    pub admission: Admission,
    /// Decodes an object. What cannot be decoded is refused.
    pub decode: Option<Decode>,
    /// Fields that objects may not have.
    pub closed: Vec<Closed>,
}

/// A field that objects may not have. One that has it already keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    /// Its path; `[]` stands for all items of a list.
    pub path: &'static str,
    /// The value that is closed, where others are not.
    pub value: Option<&'static str>,
    /// The words of the refusal.
    pub words: &'static str,
}

impl Closed {
    /// Adds an error for each place where an object has the field.
    fn check(self, object: &Value, errors: &mut FieldErrors) {
        self.check_below(&Field::of(object), self.path, errors);
    }

    fn check_below(self, field: &Field<'_>, path: &str, errors: &mut FieldErrors) {
        let Some((list, rest)) = path.split_once("[].") else {
            let field = field.child(path);
            if field.is_set() && self.value.is_none_or(|value| field.text() == value) {
                errors.add(|| field.forbidden(self.words));
            }
            return;
        };
        for item in field.child(list).items() {
            self.check_below(&item, rest, errors);
        }
    }
}

/// A kind of webhook of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hook {
    /// Completes objects.
    Complete,
    /// Checks writes.
    Check,
    /// Checks writes of the scale subresource.
    Scale,
}

impl Hook {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Complete, Self::Check, Self::Scale];
}

impl Rule {
    /// Resource and group.
    pub fn qualified(&self) -> String {
        format!("{}.{}", self.resource, self.group)
    }

    /// Whether the rule has a hook.
    pub fn has(&self, hook: Hook) -> bool {
        match hook {
            Hook::Complete => self.admission.complete.is_some(),
            Hook::Check => !self.admission.operations.is_empty(),
            Hook::Scale => self.admission.scale.is_some(),
        }
    }

    /// The name of a hook in configurations and refusals.
    pub fn name(&self, hook: Hook) -> String {
        let kind = self.kind.to_ascii_lowercase();
        match hook {
            Hook::Complete => format!("default.{kind}.{}", self.group),
            Hook::Check => format!("validation.{kind}.{}", self.group),
            Hook::Scale => format!("validation-scale.{kind}.{}", self.group),
        }
    }

    /// The path of reviews of a hook, as controller-runtime names it.
    pub fn path(&self, hook: Hook) -> String {
        let verb = match hook {
            Hook::Complete => "mutate",
            Hook::Check => "validate",
            Hook::Scale => "validate-scale",
        };
        let (group, kind) = (self.group.replace('.', "-"), self.kind.to_ascii_lowercase());
        format!("/{verb}-{group}-{}-{kind}", self.version)
    }

    /// Completes an object that is created or updated. What was wrong before does not refuse an update.
    pub fn complete(&self, change: &Change<'_>, object: &mut Value) -> Result<Verdict, Unread> {
        let Some(complete) = self.admission.complete.filter(|_| WRITES.contains(&change.operation)) else {
            return Ok(Verdict::default());
        };
        if !self.closed(object).is_empty() {
            // The check says so, and whatever else is wrong does not matter.
            return Ok(Verdict::default());
        }
        let mut verdict = complete(change, object)?;
        if change.is_update() && !verdict.errors.is_empty() {
            // What is completed in the new object would be completed in the old one.
            let mut old = change.old.clone();
            let before = complete(change, &mut old)?;
            verdict.forgive(&before, &old, object);
        }
        verdict.errors.truncate(MOST_ERRORS);
        Ok(verdict)
    }

    /// Checks a write. Writes that the rule does not cover are allowed. What was wrong before does not refuse an update.
    pub fn check(&self, change: &Change<'_>) -> Result<Verdict, Unread> {
        if !self.admission.operations.contains(&change.operation) {
            return Ok(Verdict::default());
        }
        let mut verdict = self.all_errors(change)?;
        if change.is_update() && !verdict.errors.is_empty() {
            let unchanged = Change {
                new: change.old,
                ..*change
            };
            let before = self.all_errors(&unchanged)?;
            verdict.forgive(&before, change.old, change.new);
        }
        verdict.errors.truncate(MOST_ERRORS);
        Ok(verdict)
    }

    fn all_errors(&self, change: &Change<'_>) -> Result<Verdict, Unread> {
        let mut verdict = (self.admission.check)(change)?;
        if let Some(decode) = self.decode.filter(|_| change.operation != Operation::Delete) {
            verdict.errors.extend(undecodable(decode, change.new));
        }
        verdict.errors.splice(0..0, self.closed(change.new));
        Ok(verdict)
    }

    /// The fields that an object has and may not have.
    fn closed(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = FieldErrors::new();
        for closed in &self.closed {
            closed.check(object, &mut errors);
        }
        errors.into_vec()
    }

    /// What a write newly refers to. The user needs [rights](crate::decide) there.
    pub fn reference(&self, change: &Change<'_>) -> Option<Reference> {
        let refers = self
            .admission
            .refers
            .filter(|_| self.admission.operations.contains(&change.operation))?;
        refers(change)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::view::Nothing;

    /// Even sizes are wrong.
    const RULE: Rule = Rule {
        group: "g.io",
        version: "v1",
        kind: "Thing",
        resource: "things",
        admission: Admission::checking(WRITES, |change| {
            let sets = Field::of(change.new).child("sets");
            let even = sets
                .keyed("name")
                .filter(|set| set.value()["size"].as_i64().unwrap_or(1) % 2 == 0);
            Ok(even
                .map(|set| set.child("size").forbidden("is even"))
                .collect::<Vec<_>>()
                .into())
        }),
        decode: None,
        closed: Vec::new(),
    };

    #[test]
    fn a_closed_field_refuses_what_sets_or_changes_it() {
        let rule = Rule {
            closed: ["spec", "list[].part", "deep.list[].more[].part"]
                .map(|path| Closed {
                    path,
                    value: None,
                    words: "is closed",
                })
                .to_vec(),
            ..RULE
        };
        let check = |operation, old: Value, new: Value, expect: &[&str]| {
            let change = Change {
                resource: "things.g.io",
                operation,
                dry_run: false,
                old: &old,
                new: &new,
                view: &Nothing,
            };
            let errors = rule.check(&change).unwrap().errors;
            let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
            let expect: Vec<String> = expect
                .iter()
                .map(|path| format!("{path}: Forbidden: is closed"))
                .collect();
            assert_eq!(texts, expect, "{old} {new}");
        };
        let with = |spec: i64| json!({"spec": {"a": spec}, "list": [{"part": 1}, {}]});
        check(Operation::Create, Value::Null, with(1), &["spec", "list[0].part"]);
        check(
            Operation::Create,
            Value::Null,
            json!({"spec": {}, "list": [{"other": 1}]}),
            &[],
        );
        let deep = json!({"deep": {"list": [{}, {"more": [{"part": true}]}]}});
        check(Operation::Create, Value::Null, deep, &["deep.list[1].more[0].part"]);
        // What was there before can lose its finalizers, and be deleted.
        check(Operation::Update, with(1), with(1), &[]);
        check(Operation::Update, with(1), with(2), &["spec"]);
        check(Operation::Update, json!({}), with(2), &["spec", "list[0].part"]);
        check(Operation::Delete, with(1), Value::Null, &[]);
    }

    #[test]
    fn what_was_wrong_before_refuses_only_a_change_of_it() {
        let check = |operation, old: Value, new: Value, expect: usize| {
            let change = Change {
                resource: "things.g.io",
                operation,
                dry_run: false,
                old: &old,
                new: &new,
                view: &Nothing,
            };
            assert_eq!(RULE.check(&change).unwrap().errors.len(), expect, "{old} {new}");
        };
        let set = |size: i64| json!({"sets": [{"name": "a", "size": size}]});
        check(Operation::Create, Value::Null, set(2), 1);
        check(Operation::Update, set(2), set(2), 0);
        check(Operation::Update, set(2), set(4), 1);
        check(Operation::Update, set(1), set(2), 1);
        check(
            Operation::Update,
            json!({"sets": [{"name": "b"}, {"name": "a", "size": 2}]}),
            set(2),
            0,
        );
        check(Operation::Delete, set(2), Value::Null, 0);
    }
}
