//! Cases of the plan of a MachineDeployment.

use std::collections::BTreeMap;

use serde_json::json;
use windlass_api::core::Machine;

use super::*;
use crate::shared::testing::{self, annotate, cluster, now, provider_template, set};

fn seen(deployment: MachineDeployment, sets: Vec<(MachineSet, Vec<Machine>)>) -> Observed {
    let machines: BTreeMap<_, _> = sets
        .iter()
        .map(|(set, machines)| {
            (
                set.metadata.uid.clone().unwrap(),
                machines.iter().cloned().map(Arc::new).collect(),
            )
        })
        .collect();
    Observed {
        deployment: Arc::new(deployment),
        cluster: Seen::Found(cluster()),
        sets: sets.into_iter().map(|(set, _)| Arc::new(set)).collect(),
        orphans: vec![],
        machines,
        bootstrap_template: Some(Seen::Found(provider_template("b", "KubeadmConfigTemplate", "boot"))),
        infrastructure_template: Seen::Found(provider_template("i", "DevMachineTemplate", "infra")),
        in_place: None,
        suffix: "aaaaa".to_owned(),
    }
}

/// The plan when no extension updates Machines in place.
pub(in crate::machine_deployment) fn plan(seen: &Observed, now: &Moment) -> Plan {
    match super::plan(seen, now) {
        Decision::Plan(plan) => plan,
        Decision::Ask(question) => {
            let mut seen = seen.clone();
            let answer = |set: &Arc<MachineSet>| {
                let answer = InPlace::Impossible("no extension updates Machines in place".to_owned());
                (set.metadata.name().to_owned(), answer)
            };
            seen.in_place = Some(question.old.iter().map(answer).collect());
            match super::plan(&seen, now) {
                Decision::Plan(plan) => plan,
                Decision::Ask(again) => panic!("{again:?}"),
            }
        }
    }
}

fn told(plan: &Plan) -> Vec<String> {
    let tell = |action: &Action| match action {
        Action::ApplySelf(patch) => {
            let revision = &patch["metadata"]["annotations"]["machinedeployment.clusters.x-k8s.io/revision"];
            format!("revision {}", revision.as_str().unwrap_or("-"))
        }
        Action::ApplySet { set, from } => {
            let from = from.map_or("new".to_owned(), |from| from.to_string());
            format!("{} {from}->{}", set.metadata.name(), set.spec.replicas.unwrap())
        }
        Action::DeleteSet(set) => format!("delete {}", set.metadata.name()),
        other => format!("{other:?}"),
    };
    plan.actions.iter().map(tell).collect()
}

fn check(seen: &Observed, want: &[&str]) -> Plan {
    let plan = plan(seen, &Moment::at(now()));
    assert_eq!(told(&plan), want);
    plan
}

fn machines(set: &MachineSet, names: &[&str]) -> Vec<Machine> {
    names.iter().map(|name| testing::machine(set, name)).collect()
}

fn revised(mut set: MachineSet, revision: &str) -> MachineSet {
    annotate(&mut set.metadata, annotations::REVISION, revision);
    set
}

