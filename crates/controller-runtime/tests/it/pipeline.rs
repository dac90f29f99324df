//! The pipeline: deadlines, questions and notes go through the driver.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ConfigMap, Event};
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::{Value, json};
use windlass_api::meta::MetaExt as _;
use windlass_controller_runtime::{
    Controller, ControllerEntry, Cx, Decision, EventType, Moment, Note, ObjectKey, Plan as _, ReconcileError, Seen,
    Watch,
};
use windlass_meta::FakeClock;

use crate::gadget::{Gadget, gadget};
use crate::harness::{Bench, eventually, meta};

/// A Gadget is old at this age.
const OLD: SignedDuration = SignedDuration::from_mins(10);
/// Its status calls it ancient at this age.
const ANCIENT: SignedDuration = SignedDuration::from_hours(30);

/// Reports the age of Gadgets. A Gadget with a color is compared with the ConfigMap of that name, which is read only if the plan
/// asks for it.
#[derive(Clone, Default)]
struct Curator(Arc<Counters>);

#[derive(Default)]
struct Counters {
    /// Applying the plan for a Gadget named `slow` takes this long, by this clock, the first time.
    slow: parking_lot::Mutex<Option<(FakeClock, SignedDuration)>>,
    observed: AtomicUsize,
    answered: AtomicUsize,
}

struct Observed {
    gadget: Arc<Gadget>,
    map: Option<Seen<Arc<ConfigMap>>>,
}

struct Plan {
    notes: Vec<Note>,
    old: bool,
    known: bool,
}

impl windlass_controller_runtime::Plan for Plan {
    fn notes(&self) -> &[Note] {
        &self.notes
    }
}

impl Controller for Curator {
    type Kind = Gadget;
    type Observed = Observed;
    type Question = ObjectKey;
    type Plan = Plan;
    type Done = Option<ReconcileError>;

    const NAME: &'static str = "curator";
    const MANAGER: &'static str = "curator";
    const STATUS_MANAGER: &'static str = "curator-status";
    const FINALIZER: Option<&'static str> = None;

    fn watches(&self) -> Vec<Watch> {
        Vec::new()
    }

    async fn observe(&self, _: &Cx, gadget: Arc<Gadget>) -> Observed {
        self.0.observed.fetch_add(1, Ordering::SeqCst);
        Observed { gadget, map: None }
    }

    async fn answer(&self, cx: &Cx, mut seen: Observed, question: ObjectKey) -> Observed {
        self.0.answered.fetch_add(1, Ordering::SeqCst);
        // The answer to this question never satisfies the plan.
        if question.name != "insatiable" {
            seen.map = Some(cx.cache::<ConfigMap>().get(&question).into());
        }
        seen
    }

    fn plan(&self, seen: &Observed, now: &Moment) -> Decision<Plan, ObjectKey> {
        if let (Some(color), None) = (&seen.gadget.spec.color, &seen.map) {
            return Decision::Ask(ObjectKey::new("default", color));
        }
        let old = now.elapsed(seen.gadget.metadata.created(), OLD);
        let notes = old.then(|| Note::event(EventType::Normal, "Old", "the Gadget is old"));
        let known = seen.map.as_ref().is_some_and(|map| map.found().is_some());
        let notes = notes.into_iter().collect();
        Decision::Plan(Plan { notes, old, known })
    }

    async fn apply(&self, _: &Cx, seen: &Observed, _: &Plan) -> Option<ReconcileError> {
        if seen.gadget.metadata.name() == "slow"
            && let Some((clock, time)) = self.0.slow.lock().take()
        {
            clock.advance(time);
        }
        None
    }

    fn status(&self, seen: &Observed, plan: &Plan, _: &Option<ReconcileError>, now: &Moment) -> Option<Value> {
        assert_eq!(plan.notes().len(), usize::from(plan.old));
        let ancient = now.elapsed(seen.gadget.metadata.created(), ANCIENT);
        let age = if ancient {
            "ancient"
        } else if plan.old {
            "old"
        } else {
            "new"
        };
        Some(json!({"note": if plan.known { "known" } else { age }}))
    }
}

