//! Checks of every level of a schema, structural or not, and of its rules.

use serde_json::{Map, Value};

use super::lists::lists;
use super::{flag, kind};
use crate::error::FieldError;
use crate::field_path::Steps;
use crate::node::{Additional, Node};
use crate::review::{Place, RuleReview};

/// The JSON types, in the order of messages.
const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
/// The allowed reasons of a rule.
const REASONS: [&str; 4] = [
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];

/// What is wrong with a schema.
pub(crate) struct Told<'r> {
    pub(crate) schema: Vec<FieldError>,
    pub(crate) rules: Vec<FieldError>,
    reviewer: &'r mut dyn RuleReview,
}

impl<'r> Told<'r> {
    /// Nothing yet.
    pub(crate) fn new(reviewer: &'r mut dyn RuleReview) -> Self {
        Self {
            schema: Vec::new(),
            rules: Vec::new(),
            reviewer,
        }
    }
}

/// A level of a schema, with properties inherited from the enclosing levels.
#[derive(Clone)]
pub(crate) struct Visit<'a> {
    /// The parsed level; `None` if rules are not checked.
    pub(crate) node: Option<&'a Node>,
    pub(crate) root: bool,
    /// Whether an API object begins here.
    pub(crate) resource: bool,
    /// Why defaults are not allowed.
    pub(crate) no_defaults: Option<String>,
    pub(crate) in_metadata: bool,
    pub(crate) uncorrelated: Option<String>,
    /// The largest number of such values, if there is a limit.
    pub(crate) count: Option<u64>,
    /// Whether the costs of rules are not checked.
    pub(crate) known: bool,
    /// Whether `uniqueItems` is allowed.
    pub(crate) unique_items: bool,
}

impl<'a> Visit<'a> {
    /// Looks at a level and everything below.
    pub(crate) fn level(&self, map: &Map<String, Value>, at: &str, told: &mut Told<'_>) {
        let start = told.schema.len();
        self.keywords(map, at, &mut told.schema);
        self.children(map, at, told);
        if map.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
            let path = format!("{at}.x-kubernetes-preserve-unknown-fields");
            told.schema
                .push(FieldError::invalid(path, false.into(), "must be true or undefined"));
        }
        lists(map, at, &mut told.schema);
        let Some(Value::Array(rules)) = map.get("x-kubernetes-validations") else {
            return;
        };
        for (index, rule) in rules.iter().enumerate() {
            let at = format!("{at}.x-kubernetes-validations[{index}]");
            rule_errors(rule, map, &at, &mut told.schema);
        }
        // Rules are checked only if the schema is valid.
        if told.schema.len() == start
            && let Some(node) = self.node
        {
            let place = Place {
                at,
                resource: self.resource,
                count: self.count,
                uncorrelated: self.uncorrelated.as_deref(),
                known: self.known,
            };
            told.reviewer.level(node, rules, &place, &mut told.rules);
        }
    }

    fn keywords(&self, map: &Map<String, Value>, at: &str, errors: &mut Vec<FieldError>) {
        let kind = kind(map);
        if !kind.is_empty() && !TYPES.contains(&kind) {
            let allowed = TYPES.map(str::to_owned);
            errors.push(FieldError::not_supported(format!("{at}.type"), kind.into(), &allowed));
        }
        if let Some(why) = self.no_defaults.as_ref().filter(|_| map.contains_key("default")) {
            errors.push(FieldError::forbidden(
                format!("{at}.default"),
                format!("must not be set {why}"),
            ));
        }
        for name in [
            "id",
            "additionalItems",
            "patternProperties",
            "definitions",
            "dependencies",
            "$ref",
        ] {
            let empty = |value: &Value| match value {
                Value::Null => true,
                Value::String(text) => name == "id" && text.is_empty(),
                Value::Object(map) => matches!(name, "patternProperties" | "definitions") && map.is_empty(),
                _ => false,
            };
            if map.get(name).is_some_and(|value| !empty(value)) {
                errors.push(FieldError::forbidden(
                    format!("{at}.{name}"),
                    format!("{name} is not supported"),
                ));
            }
        }
        if kind == "null" {
            errors.push(FieldError::forbidden(
                format!("{at}.type"),
                "type cannot be set to null, use nullable as an alternative",
            ));
        }
        if matches!(map.get("items"), Some(Value::Array(items)) if !items.is_empty()) {
            errors.push(FieldError::forbidden(
                format!("{at}.items"),
                "items must be a schema object and not an array",
            ));
        }
        if self.in_metadata && flag(map, "x-kubernetes-embedded-resource") {
            errors.push(FieldError::forbidden(
                format!("{at}.x-kubernetes-embedded-resource"),
                "must not be used inside of resource meta",
            ));
        }
        if flag(map, "uniqueItems") && !self.unique_items {
            errors.push(FieldError::forbidden(
                format!("{at}.uniqueItems"),
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            ));
        }
    }

    /// The level below this one.
    fn below(&self, node: Option<&'a Node>, count: Option<u64>) -> Self {
        Self {
            node,
            root: false,
            resource: node.is_some_and(|node| node.embedded_resource),
            count: self.count.zip(count).map(|(a, b)| a.saturating_mul(b)),
            ..self.clone()
        }
    }

    fn children(&self, map: &Map<String, Value>, at: &str, told: &mut Told<'_>) {
        let count = most_below(map);
        if let Some(additional) = map.get("additionalProperties") {
            let has_properties = matches!(map.get("properties"), Some(Value::Object(p)) if !p.is_empty());
            if has_properties && *additional != Value::Bool(true) {
                told.schema.push(FieldError::forbidden(
                    format!("{at}.additionalProperties"),
                    "additionalProperties and properties are mutual exclusive",
                ));
            }
            if let Value::Object(values) = additional {
                let node = self.node.and_then(|node| match &node.additional {
                    Additional::Values(values) => Some(values.as_ref()),
                    _ => None,
                });
                let mut below = self.below(node, count);
                if self.in_metadata {
                    below.no_defaults = Some("inside additionalProperties applying to object metadata".to_owned());
                }
                below.level(values, &format!("{at}.additionalProperties"), told);
            }
        }
        let embedded = flag(map, "x-kubernetes-embedded-resource");
        for (name, schema) in map.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let Value::Object(schema) = schema else { continue };
            let node = self.node.and_then(|node| node.properties.get(name));
            let mut below = self.below(node, count);
            if !matches!(
                map.get("x-kubernetes-map-type").and_then(Value::as_str),
                None | Some("granular" | "atomic")
            ) {
                below.uncorrelated.get_or_insert_with(|| at.to_owned());
            }
            if (self.root || embedded) && matches!(name.as_str(), "metadata" | "kind" | "apiVersion") {
                below.in_metadata = true;
                if self.root {
                    below.no_defaults = Some(format!("in top-level {name}"));
                }
            }
            below.level(schema, &format!("{at}.properties[{name}]"), told);
        }
        let aside = Self {
            node: None,
            root: false,
            ..self.clone()
        };
        if let Some(Value::Object(not)) = map.get("not") {
            aside.level(not, &format!("{at}.not"), told);
        }
        for name in ["allOf", "oneOf", "anyOf"] {
            let branches = map.get(name).and_then(Value::as_array).into_iter().flatten();
            for (index, branch) in branches.enumerate() {
                if let Value::Object(branch) = branch {
                    aside.level(branch, &format!("{at}.{name}[{index}]"), told);
                }
            }
        }
        if let Some(Value::Object(items)) = map.get("items") {
            let mut below = self.below(self.node.and_then(|node| node.items.as_deref()), count);
            // Only lists of type map correlate their items.
            if map.get("x-kubernetes-list-type").and_then(Value::as_str) != Some("map") {
                below.uncorrelated.get_or_insert_with(|| at.to_owned());
            }
            below.level(items, &format!("{at}.items"), told);
        }
    }
}

