//! What is decided and reported from what was seen.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_api::core::{Cluster, ClusterClass};
use windlass_controller_runtime::{Blocked, Decision, Moment, ObjectKey, Outcome, Plan as _, Seen, Until};
use windlass_topology::blueprint::{Class, Contract, references};
use windlass_topology::current::Current;
use windlass_topology::model::{ClassSpec, TemplateRef, read};
use windlass_topology::plan::Action;
use windlass_topology::trial::{Trial, Verdict};

use super::observe::{Managed, Observed, Question, Revision};
use super::plan::{self, Plan};
use super::{apply, status};

/// The plan, where no question is expected.
fn plan(seen: &Observed) -> Plan {
    match plan::plan(seen, &Moment::at(Timestamp::UNIX_EPOCH)) {
        Decision::Plan(plan) => plan,
        Decision::Ask(question) => panic!("{question:?}"),
    }
}

fn asked(seen: &Observed) -> Vec<Trial> {
    match plan::plan(seen, &Moment::at(Timestamp::UNIX_EPOCH)) {
        Decision::Ask(Question {
            trials,
            calls,
            route,
            patches,
        }) => {
            assert_eq!(patches, None);
            assert!(calls.is_empty() && route.is_none(), "no extension serves a hook");
            trials
        }
        Decision::Plan(plan) => panic!("{plan:?}"),
    }
}

fn reference(kind: &str) -> Value {
    json!({"templateRef": {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": kind, "name": "t"}})
}

fn seen(change: impl FnOnce(&mut Managed, &mut Value)) -> Observed {
    let cluster: Cluster = serde_json::from_value(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": "foo", "namespace": "bar", "uid": "u", "generation": 4},
        "spec": {"topology": {"classRef": {"name": "c"}, "version": "v1.35.0"}},
    }))
    .unwrap();
    let mut class = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass",
        "metadata": {"name": "c", "namespace": "bar", "generation": 2},
        "spec": {"infrastructure": reference("DevClusterTemplate"), "controlPlane": reference("SomeControlPlaneTemplate")},
        "status": {"observedGeneration": 2, "conditions": [{
            "type": "VariablesReady", "status": "True", "reason": "VariablesReady", "message": "", "observedGeneration": 2,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]},
    });
    let spec: ClassSpec = read(&class, "/spec").unwrap();
    let templates: BTreeMap<_, _> = references(&spec)
        .iter()
        .map(|r| {
            let object = json!({
                "apiVersion": r.template.api_version, "kind": r.template.kind,
                "metadata": {"name": "t", "namespace": "bar"}, "spec": {"template": {"spec": {}}},
            });
            (r.template.clone(), Seen::Found(Arc::new(object)))
        })
        .collect();
    let mut seen = Managed {
        value: serde_json::to_value(&cluster).unwrap(),
        cluster: Arc::new(cluster),
        class_key: ObjectKey::new("bar", "c"),
        class: None,
        revision: Revision::Newest,
        is_newest: true,
        has_leftover: false,
        read: None,
        class_unread: None,
        templates,
        unserved: Vec::new(),
        contract: Ok(Contract::default()),
        current: Ok(Current::default()),
        upgrade_plan: None,
        patches: None,
        identity: None,
    };
    change(&mut seen, &mut class);
    if !class.is_null() {
        seen.read = Some(Class::read(&class).map(Arc::new));
        let class: ClusterClass = serde_json::from_value(class).unwrap();
        seen.class = Some(Arc::new(class));
    }
    Observed::Managed(Box::new(seen))
}

fn check(seen: &Observed, reason: &str, message: &str) {
    let plan = plan(seen);
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let status = status::status(seen, &plan, &apply::Done::default(), now).unwrap();
    let condition = &status["conditions"][0];
    assert_eq!(condition["type"], "TopologyReconciled");
    assert_eq!(condition["observedGeneration"], 4);
    assert_eq!(
        (
            condition["reason"].as_str().unwrap(),
            condition["message"].as_str().unwrap()
        ),
        (reason, message)
    );
    assert_eq!(
        condition["status"],
        if reason == "ReconcileSucceeded" {
            "True"
        } else {
            "False"
        }
    );
    assert_eq!(status["conditions"].as_array().unwrap().len(), 1);
}

