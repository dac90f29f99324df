//! Reads a class's templates, and asks extensions for the variables that they define. The only reader.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use windlass_api::core::ClusterClass;
use windlass_api::kind::ApiKind as _;
use windlass_controller_runtime::{Cx, Dynamic, GroupKind, ObjectKey, Seen, Stored as _};
use windlass_runtime_client::{CallError, Extensions};
use windlass_runtime_hooks::topology::{DiscoverVariables, DiscoverVariablesRequest};
use windlass_topology::blueprint::references;
use windlass_topology::model::{ClassSpec, ExternalPatch, TemplateRef, read};

/// What was read.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(super) class: Arc<ClusterClass>,
    /// The class as JSON.
    pub(super) value: Value,
    /// The templates it names, each once.
    pub(super) templates: BTreeMap<TemplateRef, Template>,
    /// What extensions define, by patch, in the order of the class.
    pub(super) discovered: Vec<Discovered>,
}

/// The variables that the extension of a patch defines, or why they are not known.
#[derive(Debug)]
pub(super) struct Discovered {
    pub(super) patch: String,
    pub(super) variables: Result<Vec<Value>, String>,
}

/// One template.
#[derive(Debug)]
pub(super) struct Template {
    pub(super) object: Seen<Arc<Dynamic>>,
    /// The version of its kind that the contract labels choose.
    pub(super) newest: Option<String>,
}

pub(super) async fn observe(cx: &Cx, class: Arc<ClusterClass>, extensions: &Extensions) -> Observed {
    let value = class.to_json();
    let spec: ClassSpec = read(&value, "/spec").unwrap_or_default();
    let namespace = class.metadata.namespace.clone().unwrap_or_default();
    let mut templates = BTreeMap::new();
    let mut discovered = Vec::new();
    if !class.is_deleting() {
        for patch in &spec.patches {
            let Some(external) = &patch.external else { continue };
            if let Some(handler) = external.discovers() {
                let variables = variables(extensions, &namespace, handler, external).await;
                discovered.push(Discovered {
                    patch: patch.name.clone(),
                    variables: variables.map_err(|error| error.to_string()),
                });
            }
        }
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
        discovered,
    }
}

async fn variables(
    extensions: &Extensions,
    namespace: &str,
    handler: &str,
    external: &ExternalPatch,
) -> Result<Vec<Value>, CallError> {
    let handler = extensions.named::<DiscoverVariables>(namespace, handler).await?;
    let request = DiscoverVariablesRequest {
        settings: external.settings.clone(),
    };
    let answer = extensions.call_static::<DiscoverVariables>(&handler, &request).await?;
    Ok(answer
        .variables
        .iter()
        .map(|variable| serde_json::json!(variable))
        .collect())
}

/// Whether a class has variables that an extension defines.
pub(super) fn asks(class: &ClusterClass, config: &str) -> bool {
    let external = class.spec.patches.iter().filter_map(|patch| patch.external.as_ref());
    let mut handlers = external.filter_map(|external| external.discover_variables_extension.as_deref());
    handlers.any(|handler| handler.split_once('.').is_some_and(|(_, name)| name == config))
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
