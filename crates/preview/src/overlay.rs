//! The change that is previewed: applied to the copy as the user would apply it to the original.

mod set;

use std::collections::BTreeSet;

use http::{Request, header};
use kube::client::Body;
use serde_json::{Value, json};
use windlass_api::codec::LAST_APPLIED;

use crate::error::PreviewError;
use crate::fields;
use crate::model::{ObjectChange, Refusal, Verb};
use crate::names::{Id, text};
use crate::shadow::{Shadow, Written, in_order};

/// What is to change.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// Objects to apply.
    pub objects: Vec<Value>,
    /// The class that `set` is about: `NAME` or `NAMESPACE/NAME`.
    pub class: Option<String>,
    /// Fields of the class: `path=value`.
    pub set: Vec<String>,
    /// Clusters that get another class: `CLUSTER=CLASS`, both with or without a namespace.
    pub rebase: Vec<String>,
    /// The namespace of what names none.
    pub namespace: String,
    /// The field manager with which the change will be applied.
    pub field_manager: String,
}

/// What became of the change.
#[derive(Debug, Default)]
pub(crate) struct Overlaid {
    pub(crate) changes: Vec<ObjectChange>,
    pub(crate) refused: Vec<Refusal>,
    pub(crate) ignored: Vec<Id>,
    /// The objects as they are now.
    pub(crate) objects: Vec<Value>,
}

/// One write of the change.
struct Edit {
    /// The object: whole, or its identity only if `patch` says how it changes.
    object: Value,
    patch: Option<Value>,
}

/// Applies a change to the copy.
pub(crate) async fn apply(shadow: &Shadow, change: &Change) -> Result<(Overlaid, Vec<Written>), PreviewError> {
    let mut objects = change.objects.clone();
    for object in &mut objects {
        let gvk = windlass_controller_runtime::gvk_from(text(object, "/apiVersion"), text(object, "/kind"));
        let resource = shadow.cx().resource(&gvk).await;
        let is_namespaced = resource.found().is_some_and(|resource| resource.namespaced);
        if is_namespaced && text(object, "/metadata/namespace").is_empty() {
            object["metadata"]["namespace"] = change.namespace.as_str().into();
        }
    }
    let mut edits: Vec<Edit> = in_order(objects)
        .into_iter()
        .map(|object| Edit { object, patch: None })
        .collect();
    edits.extend(set_fields(shadow, change).await?);
    for rebase in &change.rebase {
        edits.push(rebased(rebase, &change.namespace)?);
    }
    let mut out = Overlaid::default();
    let mut classes: BTreeSet<(String, String)> = BTreeSet::new();
    for edit in edits {
        let id = Id::of(&edit.object);
        if id.kind == "Namespace" && id.group.is_empty() {
            shadow.make_namespace(&id.name).await?;
        }
        if !is_planned(&id) {
            out.ignored.push(id);
            continue;
        }
        if let Some(message) = shadow.other_version(&edit.object) {
            out.refused.push(Refusal { object: id, message });
            continue;
        }
        let Some(url) = shadow.url_of(&edit.object).await else {
            let message = format!(
                "{} is not served, or has no label of a contract of Cluster API, so nothing can be said of it",
                text(&edit.object, "/apiVersion")
            );
            out.refused.push(Refusal { object: id, message });
            continue;
        };
        if id.kind == "Cluster" && edit.patch.is_some() && shadow.at(&url).await.is_none() {
            return Err(PreviewError::Change(format!(
                "Cluster {}/{} does not exist",
                id.namespace, id.name
            )));
        }
        // The original does not know what else changes. Where that matters, the copy answers, which has the same rules.
        let before = shadow.at(&url).await;
        // A part of a Cluster leaves its class as it is.
        let class = class_of(&edit).or_else(|| {
            before
                .clone()
                .and_then(|object| class_of(&Edit { object, patch: None }))
        });
        let depends = class.is_some_and(|class| classes.contains(&class));
        if !shadow.has_original() && !id.namespace.is_empty() {
            // Files need not have the Namespaces of their objects.
            shadow.make_namespace(&id.namespace).await?;
        }
        let request = request(&url, before.as_ref(), &edit, &change.field_manager)?;
        match shadow.write(request, !depends).await? {
            Ok(after) => {
                if id.kind == "ClusterClass" {
                    classes.insert((id.namespace.clone(), id.name.clone()));
                }
                let fields = before
                    .as_ref()
                    .map_or_else(Vec::new, |before| fields::changes(before, &after));
                if before.is_none() || !fields.is_empty() {
                    out.changes.push(ObjectChange {
                        verb: if before.is_none() { Verb::Created } else { Verb::Changed },
                        object: id,
                        reason: None,
                        fields,
                    });
                }
                out.objects.push(after);
            }
            Err(message) => out.refused.push(Refusal { object: id, message }),
        }
    }
    let written = shadow.take_log();
    shadow.take_refused();
    shadow.caught_up().await?;
    Ok((out, written))
}

