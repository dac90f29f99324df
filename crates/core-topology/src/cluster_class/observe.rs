//! Reads a class's templates. The only reader.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use windlass_api::core::ClusterClass;
use windlass_api::kind::ApiKind as _;
use windlass_controller_runtime::{Cx, Dynamic, GroupKind, ObjectKey, Seen, Stored as _};
use windlass_topology::blueprint::references;
use windlass_topology::model::{ClassSpec, TemplateRef, read};

/// What was read.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(super) class: Arc<ClusterClass>,
    /// The class as JSON.
    pub(super) value: Value,
    /// The templates it names, each once.
    pub(super) templates: BTreeMap<TemplateRef, Template>,
}

/// One template.
#[derive(Debug)]
pub(super) struct Template {
    pub(super) object: Seen<Arc<Dynamic>>,
    /// The version of its kind that the contract labels choose.
    pub(super) newest: Option<String>,
}

pub(super) async fn observe(cx: &Cx, class: Arc<ClusterClass>) -> Observed {
    let value = class.to_json();
    let spec: ClassSpec = read(&value, "/spec").unwrap_or_default();
    let namespace = class.metadata.namespace.clone().unwrap_or_default();
    let mut templates = BTreeMap::new();
    if !class.is_deleting() {
        for reference in references(&spec) {
            let template = reference.template;
            if templates.contains_key(template) {
                continue;
            }
            let kind = GroupKind::new(template.group(), template.kind.as_str());
            let key = ObjectKey::new(namespace.as_str(), template.name.as_str());
            let found = match cx.dynamic(&kind).await {
                Ok(cache) => Template {
                    object: cache.get(&key).into(),
                    newest: Some(cache.gvk().api_version()),
                },
                Err(error) => Template {
                    object: Seen::Failed(error.to_string()),
                    newest: None,
                },
            };
            templates.insert(template.clone(), found);
        }
    }
    Observed {
        class,
        value,
        templates,
    }
}

/// Index values of a class: the templates it names.
pub(super) fn templates_of(class: &ClusterClass) -> Vec<String> {
    let value = class.to_json();
    let spec: ClassSpec = read(&value, "/spec").unwrap_or_default();
    let namespace = class.metadata.namespace.as_deref().unwrap_or_default();
    let mut out: Vec<String> = references(&spec)
        .iter()
        .map(|r| index(r.template.group(), &r.template.kind, namespace, &r.template.name))
        .collect();
    out.sort();
    out.dedup();
    out
}

/// The index value that a template has.
pub(super) fn index_of(object: &Dynamic) -> String {
    let key = object.key();
    index(&object.gvk().group, object.kind(), &key.namespace, &key.name)
}

fn index(group: &str, kind: &str, namespace: &str, name: &str) -> String {
    format!("{kind}.{group} {namespace}/{name}")
}
