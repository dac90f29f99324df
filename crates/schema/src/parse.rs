//! Parses JSON to [`Schema`].

use serde_json::{Map, Value};

use crate::check::{Checks, NumberFormat};
use crate::error::{FieldError, SchemaError};
use crate::format::Format;
use crate::node::{Additional, ListType, MapType, Node, Patch, Schema, Type, WrittenRules};
use crate::patterns::Patterns;
use crate::review::{Reviewing, RuleReview, review};

/// The source of a schema, which determines how strict parsing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// `spec.versions[].schema.openAPIV3Schema` of a CRD: structural, an object at the root.
    Crd,
    /// A structural schema of any value, such as a ClusterClass variable.
    Value,
    /// OpenAPI of built-in kinds: `$ref` is allowed, and the structure is not checked.
    OpenApi,
}

impl Schema {
    /// Parses the schema of a stored CRD version, which was looked at when it was written. Its patterns have no budget: it must stay
    /// readable.
    pub fn stored(schema: &Value) -> Self {
        Self::lenient(schema, true, Some(&Patterns::trusted())).0
    }

    /// Parses OpenAPI of a built-in kind. References (`#/definitions/x`, `#/$defs/x`, `#/components/schemas/x`) are looked up in
    /// `definitions`, an object from name to schema. A recursive schema is cut at the recursion and allows any value there.
    pub fn open_api(schema: &Value, definitions: &Value) -> Result<Self, SchemaError> {
        Self::open_api_within(schema, definitions, &Patterns::trusted())
    }

    /// The same for a schema that is part of an object with these patterns.
    pub fn open_api_within(schema: &Value, definitions: &Value, patterns: &Patterns) -> Result<Self, SchemaError> {
        let mut errors = Vec::new();
        let empty = Map::new();
        let mut parser = Parser {
            definitions: Some(definitions.as_object().unwrap_or(&empty)),
            patterns: Some(patterns),
            stack: Vec::new(),
            levels: 0,
            errors: &mut errors,
        };
        let root = parser.node(schema, "schema");
        // The definitions also describe apiVersion, kind and metadata.
        finish(root, false, errors)
    }

    /// Parses a schema, with everything that kube-apiserver demands of it; `at` is the path that errors start with. `patterns` are those
    /// of the object that the schema belongs to.
    pub fn parse(
        schema: &Value,
        dialect: Dialect,
        at: &str,
        patterns: &Patterns,
        rules: &mut dyn RuleReview,
    ) -> Result<Self, SchemaError> {
        if dialect != Dialect::OpenApi {
            let errors = review(schema, &Reviewing::of(dialect, at, patterns), rules);
            if !errors.is_empty() {
                return Err(SchemaError(errors));
            }
        }
        let (parsed, errors) = Self::lenient(schema, dialect != Dialect::Value, Some(patterns));
        finish(parsed.root, parsed.resource, errors)
    }

    /// Parses a schema and ignores errors. Without `patterns`, its patterns are left out.
    pub(crate) fn lenient(schema: &Value, resource: bool, patterns: Option<&Patterns>) -> (Self, Vec<FieldError>) {
        let mut errors = Vec::new();
        let mut parser = Parser {
            definitions: None,
            patterns,
            stack: Vec::new(),
            levels: 0,
            errors: &mut errors,
        };
        let root = parser.node(schema, "schema");
        (Self { root, resource }, errors)
    }
}

fn finish(root: Node, resource: bool, errors: Vec<FieldError>) -> Result<Schema, SchemaError> {
    if errors.is_empty() {
        Ok(Schema { root, resource })
    } else {
        Err(SchemaError(errors))
    }
}

struct Parser<'a, 'e> {
    /// The targets of references; `None` if references are not allowed, which the structural checks report.
    definitions: Option<&'a Map<String, Value>>,
    patterns: Option<&'a Patterns>,
    stack: Vec<&'a str>,
    /// Levels with rules so far.
    levels: usize,
    errors: &'e mut Vec<FieldError>,
}

