//! Evaluation of rules on a value.

use cel::Context;
use cel::common::types::CelOptional;
use serde_json::Value;
use windlass_meta::budget::RULE_COST;
use windlass_schema::{Additional, FieldError, Kind, MOST_ERRORS, Node, OldItems, Path, Schema, Type};

use crate::program::Outcome;
use crate::rule::{Rule, Rules};
use crate::{convert, library};

/// The longest result of a message expression.
const MAX_MESSAGE: usize = 5 * 1024;

/// What a value was before, as far as the two belong together.
#[derive(Clone, Copy, Default)]
struct Before<'a> {
    /// The corresponding old value.
    old: Option<&'a Value>,
    /// The nearest enclosing value with a corresponding old value, and that old value.
    around: Option<(&'a Value, &'a Value)>,
}

impl<'a> Before<'a> {
    /// Whether neither the value nor the enclosing value has changed.
    fn is_unchanged(&self, value: &Value) -> bool {
        match (self.old, self.around) {
            (Some(old), _) => old == value,
            (None, Some((new, old))) => new == old,
            (None, None) => false,
        }
    }

    fn below(&self, value: &'a Value, old: Option<&'a Value>) -> Self {
        match self.old {
            None => *self,
            Some(was) => Self {
                old,
                around: Some((value, was)),
            },
        }
    }
}

/// Evaluates the rules of one level and below, as of a new value and as of one that does not change.
pub(crate) fn evaluate_default(
    node: &Node,
    rules: &Rules,
    value: &Value,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let mut warnings = Vec::new();
    for old in [Some(value), None] {
        let start = errors.len();
        let mut evaluation = Evaluation {
            rules,
            left: Some(RULE_COST),
            errors: &mut *errors,
            warnings: &mut warnings,
        };
        // Transition rules see the old value, but errors do not become warnings.
        let before = Before { old, around: None };
        evaluation.walk(node, value, before, node.embedded_resource, path);
        errors.append(&mut warnings);
        if errors.len() > start {
            return;
        }
    }
}

pub(crate) struct Evaluation<'e> {
    rules: &'e Rules,
    /// What is left of the budget; nothing once it was not enough.
    left: Option<u64>,
    errors: &'e mut Vec<FieldError>,
    warnings: &'e mut Vec<FieldError>,
}

impl<'a> Evaluation<'a> {
    pub(crate) fn new(
        rules: &'a Rules,
        budget: u64,
        errors: &'a mut Vec<FieldError>,
        warnings: &'a mut Vec<FieldError>,
    ) -> Self {
        Self {
            rules,
            left: Some(budget),
            errors,
            warnings,
        }
    }

    /// Evaluates every rule of the schema on a value. An error that the unchanged old value had as well becomes a warning. Returns what is
    /// left of the budget; nothing if the rules cost more.
    pub(crate) fn evaluate(
        &mut self,
        schema: &Schema,
        value: &Value,
        old: Option<&Value>,
        path: &Path<'_>,
    ) -> Option<u64> {
        let before = Before { old, around: None };
        self.walk(schema.root(), value, before, schema.is_resource(), path);
        self.left
    }
}

