//! One served resource: what the verbs must know of it.

use std::sync::{Arc, OnceLock};

use serde_json::Value;
use windlass_builtin_kinds::{Kind, Special, Strategy};
use windlass_cel::Validator;
use windlass_schema::Schema;

use crate::objects::conversion::Conversion;
use windlass_objects::jsonpath::JsonPath;
use windlass_objects::names::NameRule;

/// Where the scale subresource finds its numbers, as dotted paths.
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
    /// Where a custom object has what the column shows; nothing where the path cannot be read.
    pub(crate) path: Option<JsonPath>,
}

/// Where a schema comes from.
#[derive(Debug)]
pub(crate) enum SchemaSource {
    /// Derived from the built-in types on first use, once per process.
    BuiltIn(&'static Kind, OnceLock<Option<BuiltIn>>),
    /// From a CRD.
    Custom(Validator),
}

/// What is known of a built-in type.
#[derive(Debug)]
pub(crate) struct BuiltIn {
    schema: Arc<Schema>,
    /// What an object has before anybody says anything.
    nothing: Value,
}

/// A resource in one served version.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) version: String,
    /// Both, as objects have them.
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    /// The resource's name in the store: the same for all versions.
    pub(crate) storage: Arc<str>,
    /// The apiVersion that is written to the store.
    pub(crate) storage_api_version: String,
    pub(crate) status: bool,
    pub(crate) scale: Option<ScalePaths>,
    /// The kind counts generations.
    pub(crate) generation: bool,
    pub(crate) name_rule: NameRule,
    pub(crate) special: Special,
    /// The rules of the kind; plain ones for a custom resource.
    pub(crate) strategy: Strategy,
    /// PUT may make it, and need not name a resourceVersion.
    pub(crate) create_on_update: bool,
    /// PUT must name a resourceVersion.
    pub(crate) needs_revision: bool,
    pub(crate) columns: Vec<Column>,
    /// Field selectors besides metadata.name and metadata.namespace: label and dotted path.
    pub(crate) selectable: Vec<(String, String)>,
    pub(crate) schema: SchemaSource,
    /// The schema as the CRD has it, for OpenAPI documents.
    pub(crate) raw_schema: Option<Arc<Value>>,
    /// How objects of other versions become objects of this one.
    pub(crate) conversion: Option<Arc<Conversion>>,
    /// Words for clients that use an old version.
    pub(crate) deprecation: Option<String>,
}

impl Resource {
    /// `v1` or `group/version`.
    pub(crate) fn api_version(&self) -> &str {
        &self.api_version
    }

    /// Where kube-apiserver keeps the form of the kind that has no version.
    pub(crate) fn internal_package(&self) -> &str {
        match self.group.split('.').next().unwrap_or("") {
            "" | "events" => "core",
            first => first.split('-').next().unwrap_or(first),
        }
    }

    /// Where kube-apiserver keeps an object of the kind.
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

    /// The verbs of the resource, in the order in which kube-apiserver lists them.
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

    /// A custom resource.
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

    /// What an object of a built-in kind has before anybody says anything.
    pub(crate) fn nothing(&self) -> Option<&Value> {
        self.built_in().map(|known| &known.nothing)
    }

    /// Whether objects of a custom resource have a part that is written apart.
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

    /// Objects must be changed on their way to and from the store by more than their apiVersion.
    pub(crate) fn converts(&self) -> bool {
        self.strategy.stored.is_some()
    }
}