impl<'a> Parser<'a, '_> {
    fn node(&mut self, schema: &'a Value, at: &str) -> Node {
        let Value::Object(map) = schema else {
            return match schema {
                Value::Bool(true) => anything(),
                other => {
                    self.errors
                        .push(FieldError::invalid(at, other.clone(), "must be an object"));
                    Node::default()
                }
            };
        };
        if let Some(name) = map.get("$ref").and_then(Value::as_str) {
            return self.reference(map, name, at);
        }
        // Generators wrap a reference into an allOf with one element to add a description.
        if let Some([only]) = map.get("allOf").and_then(Value::as_array).map(Vec::as_slice)
            && only.get("$ref").is_some()
        {
            let mut node = self.node(only, at);
            self.hints(map, &mut node, at);
            return node;
        }
        let mut node = Node {
            kind: self.kind(map, at),
            nullable: flag(map, "nullable") || type_list_has_null(map),
            int_or_string: flag(map, "x-kubernetes-int-or-string"),
            preserve_unknown: flag(map, "x-kubernetes-preserve-unknown-fields"),
            embedded_resource: flag(map, "x-kubernetes-embedded-resource"),
            ..Node::default()
        };
        if self.definitions.is_some() {
            node.format = map.get("format").and_then(Value::as_str).map(Into::into);
        }
        self.hints(map, &mut node, at);
        self.children(map, &mut node, at);
        let checks = self.checks(map, &node, at);
        if !checks.is_empty() {
            node.checks = Some(Box::new(checks));
        }
        if let Some(Value::Array(rules)) = map.get("x-kubernetes-validations") {
            node.rules = self.written(rules);
        }
        summarise(&mut node);
        node
    }

    fn written(&mut self, rules: &[Value]) -> Option<Box<WrittenRules>> {
        if rules.is_empty() {
            return None;
        }
        let level = self.levels;
        self.levels += 1;
        let rules = rules.to_vec();
        Some(Box::new(WrittenRules { level, rules }))
    }

    fn reference(&mut self, map: &'a Map<String, Value>, reference: &'a str, at: &str) -> Node {
        let name = reference.rsplit('/').next().unwrap_or(reference);
        if self.stack.contains(&name) {
            return anything();
        }
        let Some(definitions) = self.definitions else {
            return anything();
        };
        let Some(target) = definitions.get(name) else {
            self.errors.push(FieldError::new(
                format!("{at}.$ref"),
                crate::Kind::NotFound,
                Some(reference.into()),
                "no such definition",
            ));
            return anything();
        };
        self.stack.push(name);
        let mut node = self.node(target, at);
        self.stack.pop();
        node.type_name = Some(short_name(name).into());
        self.hints(map, &mut node, at);
        summarise(&mut node);
        node
    }

    fn kind(&mut self, map: &Map<String, Value>, at: &str) -> Option<Type> {
        let name = match map.get("type")? {
            Value::String(name) => name.as_str(),
            Value::Array(names) => names.iter().filter_map(Value::as_str).find(|name| *name != "null")?,
            _ => "",
        };
        let kind = Type::from_name(name);
        if kind.is_none() && !name.is_empty() {
            let allowed: Vec<String> = ["array", "boolean", "integer", "number", "object", "string"]
                .map(str::to_owned)
                .into();
            self.errors
                .push(FieldError::not_supported(format!("{at}.type"), name.into(), &allowed));
        }
        kind
    }

    /// Keywords beside a `$ref`: defaults, list and map types, patch hints.
    fn hints(&mut self, map: &Map<String, Value>, node: &mut Node, at: &str) {
        // In a definition, a null default means no default.
        let default = map.get("default");
        if let Some(default) = default.filter(|default| self.definitions.is_some() || !default.is_null()) {
            node.default = Some(default.clone());
        }
        match map.get("x-kubernetes-list-type").and_then(Value::as_str) {
            Some("set") => node.list_type = ListType::Set,
            Some("map") => node.list_type = ListType::Map,
            Some("atomic") => node.list_type = ListType::Atomic,
            Some(other) => self.errors.push(FieldError::not_supported(
                format!("{at}.x-kubernetes-list-type"),
                other.into(),
                &["atomic".to_owned(), "map".to_owned(), "set".to_owned()],
            )),
            None => {}
        }
        if let Some(Value::Array(keys)) = map.get("x-kubernetes-list-map-keys") {
            node.list_map_keys = keys.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        }
        match map.get("x-kubernetes-map-type").and_then(Value::as_str) {
            Some("atomic") => node.map_type = MapType::Atomic,
            Some("granular") => node.map_type = MapType::Granular,
            Some(other) => self.errors.push(FieldError::not_supported(
                format!("{at}.x-kubernetes-map-type"),
                other.into(),
                &["atomic".to_owned(), "granular".to_owned()],
            )),
            None => {}
        }
        let strategy = map.get("x-kubernetes-patch-strategy").and_then(Value::as_str);
        let key = map.get("x-kubernetes-patch-merge-key").and_then(Value::as_str);
        if strategy.is_some() || key.is_some() {
            let strategy = strategy.unwrap_or("merge");
            node.patch = Some(Box::new(Patch {
                merge_key: key.map(str::to_owned),
                merge: strategy.split(',').any(|s| s == "merge"),
                retain_keys: strategy.split(',').any(|s| s == "retainKeys"),
            }));
        }
    }

    fn children(&mut self, map: &'a Map<String, Value>, node: &mut Node, at: &str) {
        if let Some(Value::Object(properties)) = map.get("properties") {
            for (name, schema) in properties {
                let child = self.node(schema, &format!("{at}.properties[{name}]"));
                node.properties.insert(name.clone(), child);
            }
        }
        match map.get("additionalProperties") {
            None => {}
            Some(Value::Bool(true)) => node.additional = Additional::Any,
            Some(Value::Bool(false)) => node.closed = true,
            Some(schema) => {
                let child = self.node(schema, &format!("{at}.additionalProperties"));
                node.additional = Additional::Values(Box::new(child));
            }
        }
        if let Some(items) = map.get("items") {
            node.items = Some(Box::new(self.node(items, &format!("{at}.items"))));
        }
    }

    fn checks(&mut self, map: &'a Map<String, Value>, node: &Node, at: &str) -> Checks {
        let mut checks = Checks {
            maximum: number(map, "maximum"),
            exclusive_maximum: flag(map, "exclusiveMaximum"),
            minimum: number(map, "minimum"),
            exclusive_minimum: flag(map, "exclusiveMinimum"),
            multiple_of: number(map, "multipleOf"),
            max_length: count(map, "maxLength"),
            min_length: count(map, "minLength"),
            max_items: count(map, "maxItems"),
            min_items: count(map, "minItems"),
            unique_items: flag(map, "uniqueItems"),
            max_properties: count(map, "maxProperties"),
            min_properties: count(map, "minProperties"),
            all_of: self.branches(map, "allOf", at),
            any_of: self.branches(map, "anyOf", at),
            one_of: self.branches(map, "oneOf", at),
            not: map.get("not").map(|schema| self.node(schema, &format!("{at}.not"))),
            ..Checks::default()
        };
        if let Some(name) = map.get("format").and_then(Value::as_str) {
            match node.kind {
                None | Some(Type::String) if !node.int_or_string => {
                    checks.format = Format::from_name(name).map(|format| (format, name.to_owned()));
                }
                Some(Type::Integer) => {
                    checks.number_format = match name {
                        "int32" => Some(NumberFormat::Int32),
                        "int64" => Some(NumberFormat::Int64),
                        _ => None,
                    }
                }
                Some(Type::Number) => {
                    checks.number_format = match name {
                        "float" => Some(NumberFormat::Float),
                        "double" => Some(NumberFormat::Double),
                        _ => None,
                    }
                }
                _ => {}
            }
        }
        if let Some(patterns) = self.patterns
            && let Some(pattern) = map.get("pattern").and_then(Value::as_str).filter(|p| !p.is_empty())
        {
            match patterns.compile(pattern) {
                Ok(regex) => checks.pattern = Some((regex, pattern.to_owned())),
                Err(why) => self.errors.push(FieldError::invalid(
                    format!("{at}.pattern"),
                    pattern.into(),
                    why.detail(),
                )),
            }
        }
        if let Some(Value::Array(names)) = map.get("required") {
            checks.required = names.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        }
        if let Some(Value::Array(values)) = map.get("enum") {
            checks.one_of_values.clone_from(values);
        }
        checks
    }

    fn branches(&mut self, map: &'a Map<String, Value>, name: &str, at: &str) -> Vec<Node> {
        let Some(Value::Array(list)) = map.get(name) else {
            return Vec::new();
        };
        list.iter()
            .enumerate()
            .map(|(index, schema)| self.node(schema, &format!("{at}.{name}[{index}]")))
            .collect()
    }
}

