//! Objects made from templates, copies of templates, and who uses them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{Member, Scope, metadata_json, string_map};
use crate::keys;
use crate::model::{Metadata, text};
use crate::patches::external::Holder;
use crate::patches::set_or_remove;

/// A template as patches see it: with the labels and annotations that what is made from it would have without them.
pub(super) fn to_patch(template: &Value, made: &mut Value, metadata: &[&str]) -> Value {
    let mut template = template.clone();
    for part in ["labels", "annotations"] {
        let value = made.get_mut(part).map(Value::take);
        set_or_remove(&mut template, &[metadata, &[part]].concat(), value);
    }
    template
}

/// Where a template has the metadata of the object that is made from it.
pub(super) const OF_OBJECT: &[&str] = &["spec", "template", "metadata"];
/// Where a template has its own metadata, which its copies get.
pub(super) const OF_COPY: &[&str] = &["metadata"];

impl Scope<'_> {
    /// The use of a template by a field of the Cluster.
    pub(super) fn held_by_cluster(&self, field: &str) -> Holder {
        self.holder((keys::CORE_API_VERSION, "Cluster"), self.cluster, field)
    }

    /// The use of a template by a field of an object.
    pub(super) fn holder(&self, (api_version, kind): (&str, &str), name: &str, field: &str) -> Holder {
        Holder {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: self.namespace.to_owned(),
            name: name.to_owned(),
            field_path: field.to_owned(),
        }
    }
}

/// Labels and annotations of an object from `spec.template` of a template.
pub(super) fn metadata_of_object(
    scope: &Scope<'_>,
    template: &Value,
    added: &Metadata,
    member: Option<Member<'_>>,
) -> Value {
    let mut labels = string_map(template, "/spec/template/metadata/labels");
    labels.extend(added.labels.clone());
    labels.extend(scope.labels(member));
    let mut annotations = string_map(template, "/spec/template/metadata/annotations");
    annotations.extend(added.annotations.clone());
    annotations.extend(cloned_from(template));
    metadata_json(&labels, &annotations)
}

/// The kind of an object from `spec.template` of a template.
pub(super) fn kind_of_object(template: &Value) -> &str {
    let kind = text(template, "/kind");
    kind.strip_suffix("Template").unwrap_or(kind)
}

/// An object from `spec.template` of a template.
pub(super) fn object_from(scope: &Scope<'_>, mut template: Value, name: &str, member: Option<Member<'_>>) -> Value {
    let mut metadata = metadata_of_object(scope, &template, &Metadata::default(), member);
    metadata["name"] = name.into();
    metadata["namespace"] = scope.namespace.into();
    let kind = kind_of_object(&template).into();
    let spec = template.pointer_mut("/spec/template/spec").map(Value::take);
    let spec = spec.unwrap_or_else(|| json!({}));
    assembled(template["apiVersion"].take(), kind, metadata, spec)
}

/// Labels and annotations of a copy of a template for one use in one Cluster.
pub(super) fn metadata_of_copy(scope: &Scope<'_>, template: &Value, member: Option<Member<'_>>) -> Value {
    let mut labels = string_map(template, "/metadata/labels");
    labels.extend(scope.labels(member));
    let mut annotations = string_map(template, "/metadata/annotations");
    for of_tools in [keys::LAST_APPLIED, keys::CONVERSION_DATA] {
        annotations.remove(of_tools);
    }
    annotations.extend(cloned_from(template));
    metadata_json(&labels, &annotations)
}

/// A copy of a template for one use in one Cluster.
pub(super) fn copy_of(scope: &Scope<'_>, mut template: Value, name: &str, member: Option<Member<'_>>) -> Value {
    let mut metadata = metadata_of_copy(scope, &template, member);
    metadata["name"] = name.into();
    metadata["namespace"] = scope.namespace.into();
    metadata["ownerReferences"] = json!([scope.owner(false)]);
    let [api_version, kind, spec] = ["apiVersion", "kind", "spec"].map(|field| template[field].take());
    assembled(api_version, kind, metadata, spec)
}

/// An object of these parts, none of which is copied.
fn assembled(api_version: Value, kind: Value, metadata: Value, spec: Value) -> Value {
    let fields = [
        ("apiVersion", api_version),
        ("kind", kind),
        ("metadata", metadata),
        ("spec", spec),
    ];
    fields
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect::<Map<_, _>>()
        .into()
}

fn cloned_from(template: &Value) -> BTreeMap<String, String> {
    let group = text(template, "/apiVersion")
        .split_once('/')
        .map_or("", |(group, _)| group);
    let kind = text(template, "/kind");
    BTreeMap::from([
        (
            keys::CLONED_FROM_NAME.to_owned(),
            text(template, "/metadata/name").to_owned(),
        ),
        (keys::CLONED_FROM_GROUP_KIND.to_owned(), format!("{kind}.{group}")),
    ])
}

/// Leaves out the parts of an endpoint that are not set: they belong to the provider.
pub(super) fn leave_endpoint(object: &mut Value) {
    let at = "/spec/controlPlaneEndpoint";
    let host = text(object, &format!("{at}/host")).is_empty();
    let port = object
        .pointer(&format!("{at}/port"))
        .and_then(Value::as_i64)
        .unwrap_or_default()
        == 0;
    for (field, unset) in [("host", host), ("port", port)] {
        if unset {
            set_or_remove(object, &["spec", "controlPlaneEndpoint", field], None);
        }
    }
    if host && port {
        set_or_remove(object, &["spec", "controlPlaneEndpoint"], None);
    }
}

/// A reference as `Cluster` and `Machine` hold them: no version and no namespace.
pub(super) fn reference(object: &Value) -> Value {
    let group = text(object, "/apiVersion")
        .split_once('/')
        .map_or("", |(group, _)| group);
    json!({"apiGroup": group, "kind": object["kind"], "name": object["metadata"]["name"]})
}
