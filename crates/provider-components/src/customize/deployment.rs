//! Settings of a Deployment and its Pods. A field that is set replaces the whole value.

use serde_json::{Map, Value, json};
use windlass_api_operator::DeploymentSettings;

use super::Note;

/// The path of a Deployment's Pod spec.
const POD: &str = "/spec/template/spec";

pub(super) fn apply(object: &mut Value, name: &str, settings: &DeploymentSettings, field: &str, notes: &mut Vec<Note>) {
    let mut set = |at: &str, setting: &str, key: &str, value: Option<Value>| {
        let Some(value) = value else { return };
        let Some(map) = made(object, at) else { return };
        notes.push(Note::done(
            &format!("{field}.deployment.{setting}"),
            name,
            format!("set {key}"),
        ));
        map.insert(key.to_owned(), value);
    };
    set("/spec", "replicas", "replicas", settings.replicas.map(Value::from));
    set(
        POD,
        "nodeSelector",
        "nodeSelector",
        settings.node_selector.as_ref().map(|labels| json!(labels)),
    );
    set(
        POD,
        "tolerations",
        "tolerations",
        settings.tolerations.clone().map(Value::from),
    );
    set(POD, "affinity", "affinity", settings.affinity.clone());
    let account = settings.service_account_name.as_ref().map(|account| json!(account));
    set(POD, "serviceAccountName", "serviceAccountName", account.clone());
    let secrets = settings.image_pull_secrets.as_ref();
    let secrets = secrets.map(|names| names.iter().map(|name| json!({"name": name})).collect());
    set(POD, "imagePullSecrets", "imagePullSecrets", secrets);
    // The deprecated name of the field could differ.
    if let Some(pod) = object.pointer_mut(POD).and_then(Value::as_object_mut)
        && let (Some(account), Some(old)) = (account, pod.get_mut("serviceAccount"))
    {
        *old = account;
    }
}

/// The object at a path of fields, created if missing.
fn made<'v>(object: &'v mut Value, path: &str) -> Option<&'v mut Map<String, Value>> {
    let mut at = object.as_object_mut()?;
    for field in path.split('/').skip(1) {
        at = at.entry(field).or_insert_with(|| json!({})).as_object_mut()?;
    }
    Some(at)
}