#[test]
fn the_first_set_carries_everything_that_others_read() {
    let mut deployment = testing::deployment(3, "v1.35.0");
    annotate(&mut deployment.metadata, "note", "x");
    annotate(&mut deployment.metadata, LAST_APPLIED, "{}");
    deployment
        .metadata
        .labels
        .as_mut()
        .unwrap()
        .insert("topology.cluster.x-k8s.io/owned".to_owned(), String::new());
    let plan = check(&seen(deployment, vec![]), &["revision 1", "md-aaaaa new->3"]);
    let Action::ApplySet { set, .. } = &plan.actions[1] else {
        panic!("{plan:?}")
    };
    let set = serde_json::to_value(set).unwrap();
    let hash = set["metadata"]["labels"]["machine-template-hash"].as_str().unwrap();
    assert!(hash.ends_with("-aaaaa"), "{hash}");
    assert_eq!(
        set["metadata"],
        json!({
            "name": "md-aaaaa", "namespace": "ns",
            "labels": { "cluster.x-k8s.io/cluster-name": "c", "cluster.x-k8s.io/deployment-name": "md",
                "machine-template-hash": hash, "role": "worker" },
            "annotations": { "cluster.x-k8s.io/disable-machine-create": "false",
                "machinedeployment.clusters.x-k8s.io/desired-replicas": "3",
                "machinedeployment.clusters.x-k8s.io/max-replicas": "4",
                "machinedeployment.clusters.x-k8s.io/revision": "1", "note": "x" },
            "finalizers": ["cluster.x-k8s.io/machineset", "machineset.topology.cluster.x-k8s.io"],
            "ownerReferences": [{ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment",
                "name": "md", "uid": "uid-md", "controller": true, "blockOwnerDeletion": true }],
        })
    );
    let selected = json!({ "cluster.x-k8s.io/cluster-name": "c", "machine-template-hash": hash, "role": "worker" });
    assert_eq!(set["spec"]["selector"]["matchLabels"], selected);
    assert_eq!(set["spec"]["template"]["metadata"]["labels"], selected);
}

#[test]
fn a_deployment_without_labels_gets_the_label_of_its_cluster() {
    let mut deployment = testing::deployment(3, "v1.35.0");
    deployment.metadata.labels = None;
    let plan = check(&seen(deployment, vec![]), &["revision 1", "md-aaaaa new->3"]);
    let Action::ApplySelf(patch) = &plan.actions[0] else {
        panic!("{plan:?}")
    };
    assert_eq!(
        patch["metadata"]["labels"],
        json!({ "cluster.x-k8s.io/cluster-name": "c" })
    );
    assert_eq!(patch["metadata"]["ownerReferences"][0]["kind"], "Cluster");
}

#[test]
fn the_label_that_a_topology_applies_stays_the_topologys_alone() {
    let mut deployment = testing::deployment(3, "v1.35.0");
    let owned = ("topology.cluster.x-k8s.io/owned".to_owned(), String::new());
    deployment.metadata.labels.get_or_insert_default().extend([owned]);
    let plan = plan(&seen(deployment, vec![]), &Moment::at(now()));
    let Action::ApplySelf(patch) = &plan.actions[0] else {
        panic!("{plan:?}")
    };
    assert_eq!(patch["metadata"].get("labels"), None);
}

#[test]
fn a_new_version_rolls_out_one_at_a_time() {
    let old = set("old", 2, "v1.35.0");
    let both = machines(&old, &["a", "b"]);
    let deployment = testing::deployment(2, "v1.36.0");
    check(
        &seen(deployment.clone(), vec![(old.clone(), both.clone())]),
        &["revision 2", "md-aaaaa new->1", "old 2->2"],
    );
    let new = revised(set("new", 1, "v1.36.0"), "2");
    let one = machines(&new, &["c"]);
    check(
        &seen(deployment, vec![(new, one), (old, both)]),
        &["revision 2", "new 1->1", "old 2->1"],
    );
}

#[test]
fn an_old_set_goes_when_the_rollout_is_complete() {
    let old = set("old", 0, "v1.35.0");
    let new = revised(set("new", 2, "v1.36.0"), "2");
    let both = machines(&new, &["a", "b"]);
    let deployment = testing::deployment(2, "v1.36.0");
    check(
        &seen(
            deployment.clone(),
            vec![(new.clone(), both.clone()), (old.clone(), vec![])],
        ),
        &["revision 2", "new 2->2", "delete old"],
    );
    check(
        &seen(deployment, vec![(new, both[..1].to_vec()), (old, vec![])]),
        &["revision 2", "new 2->2", "old 0->0"],
    );
}