#[test]
fn a_pass_that_goes_through_is_reported_as_succeeded() {
    let seen = seen(|_, _| {});
    assert_eq!(plan(&seen).actions.iter().filter(|step| step.changes).count(), 3);
    check(&seen, "ReconcileSucceeded", "");
}

// TO-034, TO-208, TO-240
#[test]
fn classes_that_are_missing_or_not_ready_are_named() {
    check(
        &seen(|_, class| *class = Value::Null),
        "ReconcileFailed",
        "Cluster bar/foo: spec.topology.classRef: ClusterClass bar/c does not exist",
    );
    let behind =
        "ClusterClass is not successfully reconciled: ClusterClass.status.observedGeneration must be 2, but is 1";
    check(
        &seen(|_, class| class["status"]["observedGeneration"] = 1.into()),
        "ReconcileFailed",
        behind,
    );
    check(
        &seen(|_, class| class["status"]["conditions"] = json!([])),
        "ReconcileFailed",
        "ClusterClass is not successfully reconciled: it has no condition VariablesReady",
    );
    let condition = |type_: &str, reason: &str, message: &str| {
        json!([{
            "type": type_, "status": "False", "reason": reason, "message": message, "observedGeneration": 2,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }])
    };
    check(
        &seen(|_, class| {
            class["status"]["conditions"] = condition("VariablesReady", "VariableDiscoveryFailed", "x is wrong");
        }),
        "ReconcileFailed",
        "ClusterClass is not successfully reconciled: x is wrong",
    );
    check(
        &seen(|_, class| {
            class["status"]["observedGeneration"] = 1.into();
            class["status"]["conditions"] = condition("RefVersionsUpToDate", "InternalError", "t does not exist");
        }),
        "ReconcileFailed",
        &format!("{behind}: t does not exist"),
    );
}

// TO-241, TO-318
#[test]
fn templates_that_are_missing_or_cannot_be_read_are_named() {
    let infrastructure = |seen: &mut Managed, found: Seen<Arc<Value>>| {
        let key = seen
            .templates
            .keys()
            .find(|k| k.kind == "DevClusterTemplate")
            .unwrap()
            .clone();
        seen.templates.insert(key, found);
    };
    check(
        &seen(|seen, _| infrastructure(seen, Seen::NotFound)),
        "ReconcileFailed",
        "ClusterClass bar/c: spec.infrastructure.templateRef: DevClusterTemplate bar/t does not exist",
    );
    let unreadable = seen(|seen, _| infrastructure(seen, Seen::Failed("no such kind".to_owned())));
    is_read_again(&unreadable, "no such kind");
}

/// Nothing is done; the condition says why, and the reconcile fails, so that it is repeated.
fn is_read_again(seen: &Observed, why: &str) {
    let plan = plan(seen);
    assert!(plan.actions.is_empty(), "{:?}", plan.actions);
    is_tried_again(seen, "Unreadable", why);
}

/// The condition says why, and the reconcile fails, so that it is repeated.
fn is_tried_again(seen: &Observed, reason: &'static str, why: &str) {
    let plan = plan(seen);
    let until = Until::Backoff;
    let message = why.to_owned();
    assert_eq!(plan.blocked(), Some(Blocked { reason, message, until }));
    assert!(matches!(
        Outcome::of(&plan, &apply::Done::default()),
        Outcome::Failed(error) if error.to_string() == why
    ));
    check(seen, "ReconcileFailed", why);
}

#[test]
fn a_contract_that_cannot_be_read_is_not_taken_for_the_newest() {
    let seen = seen(|seen, _| seen.contract = Err("informer not synced".to_owned()));
    is_read_again(&seen, "informer not synced");
}

