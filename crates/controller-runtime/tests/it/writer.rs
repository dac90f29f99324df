//! Writes: which requests are sent, which are not, and how errors are reported.

use kube::api::DeleteParams;
use serde_json::{Value, json};
use windlass_controller_runtime::{Deleted, Object, ObjectKey, Write};

use crate::gadget::{FINALIZER, Gadget, gadget};
use crate::harness::{Bench, Fault, eventually};

/// Waits until the cache has exactly this object.
async fn cached(bench: &Bench, object: &Gadget) {
    let cache = bench.kit.cx().cache::<Gadget>();
    let key = ObjectKey::new("default", object.metadata.name.as_deref().unwrap());
    let version = object.metadata.resource_version.clone();
    eventually("the cache has seen the write", async || {
        cache.get(&key).filter(|o| o.metadata.resource_version == version)
    })
    .await;
}

async fn ready() -> Bench {
    let bench = Bench::start().await;
    bench.kit.cx().cache::<Gadget>().synced().await;
    bench
}

fn colored(color: Option<&str>) -> Gadget {
    let mut object = gadget("a", 0);
    object.spec.color = color.map(str::to_owned);
    object
}

async fn apply<K: Object>(bench: &Bench, object: &K) -> (Write, std::sync::Arc<K>) {
    let cx = bench.kit.cx();
    let applied = cx.writer().apply("m", object).await.unwrap();
    (applied.outcome, applied.object)
}

#[tokio::test]
async fn the_same_apply_is_sent_once() {
    let bench = ready().await;
    let (outcome, object) = apply(&bench, &colored(Some("red"))).await;
    assert_eq!(outcome, Write::Changed);
    cached(&bench, &object).await;
    bench.faults.clear_log();
    let (outcome, object) = apply(&bench, &colored(Some("red"))).await;
    assert_eq!(outcome, Write::Skipped);
    assert_eq!(object.spec.color.as_deref(), Some("red"));
    assert!(bench.faults.writes().is_empty());
}

#[tokio::test]
async fn what_others_add_does_not_bring_the_apply_back() {
    let bench = ready().await;
    let (_, object) = apply(&bench, &colored(Some("red"))).await;
    cached(&bench, &object).await;
    let changed = bench.patch("a", json!({"metadata": {"labels": {"theirs": "1"}}})).await;
    cached(&bench, &changed).await;
    assert_eq!(apply(&bench, &colored(Some("red"))).await.0, Write::Skipped);
}

#[tokio::test]
async fn what_others_change_is_put_right() {
    let bench = ready().await;
    let (_, object) = apply(&bench, &colored(Some("red"))).await;
    cached(&bench, &object).await;
    let changed = bench.patch("a", json!({"spec": {"color": "blue"}})).await;
    cached(&bench, &changed).await;
    let (outcome, object) = apply(&bench, &colored(Some("red"))).await;
    assert_eq!(outcome, Write::Changed);
    assert_eq!(object.spec.color.as_deref(), Some("red"));
}

#[tokio::test]
async fn a_field_that_is_not_wanted_any_more_is_removed() {
    let bench = ready().await;
    let (_, object) = apply(&bench, &colored(Some("red"))).await;
    cached(&bench, &object).await;
    let (outcome, object) = apply(&bench, &colored(None)).await;
    assert_eq!(outcome, Write::Changed);
    assert_eq!(object.spec.color, None);
}

#[tokio::test]
async fn after_a_restart_an_apply_is_sent_once_more_and_changes_nothing() {
    let bench = ready().await;
    let cx = bench.kit.cx();
    bench.apply(json!({"apiVersion": "test.windlass.io/v1", "kind": "Gadget", "metadata": {"name": "a", "namespace": "default"}, "spec": {"size": 0}})).await;
    let key = ObjectKey::new("default", "a");
    eventually("it is cached", async || cx.cache::<Gadget>().get(&key)).await;
    let mut object = gadget("a", 0);
    object.metadata.labels = None;
    // The first time takes ownership; from then on nothing is sent.
    apply(&bench, &object).await;
    bench.quiet().await;
    assert_eq!(apply(&bench, &object).await.0, Write::Skipped);
}