#[test]
fn going_back_uses_the_old_set_again() {
    let old = set("old", 1, "v1.35.0");
    let new = revised(set("new", 1, "v1.36.0"), "2");
    let sets = vec![
        (new.clone(), machines(&new, &["a"])),
        (old.clone(), machines(&old, &["b"])),
    ];
    check(
        &seen(testing::deployment(2, "v1.35.0"), sets),
        &["revision 3", "old 1->2", "new 1->1"],
    );
}

#[test]
fn a_set_remembers_the_revisions_that_it_had() {
    let history = "machinedeployment.clusters.x-k8s.io/revision-history";
    let new = revised(set("new", 1, "v1.36.0"), "2");
    let next = |old: &MachineSet| {
        let sets = vec![
            (new.clone(), machines(&new, &["a"])),
            (old.clone(), machines(old, &["b"])),
        ];
        let plan = plan(&seen(testing::deployment(2, "v1.35.0"), sets), &Moment::at(now()));
        let mut sets = plan.actions.iter().filter_map(|action| match action {
            Action::ApplySet { set, .. } if set.metadata.name() == "old" => Some(set.metadata.annotations.clone()?),
            _ => None,
        });
        let written = sets.next().unwrap();
        (written[annotations::REVISION].clone(), written.get(history).cloned())
    };
    let mut old = set("old", 1, "v1.35.0");
    assert_eq!(next(&old), ("3".to_owned(), Some("1".to_owned())));
    // The next pass finds what was written, and keeps it.
    annotate(&mut old.metadata, history, "1");
    assert_eq!(next(&revised(old.clone(), "3")), ("3".to_owned(), Some("1".to_owned())));
    annotate(&mut old.metadata, history, "1,4");
    assert_eq!(next(&revised(old, "2")), ("3".to_owned(), Some("1,4,2".to_owned())));
}

#[test]
fn changes_in_place_do_not_roll_out() {
    let current = set("current", 2, "v1.35.0");
    let both = machines(&current, &["a", "b"]);
    let mut deployment = testing::deployment(2, "v1.35.0");
    deployment.spec.template.spec.min_ready_seconds = Some(7);
    deployment
        .spec
        .template
        .metadata
        .get_or_insert_default()
        .annotations
        .insert("note".to_owned(), "x".to_owned());
    let plan = check(
        &seen(deployment, vec![(current, both)]),
        &["revision 1", "current 2->2"],
    );
    let Action::ApplySet { set, .. } = &plan.actions[1] else {
        panic!("{plan:?}")
    };
    assert_eq!(set.spec.template.spec.min_ready_seconds, Some(7));
    assert_eq!(set.spec.template.metadata.as_ref().unwrap().annotations["note"], "x");
}

#[test]
fn rollout_after_makes_a_new_set_when_its_time_has_come() {
    let current = set("current", 2, "v1.35.0");
    let both = machines(&current, &["a", "b"]);
    let mut deployment = testing::deployment(2, "v1.35.0");
    deployment.spec.rollout = serde_json::from_value(json!({ "after": "2026-01-01T12:10:00Z" })).unwrap();
    let sets = vec![(current, both)];
    let seen = seen(deployment, sets);
    let moment = Moment::at(now());
    assert_eq!(told(&plan(&seen, &moment)), ["revision 1", "current 2->2"]);
    let due: Timestamp = "2026-01-01T12:10:00Z".parse().unwrap();
    assert_eq!(moment.next_deadline(), Some(due));
    let moment = Moment::at(due);
    assert_eq!(
        told(&plan(&seen, &moment)),
        ["revision 2", "md-aaaaa new->1", "current 2->2"]
    );
    assert_eq!(moment.next_deadline(), None);
}

/// What the marks of a set say: it gives its Machines to, it takes Machines from, it counts.
fn marks(set: &MachineSet) -> [Option<&str>; 3] {
    [
        annotations::MOVE_MACHINES_TO_MACHINE_SET,
        annotations::RECEIVE_MACHINES_FROM_MACHINE_SETS,
        annotations::ACKNOWLEDGED_MOVE,
    ]
    .map(|key| set.metadata.annotation(key))
}

