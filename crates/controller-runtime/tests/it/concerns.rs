//! Objects that a controller does not reconcile, because another system manages them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use windlass_api::{Condition, resource_is_not_externally_managed};
use windlass_controller_runtime::{
    Controller, ControllerEntry, Cx, Decision, Moment, NoQuestion, ObjectKey, ReconcileError, Watch,
};

use crate::gadget::{FINALIZER, Gadget, gadget};
use crate::harness::{Bench, eventually};

/// Paints Gadgets and reports it. Ignores those that another system manages.
#[derive(Clone, Default)]
struct Painter(Arc<Shop>);

struct Shop {
    observed: parking_lot::Mutex<Vec<String>>,
    /// Reconciles that wait in the middle.
    waiting: AtomicUsize,
    /// Lets one reconcile continue.
    go: Semaphore,
}

impl Default for Shop {
    fn default() -> Self {
        Self {
            observed: parking_lot::Mutex::default(),
            waiting: AtomicUsize::new(0),
            go: Semaphore::new(1_000),
        }
    }
}

impl Painter {
    /// Whether a Gadget was ever reconciled.
    fn saw(&self, name: &str) -> bool {
        self.0.observed.lock().iter().any(|seen| seen == name)
    }
}

impl Controller for Painter {
    type Kind = Gadget;
    type Observed = Arc<Gadget>;
    type Question = NoQuestion;
    type Plan = ();
    type Done = Result<(), ReconcileError>;

    const NAME: &'static str = "painter";
    const MANAGER: &'static str = "painter";
    const STATUS_MANAGER: &'static str = "painter-status";
    const FINALIZER: Option<&'static str> = Some(FINALIZER);
    const CONCERNS: Option<fn(&Gadget) -> bool> = Some(resource_is_not_externally_managed);
    const LOCKED: bool = true;

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::map::<ConfigMap>(|_, _, new| {
            let named = new.and_then(|map| map.data.as_ref()?.get("gadget").cloned());
            named.map(|name| ObjectKey::new("default", name)).into_iter().collect()
        })]
    }

    async fn observe(&self, _: &Cx, object: Arc<Gadget>) -> Arc<Gadget> {
        self.0.observed.lock().push(object.name_any());
        self.0.waiting.fetch_add(1, Ordering::SeqCst);
        self.0.go.acquire().await.unwrap().forget();
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
        object
    }

    fn plan(&self, _: &Arc<Gadget>, _: &Moment) -> Decision<(), NoQuestion> {
        ().into()
    }

    async fn apply(&self, cx: &Cx, seen: &Arc<Gadget>, (): &()) -> Self::Done {
        if seen.metadata.deletion_timestamp.is_some() {
            return Ok(cx.writer().remove_finalizer(Self::MANAGER, &**seen, FINALIZER).await?);
        }
        let desired = json!({
            "apiVersion": "test.windlass.io/v1", "kind": "Gadget",
            "metadata": {"name": seen.metadata.name, "namespace": "default", "uid": seen.metadata.uid},
            "spec": {"color": "green"},
        });
        cx.writer().apply_value(Self::MANAGER, &desired).await?;
        Ok(())
    }

    fn status(&self, seen: &Arc<Gadget>, (): &(), _: &Self::Done, _: &Moment) -> Option<Value> {
        seen.metadata.deletion_timestamp.is_none().then(|| json!({"made": 1}))
    }
}

fn managed(name: &str, by: &str) -> Gadget {
    let mut gadget = gadget(name, 1);
    gadget
        .annotations_mut()
        .insert("cluster.x-k8s.io/managed-by".to_owned(), by.to_owned());
    gadget
}

async fn start() -> (Bench, Painter) {
    let bench = Bench::start().await;
    let painter = Painter::default();
    bench
        .kit
        .start(vec![ControllerEntry::of(painter.clone()).with_concurrency(1)]);
    (bench, painter)
}

/// The queue is first in, first out: when this one is done, everything that was asked for before is.
async fn painted(bench: &Bench, name: &str) -> Gadget {
    bench.make(&gadget(name, 1)).await;
    done(bench, name).await
}

async fn done(bench: &Bench, name: &str) -> Gadget {
    bench
        .until(name, &format!("{name} is painted"), |g| {
            g.spec.color.as_deref() == Some("green") && g.status.as_ref().is_some_and(|s| s.made == 1)
        })
        .await
}

async fn wake(bench: &Bench, name: &str) {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("wake-{name}"), "namespace": "default"}, "data": {"gadget": name}});
    bench.apply(map).await;
}

