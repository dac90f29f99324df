//! Kinds that become known at run time.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;
use windlass_contract::ContractVersion;
use windlass_controller_runtime::{GroupKind, ObjectKey, RuntimeError, Seen};

use crate::gadget::{GROUP, gadget};
use crate::harness::{Bench, Fault, eventually};

/// The definition of Gadgets with the versions v1 and v2, of which the contract label names one.
fn definition_of(version: &str) -> serde_json::Value {
    let mut definition = crate::gadget::definition();
    definition["metadata"]["labels"] = json!({"cluster.x-k8s.io/v1beta2": version});
    let mut second = definition["spec"]["versions"][0].clone();
    second["name"] = json!("v2");
    second["storage"] = json!(false);
    definition["spec"]["versions"].as_array_mut().unwrap().push(second);
    definition
}

/// Waits until the kind is read in a version.
async fn read_at(bench: &Bench, version: &str) {
    let kind = GroupKind::new(GROUP, "Gadget");
    let cx = bench.kit.cx();
    eventually("the version is read", async || {
        let cache = cx.dynamic(&kind).await.ok()?;
        (cache.gvk().version == version).then_some(())
    })
    .await;
}

// CL-025
#[tokio::test]
async fn the_version_comes_from_the_contract_label() {
    let bench = Bench::start().await;
    bench.make(&gadget("a", 1)).await;
    let cx = bench.kit.cx();
    let cache = cx.dynamic(&GroupKind::new(GROUP, "Gadget")).await.unwrap();
    assert_eq!(
        (cache.gvk().version.as_str(), cache.contract()),
        ("v1", ContractVersion::V1Beta2)
    );
    let object = cache.get(&ObjectKey::new("default", "a")).unwrap();
    assert_eq!(object.value()["spec"]["size"], 1);
    assert_eq!(cache.by_cluster("default", "c1").len(), 1);
}

// CL-025
#[tokio::test]
async fn unknown_kinds_and_kinds_without_contract_say_so() {
    let bench = Bench::start().await;
    let cx = bench.kit.cx();
    let kind = GroupKind::new("unserved.io", "Nothing");
    let error = cx.dynamic(&kind).await.unwrap_err();
    assert!(matches!(error, RuntimeError::UnknownKind { .. }), "{error}");
    let mut definition = crate::gadget::definition();
    definition["metadata"] = json!({"name": "widgets.other.io"});
    definition["spec"]["group"] = json!("other.io");
    definition["spec"]["names"] =
        json!({"kind": "Widget", "listKind": "WidgetList", "plural": "widgets", "singular": "widget"});
    bench.apply(definition).await;
    let kind = GroupKind::new("other.io", "Widget");
    let why = eventually("the definition is seen", async || match cx.dynamic(&kind).await {
        Err(RuntimeError::UnknownKind { .. }) => None,
        other => Some(other.unwrap_err().to_string()),
    })
    .await;
    assert!(
        why.contains("widgets.other.io has none of the contract labels"),
        "{why}"
    );
    let seen = cx.dynamic_get(&kind, &ObjectKey::new("default", "x")).await;
    assert!(matches!(seen, Seen::Failed(_)));
}

#[tokio::test]
async fn a_definition_that_comes_later_is_found() {
    let bench = Bench::start().await;
    let cx = bench.kit.cx();
    let kind = GroupKind::new("later.io", "Late");
    assert!(cx.dynamic(&kind).await.is_err());
    let mut definition = crate::gadget::definition();
    definition["metadata"] = json!({"name": "lates.later.io", "labels": {"cluster.x-k8s.io/v1beta1": "v1"}});
    definition["spec"]["group"] = json!("later.io");
    definition["spec"]["names"] =
        json!({"kind": "Late", "listKind": "LateList", "plural": "lates", "singular": "late"});
    bench.apply(definition).await;
    let cache = eventually("the kind can be used", async || cx.dynamic(&kind).await.ok()).await;
    assert_eq!(cache.contract(), ContractVersion::V1Beta1);
}

// CL-045, CL-046: one watch for each kind.
#[tokio::test]
async fn two_askers_share_one_watch() {
    let bench = Bench::start().await;
    let cx = bench.kit.cx();
    let kind = GroupKind::new(GROUP, "Gadget");
    let (a, b) = tokio::join!(cx.dynamic(&kind), cx.dynamic(&kind));
    a.unwrap();
    let called = Arc::new(Mutex::new(Vec::new()));
    let t = called.clone();
    b.unwrap().subscribe(move |change| {
        t.lock().push(change.object().map(|o| o.name().to_owned()));
    });
    bench.make(&gadget("x", 0)).await;
    eventually("the subscriber is called", async || {
        (!called.lock().is_empty()).then_some(())
    })
    .await;
    let log = bench.faults.log();
    assert_eq!(log.iter().filter(|l| l.contains("/gadgets")).count(), 1, "{log:?}");
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_is_not_an_empty_one() {
    let bench = Bench::start().await;
    let cx = bench.kit.cx();
    let gvk = GroupKind::new("", "ConfigMap").with_version("v1");
    let unreadable = |path: &'static str| {
        let answer = Fault::Say(b"<html>".to_vec());
        bench.faults.add(1, answer, move |_, uri| uri.contains(path));
    };
    unreadable("/api/v1");
    let kind = cx.resource(&gvk).await;
    assert!(matches!(kind, Seen::Failed(_)), "{kind:?}");
    // It was not remembered as a version without kinds.
    assert!(matches!(cx.resource(&gvk).await, Seen::Found(_)));
    unreadable("/configmaps/a");
    let object = cx.read_value(&gvk, &ObjectKey::new("default", "a")).await;
    assert!(matches!(object, Seen::Failed(_)), "{object:?}");
    unreadable("/apis");
    let served = cx.served().await;
    assert!(matches!(served, Seen::Failed(_)), "{served:?}");
}

