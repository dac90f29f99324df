//! Objects whose `managedFields` the API server has lost: the writer restores them, so that fields can still be removed.

use serde_json::{Value, json};
use windlass_controller_runtime::{ObjectKey, Write};

use crate::gadget::gadget;
use crate::harness::{Bench, eventually};

fn colored(color: Option<&str>) -> Value {
    let mut object = serde_json::to_value(gadget("a", 0)).unwrap();
    if let Some(color) = color {
        object["spec"]["color"] = color.into();
        object["metadata"]["labels"]["color"] = color.into();
    }
    object
}

async fn ready() -> Bench {
    let bench = Bench::start().await;
    bench.kit.cx().cache::<crate::gadget::Gadget>().synced().await;
    bench
}

async fn apply(bench: &Bench, object: &Value) -> Write {
    let applied = bench.kit.cx().writer().apply_value("m", object).await.unwrap();
    let version = applied.object.metadata().resource_version.clone();
    cached(bench, version.as_deref()).await;
    applied.outcome
}

/// Waits until the cache has this version.
async fn cached(bench: &Bench, version: Option<&str>) {
    let cache = bench.kit.cx().cache::<crate::gadget::Gadget>();
    eventually("the cache has the version", async || {
        let object = cache.get(&ObjectKey::new("default", "a"))?;
        (object.metadata.resource_version.as_deref() == version).then_some(())
    })
    .await;
}

async fn lose(bench: &Bench) {
    let object = bench.patch("a", json!({"metadata": {"managedFields": [{}]}})).await;
    assert_eq!(object.metadata.managed_fields, None);
    cached(bench, object.metadata.resource_version.as_deref()).await;
}

async fn managers(bench: &Bench) -> Vec<String> {
    let object = bench.gadgets().get("a").await.unwrap();
    let entries = object.metadata.managed_fields.unwrap_or_default();
    let mut managers: Vec<_> = entries.into_iter().filter_map(|entry| entry.manager).collect();
    managers.sort();
    managers
}

/// The next apply without a field removes it.
async fn removes(bench: &Bench) {
    assert_eq!(apply(bench, &colored(None)).await, Write::Changed);
    let object = bench.gadgets().get("a").await.unwrap();
    assert_eq!(object.spec.color, None);
    assert_eq!(object.metadata.labels.unwrap().get("color"), None);
}

#[tokio::test]
async fn lost_managers_are_restored_although_nothing_else_changed() {
    let bench = ready().await;
    apply(&bench, &colored(Some("red"))).await;
    lose(&bench).await;
    bench.faults.clear_log();
    assert_eq!(apply(&bench, &colored(Some("red"))).await, Write::Changed);
    assert_eq!(managers(&bench).await, ["m"]);
    assert_eq!(bench.faults.writes().len(), 2, "{:?}", bench.faults.writes());
    // From now on, no request is needed.
    assert_eq!(apply(&bench, &colored(Some("red"))).await, Write::Skipped);
    assert_eq!(bench.faults.writes().len(), 2);
    removes(&bench).await;
}

#[tokio::test]
async fn a_stand_in_that_another_writer_caused_goes() {
    let bench = ready().await;
    apply(&bench, &colored(Some("red"))).await;
    lose(&bench).await;
    let theirs = json!({
        "apiVersion": "test.windlass.io/v1", "kind": "Gadget", "metadata": {"name": "a", "namespace": "default", "labels": {"theirs": "1"}},
    });
    let object = bench.apply(theirs).await;
    assert_eq!(managers(&bench).await, ["admin", "before-first-apply"]);
    cached(&bench, object["metadata"]["resourceVersion"].as_str()).await;
    apply(&bench, &colored(Some("red"))).await;
    assert_eq!(managers(&bench).await, ["admin", "m"]);
    removes(&bench).await;
    let object = bench.gadgets().get("a").await.unwrap();
    assert_eq!(object.metadata.labels.unwrap()["theirs"], "1");
}

#[tokio::test]
async fn an_apply_of_a_status_restores_them_too() {
    let bench = ready().await;
    let created = bench.make(&gadget("a", 0)).await;
    lose(&bench).await;
    let status = json!({"made": 1, "note": "x", "conditions": []});
    let cx = bench.kit.cx();
    cx.writer().apply_status("s", &created, status).await.unwrap();
    assert_eq!(managers(&bench).await, ["s"]);
    let status = json!({"made": 1, "conditions": []});
    cx.writer().apply_status("s", &created, status).await.unwrap();
    let object = bench.gadgets().get("a").await.unwrap();
    assert_eq!(object.status.unwrap().note, None);
}

#[tokio::test]
async fn an_object_with_managers_costs_no_request() {
    let bench = ready().await;
    bench.make(&gadget("a", 0)).await;
    bench.faults.clear_log();
    apply(&bench, &colored(Some("red"))).await;
    apply(&bench, &colored(None)).await;
    let log = bench.faults.log();
    assert_eq!(
        log.iter().filter(|line| line.contains("/gadgets/a")).count(),
        2,
        "{log:?}"
    );
}