/// Computes, bottom-up, which branches walks may skip.
fn summarise(node: &mut Node) {
    let additional = match &node.additional {
        Additional::Values(values) => Some(values.as_ref()),
        _ => None,
    };
    let mut below = node.properties.values().chain(additional).chain(node.items.as_deref());
    let (mut defaults, mut rules, mut keyed, mut embedded) = (false, false, false, false);
    below.by_ref().for_each(|child| {
        defaults |= child.has_defaults || child.default.is_some();
        rules |= child.has_rules;
        keyed |= child.has_keyed_lists;
        embedded |= child.has_embedded;
    });
    node.has_defaults = defaults;
    node.has_rules = rules || node.rules.is_some();
    node.has_embedded = embedded || node.embedded_resource;
    node.has_keyed_lists = keyed || node.list_type != ListType::Atomic;
}

/// The last two parts of a type's name: version and name.
fn short_name(name: &str) -> &str {
    let mut dots = name.rmatch_indices('.');
    dots.next();
    dots.next().map_or(name, |(at, _)| &name[at + 1..])
}

fn anything() -> Node {
    Node {
        preserve_unknown: true,
        nullable: true,
        ..Node::default()
    }
}

fn type_list_has_null(map: &Map<String, Value>) -> bool {
    matches!(map.get("type"), Some(Value::Array(names)) if names.iter().any(|name| name == "null"))
}

fn flag(map: &Map<String, Value>, name: &str) -> bool {
    map.get(name).and_then(Value::as_bool).unwrap_or(false)
}

fn number(map: &Map<String, Value>, name: &str) -> Option<f64> {
    map.get(name).and_then(Value::as_f64)
}

fn count(map: &Map<String, Value>, name: &str) -> Option<u64> {
    let value = map.get(name)?;
    value.as_u64().or_else(|| value.as_i64().map(|_| 0))
}
