//! Parsed schemas.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::check::Checks;
use crate::format::Format;

/// A parsed schema.
#[derive(Debug)]
pub struct Schema {
    pub(crate) root: Node,
    /// Whether the root is an API object, whose apiVersion, kind and metadata are not described by the schema.
    pub(crate) resource: bool,
}

impl Schema {
    /// The root node.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Whether the root is an API object.
    pub fn is_resource(&self) -> bool {
        self.resource
    }

    /// Whether there may be values that defaulting or pruning changes.
    pub fn shapes(&self) -> bool {
        let root = &self.root;
        root.has_defaults || !root.preserve_unknown || !root.properties.is_empty()
    }
}

/// The JSON types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// A map or struct.
    Object,
    /// A list.
    Array,
    /// Text.
    String,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// True or false.
    Boolean,
}

impl Type {
    /// The name in OpenAPI.
    pub fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "object" => Self::Object,
            "array" => Self::Array,
            "string" => Self::String,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            _ => return None,
        })
    }
}

/// `x-kubernetes-list-type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ListType {
    /// One value, replaced as a whole.
    #[default]
    Atomic,
    /// Unique scalars.
    Set,
    /// Objects identified by key fields.
    Map,
}

/// `x-kubernetes-map-type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MapType {
    /// Each field has its own owner.
    #[default]
    Granular,
    /// One value, replaced as a whole.
    Atomic,
}

/// How a strategic merge patch treats a field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Patch {
    /// Lists merge by this key instead of being replaced; empty for lists of scalars that merge.
    pub merge_key: Option<String>,
    /// The list merges.
    pub merge: bool,
    /// Fields of the struct that the patch does not name are dropped (`retainKeys`).
    pub retain_keys: bool,
}

/// The keys beside `properties` that an object may have.
#[derive(Debug, Default)]
pub enum Additional {
    /// No additional keys are described: they are pruned.
    #[default]
    Unset,
    /// Any key with any value.
    Any,
    /// Any key with a value of this schema.
    Values(Box<Node>),
}

/// `x-kubernetes-validations` of one level, as they are written. Another crate compiles them.
#[derive(Debug, Clone, PartialEq)]
pub struct WrittenRules {
    /// The number of this level among the levels of the schema that have rules.
    pub level: usize,
    /// The rules.
    pub rules: Vec<Value>,
}

/// One level of a schema.
#[derive(Debug, Default)]
pub struct Node {
    /// The JSON type; `None` with int-or-string or preserve-unknown-fields.
    pub kind: Option<Type>,
    /// Whether null is allowed.
    pub nullable: bool,
    /// `x-kubernetes-int-or-string`.
    pub int_or_string: bool,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub preserve_unknown: bool,
    /// `x-kubernetes-embedded-resource`.
    pub embedded_resource: bool,
    /// `x-kubernetes-list-type`.
    pub list_type: ListType,
    /// `x-kubernetes-list-map-keys`.
    pub list_map_keys: Vec<String>,
    /// `x-kubernetes-map-type`.
    pub map_type: MapType,
    /// The default value.
    pub default: Option<Value>,
    /// Named fields.
    pub properties: BTreeMap<String, Self>,
    /// Additional fields.
    pub additional: Additional,
    /// Items of a list.
    pub items: Option<Box<Self>>,
    /// Strategic merge patch hints (built-in kinds).
    pub patch: Option<Box<Patch>>,
    /// The definition that describes this level, by the last two parts of its name, such as `v1.Container` (built-in kinds).
    pub type_name: Option<Box<str>>,
    /// `format` (built-in kinds).
    pub format: Option<Box<str>>,
    /// Whether this level or one below has a default; defaulting skips other branches.
    pub(crate) has_defaults: bool,
    pub(crate) checks: Option<Box<Checks>>,
    /// `x-kubernetes-validations`.
    pub rules: Option<Box<WrittenRules>>,
    /// Whether a rule is here or below.
    pub(crate) has_rules: bool,
    /// Whether this level or one below has a list with set or map semantics.
    pub(crate) has_keyed_lists: bool,
    /// Whether this level or one below may be an API object.
    pub(crate) has_embedded: bool,
    /// `additionalProperties: false`.
    pub(crate) closed: bool,
}

impl Node {
    /// Whether values are texts without a format. Formats have their own types in Kubernetes, which apply checks only for being
    /// scalar.
    pub fn is_plain_text(&self) -> bool {
        let format = self.checks.as_deref().and_then(|checks| checks.format.as_ref());
        self.kind == Some(Type::String) && format.is_none_or(|(_, name)| name == "byte")
    }

    /// Whether this level, or one below it, has rules.
    pub fn has_rules(&self) -> bool {
        self.has_rules
    }

    /// `maxLength`.
    pub fn max_length(&self) -> Option<u64> {
        self.checks.as_deref()?.max_length
    }

    /// `maxItems`.
    pub fn max_items(&self) -> Option<u64> {
        self.checks.as_deref()?.max_items
    }

    /// `maxProperties`.
    pub fn max_properties(&self) -> Option<u64> {
        self.checks.as_deref()?.max_properties
    }

    /// `required`.
    pub fn required(&self) -> &[String] {
        self.checks.as_deref().map_or(&[], |checks| &checks.required)
    }

    /// `enum`; empty if any value is allowed.
    pub fn allowed_values(&self) -> &[Value] {
        self.checks.as_deref().map_or(&[], |checks| &checks.one_of_values)
    }

    /// `format` of strings, if Kubernetes knows it.
    pub fn string_format(&self) -> Option<Format> {
        let format = self.checks.as_deref()?.format.as_ref();
        format.map(|(format, _)| *format)
    }

    /// The schema of a field of an object, if it is known.
    pub fn field(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or(match &self.additional {
            Additional::Values(values) => Some(values.as_ref()),
            _ => None,
        })
    }
}
