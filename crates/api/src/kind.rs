//! The static facts of a kind.

use std::fmt::Debug;

use schemars::SchemaGenerator;
use serde_json::{Map, Value};
use windlass_meta::ObjectKey;

use crate::Condition;
use crate::codec::Codec;
use crate::meta::MetaExt as _;

/// One column of `kubectl get`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The column header.
    pub name: &'static str,
    /// JSON path of the value in the object.
    pub path: &'static str,
    /// The OpenAPI type of the value.
    pub type_: &'static str,
    /// Priority 0 is always shown. Higher numbers are shown only with `-o wide`.
    pub priority: i32,
    /// Description of the column.
    pub description: &'static str,
}

impl Column {
    /// A column that is always shown.
    pub const fn new(name: &'static str, type_: &'static str, path: &'static str, description: &'static str) -> Self {
        Self {
            name,
            path,
            type_,
            priority: 0,
            description,
        }
    }

    /// The same column, shown with `-o wide` only.
    #[must_use]
    pub const fn wide(mut self) -> Self {
        self.priority = 10;
        self
    }
}

/// Paths of the scale subresource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Path of the desired number.
    pub spec_replicas_path: &'static str,
    /// Path of the observed number.
    pub status_replicas_path: &'static str,
    /// Path of the serialized label selector of the counted objects, if the kind has one.
    pub label_selector_path: Option<&'static str>,
}

impl Scale {
    /// The paths of the kinds that count Machines.
    pub const STANDARD: Self = Self {
        spec_replicas_path: ".spec.replicas",
        status_replicas_path: ".status.replicas",
        label_selector_path: Some(".status.selector"),
    };
    /// The paths of a kind that counts what has no objects to select.
    pub const UNSELECTED: Self = Self {
        label_selector_path: None,
        ..Self::STANDARD
    };
}

/// A kind of this project: its names and the other facts of its CustomResourceDefinition.
///
/// Implemented by [`api_kind!`](crate::api_kind).
pub trait ApiKind:
    kube_core::Resource<DynamicType = (), Scope: 'static>
    + Codec
    + Clone
    + Debug
    + Default
    + PartialEq
    + Send
    + Sync
    + 'static
{
    /// API group of the object.
    const GROUP: &'static str;
    /// The API version.
    const VERSION: &'static str;
    /// `GROUP/VERSION`.
    const API_VERSION: &'static str;
    /// Kind of the object.
    const KIND: &'static str;
    /// The resource name.
    const PLURAL: &'static str;
    /// Short names for `kubectl`.
    const SHORT_NAMES: &'static [&'static str];
    /// Whether objects of the kind are in namespaces.
    const NAMESPACED: bool = true;
    /// Categories for `kubectl get`.
    const CATEGORIES: &'static [&'static str] = &["cluster-api"];
    /// Value of the label `cluster.x-k8s.io/provider` on the CRD. Empty for kinds that belong to no provider.
    const PROVIDER: &'static str;
    /// Additional labels of the CRD.
    const LABELS: &'static [(&'static str, &'static str)] = &[];
    /// Whether the CRD carries a contract label. Provider kinds carry one, core kinds do not.
    const CONTRACT: bool;
    /// The columns of `kubectl get`, in order.
    const COLUMNS: &'static [Column];
    /// Whether there is a status subresource.
    const STATUS_SUBRESOURCE: bool;
    /// The scale subresource.
    const SCALE: Option<Scale>;
    /// Required top-level fields.
    const REQUIRED: &'static [&'static str];
    /// Description of the kind, for `kubectl explain`.
    const DESCRIPTION: &'static str;

    /// Adds the schemas of the top-level fields other than apiVersion, kind and metadata.
    fn properties(generator: &mut SchemaGenerator, properties: &mut Map<String, Value>);

    /// The namespace and name of the object. An unset one is empty.
    fn key(&self) -> ObjectKey {
        let meta = self.meta();
        ObjectKey::new(meta.namespace(), meta.name())
    }

    /// Whether the object has a deletion timestamp.
    fn is_deleting(&self) -> bool {
        self.meta().is_deleting()
    }
}

/// The name of a Rust field in JSON: `r#type` is `type`, `provider_name` is `providerName`.
#[doc(hidden)]
pub fn json_name(field: &str) -> String {
    let mut words = field.trim_start_matches("r#").split('_');
    let mut name = words.next().unwrap_or_default().to_owned();
    for word in words {
        let (first, rest) = word.split_at(word.len().min(1));
        name.push_str(&first.to_ascii_uppercase());
        name.push_str(rest);
    }
    name
}

