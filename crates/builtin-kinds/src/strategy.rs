//! What the server does with the objects of a kind, beyond what holds for all kinds.

use serde_json::Value;
use windlass_objects::Part;
use windlass_objects::metadata::meta;
use windlass_objects::selector::field_text;
use windlass_schema::FieldError;

/// The rules of one kind: a row of the table in `kinds`.
#[derive(Debug, Clone, Copy)]
pub struct Strategy {
    /// Behaviour of the verbs that only this kind has.
    pub special: Special,
    /// Sets the fields that are left out.
    pub default: fn(&mut Value),
    /// Adds the fields that admission plugins set; no manager owns them.
    pub admit: fn(&mut Value),
    /// What a new object needs of other objects.
    pub lookup: Lookup,
    /// Sets the fields that only the server decides, of a new object.
    pub on_create: fn(&mut Value, jiff::Timestamp),
    /// Sets the fields that only the server decides, of a changed object.
    pub on_update: fn(&Value, &mut Value),
    /// Finds what is wrong with an object.
    pub validate: Validate,
    /// Warnings for a write that is accepted.
    pub warnings: fn(&Value, Option<&Value>) -> Vec<String>,
    /// The cells of a table row.
    pub cells: Cells,
    /// The text of a field that a field selector may name.
    pub field: fn(&Value, &str) -> String,
    /// The stored form, where it differs from the served one by more than its apiVersion.
    pub stored: Option<StoredForm>,
    /// Warning for every request of the version.
    pub deprecation: Option<&'static str>,
}

/// Kinds for which verbs have rules of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Special {
    /// Only the common rules.
    #[default]
    None,
    /// Namespaces: deletion takes their content along.
    Namespace,
    /// Pods: eviction, binding, grace period.
    Pod,
    /// Services: addresses and ports are allocated.
    Service,
    /// CustomResourceDefinitions.
    Crd,
    /// Configurations of admission webhooks.
    Webhooks,
}

/// What a new object takes over from other objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    /// Nothing.
    None,
    /// The priority of its priority class.
    Priority,
    /// The default storage class.
    StorageClass,
}

/// How objects are validated.
#[derive(Debug, Clone, Copy)]
pub enum Validate {
    /// By the common rules only.
    None,
    /// The same rules for every part: object, what it replaces, errors.
    Object(fn(&Value, Option<&Value>, &mut Vec<FieldError>)),
    /// By the part that is written.
    Part(fn(&Value, Option<&Value>, Part, &mut Vec<FieldError>)),
}

/// How the cells of a row are made.
#[derive(Debug, Clone, Copy)]
pub enum Cells {
    /// The name and the time of creation.
    Created,
    /// The name, then these.
    Named(fn(&Value, jiff::Timestamp) -> Vec<Value>),
    /// All of them.
    All(fn(&Value, jiff::Timestamp) -> Vec<Value>),
}

/// The way between the served and the stored form.
#[derive(Debug, Clone, Copy)]
pub struct StoredForm {
    /// From the served form.
    pub to_storage: fn(&mut Value),
    /// To the served form.
    pub from_storage: fn(&mut Value),
}

impl Strategy {
    /// A kind with the common rules only; custom resources have these.
    pub const PLAIN: Self = Self {
        special: Special::None,
        default: |_| {},
        admit: |_| {},
        lookup: Lookup::None,
        on_create: |_, _| {},
        on_update: |_, _| {},
        validate: Validate::None,
        warnings: |_, _| Vec::new(),
        cells: Cells::Created,
        field: field_text,
        stored: None,
        deprecation: None,
    };

    /// The errors of an object by the rules of its kind; `old` is what it replaces.
    pub fn errors(&self, object: &Value, old: Option<&Value>, part: Part) -> Vec<FieldError> {
        let mut errors = Vec::new();
        match self.validate {
            // A binding is validated on its own.
            _ if part == Part::Binding => {}
            Validate::None => {}
            Validate::Object(check) => check(object, old, &mut errors),
            Validate::Part(check) => check(object, old, part, &mut errors),
        }
        errors
    }

    /// The cells of a table row.
    pub fn row(&self, object: &Value, now: jiff::Timestamp) -> Vec<Value> {
        let name: Value = meta(object, "name").into();
        match self.cells {
            Cells::Created => vec![name, meta(object, "creationTimestamp").into()],
            Cells::Named(cells) => {
                let mut out = vec![name];
                out.extend(cells(object, now));
                out
            }
            Cells::All(cells) => cells(object, now),
        }
    }
}