/// Moves the clock and all timers.
async fn pass(clock: &FakeClock, time: Duration) {
    clock.advance(SignedDuration::try_from(time).unwrap());
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

async fn is_called(bench: &Bench, name: &str, note: &str) {
    bench
        .until(name, &format!("{name} is called {note}"), |gadget| {
            gadget.status.as_ref().and_then(|status| status.note.as_deref()) == Some(note)
        })
        .await;
}

async fn events(bench: &Bench, reason: &str) -> Vec<Event> {
    let all: Api<Event> = Api::namespaced(bench.admin.clone(), "default");
    let mut events = all.list(&ListParams::default()).await.unwrap().items;
    events.retain(|event| event.reason.as_deref() == Some(reason));
    events
}

#[tokio::test]
async fn a_deadline_of_a_plan_or_of_a_status_is_met_without_any_event() {
    let clock = FakeClock::new(Timestamp::now());
    let bench = Bench::start_at(clock.clone()).await;
    bench.kit.start(vec![ControllerEntry::of(Curator::default())]);
    bench.make(&gadget("a", 0)).await;
    is_called(&bench, "a", "new").await;
    bench.quiet().await;
    // Nothing but time passes: first to a little before the deadline of the plan, then over it.
    pass(&clock, Duration::from_mins(9)).await;
    bench.quiet().await;
    is_called(&bench, "a", "new").await;
    pass(&clock, Duration::from_secs(63)).await;
    is_called(&bench, "a", "old").await;
    eventually("the event of the note is there", async || {
        (events(&bench, "Old").await.len() == 1).then_some(())
    })
    .await;
    // The deadline of the status is farther away than the longest timer.
    for _ in 0..3 {
        pass(&clock, Duration::from_secs(12 * 3600 + 3)).await;
        bench.quiet().await;
    }
    is_called(&bench, "a", "ancient").await;
    // The note has not changed since: it is no event again. The first one has expired.
    let events = events(&bench, "Old").await;
    assert!(events.iter().all(|event| event.count.unwrap_or(1) == 1), "{events:?}");
    assert!(events.len() <= 1, "{events:?}");
}

#[tokio::test]
async fn a_deadline_that_passes_while_a_plan_is_applied_is_met_at_once() {
    let clock = FakeClock::new(Timestamp::now());
    let bench = Bench::start_at(clock.clone()).await;
    let curator = Curator::default();
    *curator.0.slow.lock() = Some((clock, SignedDuration::from_mins(40)));
    bench.kit.start(vec![ControllerEntry::of(curator)]);
    bench.make(&gadget("slow", 0)).await;
    is_called(&bench, "slow", "old").await;
}

#[tokio::test]
async fn facts_are_read_when_a_plan_asks_for_them_and_only_then() {
    let bench = Bench::start().await;
    let maps: Api<ConfigMap> = Api::namespaced(bench.admin.clone(), "default");
    let map = ConfigMap {
        metadata: meta("red"),
        ..ConfigMap::default()
    };
    maps.create(&PostParams::default(), &map).await.unwrap();
    let curator = Curator::default();
    bench.kit.start(vec![ControllerEntry::of(curator.clone())]);
    bench.make(&gadget("plain", 0)).await;
    is_called(&bench, "plain", "new").await;
    assert_eq!(curator.0.answered.load(Ordering::SeqCst), 0);
    // The cache of ConfigMaps starts with the answer, so that the first answer is read again.
    let mut colored = gadget("colored", 0);
    colored.spec.color = Some("red".to_owned());
    bench.make(&colored).await;
    is_called(&bench, "colored", "known").await;
    // What is not there is an answer as well.
    let mut missing = gadget("missing", 0);
    missing.spec.color = Some("blue".to_owned());
    bench.make(&missing).await;
    is_called(&bench, "missing", "new").await;
}

#[tokio::test]
async fn a_plan_that_keeps_asking_fails_after_two_answers() {
    let bench = Bench::start().await;
    let curator = Curator::default();
    bench.kit.start(vec![ControllerEntry::of(curator.clone())]);
    let mut insatiable = gadget("a", 0);
    insatiable.spec.color = Some("insatiable".to_owned());
    bench.make(&insatiable).await;
    let text = eventually("the reconcile fails", async || {
        let text = bench.kit.metrics().encode();
        text.contains("Unanswered").then_some(text)
    })
    .await;
    let (observed, answered) = (&curator.0.observed, &curator.0.answered);
    assert!(text.contains("curator"));
    // A failed reconcile is repeated; each of them reads twice more than it observes.
    let answered = answered.load(Ordering::SeqCst);
    let observed = observed.load(Ordering::SeqCst);
    assert!(
        answered >= 2 && answered <= 2 * observed,
        "{answered} answers, {observed} observations"
    );
}
