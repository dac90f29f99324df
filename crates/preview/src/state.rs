//! What a preview starts from: definitions and objects, from a management cluster by one list a kind, or from files.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::{Value, json};

use crate::adopt;
use crate::error::PreviewError;
use crate::names::text;
use crate::upstream::Upstream;

/// Lists that are asked for at once.
const AT_A_TIME: usize = 8;
/// The type of the Secrets in which Helm keeps releases. They are large, and no controller reads them.
const HELM_RELEASE: &str = "helm.sh/release.v1";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// Groups whose kinds are needed although their definitions may have no label of a contract.
const OWN_GROUPS: [&str; 3] = ["cluster.x-k8s.io", "runtime.cluster.x-k8s.io", "windlass.dev"];

/// Definitions and objects.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// CustomResourceDefinitions whose stored version is the one that the objects have.
    pub(crate) definitions: Vec<Value>,
    /// The objects, with uid and status where they have them.
    pub(crate) objects: Vec<Value>,
}

/// A kind to be read.
struct Served {
    api_version: String,
    kind: String,
    url: String,
}

impl State {
    /// Reads a management cluster: what plans may depend on, and all objects of these groups.
    pub(crate) async fn of_server(upstream: &Upstream, groups: &BTreeSet<&str>) -> Result<Self, PreviewError> {
        let is_needed = |definition: &Value| is_needed(definition) || groups.contains(text(definition, "/spec/group"));
        let mut definitions = upstream.list(DEFINITIONS).await?;
        definitions.retain(is_needed);
        for definition in &mut definitions {
            // Items of lists do not name their kind.
            definition["apiVersion"] = "apiextensions.k8s.io/v1".into();
            definition["kind"] = "CustomResourceDefinition".into();
        }
        let kinds: Vec<Served> = definitions.iter_mut().filter_map(prepare).collect();
        let lists = kinds.into_iter().map(|kind| async move {
            let mut items = upstream.list(&kind.url).await?;
            for item in &mut items {
                item["apiVersion"] = kind.api_version.as_str().into();
                item["kind"] = kind.kind.as_str().into();
            }
            Ok::<_, PreviewError>(items)
        });
        let lists: Vec<Vec<Value>> = futures::stream::iter(lists)
            .buffer_unordered(AT_A_TIME)
            .try_collect()
            .await?;
        require_versions(&definitions)?;
        // Controllers read kinds that the management cluster may not have: there are no objects of those.
        let has = |own: &Value| {
            let name = text(own, "/metadata/name");
            definitions.iter().any(|one| text(one, "/metadata/name") == name)
        };
        let mut missing = windlass_manager::registry::kinds::all_crds();
        missing.retain(|own| !has(own) && is_needed(own));
        for own in &mut missing {
            prepare(own);
        }
        definitions.extend(missing);
        let mut objects: Vec<Value> = lists.into_iter().flatten().collect();
        objects.extend(namespaces(upstream).await?);
        Ok(Self { definitions, objects })
    }

    /// Adds the Secrets and ConfigMaps in the namespaces of Clusters, which controllers read.
    pub(crate) async fn add_inputs(&mut self, upstream: &Upstream) -> Result<(), PreviewError> {
        for namespace in adopt::namespaces(&self.objects) {
            for (kind, plural) in [("Secret", "secrets"), ("ConfigMap", "configmaps")] {
                let mut all = upstream
                    .list(&format!("/api/v1/namespaces/{namespace}/{plural}"))
                    .await?;
                all.retain(|one| one["type"] != HELM_RELEASE);
                for one in &mut all {
                    one["apiVersion"] = "v1".into();
                    one["kind"] = kind.into();
                }
                self.objects.extend(all);
            }
        }
        Ok(())
    }

    /// The version of each kind that controllers read, by group and kind.
    pub(crate) fn versions(&self) -> HashMap<(String, String), String> {
        let of = |definition: &Value| {
            let versions = definition.pointer("/spec/versions").and_then(Value::as_array)?;
            let stored = versions.iter().find(|one| one["storage"] == true)?;
            let kind = text(definition, "/spec/names/kind").to_owned();
            let version = stored["name"].as_str()?.to_owned();
            Some(((text(definition, "/spec/group").to_owned(), kind), version))
        };
        self.definitions.iter().filter_map(of).collect()
    }

    /// Takes the objects of files. Definitions that they lack are ours: those that this program would install.
    pub(crate) fn of_files(all: Vec<Value>) -> Result<Self, PreviewError> {
        let mut definitions: BTreeMap<String, Value> = BTreeMap::new();
        let mut objects = Vec::new();
        for object in all {
            match text(&object, "/kind") {
                "CustomResourceDefinition" => {
                    definitions.insert(text(&object, "/metadata/name").to_owned(), object);
                }
                // Files must not make this program send requests to addresses of their choice.
                "ExtensionConfig" => {}
                _ => objects.push(object),
            }
        }
        for own in windlass_manager::registry::kinds::all_crds() {
            definitions
                .entry(text(&own, "/metadata/name").to_owned())
                .or_insert(own);
        }
        let mut definitions: Vec<Value> = definitions.into_values().filter(is_needed).collect();
        require_versions(&definitions)?;
        let served: Vec<Served> = definitions.iter_mut().filter_map(prepare).collect();
        for object in &mut objects {
            // As the server would give it: in the version that controllers read.
            let (group, _) = text(object, "/apiVersion").split_once('/').unwrap_or_default();
            let kind = text(object, "/kind");
            let of_kind = served
                .iter()
                .find(|one| one.kind == kind && one.api_version.split_once('/').is_some_and(|(its, _)| its == group));
            let is_other = of_kind.is_some_and(|one| one.api_version != text(object, "/apiVersion"));
            if is_other {
                let wanted = of_kind.map(|one| one.api_version.as_str()).unwrap_or_default();
                *object = converted(object, wanted)?;
            }
            let is_in_namespace = of_kind.is_some_and(|one| !one.url.is_empty());
            if is_in_namespace && text(object, "/metadata/namespace").is_empty() {
                object["metadata"]["namespace"] = "default".into();
            }
        }
        Ok(Self { definitions, objects })
    }
}

