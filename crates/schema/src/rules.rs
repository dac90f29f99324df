//! `x-kubernetes-validations`: CEL rules, compiled when the schema is parsed.

mod condition;
mod convert;
mod library;
mod permissions;
mod values;

pub use condition::{Condition, Facts};
pub use permissions::{Permission, Permissions, Permitted};

use cel::{Context, Program};
use serde_json::Value;

use crate::check::Checks;
use crate::error::{FieldError, Kind};
use crate::node::{Additional, Node, Schema, Type};
use crate::path::Path;
use crate::validation::old_item;

/// Longest text that a message expression may give.
const MAX_MESSAGE: usize = 5 * 1024;

/// One rule.
pub(crate) struct Rule {
    source: String,
    program: Program,
    message: Option<String>,
    message_expression: Option<Program>,
    reason: Kind,
    field_path: Vec<String>,
    optional_old_self: bool,
    uses_old_self: bool,
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Rule").field(&self.source).finish()
    }
}

impl Rule {
    /// Compiles a rule that stands on `node`.
    pub(crate) fn parse(rule: &Value, at: &str, node: &Node) -> Result<Self, Vec<FieldError>> {
        let text = |name: &str| rule.get(name).and_then(Value::as_str).filter(|t| !t.is_empty());
        let mut errors = Vec::new();
        let source = text("rule").unwrap_or_default().trim().to_owned();
        if source.is_empty() {
            return Err(vec![FieldError::required(
                format!("{at}.rule"),
                "rule is not specified",
            )]);
        }
        let program = compile(&source, &format!("{at}.rule"), &mut errors);
        let message_expression = text("messageExpression")
            .and_then(|expression| compile(expression.trim(), &format!("{at}.messageExpression"), &mut errors));
        if let Some(message) = text("message").filter(|m| m.contains('\n')) {
            errors.push(FieldError::invalid(
                format!("{at}.message"),
                message.into(),
                "message must not contain line breaks",
            ));
        }
        let reason = match text("reason") {
            None | Some("FieldValueInvalid") => Kind::Invalid,
            Some("FieldValueForbidden") => Kind::Forbidden,
            Some("FieldValueRequired") => Kind::Required,
            Some("FieldValueDuplicate") => Kind::Duplicate,
            Some(other) => {
                let allowed = [
                    "FieldValueDuplicate",
                    "FieldValueForbidden",
                    "FieldValueInvalid",
                    "FieldValueRequired",
                ]
                .map(str::to_owned);
                errors.push(FieldError::not_supported(
                    format!("{at}.reason"),
                    other.into(),
                    &allowed,
                ));
                Kind::Invalid
            }
        };
        let field_path = match text("fieldPath").map(|p| (p, field_path(p, node))) {
            None => Vec::new(),
            Some((_, Some(path))) => path,
            Some((path, None)) => {
                let detail = "fieldPath must be a valid path: does not refer to a valid field";
                errors.push(FieldError::invalid(format!("{at}.fieldPath"), path.into(), detail));
                Vec::new()
            }
        };
        let Some(program) = program.filter(|_| errors.is_empty()) else {
            return Err(errors);
        };
        let uses_old_self = program.references().has_variable("oldSelf");
        Ok(Self {
            program,
            message: text("message").map(|m| m.trim().to_owned()),
            message_expression,
            reason,
            field_path,
            optional_old_self: rule.get("optionalOldSelf").and_then(Value::as_bool).unwrap_or(false),
            uses_old_self,
            source,
        })
    }

    fn shown(&self) -> &str {
        &self.source
    }

    fn default_message(&self) -> String {
        self.message
            .clone()
            .unwrap_or_else(|| format!("failed rule: {}", self.shown()))
    }
}

fn compile(source: &str, at: &str, errors: &mut Vec<FieldError>) -> Option<Program> {
    match library::env().compile(source) {
        Ok(program) => Some(program),
        Err(error) => {
            errors.push(FieldError::invalid(
                at,
                source.into(),
                format!("compilation failed: {error}"),
            ));
            None
        }
    }
}

/// Splits `.a.b['c.d']` into names, as far as the schema knows them.
fn field_path(text: &str, node: &Node) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut rest = text;
    let mut node = node;
    while !rest.is_empty() {
        let name = if let Some(after) = rest.strip_prefix("['") {
            let end = after.find("']")?;
            rest = &after[end + 2..];
            after[..end].replace("\\'", "'")
        } else {
            let after = rest.strip_prefix('.')?;
            let end = after.find(['.', '[']).unwrap_or(after.len());
            rest = &after[end..];
            after[..end].to_owned()
        };
        let known = node.properties.get(&name);
        names.push(if known.is_some() {
            format!(".{name}")
        } else {
            format!("[{name}]")
        });
        node = match (known, &node.additional) {
            (Some(child), _) => child,
            (None, Additional::Values(child)) if node.properties.is_empty() => child,
            _ => return None,
        };
    }
    Some(names)
}

/// Evaluates every rule of the schema on a value.
pub(crate) fn evaluate(
    schema: &Schema,
    value: &Value,
    old: Option<&Value>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    walk(&schema.root, value, old, schema.resource, path, errors);
}