#[tokio::test]
async fn a_status_is_sent_once_and_creates_nothing() {
    let bench = ready().await;
    let created = bench.make(&gadget("a", 0)).await;
    cached(&bench, &created).await;
    let cx = bench.kit.cx();
    let status = |made: usize| json!({"made": made, "conditions": []});
    let first = cx.writer().apply_status("s", &created, status(1)).await.unwrap();
    assert_eq!(first.outcome, Write::Changed);
    cached(&bench, &first.object).await;
    let again = cx.writer().apply_status("s", &created, status(1)).await.unwrap();
    assert_eq!(again.outcome, Write::Skipped);
    let other = cx.writer().apply_status("s", &created, status(2)).await.unwrap();
    assert_eq!(other.outcome, Write::Changed);
    bench.gadgets().delete("a", &DeleteParams::default()).await.unwrap();
    let error = cx.writer().apply_status("s", &created, status(3)).await.unwrap_err();
    assert!(error.is_not_found(), "a status does not create: {error}");
}

#[tokio::test]
async fn errors_say_what_they_are() {
    let bench = ready().await;
    let cx = bench.kit.cx();
    bench.make(&gadget("a", 0)).await;
    let error = cx.writer().create("m", &gadget("a", 0)).await.unwrap_err();
    assert!(error.is_already_exists(), "{error}");
    let key = ObjectKey::new("default", "none");
    let error = cx
        .writer()
        .merge_patch::<Gadget>("m", &key, &json!({}))
        .await
        .unwrap_err();
    assert!(error.is_not_found(), "{error}");
    let key = ObjectKey::new("default", "a");
    let wrong = json!({"spec": {"size": "many"}});
    let error = cx.writer().merge_patch::<Gadget>("m", &key, &wrong).await.unwrap_err();
    assert!(error.is_invalid(), "{error}");
    assert!(
        error.to_string().starts_with("failed to patch Gadget default/a: "),
        "{error}"
    );
}

#[tokio::test]
async fn only_the_very_object_is_deleted() {
    let bench = ready().await;
    let cx = bench.kit.cx();
    let old = bench.make(&gadget("a", 0)).await;
    assert_eq!(cx.writer().delete(&old).await.unwrap(), Deleted::Gone);
    let new = bench.make(&gadget("a", 0)).await;
    assert_eq!(cx.writer().delete(&old).await.unwrap(), Deleted::Gone);
    assert_eq!(bench.gadgets().get("a").await.unwrap().metadata.uid, new.metadata.uid);
    assert_eq!(cx.writer().delete(&gadget("none", 0)).await.unwrap(), Deleted::Gone);
    let held = cx.writer().ensure_finalizer("m", &new, FINALIZER).await.unwrap();
    assert_eq!(cx.writer().delete(&*held).await.unwrap(), Deleted::Going);
}

#[tokio::test]
async fn a_conflict_that_leaves_the_object_in_place_is_no_deletion() {
    let bench = ready().await;
    let cx = bench.kit.cx();
    let kept = bench.make(&gadget("a", 0)).await;
    bench
        .faults
        .add(1, Fault::Refuse(409, "Conflict"), |method, _| method == "DELETE");
    let error = cx.writer().delete(&kept).await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
    assert_eq!(cx.writer().delete(&kept).await.unwrap(), Deleted::Gone);
}

