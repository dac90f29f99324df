//! Discovery: the served groups, versions and resources.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::{HeaderMap, Response};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::crds::compare_versions;
use crate::crds::registry::Custom;
use crate::error::ApiError;
use crate::http::body::ApiBody;
use crate::http::documents;
use crate::http::negotiation;
use crate::objects::resource::Resource;
use crate::state::Inner;
use windlass_builtin_kinds::Special;
use windlass_objects::names::api_version;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// `/version`.
pub(crate) fn version(server: &Inner) -> Value {
    let text = server.kubernetes_version.read().clone();
    let mut parts = text.trim_start_matches('v').split('.');
    json!({
        "major": parts.next().unwrap_or(""),
        "minor": parts.next().unwrap_or(""),
        "gitVersion": text,
        "gitCommit": "", "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, if cfg!(target_arch = "x86_64") { "amd64" } else { "arm64" }),
    })
}

/// Groups in order, each with its versions, preferred first, and their resources.
type Groups<'a> = Vec<Group<'a>>;
type Group<'a> = (&'a str, Vec<(&'a str, Vec<&'a Arc<Resource>>)>);

fn groups(registry: &Custom) -> Groups<'_> {
    let mut order: Vec<&str> = Vec::new();
    let mut map: BTreeMap<&str, BTreeMap<&str, Vec<&Arc<Resource>>>> = BTreeMap::new();
    for resource in registry.everything() {
        if !map.contains_key(resource.group.as_str()) {
            order.push(&resource.group);
        }
        map.entry(&resource.group)
            .or_default()
            .entry(&resource.version)
            .or_default()
            .push(resource);
    }
    for (group, version, _) in crate::http::access_review::VIRTUAL {
        if !map.contains_key(group) {
            order.push(group);
        }
        map.entry(group).or_default().entry(version).or_default();
    }
    order
        .into_iter()
        .map(|group| {
            let mut versions: Vec<_> = map.remove(group).unwrap_or_default().into_iter().collect();
            versions.sort_by(|a, b| compare_versions(b.0, a.0));
            (group, versions)
        })
        .collect()
}

/// `/`: the list of paths.
pub(crate) fn paths(registry: &Custom) -> Value {
    let mut out = vec!["/api".to_owned(), "/api/v1".to_owned(), "/apis".to_owned()];
    for (group, versions) in groups(registry) {
        if group.is_empty() {
            continue;
        }
        out.push(format!("/apis/{group}"));
        out.extend(versions.iter().map(|(v, _)| format!("/apis/{group}/{v}")));
    }
    for path in [
        "/healthz",
        "/livez",
        "/metrics",
        "/openapi/v2",
        "/openapi/v3",
        "/readyz",
        "/version",
    ] {
        out.push(path.to_owned());
    }
    json!({"paths": out})
}

/// Answers `/api` and `/apis`, in the short or the aggregated form.
pub(crate) async fn roots(server: &Inner, path: &str, headers: &HeaderMap) -> Result<Response<ApiBody>, ApiError> {
    if !negotiation::aggregated(headers)? {
        return answer(server, path).await.ok_or_else(ApiError::no_resource);
    }
    let build = |registry: &Custom| {
        let groups = groups(registry);
        let all = aggregate(&groups, |group| group.is_empty() == (path == "/api"));
        serde_json::to_vec(&all).ok()
    };
    let found = documents::get(server, &format!("{path} aggregated"), true, build).await;
    let document = found.ok_or_else(ApiError::no_resource)?;
    Ok(document.tagged(AGGREGATED, headers))
}

/// Answers a path of discovery, if it is one.
pub(crate) async fn answer(server: &Inner, path: &str) -> Option<Response<ApiBody>> {
    let build = |registry: &Custom| serde_json::to_vec(&document(registry, path)?).ok();
    let document = documents::get(server, path, true, build).await?;
    Some(document.response("application/json"))
}

/// The document of a path of discovery, if it is one.
fn document(registry: &Custom, path: &str) -> Option<Value> {
    let groups = groups(registry);
    let named = |wanted: &str| groups.iter().find(|(g, _)| *g == wanted);
    match path.split('/').skip(1).collect::<Vec<_>>().as_slice() {
        ["api"] => Some(json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})),
        ["apis"] => {
            let list: Vec<Value> = groups
                .iter()
                .filter(|(g, _)| !g.is_empty())
                .map(|(g, v)| group(g, v, false))
                .collect();
            Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": list}))
        }
        ["apis", name] => {
            let (name, versions) = named(name).filter(|(g, _)| !g.is_empty())?;
            Some(group(name, versions, true))
        }
        ["api", version] => resources(named("")?, version),
        ["apis", name, version] => resources(named(name)?, version),
        _ => None,
    }
}

fn group(name: &str, versions: &[(&str, Vec<&Arc<Resource>>)], alone: bool) -> Value {
    let list: Vec<Value> = versions
        .iter()
        .map(|(v, _)| json!({"groupVersion": api_version(name, v), "version": v}))
        .collect();
    let mut out = Map::new();
    if alone {
        out.insert("kind".into(), "APIGroup".into());
        out.insert("apiVersion".into(), "v1".into());
    }
    out.insert("name".into(), name.into());
    out.insert("preferredVersion".into(), list.first().cloned().unwrap_or(Value::Null));
    out.insert("versions".into(), list.into());
    Value::Object(out)
}

