//! What the patches of a class may cost for one Cluster. The author of a class chooses their number and their templates, and that of a Cluster
//! how many templates they are applied to: both may multiply, so all of them share one budget.

use serde_json::Value;
use windlass_gotemplate as gotemplate;

use super::{Field, yaml};
use crate::error::Error;

/// The cost of an operation of a patch, whatever it changes.
const OPERATION: usize = 512;
/// The cost to compare a selector, or a name in it.
const COMPARE: usize = 16;
/// The cost to read a byte of YAML.
const READ: usize = 32;
/// The cost to move an item of a list.
const MOVE: usize = 4;

/// The budget of all patches, and the patch at work.
pub(super) struct Costs<'a> {
    patch: &'a str,
    left: gotemplate::Budget,
}

impl<'a> Costs<'a> {
    pub(super) fn new(left: gotemplate::Budget) -> Self {
        Self { patch: "", left }
    }

    /// What is left for other patches.
    pub(super) fn left(&self) -> gotemplate::Budget {
        self.left.clone()
    }

    /// Begins another patch.
    pub(super) fn begin(&mut self, patch: &'a str) {
        self.patch = patch;
    }

    fn pay(&mut self, field: Field<'_>, cost: usize) -> Result<(), Error> {
        if self.left.spend(cost) {
            Ok(())
        } else {
            Err(self.spent(field))
        }
    }

    fn spent(&self, field: Field<'_>) -> Error {
        field.error(format!(
            "patches cost too much to render: patch {:?} exceeds what all patches of a Cluster may cost together; \
             make the templates simpler, or the patches and their targets fewer",
            self.patch
        ))
    }

    /// Pays for a selector with so many names.
    pub(super) fn select(&mut self, field: Field<'_>, names: usize) -> Result<(), Error> {
        self.pay(field, COMPARE.saturating_mul(names.saturating_add(1)))
    }

    /// Pays for a copy of values.
    pub(super) fn copy<'v>(
        &mut self,
        field: Field<'_>,
        values: impl IntoIterator<Item = &'v Value>,
    ) -> Result<(), Error> {
        let sum = values.into_iter().map(weight).fold(OPERATION, usize::saturating_add);
        self.pay(field, sum)
    }

    /// Pays for an item before all others of a list.
    pub(super) fn prepend(&mut self, field: Field<'_>, list: Option<&Value>) -> Result<(), Error> {
        let length = list.and_then(Value::as_array).map_or(0, Vec::len);
        self.pay(field, length.saturating_mul(MOVE))
    }

    /// Renders a template whose result is YAML.
    pub(super) fn render(
        &mut self,
        field: Field<'_>,
        template: &gotemplate::Prepared,
        data: &Value,
    ) -> Result<Value, Error> {
        let shown = template.render_within(data, &mut self.left);
        if self.left.is_spent() {
            return Err(self.spent(field));
        }
        let shown = shown.map_err(|e| field.error(e.to_string()))?;
        self.pay(field, shown.len().saturating_mul(READ))?;
        yaml::read(&shown).map_err(|e| field.error(format!("gives no valid YAML: {e}")))
    }
}

/// About the bytes of a value in memory.
fn weight(value: &Value) -> usize {
    const EACH: usize = 32;
    let below: usize = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| EACH + name.len() + weight(value))
            .sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    EACH + below
}