impl Evaluation<'_> {
    fn walk(&mut self, node: &Node, value: &Value, before: Before<'_>, resource: bool, path: &Path<'_>) {
        if !node.has_rules() || value.is_null() || self.left.is_none() || self.errors.len() >= MOST_ERRORS {
            return;
        }
        if !self.rules.of(node).is_empty() {
            self.run(node, value, before, resource, path);
        }
        match value {
            Value::Object(map) => {
                for (name, child) in map {
                    let old = before.old.and_then(|old| old.get(name));
                    let here;
                    let (below, here) = if let Some(below) = node.properties.get(name) {
                        here = Path::Field(path, name);
                        (below, &here)
                    } else if let Additional::Values(below) = &node.additional {
                        here = Path::Key(path, name);
                        (below.as_ref(), &here)
                    } else {
                        continue;
                    };
                    self.walk(below, child, before.below(value, old), below.embedded_resource, here);
                }
            }
            Value::Array(items) => {
                let Some(below) = &node.items else { return };
                let old_items = before.old.and_then(|old| OldItems::of(node, old));
                for (index, item) in items.iter().enumerate() {
                    let old = old_items.as_ref().and_then(|old| old.get(item));
                    let here = Path::Index(path, index);
                    self.walk(below, item, before.below(value, old), below.embedded_resource, &here);
                }
            }
            _ => {}
        }
    }

    /// Subtracts a cost from the budget; reports when it is exceeded.
    fn pay(&mut self, cost: u64, path: &Path<'_>, node: &Node) -> bool {
        self.left = self.left.and_then(|left| left.checked_sub(cost));
        if self.left.is_none() {
            let words = "validation failed due to running out of cost budget, no further validation rules will be run";
            self.refuse(path, node, words.to_owned());
        }
        self.left.is_some()
    }

    fn refuse(&mut self, path: &Path<'_>, node: &Node, detail: String) {
        self.errors
            .push(FieldError::invalid(display(path), type_text(node).into(), detail));
    }

    fn run(&mut self, node: &Node, value: &Value, before: Before<'_>, resource: bool, path: &Path<'_>) {
        if self.left == Some(0) {
            self.pay(1, path, node);
            return;
        }
        let old = before.old.filter(|old| !old.is_null());
        let mut context = Context::with_env(library::env());
        context.add_variable_as_val("self", convert::to_cel(node, value, resource));
        let old_self = || old.map(|old| convert::to_cel(node, old, resource));
        // Whether `oldSelf` is an optional, once it is set.
        let mut set: Option<bool> = None;
        let rules = self.rules;
        for rule in rules.of(node).iter().filter(|rule| !rule.is_empty()) {
            let program = match &rule.program {
                Ok(program) => program,
                Err(why) => {
                    self.refuse(path, node, format!("rule compile error: compilation failed: {why}"));
                    continue;
                }
            };
            let optional = rule.optional_old_self == Some(true);
            if set != Some(optional) {
                match old_self() {
                    old if optional => context.add_variable_as_val("oldSelf", Box::new(CelOptional::from(old))),
                    Some(old) => context.add_variable_as_val("oldSelf", old),
                    None if rule.uses_old_self => continue,
                    None => {}
                }
                set = old.map(|_| optional);
            }
            let (outcome, cost) = program.run(&context);
            if !self.pay(cost, path, node) {
                return;
            }
            match outcome {
                Outcome::Done(Ok(cel::Value::Bool(true))) => continue,
                Outcome::Done(Ok(cel::Value::Bool(false))) => {}
                Outcome::Done(Ok(_)) => {
                    self.refuse(path, node, "rule did not evaluate to a boolean".to_owned());
                    continue;
                }
                Outcome::Done(Err(error)) => {
                    self.refuse(path, node, failure(&error, rule));
                    continue;
                }
                Outcome::TooExpensive => {
                    let words = format!(
                        "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: {}",
                        rule.shown()
                    );
                    self.refuse(path, node, words);
                    self.left = None;
                    return;
                }
            }
            let forgiven = !rule.uses_old_self && before.is_unchanged(value);
            let Some(error) = self.unmet(rule, node, value, &context, path) else {
                return;
            };
            if forgiven {
                self.warnings.push(error);
            } else {
                self.errors.push(error);
            }
        }
    }

    /// The error of a violated rule; `None` after the budget was exceeded.
    fn unmet(
        &mut self,
        rule: &Rule,
        node: &Node,
        value: &Value,
        context: &Context<'_, '_>,
        path: &Path<'_>,
    ) -> Option<FieldError> {
        let here = at(path, &rule.field_path);
        let mut detail = None;
        if let Some(Ok(expression)) = &rule.message_expression {
            let (outcome, cost) = expression.run(context);
            self.left = self.left.and_then(|left| left.checked_sub(cost));
            let words = match outcome {
                _ if self.left.is_none() => {
                    "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run"
                }
                Outcome::TooExpensive => {
                    self.left = None;
                    "no further validation rules will be run due to call cost exceeds limit for messageExpression"
                }
                Outcome::Done(result) => {
                    detail = message(result);
                    ""
                }
            };
            if self.left.is_none() {
                self.errors
                    .push(FieldError::invalid(here, type_text(node).into(), words));
                return None;
            }
        }
        let detail = detail.unwrap_or_else(|| rule.default_message());
        // Whole objects and lists are not shown.
        let shown = match node.kind {
            Some(Type::Object | Type::Array) => None,
            _ => Some(value.clone()),
        };
        Some(match rule.reason {
            Kind::Forbidden => FieldError::forbidden(here, detail),
            Kind::Required => FieldError::required(here, detail),
            Kind::Duplicate => FieldError::new(here, Kind::Duplicate, shown, ""),
            kind => FieldError::new(here, kind, shown, detail),
        })
    }
}

fn display(path: &Path<'_>) -> String {
    let text = path.to_string();
    if text.is_empty() { "<nil>".to_owned() } else { text }
}

fn at(path: &Path<'_>, below: &str) -> String {
    let base = path.to_string();
    match (base.is_empty(), below.is_empty()) {
        (_, true) => display(path),
        (true, false) => below.to_owned(),
        (false, false) => format!("{base}.{below}"),
    }
}

fn type_text(node: &Node) -> &'static str {
    node.kind.map_or("", Type::name)
}

fn failure(error: &cel::ExecutionError, rule: &Rule) -> String {
    match error {
        cel::ExecutionError::NoSuchOverload(_) => format!(
            "'no such overload': call arguments did not match a supported operator, function or macro signature for rule: {}",
            rule.shown()
        ),
        other => format!("{} evaluating rule: {}", reason(other), rule.shown()),
    }
}

/// Why an expression has no value.
pub(crate) fn reason(error: &cel::ExecutionError) -> String {
    match error {
        cel::ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        cel::ExecutionError::NoSuchOverload(_) => "no such overload".to_owned(),
        cel::ExecutionError::IndexOutOfBounds(cel::Value::Int(index)) => format!("index out of bounds: {index}"),
        cel::ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        cel::ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        cel::ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        cel::ExecutionError::FunctionError { function, .. }
            if matches!(
                function.as_str(),
                "int" | "uint" | "double" | "bool" | "duration" | "timestamp"
            ) =>
        {
            format!("type conversion error from 'string' to '{function}'")
        }
        cel::ExecutionError::FunctionError { message, .. } => message.clone(),
        other => other.to_string(),
    }
}

/// The result of a message expression, if it is a valid message.
fn message(result: Result<cel::Value, cel::ExecutionError>) -> Option<String> {
    match result {
        Ok(cel::Value::String(text)) => {
            let text = text.trim();
            (!text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n')).then(|| text.to_owned())
        }
        _ => None,
    }
}