fn answered(seen: &Observed, answers: &[(&str, InPlace)]) -> Plan {
    let mut seen = seen.clone();
    let answers = answers
        .iter()
        .map(|(name, answer)| ((*name).to_owned(), answer.clone()));
    seen.in_place = Some(answers.collect());
    match super::plan(&seen, &Moment::at(now())) {
        Decision::Plan(plan) => plan,
        Decision::Ask(question) => panic!("{question:?}"),
    }
}

/// A rollout of three Machines, of which one is new.
fn half_way() -> Observed {
    let (old, new) = (set("old", 3, "v1.35.0"), revised(set("new", 1, "v1.36.0"), "2"));
    let (of_old, of_new) = (machines(&old, &["a", "b", "c"]), machines(&new, &["n"]));
    seen(testing::deployment(3, "v1.36.0"), vec![(old, of_old), (new, of_new)])
}

#[test]
fn an_extension_is_asked_about_old_sets_with_machines() {
    let mut seen = half_way();
    let Decision::Ask(question) = super::plan(&seen, &Moment::at(now())) else {
        panic!("no question")
    };
    assert_eq!(question.new.metadata.name(), "new");
    assert_eq!(question.old.len(), 1);
    assert_eq!(question.old[0].metadata.name(), "old");
    // Not about sets whose Machines are replaced anyway.
    let asks = |seen: &Observed| matches!(super::plan(seen, &Moment::at(now())), Decision::Ask(_));
    let change = |seen: &mut Observed, json| {
        let mut deployment = (*seen.deployment).clone();
        deployment.spec.rollout = serde_json::from_value(json).unwrap();
        seen.deployment = Arc::new(deployment);
    };
    change(&mut seen, json!({ "after": "2026-01-01T11:30:00Z" }));
    assert!(!asks(&seen), "rollout.after");
    change(&mut seen, json!({ "strategy": { "type": "OnDelete" } }));
    assert!(!asks(&seen), "OnDelete");
    let mut other = half_way();
    let mut old = (*other.sets[0]).clone();
    old.spec.template.spec.infrastructure_ref.kind = "OtherMachineTemplate".to_owned();
    other.sets[0] = Arc::new(old);
    assert!(!asks(&other), "another kind of infrastructure");
    let mut empty = half_way();
    empty.machines.remove("uid-old");
    assert!(!asks(&empty), "no Machines");
}

#[test]
fn machines_move_to_the_new_set_when_an_extension_can_update_them() {
    let plan = answered(&half_way(), &[("old", InPlace::Possible)]);
    let sets = applied(&plan);
    assert_eq!(sets["old"].spec.replicas, Some(2));
    assert_eq!(marks(&sets["old"]), [Some("new"), None, None]);
    assert_eq!(marks(&sets["new"]), [None, Some("old"), None]);
    assert_eq!(
        sets["new"].spec.replicas,
        Some(1),
        "nothing new is made while others are updated"
    );

    let plan = answered(&half_way(), &[("old", InPlace::Impossible("no".to_owned()))]);
    let sets = applied(&plan);
    assert_eq!(marks(&sets["old"]), [None; 3]);
    assert_eq!(marks(&sets["new"]), [None; 3]);
}