/// Whether plans depend on objects of a kind: those of Cluster API and of its providers.
fn is_planned(id: &Id) -> bool {
    id.group.contains('.') && !id.group.ends_with(".k8s.io") || id.group.ends_with("cluster.x-k8s.io")
}

/// The class that a Cluster is to have.
fn class_of(edit: &Edit) -> Option<(String, String)> {
    let object = edit.patch.as_ref().unwrap_or(&edit.object);
    let class = object.pointer("/spec/topology/classRef")?;
    let own = text(&edit.object, "/metadata/namespace");
    let namespace = class["namespace"]
        .as_str()
        .filter(|name| !name.is_empty())
        .unwrap_or(own);
    Some((namespace.to_owned(), class["name"].as_str()?.to_owned()))
}

/// The request with which `kubectl apply` would send an object: server-side apply for what is new or was applied so before, else a merge patch
/// that also removes what was applied before and is not there any more.
fn request(url: &str, before: Option<&Value>, edit: &Edit, manager: &str) -> Result<Request<Body>, PreviewError> {
    let was_applied = |before: &Value| {
        let entries = before.pointer("/metadata/managedFields").and_then(Value::as_array);
        entries
            .into_iter()
            .flatten()
            .any(|entry| entry["manager"] == manager && entry["operation"] == "Apply")
    };
    let merge = match (&edit.patch, before) {
        (Some(patch), _) => Some(patch.clone()),
        (None, Some(before)) if !was_applied(before) => Some(merge_patch(before, &edit.object)),
        (None, _) => None,
    };
    let (kind, query, body) = match merge {
        Some(patch) => ("application/merge-patch+json", "", patch),
        None => (
            "application/apply-patch+yaml",
            "&force=true",
            without_server_fields(&edit.object),
        ),
    };
    // As kubectl does: a field that the kind does not have is a mistake.
    let request = Request::patch(format!("{url}?fieldManager={manager}&fieldValidation=Strict{query}"))
        .header(header::CONTENT_TYPE, kind)
        .body(Body::from(body.to_string().into_bytes()));
    request.map_err(|error| PreviewError::Change(format!("{url}: {error}")))
}

/// What a user's file may have from a read object.
fn without_server_fields(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in [
            "managedFields",
            "resourceVersion",
            "uid",
            "generation",
            "creationTimestamp",
            "selfLink",
            "ownerReferences",
            "finalizers",
        ] {
            metadata.remove(field);
        }
    }
    object
}

/// The object as a merge patch, with `null` for what the last apply of kubectl had and this one has not.
fn merge_patch(before: &Value, object: &Value) -> Value {
    let mut patch = without_server_fields(object);
    let last = before["metadata"]["annotations"][LAST_APPLIED].as_str();
    let last: Option<Value> = last.and_then(|text| serde_json::from_str(text).ok());
    if let Some(last) = last {
        removals(&last, &mut patch);
    }
    patch
}