#[tokio::test]
async fn finalizers_are_changed_in_spite_of_others() {
    let bench = ready().await;
    let cx = bench.kit.cx();
    let stale = bench.make(&gadget("a", 0)).await;
    bench
        .patch("a", json!({"metadata": {"finalizers": ["other.io/theirs"]}}))
        .await;
    let object = cx.writer().ensure_finalizer("m", &stale, FINALIZER).await.unwrap();
    assert_eq!(
        object.metadata.finalizers.as_deref().unwrap(),
        ["other.io/theirs", FINALIZER]
    );
    bench.patch("a", json!({"metadata": {"labels": {"x": "1"}}})).await;
    cx.writer().remove_finalizer("m", &*object, FINALIZER).await.unwrap();
    let object = bench.gadgets().get("a").await.unwrap();
    assert_eq!(object.metadata.finalizers.as_deref().unwrap(), ["other.io/theirs"]);
    cx.writer().remove_finalizer("m", &object, FINALIZER).await.unwrap();
}

#[tokio::test]
async fn finalizers_keep_their_order() {
    let bench = ready().await;
    let mut made = gadget("a", 0);
    let of = |names: &[&str]| Some(names.iter().map(|name| format!("{name}.io/f")).collect::<Vec<_>>());
    made.metadata.finalizers = of(&["topology", "other", "set"]);
    let made = bench.make(&made).await;
    cached(&bench, &made).await;
    // As of a controller that takes the object over.
    let mut wanted = colored(Some("red"));
    wanted.metadata.finalizers = of(&["new", "set", "topology"]);
    let (outcome, object) = apply(&bench, &wanted).await;
    assert_eq!(outcome, Write::Changed);
    let finalizers = object.metadata.finalizers.clone().unwrap();
    let before = finalizers.iter().filter(|name| *name != "new.io/f").cloned().collect();
    assert_eq!(Some(before), of(&["topology", "other", "set"]), "{finalizers:?}");
    cached(&bench, &object).await;
    bench.faults.clear_log();
    assert_eq!(apply(&bench, &wanted).await.0, Write::Skipped);
    wanted.spec.size = 2;
    let (_, object) = apply(&bench, &wanted).await;
    assert_eq!(object.metadata.finalizers, Some(finalizers));
    bench.patch("a", json!({"metadata": {"finalizers": []}})).await;
}

#[tokio::test]
async fn an_apply_whose_answer_is_lost_is_sent_again() {
    let bench = ready().await;
    bench.faults.add(1, Fault::LoseAnswer, |method, _| method == "PATCH");
    let (outcome, object) = apply(&bench, &colored(Some("red"))).await;
    assert_eq!(outcome, Write::Changed);
    assert_eq!(object.spec.color.as_deref(), Some("red"));
    assert_eq!(bench.faults.writes().len(), 2);
}

#[tokio::test]
async fn dynamic_objects_are_written_the_same_way() {
    let bench = ready().await;
    let cx = bench.kit.cx();
    let object = json!({
        "apiVersion": "test.windlass.io/v1", "kind": "Gadget",
        "metadata": {"name": "d", "namespace": "default", "resourceVersion": "", "creationTimestamp": Value::Null},
        "spec": {"size": 0, "color": "green"},
    });
    let applied = cx.writer().apply_value("m", &object).await.unwrap();
    assert_eq!(applied.outcome, Write::Changed);
    assert_eq!(applied.object.value()["spec"]["defaulted"], "x");
    bench.quiet().await;
    let written = bench.faults.writes().len();
    for _ in 0..2 {
        let again = cx.writer().apply_value("m", &object).await.unwrap();
        assert_eq!(again.outcome, Write::Skipped);
        assert!(cx.writer().apply_changed("m", &object).await.unwrap().is_none());
    }
    assert_eq!(bench.faults.writes().len(), written);
    let mut other = object.clone();
    other["spec"]["color"] = "red".into();
    assert!(cx.writer().apply_changed("m", &other).await.unwrap().is_some());
    assert!(cx.writer().apply_changed("m", &object).await.unwrap().is_some());
    assert_eq!(cx.writer().delete_value(&applied.object).await.unwrap(), Deleted::Gone);
    let unknown =
        json!({"apiVersion": "none.io/v1", "kind": "None", "metadata": {"name": "x", "namespace": "default"}});
    assert!(cx.writer().apply_value("m", &unknown).await.unwrap_err().is_not_found());
}