#[test]
fn a_machine_that_has_moved_is_counted_once() {
    let mut seen = half_way();
    let of_old = seen.machines.get_mut("uid-old").unwrap();
    let mut moved = (*of_old.remove(0)).clone();
    annotate(&mut moved.metadata, annotations::UPDATE_IN_PROGRESS, "");
    annotate(&mut moved.metadata, annotations::PENDING_ACKNOWLEDGE_MOVE, "");
    testing::condition(&mut moved, "Available", "False", "NotAvailable", "");
    seen.machines.get_mut("uid-new").unwrap().push(Arc::new(moved));
    seen.sets[0] = Arc::new(set("old", 2, "v1.35.0"));
    let plan = answered(&seen, &[("old", InPlace::Possible)]);
    let sets = applied(&plan);
    assert_eq!(marks(&sets["new"]), [None, Some("old"), Some("a")]);
    let replicas = |name: &str| sets[name].spec.replicas;
    assert_eq!((replicas("new"), replicas("old")), (Some(2), Some(2)));

    // The next pass finds what was written.
    seen.sets[1] = Arc::new(sets["new"].clone());
    let plan = answered(&seen, &[("old", InPlace::Possible)]);
    assert_eq!(applied(&plan)["new"].spec.replicas, Some(2));
    // Until the new set is complete; then nothing moves any more.
    seen.deployment = Arc::new(testing::deployment(2, "v1.36.0"));
    let plan = self::plan(&seen, &Moment::at(now()));
    let sets = applied(&plan);
    assert_eq!(marks(&sets["new"]), [None, None, Some("a")]);
    assert_eq!(marks(&sets["old"]), [None; 3]);
}

#[test]
fn nothing_is_replaced_while_an_extension_cannot_be_asked() {
    let mut seen = half_way();
    let mut old = set("old", 2, "v1.35.0");
    annotate(&mut old.metadata, annotations::MOVE_MACHINES_TO_MACHINE_SET, "new");
    seen.sets[0] = Arc::new(old);
    let plan = answered(&seen, &[("old", InPlace::Unknown("it is down".to_owned()))]);
    let sets = applied(&plan);
    assert_eq!(sets["old"].spec.replicas, Some(2));
    assert_eq!(marks(&sets["old"]), [Some("new"), None, None], "a move goes on");
    let why = "it cannot be told whether Machines of MachineSet old can be updated in place: it is down";
    assert_eq!(plan.blocked, Some(Blocked::failed("CannotPlan", why)));
    assert_eq!(plan.undecided.as_deref(), Some(why));
}

#[test]
fn a_paused_rollout_only_scales() {
    let mut deployment = testing::deployment(4, "v1.36.0");
    deployment.spec.paused = Some(true);
    let old = set("old", 2, "v1.35.0");
    let both = machines(&old, &["a", "b"]);
    check(&seen(deployment, vec![(old, both)]), &["revision -", "old 2->4"]);
}