/// Adds the description of the field to a schema, unless its type has a description.
#[doc(hidden)]
pub fn described(mut schema: Value, doc: &str) -> Value {
    if let Some(node) = schema.as_object_mut()
        && !node.contains_key("description")
        && !doc.trim().is_empty()
    {
        node.insert("description".to_owned(), Value::from(doc.trim()));
    }
    schema
}

/// Whether nothing in a structure is set. Such a structure is left out when an object is written, as Go does.
pub fn is_unset<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Writes an unset number as 0, for fields that Go always writes.
#[expect(
    clippy::ref_option,
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes references"
)]
pub(crate) fn zero_unless_set<S: serde::Serializer>(number: &Option<i32>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_i32(number.unwrap_or_default())
}

/// A kind with `status.conditions`.
pub trait Conditioned {
    /// Whether the kind has `status.conditions`: in an object of another kind the server refuses them.
    const HAS_CONDITIONS: bool = true;

    /// The conditions. Empty when there is no status yet.
    fn conditions(&self) -> &[Condition];
}

/// Defines a root kind: the struct, its (de)serialisation with apiVersion and kind, `kube_core::Resource`, and [`ApiKind`].
#[macro_export]
macro_rules! api_kind {
    (
        $(#[doc = $doc:literal])+
        pub struct $kind:ident {
            $( $(#[$($field_meta:tt)+])* pub $field:ident: $type:ty, )*
        }
        group: $group:literal,
        version: $version:literal,
        plural: $plural:literal,
        $(scope: $scope:ident,)?
        short_names: [$($short:literal),*],
        $(categories: [$($category:literal),*],)?
        provider: $provider:literal,
        $(labels: [$(($label:literal, $label_value:literal)),*],)?
        contract: $contract:literal,
        required: [$($required:literal),*],
        status: $status:literal,
        scale: $scale:expr,
        columns: [$($column:expr),* $(,)?],
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, Default, PartialEq, $crate::macro_support::serde::Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $kind {
            /// Standard object metadata.
            pub metadata: $crate::macro_support::ObjectMeta,
            $( $(#[$($field_meta)+])* pub $field: $type, )*
        }

        impl $crate::macro_support::serde::Serialize for $kind {
            fn serialize<S: $crate::macro_support::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                #[derive($crate::macro_support::serde::Serialize)]
                #[serde(rename_all = "camelCase")]
                struct Wire<'a> {
                    api_version: &'static str,
                    kind: &'static str,
                    metadata: &'a $crate::macro_support::ObjectMeta,
                    $( $(#[$($field_meta)+])* $field: &'a $type, )*
                }
                $crate::macro_support::serde::Serialize::serialize(
                    &Wire {
                        api_version: <Self as $crate::kind::ApiKind>::API_VERSION,
                        kind: <Self as $crate::kind::ApiKind>::KIND,
                        metadata: &self.metadata,
                        $( $field: &self.$field, )*
                    },
                    serializer,
                )
            }
        }

        $crate::codec!($kind);

        impl $crate::macro_support::Resource for $kind {
            type DynamicType = ();
            type Scope = $crate::scope!($($scope)?);
            fn kind((): &()) -> ::std::borrow::Cow<'_, str> {
                stringify!($kind).into()
            }
            fn group((): &()) -> ::std::borrow::Cow<'_, str> {
                $group.into()
            }
            fn version((): &()) -> ::std::borrow::Cow<'_, str> {
                $version.into()
            }
            fn plural((): &()) -> ::std::borrow::Cow<'_, str> {
                $plural.into()
            }
            fn meta(&self) -> &$crate::macro_support::ObjectMeta {
                &self.metadata
            }
            fn meta_mut(&mut self) -> &mut $crate::macro_support::ObjectMeta {
                &mut self.metadata
            }
        }

        impl $crate::kind::ApiKind for $kind {
            const GROUP: &'static str = $group;
            const VERSION: &'static str = $version;
            const API_VERSION: &'static str = concat!($group, "/", $version);
            const KIND: &'static str = stringify!($kind);
            const PLURAL: &'static str = $plural;
            const SHORT_NAMES: &'static [&'static str] = &[$($short),*];
            $(const NAMESPACED: bool = $crate::is_namespaced!($scope);)?
            $(const CATEGORIES: &'static [&'static str] = &[$($category),*];)?
            const PROVIDER: &'static str = $provider;
            $(const LABELS: &'static [(&'static str, &'static str)] = &[$(($label, $label_value)),*];)?
            const CONTRACT: bool = $contract;
            const COLUMNS: &'static [$crate::kind::Column] = &[$($column),*];
            const STATUS_SUBRESOURCE: bool = $status;
            const SCALE: Option<$crate::kind::Scale> = $scale;
            const REQUIRED: &'static [&'static str] = &[$($required),*];
            const DESCRIPTION: &'static str = concat!($($doc),+);

            fn properties(
                generator: &mut $crate::macro_support::SchemaGenerator,
                properties: &mut $crate::macro_support::Map<String, $crate::macro_support::Value>,
            ) {
                $( properties.insert(
                    $crate::kind::json_name(stringify!($field)),
                    $crate::kind::described(
                        generator.subschema_for::<$type>().to_value(),
                        $crate::field_doc!($(#[$($field_meta)+])*),
                    ),
                ); )*
            }
        }
    };
}

/// The type of a kind's scope.
#[doc(hidden)]
#[macro_export]
macro_rules! scope {
    () => {
        $crate::macro_support::NamespaceResourceScope
    };
    (Cluster) => {
        $crate::macro_support::ClusterResourceScope
    };
}

/// Whether a kind of this scope is in namespaces.
#[doc(hidden)]
#[macro_export]
macro_rules! is_namespaced {
    (Cluster) => {
        false
    };
}

/// The doc comment among the attributes of a field.
#[doc(hidden)]
#[macro_export]
macro_rules! field_doc {
    (@one doc = $doc:literal) => { $doc };
    (@one $($other:tt)+) => { "" };
    ($(#[$($meta:tt)+])*) => { concat!($($crate::field_doc!(@one $($meta)+)),*) };
}

/// Implements [`Conditioned`](crate::kind::Conditioned) for kinds whose status is optional and holds conditions.
#[macro_export]
macro_rules! conditioned {
    ($($kind:ident),+ $(,)?) => {
        $(
            impl $crate::kind::Conditioned for $kind {
                fn conditions(&self) -> &[$crate::Condition] {
                    self.status.as_ref().map_or(&[], |status| &status.conditions)
                }
            }
        )+
    };
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::core::{Cluster, ClusterSpec};

    #[test]
    fn objects_say_their_version_and_kind() {
        let cluster = Cluster {
            spec: ClusterSpec {
                paused: Some(true),
                ..ClusterSpec::default()
            },
            ..Cluster::default()
        };
        let json = serde_json::to_value(&cluster).unwrap();
        let expect = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {}, "spec": {"paused": true},
        });
        assert_eq!(json, expect);
        assert_eq!(serde_json::from_value::<Cluster>(json).unwrap(), cluster);
    }

    #[test]
    fn unknown_fields_and_words_do_not_keep_an_object_from_being_read() {
        let cluster: Cluster = serde_json::from_value(json!({
            "metadata": {"name": "a", "namespace": "b"},
            "spec": {"fromTheFuture": 1},
            "status": {"phase": "Flying"},
        }))
        .unwrap();
        assert_eq!(cluster.key(), ObjectKey::new("b", "a"));
        assert_eq!(cluster.status.unwrap().phase.as_deref(), Some("Flying"));
    }

    #[test]
    fn fields_have_the_names_in_schemas_that_they_have_in_objects() {
        let check = |field: &str, expect: &str| assert_eq!(json_name(field), expect);
        check("spec", "spec");
        check("provider_name", "providerName");
        check("r#type", "type");
    }

    #[test]
    fn fields_are_described_by_their_type_or_else_by_themselves() {
        let check = |schema: Value, doc: &str, expect: &Value| assert_eq!(&described(schema, doc), expect);
        check(json!({"description": "a"}), "b", &json!({"description": "a"}));
        check(json!({}), " b", &json!({"description": "b"}));
        check(json!({}), "", &json!({}));
        assert_eq!(
            crate::field_doc!(#[doc = " one"] #[serde(default)] #[doc = " two"]),
            " one two"
        );
        assert_eq!(crate::field_doc!(), "");
    }
}