#[tokio::test]
async fn writes_do_not_wait_for_a_version_that_is_no_longer_read() {
    let bench = Bench::start().await;
    bench.apply(definition_of("v2")).await;
    read_at(&bench, "v2").await;
    let refused = Fault::Refuse(500, "InternalError");
    bench
        .faults
        .add(usize::MAX, refused, |_, uri| uri.contains("/v2/gadgets"));
    bench.faults.cut_watches();
    bench.apply(definition_of("v1")).await;
    read_at(&bench, "v1").await;
    bench.run();
    bench.make(&gadget("a", 2)).await;
    bench.settled("a", 2).await;
}

#[tokio::test]
async fn an_apply_in_another_version_than_is_read_is_sent_once() {
    let bench = Bench::start().await;
    bench.apply(definition_of("v2")).await;
    read_at(&bench, "v2").await;
    let cx = bench.kit.cx();
    let object = json!({
        "apiVersion": "test.windlass.io/v1", "kind": "Gadget",
        "metadata": {"name": "d", "namespace": "default"},
        "spec": {"size": 1, "color": "green"},
    });
    assert!(cx.writer().apply_changed("m", &object).await.unwrap().is_some());
    let sent = async || {
        bench.quiet().await;
        let before = bench.faults.writes().len();
        for _ in 0..2 {
            assert!(cx.writer().apply_changed("m", &object).await.unwrap().is_none());
            bench.quiet().await;
        }
        bench.faults.writes().len() - before
    };
    assert_eq!(sent().await, 0);
    // The cache has it in another version: only the server can tell whether this takes something back.
    bench
        .patch("d", json!({"spec": {"size": 1, "defaulted": "other"}}))
        .await;
    assert_eq!(sent().await, 1);
    bench.patch("d", json!({"spec": {"color": "red"}})).await;
    bench.quiet().await;
    assert!(cx.writer().apply_changed("m", &object).await.unwrap().is_some());
    assert_eq!(sent().await, 0);
    let live = bench.gadgets().get("d").await.unwrap();
    assert_eq!(live.spec.color.as_deref(), Some("green"));
}

#[tokio::test]
async fn a_dynamic_kind_that_cannot_be_read_does_not_make_the_process_unready() {
    let bench = Bench::start().await;
    bench.apply(definition_of("v2")).await;
    let refused = Fault::Refuse(500, "InternalError");
    bench
        .faults
        .add(usize::MAX, refused, |_, uri| uri.contains("/v2/gadgets"));
    let (cx, kind) = (bench.kit.cx(), GroupKind::new(GROUP, "Gadget"));
    let asking = cx.dynamic(&kind);
    let refused = eventually("the kind is asked for", async || {
        let log = bench.faults.log();
        log.iter().any(|line| line.contains("/v2/gadgets")).then_some(())
    });
    tokio::select! {
        found = asking => panic!("{found:?}"),
        () = refused => {}
    }
    // Controllers start all the same.
    bench.run();
    eventually("it is ready", async || bench.kit.ready().ok()).await;
    bench.make(&gadget("a", 1)).await;
    bench
        .until("a", "the controller has seen it", |a| a.metadata.finalizers.is_some())
        .await;
}

// CL-025
#[tokio::test]
async fn a_version_that_is_not_served_is_not_read() {
    let bench = Bench::start().await;
    let mut definition = definition_of("v1_v2");
    definition["spec"]["versions"][1]["served"] = json!(false);
    bench.apply(definition).await;
    read_at(&bench, "v1").await;
}

#[tokio::test]
async fn writes_do_not_wait_for_a_version_that_is_not_served() {
    let bench = Bench::start().await;
    bench.apply(definition_of("v2")).await;
    read_at(&bench, "v2").await;
    let refused = Fault::Refuse(404, "NotFound");
    bench
        .faults
        .add(usize::MAX, refused, |_, uri| uri.contains("/v2/gadgets"));
    bench.faults.cut_watches();
    bench.run();
    bench.make(&gadget("a", 2)).await;
    bench.settled("a", 2).await;
}