#[test]
fn under_on_delete_old_sets_make_no_machines() {
    let mut deployment = testing::deployment(2, "v1.36.0");
    deployment.spec.rollout = serde_json::from_value(json!({ "strategy": { "type": "OnDelete" } })).unwrap();
    let old = set("old", 2, "v1.35.0");
    let both = machines(&old, &["a", "b"]);
    let plan = check(
        &seen(deployment, vec![(old, both)]),
        &["revision 2", "md-aaaaa new->0", "old 2->2"],
    );
    let frozen = |action: &Action| match action {
        Action::ApplySet { set, .. } => {
            set.metadata.annotations.as_ref().unwrap()["cluster.x-k8s.io/disable-machine-create"].clone()
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(
        (frozen(&plan.actions[1]).as_str(), frozen(&plan.actions[2]).as_str()),
        ("false", "true")
    );
}

/// The sets that are applied, by name.
fn applied(plan: &Plan) -> BTreeMap<String, MachineSet> {
    let sets = plan.actions.iter().filter_map(|action| match action {
        Action::ApplySet { set, .. } => Some((set.metadata.name().to_owned(), (**set).clone())),
        _ => None,
    });
    sets.collect()
}

#[test]
fn old_sets_take_over_what_changes_in_place() {
    let mut deployment = testing::deployment(2, "v1.36.0");
    deployment.spec.rollout = serde_json::from_value(json!({ "strategy": { "type": "OnDelete" } })).unwrap();
    annotate(&mut deployment.metadata, "example.io/of-sets", "new");
    let template = &mut deployment.spec.template;
    let metadata = template.metadata.get_or_insert_default();
    metadata.labels.insert("example.io/team".into(), "a".into());
    metadata.annotations.insert("example.io/note".into(), "b".into());
    template.spec.min_ready_seconds = Some(7);
    template.spec.taints =
        serde_json::from_value(json!([{ "key": "k", "effect": "NoSchedule", "propagation": "Always" }])).unwrap();
    let mut old = set("old", 2, "v1.35.0");
    annotate(&mut old.metadata, "example.io/removed", "old");
    let selected = old.spec.selector.match_labels.clone().unwrap();
    let both = machines(&old, &["a", "b"]);
    let plan = plan(&seen(deployment.clone(), vec![(old, both)]), &Moment::at(now()));
    let applied = &applied(&plan)["old"];
    let template = &applied.spec.template;
    let metadata = template.metadata.as_ref().unwrap();
    assert_eq!(metadata.labels["example.io/team"], "a");
    assert!(
        selected
            .iter()
            .all(|(key, value)| metadata.labels.get(key) == Some(value)),
        "they are still selected"
    );
    assert_eq!(metadata.annotations["example.io/note"], "b");
    assert_eq!(template.spec.min_ready_seconds, Some(7));
    assert_eq!(template.spec.taints, deployment.spec.template.spec.taints);
    assert_eq!(template.spec.version.as_deref(), Some("v1.35.0"), "the rest is its own");
    let notes = applied.metadata.annotations.as_ref().unwrap();
    assert_eq!(notes["example.io/of-sets"], "new");
    assert_eq!(notes[annotations::REVISION], "1");
    assert!(!notes.contains_key("example.io/removed"));
}

#[test]
fn a_pause_makes_no_old_set_of_the_new_one() {
    let mut deployment = testing::deployment(5, "v1.35.0");
    deployment.spec.rollout = serde_json::from_value(json!({ "strategy": { "type": "OnDelete" } })).unwrap();
    deployment.spec.paused = Some(true);
    let current = set("current", 3, "v1.35.0");
    let all = machines(&current, &["a", "b", "c"]);
    let plan = plan(&seen(deployment, vec![(current, all)]), &Moment::at(now()));
    let current = &applied(&plan)["current"];
    assert_eq!(current.spec.replicas, Some(5));
    let notes = current.metadata.annotations.as_ref().unwrap();
    assert_eq!(notes["cluster.x-k8s.io/disable-machine-create"], "false");
}

#[test]
fn no_set_is_made_without_its_templates() {
    let mut seen = seen(testing::deployment(2, "v1.35.0"), vec![]);
    seen.infrastructure_template = Seen::NotFound;
    let plan = check(&seen, &["revision 1"]);
    let why = "a new MachineSet cannot be made because DevMachineTemplate does not exist";
    assert_eq!(plan.blocked, Some(Blocked::failed("CannotPlan", why)));
}

#[test]
fn sets_without_a_controller_are_adopted_before_anything_is_made() {
    let mut orphan = set("orphan", 2, "v1.35.0");
    orphan.metadata.owner_references = None;
    let mut seen = seen(testing::deployment(2, "v1.35.0"), vec![]);
    seen.orphans = vec![Arc::new(orphan)];
    let plan = plan(&seen, &Moment::at(now()));
    assert!(matches!(plan.actions.as_slice(), [Action::AdoptSet(_)]), "{plan:?}");
}

#[test]
fn a_deployment_goes_after_its_sets() {
    let mut deployment = testing::deployment(2, "v1.35.0");
    deployment.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T11:59:00Z")).unwrap();
    check(
        &seen(deployment.clone(), vec![(set("s", 2, "v1.35.0"), vec![])]),
        &["delete s"],
    );
    check(&seen(deployment, vec![]), &["RemoveFinalizer"]);
}

use crate::shared::keys::LAST_APPLIED;
