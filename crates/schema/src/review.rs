//! Validates a schema. The errors have the order of Kubernetes.

use serde_json::{Map, Value};

use crate::error::FieldError;
use crate::node::{Node, Schema};
use crate::parse::Dialect;
use crate::path::Path;
use crate::patterns::Patterns;
use crate::structural::{self, Told, Visit};

/// The keywords that are allowed at the root of a schema with a status subresource, by their names in messages.
const AT_ROOT: [(&str, &str); 22] = [
    ("Description", "description"),
    ("Type", "type"),
    ("Format", "format"),
    ("Title", "title"),
    ("Maximum", "maximum"),
    ("ExclusiveMaximum", "exclusiveMaximum"),
    ("Minimum", "minimum"),
    ("ExclusiveMinimum", "exclusiveMinimum"),
    ("MaxLength", "maxLength"),
    ("MinLength", "minLength"),
    ("Pattern", "pattern"),
    ("MaxItems", "maxItems"),
    ("MinItems", "minItems"),
    ("UniqueItems", "uniqueItems"),
    ("MultipleOf", "multipleOf"),
    ("Required", "required"),
    ("Items", "items"),
    ("Properties", "properties"),
    ("ExternalDocs", "externalDocs"),
    ("Example", "example"),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields"),
    ("XValidations", "x-kubernetes-validations"),
];

/// Options of a review.
#[derive(Debug, Clone)]
pub struct Reviewing<'a> {
    /// The path prefix of errors.
    pub at: &'a str,
    /// Whether it is the schema of an API object.
    pub resource: bool,
    /// Whether there is a status subresource.
    pub status: bool,
    /// Whether the schema is unchanged: then the cost of its rules is not checked again.
    pub known: bool,
    /// The patterns of the object that the schema belongs to.
    pub patterns: &'a Patterns,
}

impl<'a> Reviewing<'a> {
    pub(crate) fn of(dialect: Dialect, at: &'a str, patterns: &'a Patterns) -> Self {
        Self {
            at,
            resource: dialect == Dialect::Crd,
            status: false,
            known: false,
            patterns,
        }
    }
}

/// Where in a schema rules stand.
#[derive(Debug)]
pub struct Place<'a> {
    /// The path of the level.
    pub at: &'a str,
    /// The root of an API object.
    pub resource: bool,
    /// How many such values there can be, if that is limited.
    pub count: Option<u64>,
    /// The outermost place whose old and new values cannot be told to belong together.
    pub uncorrelated: Option<&'a str>,
    /// The schema was there before: what its rules cost is not asked again.
    pub known: bool,
}

/// The review of the rules of a schema, which this crate only keeps as they are written.
pub trait RuleReview {
    /// Takes the schema. All levels that follow are of it. Patterns of rules belong to `patterns`, too.
    fn begin(&mut self, schema: &Schema, patterns: &Patterns);

    /// Adds what the rules of a level, and those below it, say about a default at `path`.
    fn default(&mut self, node: &Node, value: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>);

    /// Adds what is wrong with the rules of a level. `written` is their text.
    fn level(&mut self, node: &Node, written: &[Value], place: &Place<'_>, errors: &mut Vec<FieldError>);

    /// Adds what is wrong with all rules together, for the schema at `at`.
    fn end(&mut self, at: &str, errors: &mut Vec<FieldError>);
}

/// Reviews no rule: for schemas without any.
#[derive(Debug, Clone, Copy, Default)]
pub struct WithoutRules;

impl RuleReview for WithoutRules {
    fn begin(&mut self, _: &Schema, _: &Patterns) {}

    fn default(&mut self, _: &Node, _: &Value, _: &Path<'_>, _: &mut Vec<FieldError>) {}

    fn level(&mut self, _: &Node, _: &[Value], _: &Place<'_>, _: &mut Vec<FieldError>) {}

    fn end(&mut self, _: &str, _: &mut Vec<FieldError>) {}
}

/// Everything wrong with a schema. `rules` reviews its rules.
pub fn review(schema: &Value, how: &Reviewing<'_>, rules: &mut dyn RuleReview) -> Vec<FieldError> {
    let at = how.at;
    let Value::Object(map) = schema else {
        return vec![FieldError::invalid(at, schema.clone(), "must be an object")];
    };
    let mut errors = Vec::new();
    if how.status {
        root_keywords(map, at, &mut errors);
    }
    if how.resource && map.get("nullable") == Some(&Value::Bool(true)) {
        errors.push(FieldError::forbidden(
            format!("{at}.nullable"),
            "nullable cannot be true at the root",
        ));
    }
    let (parsed, _) = Schema::lenient(schema, how.resource, Some(how.patterns));
    rules.begin(&parsed, how.patterns);
    let unsupported = structural::unsupported(map);
    let start = errors.len();
    if unsupported.is_none() {
        let dialect = if how.resource { Dialect::Crd } else { Dialect::Value };
        structural::check(schema, dialect, at, how.patterns, &mut errors);
        if errors.len() == start {
            structural::check_defaults(&parsed.root, how.resource, at, rules, &mut errors);
        }
    }
    let mut told = Told::new(rules);
    let visit = Visit {
        node: (unsupported.is_none() && errors.len() == start).then_some(&parsed.root),
        root: how.resource,
        resource: how.resource,
        no_defaults: None,
        in_metadata: false,
        uncorrelated: None,
        count: Some(1),
        known: how.known,
        // Variables may have `uniqueItems`: their values are small.
        unique_items: !how.resource,
    };
    visit.level(map, at, &mut told);
    errors.append(&mut told.schema);
    errors.append(&mut told.rules);
    if let Some(why) = unsupported.filter(|_| errors.is_empty()) {
        errors.push(FieldError::invalid(at, "".into(), why));
    }
    rules.end(at, &mut errors);
    errors
}

fn root_keywords(map: &Map<String, Value>, at: &str, errors: &mut Vec<FieldError>) {
    if let Some(kind) = map.get("type").and_then(Value::as_str)
        && kind != "object"
    {
        let words =
            "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        errors.push(FieldError::invalid(format!("{at}.type"), kind.into(), words));
        return;
    }
    let unset = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        _ => false,
    };
    let stray = map
        .iter()
        .any(|(name, value)| !unset(value) && !AT_ROOT.iter().any(|(_, known)| known == name));
    if stray {
        let names: Vec<&str> = AT_ROOT.iter().map(|(name, _)| *name).collect();
        let words = format!(
            "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
            names.join(" ")
        );
        let shown = crate::internal::schema(map);
        errors.push(FieldError::shown(at, crate::Kind::Invalid, shown, words));
    }
}
