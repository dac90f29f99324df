//! The types and largest sizes of values in expressions, from the schema.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::convert::escape;
use super::typing::Ty;
use windlass_schema::{Additional, Format, Node, Type};

/// The size limit of a request, which limits all values without another limit.
pub(super) const MAX_REQUEST: u64 = 3 << 20;

/// The values of one schema level.
#[derive(Debug)]
pub(super) struct Declared {
    /// The name in messages.
    pub(super) name: String,
    pub(super) ty: Plain,
    /// The largest number of characters of a string, items of a list, entries of a map.
    pub(super) max: u64,
    /// The least number of bytes of its JSON.
    pub(super) min_bytes: u64,
    pub(super) key: Option<Arc<Self>>,
    /// Items of a list, values of a map.
    pub(super) element: Option<Arc<Self>>,
    /// The fields, by their names in expressions.
    pub(super) fields: BTreeMap<String, Arc<Self>>,
}

/// The type without its element types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plain {
    Dyn,
    Bool,
    Int,
    Double,
    String,
    Bytes,
    Duration,
    Timestamp,
    List,
    Map,
    Object,
}

impl Declared {
    fn simple(ty: Plain, min_bytes: u64, max: u64) -> Arc<Self> {
        Arc::new(Self {
            name: String::new(),
            ty,
            max,
            min_bytes,
            key: None,
            element: None,
            fields: BTreeMap::new(),
        })
    }

    /// The type of such values.
    pub(super) fn ty(self: &Arc<Self>) -> Ty {
        let of = |part: &Option<Arc<Self>>| part.as_ref().map_or(Ty::Dyn, Self::ty);
        match self.ty {
            Plain::Dyn => Ty::Dyn,
            Plain::Bool => Ty::Bool,
            Plain::Int => Ty::Int,
            Plain::Double => Ty::Double,
            Plain::String => Ty::String,
            Plain::Bytes => Ty::Bytes,
            Plain::Duration => Ty::Duration,
            Plain::Timestamp => Ty::Timestamp,
            Plain::List => Ty::list(of(&self.element)),
            Plain::Map => Ty::map(of(&self.key), of(&self.element)),
            Plain::Object => Ty::Object(Arc::clone(self)),
        }
    }

    /// The declaration of a schema level, or `None` if rules do not see such values. `resource` marks the root of an API object.
    pub(super) fn of(node: &Node, resource: bool) -> Option<Arc<Self>> {
        Self::named(node, resource, "object")
    }

    fn named(node: &Node, resource: bool, name: &str) -> Option<Arc<Self>> {
        if node.int_or_string {
            let max = node.max_length();
            return Some(Self::simple(Plain::Dyn, 1, max.map_or(MAX_REQUEST - 2, |max| max * 4)));
        }
        match node.kind? {
            Type::Array => {
                let items = node.items.as_deref()?;
                let element = Self::named(items, items.embedded_resource, &format!("{name}.@idx"))?;
                let max = node.max_items().unwrap_or((MAX_REQUEST - 2) / (element.min_bytes + 1));
                Some(Self::collection(Plain::List, max, None, element))
            }
            Type::Object => {
                if let Additional::Values(values) = &node.additional {
                    let element = Self::named(values, values.embedded_resource, &format!("{name}.@elem"))?;
                    let max = node
                        .max_properties()
                        .unwrap_or((MAX_REQUEST - 2) / (element.min_bytes + 6));
                    // The length of keys is ignored.
                    let key = Self::simple(Plain::String, 2, 0);
                    return Some(Self::collection(Plain::Map, max, Some(key), element));
                }
                Some(Self::object(node, resource, name))
            }
            Type::String => Some(Self::string(node)),
            Type::Boolean => Some(Self::simple(Plain::Bool, 4, 0)),
            Type::Number => Some(Self::simple(Plain::Double, 1, 0)),
            Type::Integer => Some(Self::simple(Plain::Int, 1, 0)),
        }
    }

    fn collection(ty: Plain, max: u64, key: Option<Arc<Self>>, element: Arc<Self>) -> Arc<Self> {
        Arc::new(Self {
            name: String::new(),
            ty,
            max,
            min_bytes: 2,
            key,
            element: Some(element),
            fields: BTreeMap::new(),
        })
    }

    fn string(node: &Node) -> Arc<Self> {
        let max_length = node.max_length();
        match node.string_format() {
            Some(Format::Byte) => Self::simple(Plain::Bytes, 2, max_length.unwrap_or(MAX_REQUEST - 2)),
            Some(Format::Duration) => Self::simple(Plain::Duration, 3, 32),
            Some(Format::Date) => Self::simple(Plain::Timestamp, 12, 12),
            Some(Format::DateTime) => Self::simple(Plain::Timestamp, 21, 32),
            _ => {
                let values = node.allowed_values();
                let longest = values.iter().filter_map(|v| v.as_str()).map(|v| v.len() as u64).max();
                let max = match max_length {
                    // A character may take four bytes.
                    Some(max) => max * 4,
                    None if values.is_empty() => MAX_REQUEST - 2,
                    None => longest.unwrap_or(0),
                };
                Self::simple(Plain::String, 2, max)
            }
        }
    }