/// The largest number of values in one value; `None` if there is no limit.
fn most_below(map: &Map<String, Value>) -> Option<u64> {
    let limit = |name: &str| {
        map.get(name)
            .and_then(Value::as_i64)
            .map(|n| u64::try_from(n).unwrap_or(0))
    };
    match kind(map) {
        "object" if map.contains_key("additionalProperties") => limit("maxProperties"),
        "array" => limit("maxItems"),
        _ => Some(1),
    }
}

fn rule_errors(rule: &Value, map: &Map<String, Value>, at: &str, errors: &mut Vec<FieldError>) {
    let text = |name: &str| rule.get(name).and_then(Value::as_str).unwrap_or("");
    let here = |name: &str| format!("{at}.{name}");
    let has_breaks = |text: &str| text.contains(['\n', '\r']);
    let (source, message) = (text("rule").trim(), text("message").trim());
    let invalid = |name: &str, words: &str| FieldError::invalid(here(name), text(name).into(), words);
    if source.is_empty() {
        errors.push(FieldError::required(here("rule"), "rule is not specified"));
    } else if !text("message").is_empty() && message.is_empty() {
        errors.push(invalid("message", "must be non-empty if specified"));
    } else if has_breaks(message) {
        errors.push(invalid("message", "must not contain line breaks"));
    } else if has_breaks(source) && message.is_empty() {
        errors.push(FieldError::required(
            here("message"),
            "message must be specified if rule contains line breaks",
        ));
    }
    if !text("messageExpression").is_empty() && text("messageExpression").trim().is_empty() {
        errors.push(FieldError::required(
            here("messageExpression"),
            "messageExpression must be non-empty if specified",
        ));
    }
    if let Some(reason) = rule.get("reason").and_then(Value::as_str)
        && !REASONS.contains(&reason)
    {
        let allowed = REASONS.map(str::to_owned);
        errors.push(FieldError::not_supported(here("reason"), reason.into(), &allowed));
    }
    let path = text("fieldPath");
    if path.is_empty() {
        return;
    }
    if path.trim().is_empty() {
        errors.push(invalid("fieldPath", "must be non-empty if specified"));
    }
    if has_breaks(path) {
        errors.push(invalid("fieldPath", "must not contain line breaks"));
    }
    let (schema, _) = crate::Schema::lenient(&Value::Object(map.clone()), false, None);
    if Steps::parse(path, schema.root(), true).is_err() {
        errors.push(invalid("fieldPath", "must be a valid path"));
    }
}