/// A topology with a machine template of the control plane that exists and has one more field than is generated.
fn with_one_more_field() -> Observed {
    let template = |seen: &mut Managed, class: &mut Value| {
        class["spec"]["controlPlane"]["machineInfrastructure"] = reference("DevMachineTemplate");
        let reference: TemplateRef = read(class, "/spec/controlPlane/machineInfrastructure/templateRef").unwrap();
        let object = json!({
            "apiVersion": reference.api_version, "kind": reference.kind,
            "metadata": {"name": "t", "namespace": "bar"}, "spec": {"template": {"spec": {}}},
        });
        seen.templates.insert(reference, Seen::Found(Arc::new(object)));
    };
    let generated = plan(&seen(template))
        .actions
        .into_iter()
        .find_map(|step| match step.action {
            Action::Apply(object) if object["kind"] == "DevMachineTemplate" => Some(object),
            _ => None,
        });
    let mut existing = generated.unwrap();
    existing["metadata"]["uid"] = "t-uid".into();
    existing["spec"]["template"]["spec"]["more"] = true.into();
    seen(|seen, class| {
        template(seen, class);
        let current = seen.current.as_mut().unwrap();
        current.control_plane_machines = Some(Arc::new(existing));
    })
}

fn answer(seen: &mut Observed, verdict: Verdict) {
    let [trial] = asked(seen).try_into().unwrap();
    assert_eq!(trial.uid, "t-uid");
    let Observed::Managed(managed) = seen else {
        panic!("{seen:?}")
    };
    managed.answered(trial.place, verdict);
}

fn templates(plan: &Plan) -> Vec<&str> {
    let about_templates = plan
        .actions
        .iter()
        .filter(|step| step.note.contains("MachineTemplate "));
    about_templates
        .map(|step| step.note.split(' ').next().unwrap())
        .collect()
}

#[test]
fn a_template_is_replaced_if_and_only_if_the_trial_shows_another_spec() {
    let mut same = with_one_more_field();
    answer(&mut same, Verdict::Same);
    assert_eq!(templates(&plan(&same)), ["keep"]);
    check(&same, "ReconcileSucceeded", "");

    let mut changes = with_one_more_field();
    answer(&mut changes, Verdict::Changes("spec.template.spec.more".to_owned()));
    assert_eq!(templates(&plan(&changes)), ["create", "delete"]);
}

#[test]
fn a_control_plane_waits_for_a_template_that_is_gone_or_whose_dry_run_fails() {
    for (verdict, why) in [
        (
            Verdict::Gone,
            "DevMachineTemplate bar/foo-tthf9: does not exist any more, and SomeControlPlane bar/foo-c9646 is left as it is until it is made again",
        ),
        (
            Verdict::Failed("no answer".to_owned()),
            "DevMachineTemplate bar/foo-tthf9: the dry run of its change failed, and SomeControlPlane bar/foo-c9646 is left as it is: no answer",
        ),
    ] {
        let mut seen = with_one_more_field();
        answer(&mut seen, verdict);
        let steps = plan(&seen).actions;
        let has = |kind: &str| steps.iter().any(|step| step.note.contains(&format!("{kind} bar/")));
        assert!(has("DevCluster"), "{steps:?}");
        assert!(!has("DevMachineTemplate") && !has("SomeControlPlane"), "{steps:?}");
        is_tried_again(&seen, "DryRunFailed", why);
    }
}

#[test]
fn the_upgrade_plan_stays_in_the_status_while_a_pass_fails() {
    let upgrades = json!([{"version": "v1.36.0"}]);
    let seen = seen(|seen, class| {
        *class = Value::Null;
        seen.value["status"] = json!({"controlPlane": {"upgradePlan": upgrades}});
    });
    let now = Timestamp::UNIX_EPOCH;
    let status = status::status(&seen, &plan(&seen), &apply::Done::default(), now).unwrap();
    assert_eq!(status["controlPlane"]["upgradePlan"], upgrades);
    assert_eq!(status.get("workers"), None);
}

// TO-042, TO-314
#[test]
fn clusters_without_topology_are_left_alone_and_deleted_ones_say_so() {
    let now = Timestamp::UNIX_EPOCH;
    let nothing = plan(&Observed::Unmanaged);
    assert_eq!(
        status::status(&Observed::Unmanaged, &nothing, &apply::Done::default(), now),
        None
    );
    let Observed::Managed(managed) = seen(|_, _| {}) else {
        panic!("a managed Cluster")
    };
    check(&Observed::Deleting(managed.cluster), "Deleting", "Cluster is deleting");
}
