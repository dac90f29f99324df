//! `cargo xtask gen --server KUBECONFIG`: reads the schemas and columns of built-in kinds from a running kube-apiserver.
//!
//! Schemas come from its OpenAPI documents, without descriptions; columns come from the tables of its lists. The file is a JSON
//! object with one line per entry, sorted by name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Map, Value, json};
use windlass_builtin_kinds::{KINDS, Kind};

/// The file in the repository.
const FILE: &str = "crates/builtin-kinds/src/kinds.json";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

/// Types of subresources and reviews.
const OTHERS: &[&str] = &[
    "io.k8s.api.authentication.v1.SelfSubjectReview",
    "io.k8s.api.authentication.v1.TokenReview",
    "io.k8s.api.authorization.v1.LocalSubjectAccessReview",
    "io.k8s.api.authorization.v1.SelfSubjectAccessReview",
    "io.k8s.api.authorization.v1.SelfSubjectRulesReview",
    "io.k8s.api.authorization.v1.SubjectAccessReview",
    "io.k8s.api.autoscaling.v1.Scale",
    "io.k8s.api.core.v1.Binding",
    "io.k8s.api.policy.v1.Eviction",
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
];

/// Groups with only such types.
const MORE_GROUPS: &[&str] = &[
    "/apis/authentication.k8s.io/v1",
    "/apis/authorization.k8s.io/v1",
    "/apis/autoscaling/v1",
];

/// Writes the file. Returns the number of entries.
pub(crate) fn run(root: &Path, kubeconfig: &Path) -> Result<String, String> {
    let runtime = tokio::runtime::Runtime::new().map_err(|e| e.to_string())?;
    let lines = runtime.block_on(collect(kubeconfig))?;
    let count = lines.len();
    let lines: Vec<String> = lines
        .iter()
        .map(|(name, value)| format!("{}: {value}", json!(name)))
        .collect();
    let text = format!("{{\n{}\n}}\n", lines.join(",\n"));
    std::fs::write(root.join(FILE), &text).map_err(|e| format!("{FILE}: cannot be written: {e}"))?;
    Ok(format!("{FILE}: {count} entries, {} bytes", text.len()))
}

async fn collect(kubeconfig: &Path) -> Result<BTreeMap<String, Value>, String> {
    let shown = kubeconfig.display();
    let read = Kubeconfig::read_from(kubeconfig).map_err(|e| format!("{shown}: {e}"))?;
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default())
        .await
        .map_err(|e| format!("{shown}: {e}"))?;
    let client = Client::try_from(config).map_err(|e| e.to_string())?;
    let mut lines = BTreeMap::new();
    let mut groups: BTreeSet<String> = MORE_GROUPS.iter().map(|g| (*g).to_owned()).collect();
    let mut kinds = Vec::new();
    for &Kind {
        group, version, plural, ..
    } in KINDS
    {
        let (base, api_version) = if group.is_empty() {
            (format!("/api/{version}"), version.to_owned())
        } else {
            (format!("/apis/{group}/{version}"), format!("{group}/{version}"))
        };
        let known = get(&client, &base, "application/json").await?;
        let kind = kind_of(&known, plural).ok_or_else(|| format!("{base}: no resource {plural}"))?;
        kinds.push(json!({"group": group, "version": version, "kind": kind}));
        let table = get(&client, &format!("{base}/{plural}?limit=1"), TABLE).await?;
        lines.insert(format!("columns/{api_version}/{plural}"), columns(&table));
        groups.insert(base);
    }
    let mut definitions = Map::new();
    for base in groups {
        let document = get(&client, &format!("/openapi/v3{base}"), "application/json").await?;
        if let Value::Object(schemas) = document["components"]["schemas"].clone() {
            definitions.extend(schemas);
        }
    }
    let mut queue: Vec<String> = OTHERS.iter().map(|n| (*n).to_owned()).collect();
    for kind in &kinds {
        let has = |d: &Value| {
            d["x-kubernetes-group-version-kind"]
                .as_array()
                .is_some_and(|all| all.contains(kind))
        };
        let found = definitions.iter().find(|(_, d)| has(d));
        queue.push(
            found
                .map(|(name, _)| name.clone())
                .ok_or_else(|| format!("{kind}: no definition"))?,
        );
    }
    while let Some(name) = queue.pop() {
        if lines.contains_key(&name) {
            continue;
        }
        let mut definition = definitions
            .get(&name)
            .cloned()
            .ok_or_else(|| format!("{name}: no definition"))?;
        clean(&mut definition);
        windlass_builtin_kinds::references(&definition, &mut queue);
        lines.insert(name, definition);
    }
    Ok(lines)
}

async fn get(client: &Client, path: &str, accept: &str) -> Result<Value, String> {
    let request = http::Request::get(path)
        .header(http::header::ACCEPT, accept)
        .body(Vec::new())
        .map_err(|e| e.to_string())?;
    client.request(request).await.map_err(|e| format!("{path}: {e}"))
}

fn kind_of(resources: &Value, plural: &str) -> Option<String> {
    let all = resources["resources"].as_array()?;
    let found = all.iter().find(|r| r["name"] == plural)?;
    found["kind"].as_str().map(str::to_owned)
}

/// Name, type, format and priority of each column.
fn columns(table: &Value) -> Value {
    let all = table["columnDefinitions"].as_array();
    all.into_iter()
        .flatten()
        .map(|c| json!([c["name"], c["type"], c["format"], c["priority"]]))
        .collect()
}

/// Removes descriptions, and parts that all documents repeat.
fn clean(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            // A field may have this name, too: then it is an object.
            if map.get("description").is_some_and(Value::is_string) {
                map.remove("description");
            }
            map.remove("x-kubernetes-group-version-kind");
            map.remove("x-kubernetes-unions");
            map.values_mut().for_each(clean);
        }
        Value::Array(items) => items.iter_mut().for_each(clean),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_people_are_dropped_and_fields_of_that_name_kept() {
        let mut schema = json!({
            "description": "words", "x-kubernetes-group-version-kind": [],
            "properties": {"description": {"type": "string", "description": "words"}},
        });
        clean(&mut schema);
        assert_eq!(schema, json!({"properties": {"description": {"type": "string"}}}));
    }
}