    fn object(node: &Node, resource: bool, name: &str) -> Arc<Self> {
        let mut fields = BTreeMap::new();
        let mut min_bytes = 2;
        let required = node.required();
        for (field, below) in &node.properties {
            if resource && matches!(field.as_str(), "apiVersion" | "kind" | "metadata") {
                continue;
            }
            let Some(declared) = Self::named(below, below.embedded_resource, &format!("{name}.{field}")) else {
                continue;
            };
            if required.contains(field) && below.default.is_none() {
                min_bytes += field.len() as u64 + declared.min_bytes + 4;
            }
            if let Some(escaped) = escape(field) {
                fields.insert(escaped, declared);
            }
        }
        if resource {
            let names = [("name", Self::text()), ("generateName", Self::text())];
            fields.insert("apiVersion".to_owned(), Self::text());
            fields.insert("kind".to_owned(), Self::text());
            let metadata = Self::record(&format!("{name}.metadata"), names);
            fields.insert("metadata".to_owned(), metadata);
        }
        Self::with_fields(name.to_owned(), min_bytes, fields)
    }

    fn text() -> Arc<Self> {
        Self::simple(Plain::String, 2, MAX_REQUEST - 2)
    }

    fn list(of: Arc<Self>) -> Arc<Self> {
        Self::collection(Plain::List, MAX_REQUEST, None, of)
    }

    fn map(of: Arc<Self>) -> Arc<Self> {
        Self::collection(Plain::Map, MAX_REQUEST, Some(Self::text()), of)
    }

    fn record<const N: usize>(name: &str, fields: [(&str, Arc<Self>); N]) -> Arc<Self> {
        let fields = fields.into_iter().map(|(name, field)| (name.to_owned(), field));
        Self::with_fields(name.to_owned(), 2, fields.collect())
    }

    /// The variable `request` of conditions.
    pub(super) fn request() -> Arc<Self> {
        let named = |name: &str, last: &'static str| {
            Self::record(name, ["group", "version", last].map(|field| (field, Self::text())))
        };
        let kind = named("kubernetes.GroupVersionKind", "kind");
        let resource = named("kubernetes.GroupVersionResource", "resource");
        let user = Self::record(
            "kubernetes.UserInfo",
            [
                ("username", Self::text()),
                ("uid", Self::text()),
                ("groups", Self::list(Self::text())),
                ("extra", Self::map(Self::list(Self::text()))),
            ],
        );
        Self::record(
            "kubernetes.AdmissionRequest",
            [
                // The same types, so that both are comparable.
                ("kind", Arc::clone(&kind)),
                ("resource", Arc::clone(&resource)),
                ("subResource", Self::text()),
                ("requestKind", kind),
                ("requestResource", resource),
                ("requestSubResource", Self::text()),
                ("name", Self::text()),
                ("namespace", Self::text()),
                ("operation", Self::text()),
                ("userInfo", user),
                ("dryRun", Self::simple(Plain::Bool, 4, 0)),
                ("options", Self::simple(Plain::Dyn, 1, MAX_REQUEST)),
            ],
        )
    }

    /// The variable `namespaceObject` of conditions.
    pub(super) fn namespace() -> Arc<Self> {
        let time = || Self::simple(Plain::Timestamp, 21, 32);
        let number = || Self::simple(Plain::Int, 1, 0);
        let metadata = Self::record(
            "kubernetes.NamespaceMetadata",
            [
                ("name", Self::text()),
                ("generateName", Self::text()),
                ("namespace", Self::text()),
                ("labels", Self::map(Self::text())),
                ("annotations", Self::map(Self::text())),
                ("UID", Self::text()),
                ("creationTimestamp", time()),
                ("deletionGracePeriodSeconds", number()),
                ("deletionTimestamp", time()),
                ("generation", number()),
                ("resourceVersion", Self::text()),
                ("finalizers", Self::list(Self::text())),
            ],
        );
        let condition = Self::record(
            "kubernetes.NamespaceCondition",
            [
                ("status", Self::text()),
                ("type", Self::text()),
                ("lastTransitionTime", time()),
                ("message", Self::text()),
                ("reason", Self::text()),
            ],
        );
        let status = [("conditions", Self::list(condition)), ("phase", Self::text())];
        let spec = [("finalizers", Self::list(Self::text()))];
        Self::record(
            "kubernetes.Namespace",
            [
                ("metadata", metadata),
                ("spec", Self::record("kubernetes.NamespaceSpec", spec)),
                ("status", Self::record("kubernetes.NamespaceStatus", status)),
            ],
        )
    }

    fn with_fields(name: String, min_bytes: u64, fields: BTreeMap<String, Arc<Self>>) -> Arc<Self> {
        Arc::new(Self {
            name,
            ty: Plain::Object,
            max: 0,
            min_bytes,
            key: None,
            element: None,
            fields,
        })
    }
}