fn removals(last: &Value, patch: &mut Value) {
    let (Some(last), Some(fields)) = (last.as_object(), patch.as_object_mut()) else {
        return;
    };
    for (key, value) in last {
        match fields.get_mut(key) {
            Some(now) => removals(value, now),
            None => {
                fields.insert(key.clone(), Value::Null);
            }
        }
    }
}

async fn set_fields(shadow: &Shadow, change: &Change) -> Result<Option<Edit>, PreviewError> {
    let Some(class) = &change.class else {
        return match change.set.first() {
            Some(_) => Err(PreviewError::Change(
                "--set needs --class: it changes fields of a class".to_owned(),
            )),
            None => Ok(None),
        };
    };
    let (namespace, name) = place(class, &change.namespace);
    let identity = identity("ClusterClass", namespace, name);
    let stored = match shadow.url_of(&identity).await {
        Some(url) => shadow.at(&url).await,
        None => None,
    };
    let Some(stored) = stored else {
        return Err(PreviewError::Change(format!(
            "ClusterClass {namespace}/{name} does not exist"
        )));
    };
    let mut changed = json!({"spec": stored["spec"]});
    for one in &change.set {
        set::set(&mut changed, one).map_err(|why| PreviewError::Change(format!("--set {one}: {why}")))?;
    }
    let patch = set::patch_between(&json!({"spec": stored["spec"]}), &changed);
    Ok(Some(Edit {
        object: identity,
        patch: Some(patch),
    }))
}

fn rebased(text: &str, namespace: &str) -> Result<Edit, PreviewError> {
    let wrong = || PreviewError::Change(format!("--rebase {text}: it should be CLUSTER=CLASS"));
    let (cluster, class) = text.split_once('=').ok_or_else(wrong)?;
    if cluster.is_empty() || class.is_empty() {
        return Err(wrong());
    }
    let (space, name) = place(cluster, namespace);
    let (class_space, class) = place(class, space);
    let mut reference = json!({"name": class});
    reference["namespace"] = if class_space == space {
        Value::Null
    } else {
        class_space.into()
    };
    Ok(Edit {
        object: identity("Cluster", space, name),
        patch: Some(json!({"spec": {"topology": {"classRef": reference}}})),
    })
}

fn place<'a>(text: &'a str, namespace: &'a str) -> (&'a str, &'a str) {
    text.split_once('/').unwrap_or((namespace, text))
}

fn identity(kind: &str, namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_patch_removes_what_was_applied_before() {
        let last = json!({"spec": {"a": 1, "b": {"c": 1}}, "metadata": {"labels": {"x": "y"}}}).to_string();
        let before = json!({"metadata": {"annotations": {(LAST_APPLIED): last}}});
        let now = json!({"metadata": {"name": "n", "uid": "u"}, "spec": {"b": {}}, "status": {}});
        assert_eq!(
            merge_patch(&before, &now),
            json!({"metadata": {"name": "n", "labels": null}, "spec": {"a": null, "b": {"c": null}}})
        );
    }

    #[test]
    fn a_rebase_names_cluster_and_class() {
        let edit = rebased("a/c=b/k", "default").unwrap();
        assert_eq!(Id::of(&edit.object).namespace, "a");
        assert_eq!(
            edit.patch.unwrap()["spec"]["topology"]["classRef"],
            json!({"name": "k", "namespace": "b"})
        );
        for wrong in ["a", "=b", "a="] {
            assert!(rebased(wrong, "default").is_err(), "{wrong}");
        }
    }

    #[test]
    fn kinds_of_kubernetes_are_ignored() {
        let of = |api: &str| is_planned(&Id::of(&json!({"apiVersion": api, "kind": "K"})));
        assert!(
            of("cluster.x-k8s.io/v1beta2") && of("infrastructure.cluster.x-k8s.io/v1") && of("infra.example.com/v1")
        );
        assert!(!of("v1") && !of("apps/v1") && !of("rbac.authorization.k8s.io/v1"));
    }
}