fn walk(
    node: &Node,
    value: &Value,
    old: Option<&Value>,
    resource: bool,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if !node.has_rules || value.is_null() {
        return;
    }
    if !node.rules.is_empty() {
        run(node, value, old.filter(|o| !o.is_null()), resource, path, errors);
    }
    match value {
        Value::Object(map) => {
            for (name, child) in map {
                let before = old.and_then(|old| old.get(name));
                if let Some(below) = node.properties.get(name) {
                    walk(
                        below,
                        child,
                        before,
                        below.embedded_resource,
                        &Path::Field(path, name),
                        errors,
                    );
                } else if let Additional::Values(below) = &node.additional {
                    walk(
                        below,
                        child,
                        before,
                        below.embedded_resource,
                        &Path::Key(path, name),
                        errors,
                    );
                }
            }
        }
        Value::Array(items) => {
            if let Some(below) = &node.items {
                for (index, item) in items.iter().enumerate() {
                    let before = old.and_then(|old| old_item(node, old, item));
                    walk(
                        below,
                        item,
                        before,
                        below.embedded_resource,
                        &Path::Index(path, index),
                        errors,
                    );
                }
            }
        }
        _ => {}
    }
}

fn run(node: &Node, value: &Value, old: Option<&Value>, resource: bool, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let unchanged = std::cell::OnceCell::new();
    let mut context = Context::with_env(library::env());
    context.add_variable_from_value("self", convert::to_cel(node, value, resource));
    let plain_old = old.map(|old| convert::to_cel(node, old, resource));
    let mut plain = true;
    for rule in &node.rules {
        if rule.uses_old_self {
            if old.is_none() && !rule.optional_old_self {
                continue;
            }
            if rule.optional_old_self {
                context.add_variable_from_value("oldSelf", convert::optional(plain_old.clone()));
                plain = false;
            } else if let Some(old) = plain_old.clone().filter(|_| !plain || rule.uses_old_self) {
                context.add_variable_from_value("oldSelf", old);
                plain = true;
            }
        }
        let outcome = rule.program.execute(&context);
        let detail = match outcome {
            Ok(cel::Value::Bool(true)) => continue,
            Ok(cel::Value::Bool(false)) => None,
            Ok(_) => Some("rule did not evaluate to a boolean".to_owned()),
            Err(error) => Some(failure(&error, rule)),
        };
        if let Some(detail) = detail {
            errors.push(FieldError::invalid(display(path), type_text(node).into(), detail));
            continue;
        }
        if !rule.uses_old_self && *unchanged.get_or_init(|| old == Some(value)) {
            continue;
        }
        let detail = rule
            .message_expression
            .as_ref()
            .and_then(|expression| message(expression, &context))
            .unwrap_or_else(|| rule.default_message());
        let here = at(path, &rule.field_path);
        // Whole objects and lists are not shown.
        let shown = match node.kind {
            Some(Type::Object | Type::Array) => None,
            _ => Some(value.clone()),
        };
        errors.push(match rule.reason {
            Kind::Forbidden => FieldError::forbidden(here, detail),
            Kind::Required => FieldError::required(here, detail),
            Kind::Duplicate => FieldError::new(here, Kind::Duplicate, shown, ""),
            kind => FieldError::new(here, kind, shown, detail),
        });
    }
}

fn display(path: &Path<'_>) -> String {
    let text = path.to_string();
    if text.is_empty() { "<nil>".to_owned() } else { text }
}

fn at(path: &Path<'_>, names: &[String]) -> String {
    let base = path.to_string();
    if names.is_empty() {
        return display(path);
    }
    let joined = format!("{base}{}", names.concat());
    joined.strip_prefix('.').map_or(joined.clone(), str::to_owned)
}

fn type_text(node: &Node) -> &'static str {
    node.kind.map_or("", Type::name)
}

fn failure(error: &cel::ExecutionError, rule: &Rule) -> String {
    match error {
        cel::ExecutionError::NoSuchOverload(_) => format!(
            "'no such overload': call arguments did not match a supported operator, function or macro signature for rule: {}",
            rule_text(rule)
        ),
        other => format!("{} evaluating rule: {}", reason(other), rule_text(rule)),
    }
}

/// Why an expression has no value.
fn reason(error: &cel::ExecutionError) -> String {
    match error {
        cel::ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        cel::ExecutionError::NoSuchOverload(_) => "no such overload".to_owned(),
        cel::ExecutionError::IndexOutOfBounds(cel::Value::Int(index)) => format!("index out of bounds: {index}"),
        cel::ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        cel::ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        cel::ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        other => other.to_string(),
    }
}

fn rule_text(rule: &Rule) -> &str {
    rule.message.as_deref().unwrap_or(rule.shown())
}

fn message(expression: &Program, context: &Context<'_, '_>) -> Option<String> {
    match expression.execute(context) {
        Ok(cel::Value::String(text)) => {
            let text = text.trim();
            (!text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n')).then(|| text.to_owned())
        }
        _ => None,
    }
}

impl Checks {
    /// Whether strings of this format are of a type of their own in CEL.
    pub(crate) fn string_format(&self) -> Option<crate::format::Format> {
        self.format.as_ref().map(|(format, _)| *format)
    }
}
