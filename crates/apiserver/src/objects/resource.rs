//! A served resource, with the properties that the verbs need.

use std::sync::{Arc, OnceLock};

use serde_json::Value;
use windlass_builtin_kinds::{Kind, Special, Strategy};
use windlass_cel::Validator;
use windlass_schema::Schema;

use crate::http::heavy::Remembered;
use crate::objects::conversion::Conversion;
use windlass_objects::jsonpath::JsonPath;
use windlass_objects::names::NameRule;

/// The fields of the scale subresource, as dotted paths.
#[derive(Debug, Clone)]
pub(crate) struct ScalePaths {
    pub(crate) spec: String,
    pub(crate) status: String,
    pub(crate) selector: Option<String>,
}

/// A printer column.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) format: String,
    pub(crate) description: String,
    pub(crate) priority: i64,
    /// The path of the cell in a custom object; `None` if the path cannot be parsed.
    pub(crate) path: Option<JsonPath>,
}

/// The source of a schema.
#[derive(Debug)]
pub(crate) enum SchemaSource {
    /// Derived from the built-in types on first use, once per process.
    BuiltIn(&'static Kind, OnceLock<Option<BuiltIn>>),
    /// From a CRD.
    Custom(Validator),
}

/// The schema of a built-in type.
#[derive(Debug)]
pub(crate) struct BuiltIn {
    schema: Arc<Schema>,
    /// The zero value of the type, with its embedded structs.
    nothing: Value,
}

/// A resource in one served version.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) version: String,
    /// The apiVersion and kind of its objects.
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    /// The storage name of the resource: the same for all versions.
    pub(crate) storage: Arc<str>,
    /// The apiVersion that is written to the store.
    pub(crate) storage_api_version: String,
    pub(crate) status: bool,
    pub(crate) scale: Option<ScalePaths>,
    /// The objects have a generation.
    pub(crate) generation: bool,
    pub(crate) name_rule: NameRule,
    pub(crate) special: Special,
    /// The strategy of the kind; the default one for a custom resource.
    pub(crate) strategy: Strategy,
    /// PUT may create objects, and need not name a resourceVersion.
    pub(crate) create_on_update: bool,
    /// PUT requires a resourceVersion.
    pub(crate) needs_revision: bool,
    pub(crate) columns: Vec<Column>,
    /// Field selectors besides metadata.name and metadata.namespace: label and dotted path.
    pub(crate) selectable: Vec<(String, String)>,
    pub(crate) schema: SchemaSource,
    /// The schema in the form of the CRD, for OpenAPI documents.
    pub(crate) raw_schema: Option<Arc<Value>>,
    /// The conversion from other versions.
    pub(crate) conversion: Option<Arc<Conversion>>,
    /// The rules of the schema have taken long for some object, not long ago.
    pub(crate) costly: Remembered,
    /// The warning for clients of a deprecated version.
    pub(crate) deprecation: Option<String>,
}

impl Resource {
    /// Whether to check an object may take long although it is small.
    pub(crate) fn is_costly(&self) -> bool {
        self.costly.is_recent()
    }

    /// `v1` or `group/version`.
    pub(crate) fn api_version(&self) -> &str {
        &self.api_version
    }

    /// The Go package of kube-apiserver with the internal version of the kind.
    pub(crate) fn internal_package(&self) -> &str {
        match self.group.split('.').next().unwrap_or("") {
            "" | "events" => "core",
            first => first.split('-').next().unwrap_or(first),
        }
    }

    /// The etcd key of an object in kube-apiserver.
    pub(crate) fn registry_key(&self, namespace: &str, name: &str) -> String {
        let place = match (self.group.as_str(), self.plural.as_str()) {
            ("", "services") => "services/specs".to_owned(),
            ("", "endpoints") => "services/endpoints".to_owned(),
            ("", "nodes") => "minions".to_owned(),
            (group, plural)
                if self.is_custom() || matches!(group, "apiextensions.k8s.io" | "apiregistration.k8s.io") =>
            {
                format!("{group}/{plural}")
            }
            (_, plural) => plural.to_owned(),
        };
        if namespace.is_empty() {
            format!("/registry/{place}/{name}")
        } else {
            format!("/registry/{place}/{namespace}/{name}")
        }
    }

    /// The verbs of the resource, in the order of kube-apiserver's discovery.
    pub(crate) fn verbs(&self) -> &'static [&'static str] {
        const ALL: [&str; 8] = [
            "create",
            "delete",
            "deletecollection",
            "get",
            "list",
            "patch",
            "update",
            "watch",
        ];
        const WITHOUT_COLLECTION: [&str; 7] = ["create", "delete", "get", "list", "patch", "update", "watch"];
        const OF_CUSTOM: [&str; 8] = [
            "delete",
            "deletecollection",
            "get",
            "list",
            "patch",
            "create",
            "update",
            "watch",
        ];
        match self.special {
            Special::Namespace => &WITHOUT_COLLECTION,
            _ if self.is_custom() => &OF_CUSTOM,
            _ => &ALL,
        }
    }

    /// Whether it is a custom resource.
    pub(crate) fn is_custom(&self) -> bool {
        matches!(self.schema, SchemaSource::Custom(_))
    }

    /// The schema, if there is one.
    pub(crate) fn schema(&self) -> Option<&Arc<Schema>> {
        match &self.schema {
            SchemaSource::BuiltIn(..) => self.built_in().map(|known| &known.schema),
            SchemaSource::Custom(validator) => Some(validator.schema()),
        }
    }

    /// The schema of a custom resource, with its rules.
    pub(crate) fn validator(&self) -> Option<&Validator> {
        match &self.schema {
            SchemaSource::BuiltIn(..) => None,
            SchemaSource::Custom(validator) => Some(validator),
        }
    }

    fn built_in(&self) -> Option<&BuiltIn> {
        let SchemaSource::BuiltIn(kind, cell) = &self.schema else {
            return None;
        };
        let read = || {
            let schema = windlass_builtin_kinds::parsed(&kind.type_name())?;
            let nothing = windlass_builtin_kinds::nothing(&schema);
            Some(BuiltIn { schema, nothing })
        };
        cell.get_or_init(read).as_ref()
    }

    /// The zero value of a built-in kind, with its embedded structs.
    pub(crate) fn nothing(&self) -> Option<&Value> {
        self.built_in().map(|known| &known.nothing)
    }

    /// Whether a custom resource has a subresource.
    pub(crate) fn has_part(&self, part: &str) -> bool {
        match part {
            "status" => self.status,
            "scale" => self.scale.is_some(),
            _ => false,
        }
    }

    /// The methods of a subresource of a built-in kind.
    pub(crate) fn methods(&self, subresource: &str) -> Option<&'static [&'static str]> {
        if self.is_custom() {
            return None;
        }
        Some(match subresource {
            "status" if self.status => &["GET", "PUT", "PATCH"],
            "scale" if self.scale.is_some() => &["GET", "PUT", "PATCH"],
            "finalize" if self.special == Special::Namespace => &["PUT"],
            "log" if self.special == Special::Pod => &["GET"],
            "exec" | "attach" | "portforward" if self.special == Special::Pod => &["GET", "POST"],
            "eviction" if self.special == Special::Pod => &["POST"],
            _ => return None,
        })
    }

    /// Whether objects need more than another apiVersion on their way to and from the store.
    pub(crate) fn converts(&self) -> bool {
        self.strategy.stored.is_some()
    }
}
