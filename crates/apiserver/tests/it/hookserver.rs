//! Webhooks for widgets, and their configurations.

use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
pub(crate) use windlass_fake_providers::{HookServer, Say};

/// A webhook for all writes of widgets, with the fields of `more` replaced.
pub(crate) fn hook(name: &str, client: Value, more: Value) -> Value {
    let mut out = json!({
        "name": name, "clientConfig": client, "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "rules": [{"operations": ["*"], "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["widgets"]}],
    });
    for (key, value) in more.as_object().unwrap() {
        out[key] = value.clone();
    }
    out
}

/// Writes a ValidatingWebhookConfiguration.
pub(crate) async fn validating(client: &Client, name: &str, hooks: Value) {
    let object: ValidatingWebhookConfiguration = serde_json::from_value(json!({
        "metadata": {"name": name}, "webhooks": hooks,
    }))
    .unwrap();
    let api: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    api.create(&PostParams::default(), &object).await.unwrap();
}

/// Writes a MutatingWebhookConfiguration.
pub(crate) async fn mutating(client: &Client, name: &str, hooks: Value) {
    let object: MutatingWebhookConfiguration = serde_json::from_value(json!({
        "metadata": {"name": name}, "webhooks": hooks,
    }))
    .unwrap();
    let api: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    api.create(&PostParams::default(), &object).await.unwrap();
}

/// Removes a ValidatingWebhookConfiguration.
pub(crate) async fn forget(client: &Client, name: &str) {
    let api: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    api.delete(name, &DeleteParams::default()).await.unwrap();
}