// EX-035, EX-037: created, changed, woken by another kind, woken by the pause of its cluster, deleted; each with and without
#[tokio::test]
async fn an_object_of_another_manager_is_never_reconciled() {
    let (bench, painter) = start().await;
    let theirs = bench.make(&managed("theirs", "")).await;
    bench.make(&gadget("ours", 1)).await;
    let ours = done(&bench, "ours").await;
    assert_eq!(ours.finalizers(), [FINALIZER]);

    bench.patch("theirs", json!({"spec": {"size": 2}})).await;
    wake(&bench, "theirs").await;
    wake(&bench, "ours").await;
    painted(&bench, "second").await;
    let cluster = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "c1", "namespace": "default"},
        "spec": {"paused": true, "infrastructureRef": {"apiGroup": "a.io", "kind": "A", "name": "a"}}});
    bench.apply(cluster).await;
    bench
        .until("ours", "the others are paused", |g| {
            let paused = |c: &Condition| c.type_ == "Paused" && c.status == "True";
            g.status.as_ref().is_some_and(|s| s.conditions.iter().any(paused))
        })
        .await;
    let now = bench.gadgets().get("theirs").await.unwrap();
    assert_eq!((now.status, now.metadata.finalizers), (None, None));
    assert_eq!(
        now.metadata.generation,
        theirs.metadata.generation.map(|before| before + 1)
    );
    bench
        .gadgets()
        .delete("theirs", &DeleteParams::default())
        .await
        .unwrap();
    eventually("it is gone at once", async || {
        bench.gadgets().get_opt("theirs").await.unwrap().is_none().then_some(())
    })
    .await;
    assert!(!painter.saw("theirs") && painter.saw("ours"));
    assert!(
        bench.faults.writes().iter().all(|line| !line.contains("/theirs")),
        "{:?}",
        bench.faults.writes()
    );
}

// EX-028, EX-029, EX-082: the request is in the queue already when the annotation comes
#[tokio::test]
async fn a_reconcile_that_waits_in_the_queue_ends_when_the_object_was_taken_over() {
    let (bench, painter) = start().await;
    painted(&bench, "first").await;
    painted(&bench, "late").await;
    // The only worker is busy with the first one while the other waits behind it.
    painter.0.go.forget_permits(1_000);
    wake(&bench, "first").await;
    eventually("the worker is busy", async || {
        (painter.0.waiting.load(Ordering::SeqCst) == 1).then_some(())
    })
    .await;
    wake(&bench, "late").await;
    let looked = painter.0.observed.lock().len();
    let taken = bench
        .patch(
            "late",
            json!({"metadata": {"annotations": {"cluster.x-k8s.io/managed-by": "terraform"}}}),
        )
        .await;
    eventually("the cache knows it", async || {
        let cached = bench
            .kit
            .cx()
            .cache::<Gadget>()
            .get(&ObjectKey::new("default", "late"))?;
        (cached.metadata.resource_version == taken.metadata.resource_version).then_some(())
    })
    .await;
    painter.0.go.add_permits(1_000);
    painted(&bench, "third").await;
    assert!(painter.0.observed.lock()[looked..].iter().all(|name| name != "late"));
    assert_eq!(
        bench.gadgets().get("late").await.unwrap().metadata.resource_version,
        taken.metadata.resource_version
    );
    let metrics = bench.kit.metrics().encode();
    // What does not fail is counted, under these names.
    let successes = r#"controller_runtime_reconcile_total{controller="painter",result="success"} "#;
    let succeeded = metrics.lines().any(|line| line.starts_with(successes));
    assert!(succeeded, "nothing is counted:\n{metrics}");
    let failures = r#"controller_runtime_reconcile_total{controller="painter",result="error"}"#;
    let failed = metrics
        .lines()
        .any(|line| line.starts_with(failures) && !line.ends_with(" 0"));
    assert!(!failed, "a reconcile that is left out is no failure:\n{metrics}");
}

// EX-086: the annotation comes between what the reconcile saw and what it writes
#[tokio::test]
async fn a_reconcile_under_way_does_not_write_to_an_object_that_was_taken_over() {
    let (bench, painter) = start().await;
    painted(&bench, "one").await;
    bench.patch("one", json!({"spec": {"color": "red"}})).await;
    done(&bench, "one").await;
    painter.0.go.forget_permits(1_000);
    bench.patch("one", json!({"spec": {"color": "red"}})).await;
    eventually("the reconcile is under way", async || {
        (painter.0.waiting.load(Ordering::SeqCst) == 1).then_some(())
    })
    .await;
    let taken = bench
        .patch(
            "one",
            json!({"metadata": {"annotations": {"cluster.x-k8s.io/managed-by": "x"}}}),
        )
        .await;
    bench.faults.clear_log();
    painter.0.go.add_permits(1_000);
    painted(&bench, "two").await;
    let now = bench.gadgets().get("one").await.unwrap();
    assert_eq!(now.metadata.resource_version, taken.metadata.resource_version);
    assert_eq!(now.spec.color.as_deref(), Some("red"));
    let tried = bench
        .faults
        .writes()
        .iter()
        .filter(|line| line.contains("/gadgets/one"))
        .count();
    assert!(
        (1..=2).contains(&tried),
        "refused once for the spec and once for the status: {:?}",
        bench.faults.writes()
    );
}

#[tokio::test]
async fn locked_writes_follow_one_another() {
    let (bench, _) = start().await;
    // Finalizer, spec and status of one reconcile: each on top of the one before.
    let one = painted(&bench, "one").await;
    assert_eq!(one.finalizers(), [FINALIZER]);
    // The status is about what the reconcile itself wrote.
    let conditions = one.status.unwrap().conditions;
    assert_eq!(conditions[0].observed_generation, one.metadata.generation);
    assert_eq!(one.metadata.generation, Some(2));
    bench.gadgets().delete("one", &DeleteParams::default()).await.unwrap();
    eventually("it is let go", async || {
        bench.gadgets().get_opt("one").await.unwrap().is_none().then_some(())
    })
    .await;
}
