//! The strategy of a kind: functions beyond the rules for all kinds.

use serde_json::Value;
use windlass_objects::Part;
use windlass_objects::metadata::meta;
use windlass_objects::selector::field_text;
use windlass_schema::FieldErrors;

/// The strategy of a kind: a row of the table in `kinds`.
#[derive(Debug, Clone, Copy)]
pub struct Strategy {
    /// Special cases of the verbs for this kind.
    pub special: Special,
    /// Sets defaults.
    pub default: fn(&mut Value),
    /// Adds the fields that admission plugins set; no manager owns them.
    pub admit: fn(&mut Value),
    /// The fields that a new object takes from other objects.
    pub lookup: Lookup,
    /// Sets the fields of a new object that only the server sets.
    pub on_create: fn(&mut Value, jiff::Timestamp),
    /// Sets the fields of a changed object that only the server sets.
    pub on_update: fn(&Value, &mut Value),
    /// Validates an object.
    pub validate: Validate,
    /// Warnings for a write that is accepted.
    pub warnings: fn(&Value, Option<&Value>) -> Vec<String>,
    /// The cells of a table row.
    pub cells: Cells,
    /// The value of a field in a field selector.
    pub field: fn(&Value, &str) -> String,
    /// The conversion to the stored form, if it is more than another apiVersion.
    pub stored: Option<StoredForm>,
    /// Warning for every request of the version.
    pub deprecation: Option<&'static str>,
}

/// Kinds with special cases in the verbs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Special {
    /// Only the common rules.
    #[default]
    None,
    /// Namespaces: deletion includes their contents.
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

/// The fields that a new object takes from other objects.
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
    /// Common rules only.
    None,
    /// The same rules for every subresource: object, old object, errors.
    Object(fn(&Value, Option<&Value>, &mut FieldErrors)),
    /// Rules that depend on the subresource.
    Part(fn(&Value, Option<&Value>, Part, &mut FieldErrors)),
}

/// The cells of a row.
#[derive(Debug, Clone, Copy)]
pub enum Cells {
    /// The name and the time of creation.
    Created,
    /// The name, then these cells.
    Named(fn(&Value, jiff::Timestamp) -> Vec<Value>),
    /// All cells.
    All(fn(&Value, jiff::Timestamp) -> Vec<Value>),
}

/// The conversion between the served and the stored form.
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

    /// The errors of an object by the rules of its kind; `old` is the object that it replaces.
    pub fn errors(&self, object: &Value, old: Option<&Value>, part: Part) -> FieldErrors {
        let mut errors = FieldErrors::new();
        match self.validate {
            // A binding has its own validation.
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