fn resources((group, versions): &Group<'_>, version: &str) -> Option<Value> {
    let (version, resources) = versions.iter().find(|(v, _)| *v == version)?;
    let mut list: Vec<Value> = Vec::new();
    let custom = resources.iter().any(|r| r.is_custom());
    for resource in resources {
        list.push(main_entry(resource));
        for (name, kind, verbs) in subresources(resource) {
            let mut entry = json!({
                "name": format!("{}/{name}", resource.plural), "singularName": "", "namespaced": resource.namespaced,
                "kind": kind.kind, "verbs": verbs,
            });
            if !kind.group.is_empty() || kind.kind == "Eviction" {
                entry["group"] = kind.group.into();
                entry["version"] = kind.version.into();
            }
            list.push(entry);
        }
    }
    for (g, v, entries) in crate::http::access_review::VIRTUAL {
        if g == group && v == version {
            for (plural, kind, namespaced) in *entries {
                list.push(json!({"name": plural, "singularName": kind.to_lowercase(), "namespaced": namespaced, "kind": kind, "verbs": ["create"]}));
            }
        }
    }
    if !custom {
        list.sort_by(|a, b| a["name"].as_str().cmp(&b["name"].as_str()));
    }
    Some(
        json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version(group, version), "resources": list}),
    )
}

fn main_entry(resource: &Resource) -> Value {
    let mut out = json!({
        "name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced,
        "kind": resource.kind, "verbs": resource.verbs(),
    });
    if !resource.short_names.is_empty() {
        out["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        out["categories"] = json!(resource.categories);
    }
    out["storageVersionHash"] = storage_version_hash(resource).into();
    out
}

/// Changes with the storage version: the first bytes of the hash of its name.
fn storage_version_hash(resource: &Resource) -> String {
    use base64::Engine as _;
    // The storage version of a core kind has no group.
    let version = &resource.storage_api_version;
    let slash = if version.contains('/') { "" } else { "/" };
    let hash = Sha256::digest(format!("{slash}{version}/{}", resource.kind));
    base64::engine::general_purpose::STANDARD.encode(&hash[..8])
}

struct SubKind<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
}

fn subresources(resource: &Resource) -> Vec<(&'static str, SubKind<'_>, Vec<&'static str>)> {
    let mut out = Vec::new();
    let own = || SubKind {
        group: "",
        version: "",
        kind: &resource.kind,
    };
    if resource.status {
        out.push(("status", own(), vec!["get", "patch", "update"]));
    }
    if resource.scale.is_some() {
        let scale = SubKind {
            group: "autoscaling",
            version: "v1",
            kind: "Scale",
        };
        out.push(("scale", scale, vec!["get", "patch", "update"]));
    }
    match resource.special {
        Special::Namespace => out.push(("finalize", own(), vec!["update"])),
        Special::Pod => {
            let eviction = SubKind {
                group: "policy",
                version: "v1",
                kind: "Eviction",
            };
            out.push(("eviction", eviction, vec!["create"]));
            let options = SubKind {
                group: "",
                version: "",
                kind: "PodPortForwardOptions",
            };
            out.push(("portforward", options, vec!["create", "get"]));
        }
        _ => {}
    }
    out
}

/// All groups in one response.
fn aggregate(groups: &Groups<'_>, wanted: impl Fn(&str) -> bool) -> Value {
    let items: Vec<Value> = groups
        .iter()
        .filter(|(g, _)| wanted(g))
        .map(|(group, versions)| {
            let versions: Vec<Value> = versions
                .iter()
                .map(|(version, resources)| {
                    let mut list: Vec<Value> = resources.iter().map(|r| aggregated_entry(r)).collect();
                    list.extend(virtual_entries(group, version));
                    list.sort_by(|a, b| a["resource"].as_str().cmp(&b["resource"].as_str()));
                    json!({"version": version, "resources": list, "freshness": "Current"})
                })
                .collect();
            let metadata = if group.is_empty() {
                json!({"creationTimestamp": null})
            } else {
                json!({"name": group, "creationTimestamp": null})
            };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items,
    })
}

fn virtual_entries(group: &str, version: &str) -> Vec<Value> {
    crate::http::access_review::VIRTUAL
        .iter()
        .filter(|(g, v, _)| *g == group && *v == version)
        .flat_map(|(g, v, entries)| entries.iter().map(move |e| (g, v, e)))
        .map(|(g, v, (plural, kind, namespaced))| {
            json!({
                "resource": plural, "singularResource": kind.to_lowercase(),
                "responseKind": {"group": g, "version": v, "kind": kind},
                "scope": if *namespaced { "Namespaced" } else { "Cluster" }, "verbs": ["create"],
            })
        })
        .collect()
}

fn aggregated_entry(resource: &Resource) -> Value {
    let mut out = json!({
        "resource": resource.plural,
        "singularResource": resource.singular,
        "responseKind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "verbs": resource.verbs(),
    });
    if !resource.short_names.is_empty() {
        out["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        out["categories"] = json!(resource.categories);
    }
    let subs: Vec<Value> = subresources(resource)
        .into_iter()
        .map(|(name, kind, verbs)| {
            let (group, version) = if kind.version.is_empty() {
                (resource.group.as_str(), resource.version.as_str())
            } else {
                (kind.group, kind.version)
            };
            json!({
                "subresource": name,
                "responseKind": {"group": group, "version": version, "kind": kind.kind},
                "verbs": verbs,
            })
        })
        .collect();
    if !subs.is_empty() {
        out["subresources"] = subs.into();
    }
    out
}
