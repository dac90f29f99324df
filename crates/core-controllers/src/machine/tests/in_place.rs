//! Updates in place.

use std::time::Duration;

use windlass_controller_runtime::Plan as _;

use super::super::in_place::{Question, Update};
use super::super::plan::External;
use super::*;

const MARK: &str = "in-place-updates.internal.cluster.x-k8s.io/update-in-progress";
const HOOKS: &str = "runtime.cluster.x-k8s.io/pending-hooks";

fn mark(object: &mut Seen<Referenced>) {
    let Seen::Found(found) = object else {
        panic!("it is not there")
    };
    let mut value = found.value().clone();
    value["metadata"]["annotations"] = json!({ MARK: "" });
    *object = Seen::Found(Referenced::of(value));
}

/// A running Machine with these annotations, and marks on what it refers to.
fn updating(annotations: Value, answer: Option<Update>) -> Observed {
    let mut seen = running();
    change(&mut seen, |machine| {
        machine.metadata.annotations = from(annotations);
        let status = machine.status.get_or_insert_default();
        status.initialization = from(json!({"infrastructureProvisioned": true, "bootstrapDataSecretCreated": true}));
    });
    mark(seen.bootstrap.as_mut().unwrap());
    mark(&mut seen.infrastructure);
    seen.update = answer;
    seen
}

fn whole(answer: Option<Update>) -> Observed {
    updating(json!({ MARK: "", HOOKS: "Other,UpdateMachine" }), answer)
}

fn ends(plan: &Plan) -> Vec<&Action> {
    let is_end = |action: &&Action| matches!(action, Action::Unmark(_) | Action::EndHook);
    plan.actions.iter().filter(is_end).collect()
}

fn check(seen: &Observed, expect: (&str, &str, &str)) -> Plan {
    let (plan, status) = reported(seen);
    check_condition(&status, "Updating", expect);
    let is_updating = expect.0 == "True";
    assert_eq!(
        status.phase.as_deref(),
        Some(if is_updating { "Updating" } else { "Running" })
    );
    if is_updating {
        assert_eq!(
            get(&status.conditions, "Ready").unwrap().status,
            "False",
            "it counts as unavailable"
        );
    }
    plan
}

#[test]
fn the_extension_is_asked_when_everything_is_marked() {
    let moment = Moment::at(now());
    assert_eq!(plan(&whole(None), &moment), Decision::Ask(Question::Update));
    let waiting = ("True", "InPlaceUpdating", "In-place update in progress");
    check(&updating(json!({ MARK: "" }), None), waiting);
    for unmark in [0, 1] {
        let mut seen = whole(None);
        let fresh = running();
        if unmark == 0 {
            seen.infrastructure = fresh.infrastructure;
        } else {
            seen.bootstrap = fresh.bootstrap;
        }
        let plan = check(&seen, waiting);
        assert!(ends(&plan).is_empty());
    }
    let mut early = whole(None);
    change(&mut early, |machine| machine.status.as_mut().unwrap().node_ref = None);
    let (plan, status) = reported(&early);
    check_condition(&status, "Updating", waiting);
    assert!(ends(&plan).is_empty(), "it has not come up");
    let mut without = whole(None);
    without.bootstrap = None;
    assert_eq!(
        super::plan(&without, &moment),
        Decision::Ask(Question::Update),
        "the user brings the data"
    );
}

#[test]
fn an_update_is_reported_until_it_is_done() {
    let running = whole(Some(Update::Running(7, "step 2 of 3".to_owned())));
    let plan = check(
        &running,
        ("True", "InPlaceUpdating", "In-place update in progress: step 2 of 3"),
    );
    assert_eq!(plan.requeue(), Some(Duration::from_secs(7)));
    let failed = whole(Some(Update::Failed("no".to_owned())));
    let plan = check(
        &failed,
        ("True", "InPlaceUpdateFailed", "UpdateMachine hook failed: no"),
    );
    assert!(plan.blocked().is_some(), "it is tried again");
    assert!(ends(&plan).is_empty());
    let plan = check(
        &whole(Some(Update::Done)),
        ("True", "InPlaceUpdating", "In-place update in progress"),
    );
    let all = [
        &Action::Unmark(None),
        &Action::Unmark(Some(External::Bootstrap)),
        &Action::Unmark(Some(External::Infrastructure)),
        &Action::EndHook,
    ];
    assert_eq!(ends(&plan), all);
    let plan = check(&super::in_place::running(), ("False", "NotUpdating", ""));
    assert!(ends(&plan).is_empty());
}

#[test]
fn what_an_interrupted_end_has_left_goes() {
    let mut seen = updating(json!({ HOOKS: "UpdateMachine" }), None);
    seen.infrastructure = running().infrastructure;
    let (plan, _) = reported(&seen);
    assert_eq!(
        ends(&plan),
        [&Action::Unmark(Some(External::Bootstrap)), &Action::EndHook]
    );
    let other = updating(json!({ HOOKS: "AfterSomething" }), None);
    assert!(ends(&reported(&other).0).is_empty(), "another hook is not ours");
}

#[test]
fn an_infrastructure_machine_that_is_gone_or_unreadable_stops_an_update() {
    let mut seen = whole(None);
    seen.infrastructure = Seen::NotFound;
    let plan = reported(&seen).0;
    assert!(plan.blocked().is_some());
    let (_, status) = reported(&seen);
    let message = "In-place update not possible: InfraMachine not found";
    check_condition(&status, "Updating", ("True", "InPlaceUpdateFailed", message));
    seen.infrastructure = Seen::Failed("timeout".to_owned());
    let (_, status) = reported(&seen);
    check_condition(
        &status,
        "Updating",
        ("True", "InPlaceUpdateFailed", "In-place update not possible: timeout"),
    );
}
