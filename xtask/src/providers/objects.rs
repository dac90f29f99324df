//! The objects of a provider on a server, compared before and after.

use std::collections::BTreeMap;

use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

/// The kinds of providers' objects.
const KINDS: [(&str, &str, &str); 13] = [
    ("", "v1", "Namespace"),
    ("", "v1", "ConfigMap"),
    ("", "v1", "Secret"),
    ("", "v1", "Service"),
    ("", "v1", "ServiceAccount"),
    ("apps", "v1", "Deployment"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRole"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding"),
    ("rbac.authorization.k8s.io", "v1", "Role"),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding"),
    ("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"),
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
];

/// Objects by kind, namespace and name.
pub(crate) type Objects = BTreeMap<(String, String, String), Value>;

fn resource(kind: &str) -> ApiResource {
    let known = KINDS.iter().find(|(_, _, name)| *name == kind);
    let (group, version, kind) = known.copied().unwrap_or(("", "v1", kind));
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

/// All objects with the label of a provider.
pub(crate) async fn of(client: &kube::Client, label: &str) -> Result<Objects, String> {
    let mut found = Objects::new();
    let labelled = ListParams::default().labels(&format!("cluster.x-k8s.io/provider={label}"));
    for (_, _, kind) in KINDS {
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource(kind));
        let list = api
            .list(&labelled)
            .await
            .map_err(|error| format!("cannot list {kind}: {error}"))?;
        for object in list.items {
            let metadata = &object.metadata;
            let key = (
                kind.to_owned(),
                metadata.namespace.clone().unwrap_or_default(),
                metadata.name.clone().unwrap_or_default(),
            );
            found.insert(key, serde_json::to_value(object).unwrap_or_default());
        }
    }
    Ok(found)
}

/// The `resourceVersion`s of objects: unchanged without writes.
pub(crate) fn versions(objects: &Objects) -> BTreeMap<String, String> {
    let of = |object: &Value| {
        object["metadata"]["resourceVersion"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    objects.iter().map(|(key, object)| (shown(key), of(object))).collect()
}

/// `Kind namespace/name`.
pub(crate) fn shown((kind, namespace, name): &(String, String, String)) -> String {
    match namespace.as_str() {
        "" => format!("{kind} {name}"),
        _ => format!("{kind} {namespace}/{name}"),
    }
}

/// The objects without fields that the server sets.
pub(crate) fn content(objects: &Objects) -> Objects {
    let bare = |object: &Value| {
        let mut object = object.clone();
        if let Some(object) = object.as_object_mut() {
            object.remove("status");
        }
        if let Some(metadata) = object["metadata"].as_object_mut() {
            for key in [
                "uid",
                "resourceVersion",
                "generation",
                "creationTimestamp",
                "managedFields",
            ] {
                metadata.remove(key);
            }
        }
        if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
            spec.remove("clusterIP");
            spec.remove("clusterIPs");
        }
        object
    };
    objects
        .iter()
        .map(|(key, object)| (key.clone(), bare(object)))
        .collect()
}

/// The objects that are left, except for those that are always kept: definitions, and the namespace.
pub(crate) fn leftovers(objects: &Objects) -> Vec<String> {
    let others = objects
        .keys()
        .filter(|(kind, _, _)| kind != "CustomResourceDefinition" && kind != "Namespace");
    others.map(shown).collect()
}

/// Damages a provider: deletes the first Service and ServiceAccount, and changes the first ClusterRole and Deployment.
pub(crate) async fn spoil(client: &kube::Client, objects: &Objects) -> Result<usize, String> {
    let image = json!([{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "other:v0"}]);
    let rules = json!([{"op": "replace", "path": "/rules", "value": []}]);
    let mut spoilt = 0;
    for kind in ["Service", "ServiceAccount", "ClusterRole", "Deployment"] {
        let Some((_, namespace, name)) = objects.keys().find(|(found, _, _)| found == kind) else {
            continue;
        };
        let api: Api<DynamicObject> = match namespace.as_str() {
            "" => Api::all_with(client.clone(), &resource(kind)),
            _ => Api::namespaced_with(client.clone(), namespace, &resource(kind)),
        };
        let patch = match kind {
            "ClusterRole" => Some(&rules),
            "Deployment" => Some(&image),
            _ => None,
        };
        let done = match patch {
            Some(patch) => {
                let patch = serde_json::from_value(patch.clone()).map_err(|error| error.to_string())?;
                let patch = Patch::<()>::Json(patch);
                api.patch(name, &PatchParams::default(), &patch).await.map(drop)
            }
            None => api.delete(name, &kube::api::DeleteParams::default()).await.map(drop),
        };
        done.map_err(|error| format!("cannot spoil {kind} {name}: {error}"))?;
        spoilt += 1;
    }
    Ok(spoilt)
}
