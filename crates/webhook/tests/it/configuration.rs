//! The configuration is kept up to date, without unnecessary writes.

use crate::support::{NAME, Serving, World, until};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use windlass_webhook::Configuration;

/// The configuration without fields that the server counts up.
fn said(configuration: &Value) -> Value {
    configuration["webhooks"].clone()
}

#[tokio::test]
async fn drift_and_deletion_are_repaired() {
    let world = World::start().await;
    let webhooks = Serving::new().start(world.client.clone()).await.unwrap();
    world.create("a", 5).await;
    for of in Configuration::ALL {
        is_repaired(&world, of).await;
    }
    webhooks.shutdown().await;
}

/// Removes and changes a configuration in every way, and waits until it is as before.
async fn is_repaired(world: &World, of: Configuration) {
    let right = said(&world.configuration_of(of).await.unwrap());
    assert_eq!(right.as_array().unwrap().len(), 1, "{of:?}");
    let is_right = async || {
        let found = world.configuration_of(of).await;
        found.is_some_and(|found| said(&found) == right)
    };
    let (all, name) = (world.configurations_of(of), of.name());
    all.delete(name, &DeleteParams::default()).await.unwrap();
    until("the deleted configuration is back", is_right).await;
    world.is_judged("a").await;

    let webhook = &right[0]["name"];
    for change in [
        json!({"name": webhook, "failurePolicy": "Ignore"}),
        json!({"name": webhook, "namespaceSelector": {"matchLabels": {"judged": "yes"}}}),
        json!({"name": webhook, "matchConditions": [{"name": "never", "expression": "false"}]}),
    ] {
        let patch = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": of.kind(),
            "metadata": {"name": name}, "webhooks": [change],
        });
        let other = PatchParams::apply("another-manager").force();
        let changed = all.patch(name, &other, &Patch::Apply(&patch)).await.unwrap();
        assert_ne!(said(&serde_json::to_value(changed).unwrap()), right, "{patch}");
        until(&format!("{change} is put right"), is_right).await;
    }
    let none = Patch::Merge(json!({"webhooks": []}));
    all.patch(name, &PatchParams::default(), &none).await.unwrap();
    until("the removed webhook is back", is_right).await;
    world.is_judged("a").await;
}

/// It would refuse every write: no server has its path.
#[tokio::test]
async fn a_webhook_of_another_version_of_this_program_goes() {
    let world = World::start().await;
    let webhooks = Serving::new().start(world.client.clone()).await.unwrap();
    let right = said(&world.configuration().await.unwrap());
    let mut other = right[0].clone();
    other["name"] = json!("another.example.com");
    other["clientConfig"]["url"] = json!(
        right[0]["clientConfig"]["url"]
            .as_str()
            .unwrap()
            .replace("/validate", "/gone")
    );
    for (manager, webhooks) in [
        ("windlass-webhooks", json!([right[0], other])),
        ("restored", json!([other])),
    ] {
        let patch = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": NAME}, "webhooks": webhooks,
        });
        let as_manager = PatchParams::apply(manager).force();
        let changed = world
            .configurations()
            .patch(NAME, &as_manager, &Patch::Apply(&patch))
            .await;
        assert_eq!(changed.unwrap().data["webhooks"].as_array().unwrap().len(), 2);
        until("it is gone", async || {
            world.configuration().await.is_some_and(|found| said(&found) == right)
        })
        .await;
    }
    world.create("a", 5).await;
    world.is_judged("a").await;
    webhooks.shutdown().await;
}

#[tokio::test]
async fn webhooks_of_others_stay_and_nothing_is_written_when_nothing_is_wrong() {
    let world = World::start().await;
    let serving = Serving::new();
    let webhooks = serving.start(world.client.clone()).await.unwrap();
    let mut theirs = said(&world.configuration().await.unwrap())[0].clone();
    theirs["name"] = json!("theirs.example.com");
    theirs["failurePolicy"] = json!("Ignore");
    let patch = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": NAME, "labels": {"a": "b"}}, "webhooks": [theirs],
    });
    let other = PatchParams::apply("another-manager");
    world
        .configurations()
        .patch(NAME, &other, &Patch::Apply(&patch))
        .await
        .unwrap();
    let before = world.writes();
    webhooks.shutdown().await;
    let webhooks = serving.start(world.client.clone()).await.unwrap();
    // A write in response to a change would have been sent by then.
    world
        .configurations()
        .delete(NAME, &DeleteParams::default())
        .await
        .unwrap();
    until("it is back", async || world.configuration().await.is_some()).await;
    // A write is counted after its response, and visible a moment earlier.
    until("both are counted", async || world.writes() >= before + 2).await;
    assert_eq!(world.writes(), before + 2, "one deletion, one application");
    webhooks.shutdown().await;
}
