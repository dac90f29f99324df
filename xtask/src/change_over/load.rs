//! Stores a recorded management cluster on an API server: its objects, their status, and at last the managers of their fields.

use kube::Client;
use serde_json::{Value, json};
use windlass_manager::registry::kinds;

use super::recording::{creatable, is_going, move_generations, named, unseen, with_uids};

/// The field manager of everything that is stored, until the recorded ones are restored.
const MANAGER: &str = "recorded";

/// Stores prepared objects, owners first. Returns them as the server should have them then: `newest` are the same objects in the newest
/// version.
pub(super) async fn load(client: &Client, objects: &[Value], newest: &[Value]) -> Result<Vec<Value>, String> {
    let (mut expected, mut uids) = (Vec::new(), Vec::new());
    for object in objects {
        let newest = newest.iter().find(|newest| named(newest) == named(object));
        let newest = newest.ok_or_else(|| format!("{:?} is not recorded in the newest version", named(object)))?;
        expected.push(one(client, object, newest, &mut uids).await?);
    }
    for object in expected.iter_mut().filter(|object| is_going(object)) {
        let path = path(object, &named(object).1)?;
        let going = send(client, http::Method::DELETE, &path, None).await?;
        for key in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
            object["metadata"][key] = going["metadata"][key].clone();
        }
    }
    Ok(expected)
}

async fn one(
    client: &Client,
    recorded: &Value,
    newest: &Value,
    uids: &mut Vec<(String, String)>,
) -> Result<Value, String> {
    let mut object = with_uids(recorded, uids)?;
    let mut expected = with_uids(newest, uids)?;
    let (_, name) = named(&object);
    let (all, own) = (path(&object, "")?, path(&object, &name)?);
    let is_going = is_going(&object);
    // The deletion of an object is a generation of its own.
    let unseen = unseen(&object) - i64::from(is_going);
    let sent = creatable(&object);
    let mut first = sent.clone();
    if unseen > 0 {
        without_newest(&mut first)?;
    }
    let mut live = send(client, http::Method::POST, &all, Some(&first)).await?;
    let uid = |value: &Value| value["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    uids.push((uid(recorded), uid(&live)));
    if unseen > 0 {
        live = put(client, &own, &sent, &live).await?;
    }
    let generation = |value: &Value| value["metadata"]["generation"].as_i64().unwrap_or_default();
    let last = generation(&live) + i64::from(is_going);
    let moved = last - generation(&object);
    if object
        .get("status")
        .is_some_and(|status| status.as_object().is_some_and(|map| !map.is_empty()))
    {
        move_generations(&mut object["status"], moved);
        put(client, &format!("{own}/status"), &object, &live).await?;
    }
    // In the newest version: the managers are restored by a write that changes nothing else.
    let newest_path = path(&expected, &name)?;
    let mut whole = send(client, http::Method::GET, &newest_path, None).await?;
    whole["metadata"]["managedFields"] = expected["metadata"]["managedFields"].clone();
    let live = send(client, http::Method::PUT, &newest_path, Some(&whole)).await?;
    if let Some(status) = expected.get_mut("status") {
        move_generations(status, moved);
    }
    let metadata = &mut expected["metadata"];
    for key in ["uid", "creationTimestamp", "resourceVersion"] {
        metadata[key] = live["metadata"][key].clone();
    }
    if metadata.get("generation").is_some() {
        metadata["generation"] = json!(last);
    }
    Ok(expected)
}

/// The object before its last change, which no controller had seen. That is recorded of Machines whose bootstrap data had just been made.
fn without_newest(object: &mut Value) -> Result<(), String> {
    let spec = object["spec"]["bootstrap"].as_object_mut();
    let removed = spec.and_then(|bootstrap| bootstrap.remove("dataSecretName"));
    removed.map(drop).ok_or_else(|| {
        let (kind, name) = named(object);
        format!("{kind} {name}: its controller had not seen the newest generation: say what was changed last")
    })
}

async fn put(client: &Client, path: &str, object: &Value, live: &Value) -> Result<Value, String> {
    let mut object = object.clone();
    for key in ["uid", "resourceVersion"] {
        object["metadata"][key] = live["metadata"][key].clone();
    }
    send(client, http::Method::PUT, path, Some(&object)).await
}

async fn send(client: &Client, method: http::Method, path: &str, object: Option<&Value>) -> Result<Value, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("{method} {path}: {error}");
    let body = object.map(Value::to_string).unwrap_or_default().into_bytes();
    let request = http::Request::builder()
        .method(method.clone())
        .uri(format!("{path}?fieldManager={MANAGER}"))
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(body)
        .map_err(|error| wrong(&error))?;
    client.request::<Value>(request).await.map_err(|error| wrong(&error))
}

/// The path of an object in the version that it is in; that of its collection without a name.
fn path(object: &Value, name: &str) -> Result<String, String> {
    let (kind, _) = named(object);
    let version = object["apiVersion"].as_str().unwrap_or_default();
    let (root, plural) = if version == "v1" {
        ("/api/v1".to_owned(), format!("{}s", kind.to_lowercase()))
    } else {
        let entry = kinds::find(&kind).ok_or_else(|| format!("{kind} is none of our kinds"))?;
        (format!("/apis/{version}"), entry.plural.to_owned())
    };
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
    let slash = if name.is_empty() { "" } else { "/" };
    Ok(format!("{root}/namespaces/{namespace}/{plural}{slash}{name}"))
}