/// An object of a file in the version that controllers read.
fn converted(object: &Value, wanted: &str) -> Result<Value, PreviewError> {
    let (kind, api_version) = (text(object, "/kind"), text(object, "/apiVersion"));
    let older = windlass_api_older::older(api_version, kind).filter(|older| older.hub_version == wanted);
    let Some(older) = older else {
        return Err(PreviewError::Change(format!(
            "{kind} {} has version {api_version}, and only {wanted} can be read offline: objects of this kind are not converted",
            text(object, "/metadata/name"),
        )));
    };
    let encoded = object.to_string();
    let hub = older.hub_form(encoded.as_bytes());
    let hub =
        hub.map_err(|error| PreviewError::Change(windlass_api_older::failure(encoded.as_bytes(), wanted, &error)))?;
    serde_json::from_slice(&hub).map_err(|error| PreviewError::Change(error.to_string()))
}

/// The Namespaces: extensions select them by their labels.
async fn namespaces(upstream: &Upstream) -> Result<Vec<Value>, PreviewError> {
    let mut all = upstream.list("/api/v1/namespaces").await?;
    for one in &mut all {
        one["apiVersion"] = "v1".into();
        one["kind"] = "Namespace".into();
    }
    Ok(all)
}

/// Kinds of the core are needed in the version that controllers read.
fn require_versions(definitions: &[Value]) -> Result<(), PreviewError> {
    for own in windlass_manager::registry::kinds::all_crds() {
        let name = text(&own, "/metadata/name");
        let Some(theirs) = definitions.iter().find(|one| text(one, "/metadata/name") == name) else {
            continue;
        };
        let versions = |definition: &Value| -> Vec<String> {
            let all = definition.pointer("/spec/versions").and_then(Value::as_array);
            let served = all.into_iter().flatten().filter(|one| one["served"] == true);
            served.map(|one| text(one, "/name").to_owned()).collect()
        };
        let stored = own.pointer("/spec/versions").and_then(Value::as_array);
        let stored = stored.into_iter().flatten().filter(|one| one["storage"] == true);
        let needed: Vec<String> = stored.map(|one| text(one, "/name").to_owned()).collect();
        let served = versions(theirs);
        if !needed.iter().any(|version| served.contains(version)) {
            return Err(PreviewError::Change(format!(
                "the definition {name} serves {}, and {} is needed",
                served.join(", "),
                needed.join(" or ")
            )));
        }
    }
    Ok(())
}

/// Whether plans may depend on objects of a definition.
fn is_needed(definition: &Value) -> bool {
    let labels = definition.pointer("/metadata/labels").and_then(Value::as_object);
    let has_contract = labels.is_some_and(|labels| {
        windlass_contract::ContractVersion::ALL
            .iter()
            .any(|version| labels.contains_key(version.label()))
    });
    has_contract || OWN_GROUPS.contains(&text(definition, "/spec/group"))
}

/// Makes the version that controllers read the stored one of a definition, so that nothing has to be converted. Gives the kind, unless no
/// version of it is served.
fn prepare(definition: &mut Value) -> Option<Served> {
    let labels: BTreeMap<String, String> = definition
        .pointer("/metadata/labels")
        .and_then(|labels| serde_json::from_value(labels.clone()).ok())
        .unwrap_or_default();
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array)?;
    let is_served = |name: &str| versions.iter().any(|one| one["name"] == name && one["served"] == true);
    let stored = versions.iter().find(|one| one["storage"] == true);
    let stored = stored
        .and_then(|one| one["name"].as_str())
        .filter(|name| is_served(name));
    let chosen = windlass_contract::choose_version(&labels, is_served).map(|(_, version)| version.clone());
    let version = chosen.or_else(|| stored.map(str::to_owned))?;
    let (group, kind) = (
        text(definition, "/spec/group").to_owned(),
        text(definition, "/spec/names/kind").to_owned(),
    );
    let plural = text(definition, "/spec/names/plural");
    let url = format!("/apis/{group}/{version}/{plural}");
    for one in definition["spec"]["versions"].as_array_mut()? {
        let is_chosen = one["name"] == version.as_str();
        one.as_object_mut()?.insert("storage".to_owned(), is_chosen.into());
    }
    if !definition["status"].is_object() {
        definition["status"] = json!({});
    }
    definition["spec"]["conversion"] = json!({"strategy": "None"});
    definition["status"]["storedVersions"] = json!([version]);
    Some(Served {
        api_version: format!("{group}/{version}"),
        kind,
        url,
    })
}
