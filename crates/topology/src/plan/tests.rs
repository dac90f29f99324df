//! Steps, their order and their reasons.
#![allow(
    clippy::needless_pass_by_value,
    clippy::too_many_lines,
    reason = "cases read best as literals, one after another"
)]

mod hooks;
mod pools;

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use windlass_conditions::Status;

use crate::current::Current;
use crate::plan::{Action, Plan, Verb};
use crate::status::report;
use crate::testing::World;
use crate::trial::Verdict;

fn worker(world: &mut World) -> &mut Value {
    &mut world.cluster["spec"]["topology"]["workers"]["machineDeployments"][0]
}

fn kinds(done: &[String]) -> Vec<String> {
    done.iter()
        .map(|event| event.split(' ').take(2).collect::<Vec<_>>().join(" "))
        .collect()
}

// TO-244, TO-250, TO-254, TO-255, TO-277
#[test]
fn creation_goes_in_order_and_is_repeatable() {
    let mut world = World::in_memory();
    let plan = world.plan().unwrap();
    let events: Vec<String> = plan.changes().map(|s| s.event.clone()).collect();
    assert_eq!(
        kinds(&events),
        [
            "Updated Cluster",
            "Created DevCluster",
            "Created MachineHealthCheck",
            "Created DevMachineTemplate",
            "Created KubeadmControlPlane",
            "Created DevMachineTemplate",
            "Created KubeadmConfigTemplate",
            "Created MachineDeployment",
            "Created MachineHealthCheck",
        ]
    );
    // A pass that died after any number of steps is continued, with the same names.
    for taken in 0..plan.steps.len() {
        let mut half = World::in_memory();
        let mut first = plan.clone();
        first.steps.truncate(taken);
        half.take(&first);
        half.settle();
        world.settle();
        assert_eq!(
            half.objects.keys().collect::<Vec<_>>(),
            world.objects.keys().collect::<Vec<_>>()
        );
    }
}

// TO-266: nothing is planned when nothing differs.
#[test]
fn a_settled_topology_needs_nothing() {
    let mut world = World::in_memory();
    world.settle();
    let plan = world.plan().unwrap();
    assert_eq!(plan.changes().count(), 0);
    assert!(
        plan.steps
            .iter()
            .all(|s| matches!(&s.action, Action::Apply(o) if o["metadata"].get("uid").is_some()))
    );
    assert_eq!(report(&plan.progress).status, Status::True);
}

// TO-298, TO-368, TO-369: metadata goes in place, as recorded.
#[test]
fn a_label_changes_the_machine_deployment_only() {
    let mut world = World::in_memory();
    world.settle();
    worker(&mut world)["metadata"] = json!({"labels": {"team": "a"}, "annotations": {"note": "x"}});
    let done = world.settle();
    assert_eq!(kinds(&done), ["Updated MachineDeployment"]);
    let deployment = world.only("MachineDeployment");
    assert_eq!(
        deployment["spec"]["template"]["metadata"]["annotations"],
        json!({"note": "x"})
    );
}

// TO-372, TO-374
#[test]
fn scaling_changes_the_machine_deployment_only() {
    let mut world = World::in_memory();
    world.settle();
    worker(&mut world)["replicas"] = 5.into();
    assert_eq!(kinds(&world.settle()), ["Updated MachineDeployment"]);
}

// TO-234, TO-263, TO-297, TO-301, TO-320: the class points at another template, as recorded.
#[test]
fn changed_content_rotates_the_template() {
    let mut world = World::in_memory();
    world.settle();
    let before = world.only("MachineDeployment")["spec"]["template"]["spec"]["infrastructureRef"]["name"].clone();
    world.class["spec"]["workers"]["machineDeployments"][0]["infrastructure"]["templateRef"]["name"] =
        "in-memory-worker-v2".into();
    let done = world.settle();
    assert_eq!(
        kinds(&done),
        ["Created DevMachineTemplate", "Updated MachineDeployment"]
    );
    let old = before.as_str().unwrap();
    assert!(
        done[0].ends_with(&format!(" as a replacement for {old:?} (template rotation)")),
        "{}",
        done[0]
    );
    let after = world.only("MachineDeployment")["spec"]["template"]["spec"]["infrastructureRef"]["name"].clone();
    assert_ne!(before, after);
    assert!(world.object("DevMachineTemplate", old).is_some());
    let new = world.object("DevMachineTemplate", after.as_str().unwrap()).unwrap();
    assert_eq!(
        new["metadata"]["annotations"]["cluster.x-k8s.io/cloned-from-name"],
        "in-memory-worker-v2"
    );
}

// TO-261, TO-299
#[test]
fn the_control_planes_old_template_goes_at_once() {
    let mut world = World::in_memory();
    world.settle();
    world.templates[2]["spec"]["template"]["spec"]["backend"] = json!({"inMemory": {"vm": {"size": 2}}});
    let done = world.settle();
    assert_eq!(
        kinds(&done),
        [
            "Created DevMachineTemplate",
            "Updated KubeadmControlPlane",
            "Deleted DevMachineTemplate",
        ]
    );
    assert_eq!(world.of_kind("DevMachineTemplate").len(), 2);
}

#[test]
fn a_control_plane_that_is_going_keeps_its_template() {
    let mut world = World::in_memory();
    world.settle();
    world.templates[2]["spec"]["template"]["spec"]["backend"] = json!({"inMemory": {"vm": {"size": 2}}});
    for object in world
        .objects
        .values_mut()
        .filter(|object| object["kind"] == "KubeadmControlPlane")
    {
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    }
    assert_eq!(world.settle(), Vec::<String>::new());
    let notes = world.plan().unwrap().notes;
    assert!(notes.iter().any(|note| note.contains("is being deleted")), "{notes:?}");
}

/// The verdict about a template with other content than the class's.
fn with_verdict(world: &World, place: &str, verdict: Verdict) -> Plan {
    let mut current = world.current();
    for trial in world.plan_with(&current).unwrap().trials {
        let one = if trial.place == place { &verdict } else { &Verdict::Same };
        current.verdicts.insert(trial.place, one.clone());
    }
    world.plan_with(&current).unwrap()
}

fn changes(plan: &Plan) -> Vec<String> {
    let events: Vec<String> = plan.changes().map(|step| step.event.clone()).collect();
    kinds(&events)
}

fn undecided() -> [Verdict; 2] {
    [Verdict::Gone, Verdict::Failed("no".into())]
}

#[test]
fn a_worker_set_is_left_alone_with_both_templates_if_a_dry_run_fails() {
    for (verdict, place) in undecided().into_iter().zip(["machines/md-0", "bootstrap/md-0"]) {
        let mut world = World::in_memory();
        world.settle();
        world.cluster["spec"]["topology"]["controlPlane"]["replicas"] = 5.into();
        worker(&mut world)["replicas"] = 7.into();
        worker(&mut world)["healthCheck"] = json!({"checks": {"nodeStartupTimeoutSeconds": 30}});
        let entries = world.cluster["spec"]["topology"]["workers"]["machineDeployments"]
            .as_array_mut()
            .unwrap();
        entries.push(json!({"class": "default-worker", "name": "md-1"}));
        let templates = world.objects.values_mut().filter(|object| {
            let labels = &object["metadata"]["labels"];
            labels["topology.cluster.x-k8s.io/deployment-name"] == "md-0"
        });
        for template in templates.filter(|object| object["kind"].as_str().unwrap().ends_with("Template")) {
            template["spec"]["template"]["spec"]["defaulted"] = true.into();
        }
        let plan = with_verdict(&world, place, verdict);
        assert_eq!(
            changes(&plan),
            [
                "Updated KubeadmControlPlane",
                "Updated MachineHealthCheck",
                "Created DevMachineTemplate",
                "Created KubeadmConfigTemplate",
                "Created MachineDeployment",
                "Created MachineHealthCheck",
            ]
        );
        let of_set = |name: &str| {
            let steps = plan.steps.iter();
            steps.filter(|step| step.worker_set.as_deref() == Some(name)).count()
        };
        assert_eq!((of_set("md-0"), of_set("md-1")), (1, 4));
        let error = plan.failed_trials[0].to_string();
        assert!(error.contains("MachineDeployment default/demo000-md-0-"), "{error}");
    }
}

#[test]
fn nothing_comes_after_a_control_plane_if_a_dry_run_fails() {
    for verdict in undecided() {
        let mut world = World::in_memory();
        world.settle();
        world.control_plane_ready();
        world.templates[0]["spec"]["template"]["spec"]["changed"] = true.into();
        world.templates[2]["spec"]["template"]["spec"]["changed"] = true.into();
        world.cluster["spec"]["topology"]["version"] = "v1.36.0".into();
        worker(&mut world)["replicas"] = 7.into();
        let plan = with_verdict(&world, "control-plane-machines", verdict);
        assert_eq!(changes(&plan), ["Updated DevCluster"]);
        assert_eq!(plan.failed_trials.len(), 1);
        assert_eq!(plan.progress.control_plane_plan, ["v1.36.0"]);
    }
}

#[test]
fn a_template_that_is_being_deleted_is_replaced_before_its_worker_set_changes() {
    let mut world = World::in_memory();
    world.settle();
    let name = machines(&world);
    machine_template(&mut world)["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    worker(&mut world)["replicas"] = 7.into();
    assert_eq!(changes(&world.plan().unwrap()), ["Updated MachineDeployment"]);
    world.templates[3]["spec"]["template"]["spec"]["changed"] = true.into();
    assert_eq!(
        kinds(&world.settle()),
        ["Created DevMachineTemplate", "Updated MachineDeployment"]
    );
    assert_ne!(machines(&world), name);
}

// TO-234: a copy of the class under another name changes nothing but where copies say they are from.
#[test]
fn a_renamed_template_with_equal_content_changes_in_place() {
    let mut world = World::in_memory();
    world.settle();
    world.templates[3]["metadata"]["name"] = "renamed".into();
    world.class["spec"]["workers"]["machineDeployments"][0]["infrastructure"]["templateRef"]["name"] = "renamed".into();
    assert_eq!(kinds(&world.settle()), ["Updated DevMachineTemplate"]);
}

// TO-227, TO-262, TO-315, TO-353, TO-373
#[test]
fn entries_come_and_go() {
    let mut world = World::in_memory();
    world.settle();
    let entries = world.cluster["spec"]["topology"]["workers"]["machineDeployments"]
        .as_array_mut()
        .unwrap();
    entries.push(json!({"class": "default-worker", "name": "md-1", "replicas": 1}));
    assert_eq!(
        kinds(&world.settle()),
        [
            "Created DevMachineTemplate",
            "Created KubeadmConfigTemplate",
            "Created MachineDeployment",
            "Created MachineHealthCheck",
        ]
    );
    world.cluster["spec"]["topology"]["workers"] = json!({});
    let done = world.settle();
    assert_eq!(
        kinds(&done),
        [
            "Deleted MachineHealthCheck",
            "Deleted MachineDeployment",
            "Deleted MachineHealthCheck",
            "Deleted MachineDeployment",
        ]
    );
}

// TO-347, TO-348
#[test]
fn health_checks_can_be_replaced_and_switched_off() {
    let mut world = World::in_memory();
    world.settle();
    worker(&mut world)["healthCheck"] = json!({"checks": {"nodeStartupTimeoutSeconds": 30}});
    assert_eq!(kinds(&world.settle()), ["Updated MachineHealthCheck"]);
    let name = world.only("MachineDeployment")["metadata"]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    let check = world.object("MachineHealthCheck", &name).unwrap();
    assert_eq!(check["spec"]["checks"], json!({"nodeStartupTimeoutSeconds": 30}));
    worker(&mut world)["healthCheck"] = json!({"enabled": false});
    assert_eq!(kinds(&world.settle()), ["Deleted MachineHealthCheck"]);
}

// TO-303, TO-304, TO-306, TO-307, TO-309, TO-317, TO-320, TO-357
#[test]
fn an_upgrade_runs_control_plane_first_and_holds_other_changes_back() {
    let mut world = World::in_memory();
    world.settle();
    world.control_plane_ready();
    world.cluster["spec"]["topology"]["version"] = "v1.36.0".into();
    worker(&mut world)["replicas"] = 7.into();
    let plan = world.plan().unwrap();
    let text = report(&plan.progress).message;
    assert!(text.starts_with("Cluster is upgrading to v1.36.0\n  * KubeadmControlPlane upgrading to version v1.36.0"));
    assert!(text.contains("pending upgrade to version v1.36.0"), "{text}");
    assert_eq!(plan.progress.control_plane_plan, ["v1.36.0"]);
    let done = world.settle();
    assert_eq!(kinds(&done), ["Updated KubeadmControlPlane", "Updated Cluster"]);
    assert!(
        done[0].ends_with(" with version change from v1.35.0 to v1.36.0"),
        "{}",
        done[1]
    );
    let step = "topology.internal.cluster.x-k8s.io/upgrade-step";
    assert_eq!(world.cluster["metadata"]["annotations"][step], "v1.36.0");
    assert_eq!(world.only("MachineDeployment")["spec"]["replicas"], 3);

    world.control_plane_ready();
    let name = world.only("MachineDeployment")["metadata"]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    world.machine_versions.insert(name.clone(), vec!["v1.35.0".into()]);
    // Machines are at their version: the worker set does not upgrade before its version is set.
    let done = world.settle();
    assert_eq!(kinds(&done), ["Updated MachineDeployment", "Updated Cluster"]);
    assert_eq!(world.only("MachineDeployment")["spec"]["replicas"], 7);
    assert_eq!(world.cluster["metadata"]["annotations"].get(step), None);
    let progress = world.plan().unwrap().progress;
    assert_eq!(
        report(&progress).message,
        format!("Cluster is upgrading to v1.36.0\n  * MachineDeployment {name} upgrading to version v1.36.0")
    );
    world.machine_versions.insert(name, vec!["v1.36.0".into()]);
    assert_eq!(report(&world.plan().unwrap().progress).status, Status::True);
}

// What a plan prints. There is no command that previews one yet.
#[test]
fn a_plan_reads_as_what_happens_and_why() {
    let mut world = World::in_memory();
    world.settle();
    assert_eq!(world.plan().unwrap().to_string(), "");
    worker(&mut world)["replicas"] = 5.into();
    let name = world.only("MachineDeployment")["metadata"]["name"].as_str().unwrap();
    assert_eq!(
        world.plan().unwrap().to_string(),
        format!("update MachineDeployment default/{name}: its spec differs from the topology's\n")
    );
    world.control_plane_ready();
    world.cluster["spec"]["topology"]["version"] = "v1.36.0".into();
    let text = world.plan().unwrap().to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].ends_with("with version change from v1.35.0 to v1.36.0"),
        "{text}"
    );
    assert!(
        lines[1].starts_with("update Cluster default/demo000: set metadata.annotations"),
        "{text}"
    );
    assert!(lines[2].starts_with("later: MachineDeployment default/"), "{text}");
}

// TO-258
#[test]
fn new_worker_sets_wait_for_a_control_plane_upgrade() {
    let mut world = World::in_memory();
    world.settle();
    world.control_plane_ready();
    world.cluster["spec"]["topology"]["version"] = "v1.36.0".into();
    let entries = world.cluster["spec"]["topology"]["workers"]["machineDeployments"]
        .as_array_mut()
        .unwrap();
    entries.push(json!({"class": "default-worker", "name": "md-1"}));
    let plan = world.plan().unwrap();
    assert_eq!(plan.progress.deployments.not_created, ["md-1"]);
    assert!(plan.changes().all(|s| s.verb != Verb::Create));
}

fn machines(world: &World) -> String {
    let reference = &world.only("MachineDeployment")["spec"]["template"]["spec"]["infrastructureRef"]["name"];
    reference.as_str().unwrap().to_owned()
}

fn machine_template(world: &mut World) -> &mut Value {
    let name = machines(world);
    world.objects.get_mut(&("DevMachineTemplate".to_owned(), name)).unwrap()
}

// What a provider defaults into a template is asked about once, and is no change.
#[test]
fn defaults_of_a_provider_do_not_rotate() {
    let mut world = World::in_memory();
    world.settle();
    assert!(
        world.plan_with(&world.current()).unwrap().trials.is_empty(),
        "equal templates need no trial"
    );
    machine_template(&mut world)["spec"]["template"]["spec"]["defaulted"] = true.into();
    let first = world.plan_with(&world.current()).unwrap();
    assert_eq!(first.trials.len(), 1);
    assert_eq!(first.trials[0].place, "machines/md-0");
    assert_eq!(world.plan().unwrap().changes().count(), 0);
}

// What an earlier trial has shown counts for this template, as it is, and this intent.
#[test]
fn a_known_trial_is_not_repeated() {
    let mut world = World::in_memory();
    world.settle();
    machine_template(&mut world)["spec"]["template"]["spec"]["defaulted"] = true.into();
    let mut current = world.current();
    let mut trials = world.plan_with(&current).unwrap().trials;
    let trial = trials.pop().unwrap();
    let same = BTreeMap::from([(trial.uid, trial.pair)]);
    let asked = |world: &World| {
        let current = Current {
            same: same.clone(),
            ..world.current()
        };
        world.plan_with(&current).unwrap().trials.len()
    };
    current.verdicts.insert(trial.place, Verdict::Same);
    let answered = world.plan_with(&current).unwrap();
    let known = Current {
        same: same.clone(),
        ..world.current()
    };
    let known = world.plan_with(&known).unwrap();
    assert_eq!(known.steps, answered.steps);
    assert_eq!(known.trials, []);

    let mut changed = world.clone();
    machine_template(&mut changed)["metadata"]["resourceVersion"] = "other".into();
    assert_eq!(asked(&changed), 1, "another template");
    let mut changed = world.clone();
    machine_template(&mut changed)["metadata"]["uid"] = "other".into();
    assert_eq!(asked(&changed), 1, "a template in its place");
    let mut changed = world.clone();
    changed.templates[3]["spec"]["template"]["spec"]["more"] = 1.into();
    assert_eq!(asked(&changed), 1, "another spec");
    let mut changed = world.clone();
    changed.templates[3]["metadata"]["labels"] = json!({"more": "1"});
    assert_eq!(asked(&changed), 1, "other labels");
}

#[test]
fn a_list_that_gets_shorter_rotates_the_template() {
    let mut world = World::in_memory();
    let list = |world: &mut World, list: Value| world.templates[3]["spec"]["template"]["spec"]["list"] = list;
    list(&mut world, json!(["a", "b"]));
    world.settle();
    let before = machines(&world);
    list(&mut world, json!(["a"]));
    assert_eq!(
        kinds(&world.settle()),
        ["Created DevMachineTemplate", "Updated MachineDeployment"]
    );
    assert_ne!(machines(&world), before);
    assert_eq!(
        machine_template(&mut world)["spec"]["template"]["spec"]["list"],
        json!(["a"])
    );
}

#[test]
fn values_that_a_webhook_drops_do_not_rotate() {
    let mut world = World::in_memory();
    world.webhook = |spec| {
        if let Some(spec) = spec.pointer_mut("/template/spec").and_then(Value::as_object_mut) {
            spec.retain(|_, value| value != "");
        }
    };
    world.templates[3]["spec"]["template"]["spec"]["dropped"] = "".into();
    world.settle();
    assert_eq!(
        machine_template(&mut world)["spec"]["template"]["spec"].get("dropped"),
        None
    );
    assert_eq!(world.plan().unwrap().changes().count(), 0);
}

#[test]
fn a_template_that_never_keeps_its_content_is_replaced_three_times_an_hour_at_most() {
    let mut world = World::in_memory();
    let patch = json!({"name": "own-name", "definitions": [{
        "selector": {"apiVersion": world.templates[3]["apiVersion"], "kind": "DevMachineTemplate",
            "matchResources": {"machineDeploymentClass": {"names": ["default-worker"]}}},
        "jsonPatches": [{"op": "add", "path": "/spec/template/spec/own",
            "valueFrom": {"variable": "builtin.machineDeployment.infrastructureRef.name"}}],
    }]});
    world.settle();
    world.class["spec"]["patches"] = json!([patch]);
    let done = kinds(&world.settle());
    assert_eq!(
        done.iter().filter(|what| *what == "Created DevMachineTemplate").count(),
        3
    );
    let plan = world.plan().unwrap();
    let error = plan.left[0].to_string();
    assert!(error.contains("spec.template.spec.own"), "{error}");
    let replicas = worker(&mut world)["replicas"].clone();

    // The Cluster, an extension that patches the template, and the end of the hour.
    let is_left = |world: &World| !world.plan().unwrap().left.is_empty();
    worker(&mut world)["replicas"] = 5.into();
    assert!(!is_left(&world));
    worker(&mut world)["replicas"] = replicas;
    world.extensions = vec!["mended".to_owned()];
    assert!(!is_left(&world));
    world.extensions.clear();
    assert!(is_left(&world));
    world.now += jiff::SignedDuration::from_mins(60);
    let done = kinds(&world.settle());
    assert_eq!(
        done.iter().filter(|what| *what == "Created DevMachineTemplate").count(),
        3
    );
    assert!(is_left(&world));
}

// An infrastructure template of another kind is refused, one of bootstrap data is not.
#[test]
fn machines_do_not_move_to_another_provider() {
    for (place, refused) in [("infrastructure", true), ("bootstrap", false)] {
        let mut world = World::in_memory();
        world.settle();
        let mut other = world.templates[3].clone();
        other["kind"] = "OtherMachineTemplate".into();
        other["metadata"]["name"] = "other".into();
        world.templates.push(other);
        let reference = &mut world.class["spec"]["workers"]["machineDeployments"][0][place]["templateRef"];
        reference["kind"] = "OtherMachineTemplate".into();
        reference["name"] = "other".into();
        reference["apiVersion"] = world.templates[3]["apiVersion"].clone();
        if refused {
            let error = world.plan().unwrap_err().to_string();
            assert!(error.contains("kind cannot change from DevMachineTemplate."), "{error}");
        } else {
            assert_eq!(
                kinds(&world.settle()),
                ["Created OtherMachineTemplate", "Updated MachineDeployment"]
            );
        }
    }
    let mut world = World::in_memory();
    world.settle();
    let mut other = world.templates[2].clone();
    other["kind"] = "OtherMachineTemplate".into();
    world.templates.push(other);
    world.class["spec"]["controlPlane"]["machineInfrastructure"]["templateRef"]["kind"] = "OtherMachineTemplate".into();
    let error = world.plan().unwrap_err().to_string();
    assert!(error.contains("kind cannot change from DevMachineTemplate."), "{error}");
}

// A template that a user made is not taken over.
#[test]
fn templates_of_users_are_not_taken_over() {
    let mut world = World::in_memory();
    world.settle();
    let labels = machine_template(&mut world)["metadata"]["labels"]
        .as_object_mut()
        .unwrap();
    labels.remove("topology.cluster.x-k8s.io/owned");
    let error = world.plan().unwrap_err().to_string();
    assert!(error.contains("not topology owned"), "{error}");
}

// TO-374: a field that was changed by hand is set back.
#[test]
fn changes_by_hand_are_undone() {
    let mut world = World::in_memory();
    world.settle();
    let key = world
        .objects
        .keys()
        .find(|(k, _)| k == "MachineDeployment")
        .unwrap()
        .clone();
    world.objects.get_mut(&key).unwrap()["spec"]["replicas"] = 9.into();
    assert_eq!(kinds(&world.settle()), ["Updated MachineDeployment"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    // TO-266: whatever the topology, a second pass over what the first one made has nothing to do.
    #[test]
    fn a_second_pass_finds_nothing_to_do(
        replicas in proptest::option::of(0i64..9),
        names in proptest::collection::btree_set("[a-z][a-z0-9]{0,12}", 0..5),
        labels in proptest::collection::btree_map("[a-z]{1,8}", "[a-z]{0,8}", 0..4),
        drain in proptest::option::of(0i64..900),
        check in any::<bool>(),
    ) {
        let mut world = World::in_memory();
        let entries: Vec<Value> = names.iter().map(|name| {
            let mut entry = json!({
                "class": "default-worker", "name": name, "metadata": {"labels": labels},
                "healthCheck": {"enabled": check},
            });
            if let Some(replicas) = replicas {
                entry["replicas"] = replicas.into();
            }
            if let Some(drain) = drain {
                entry["deletion"] = json!({"nodeDrainTimeoutSeconds": drain});
            }
            entry
        }).collect();
        world.cluster["spec"]["topology"]["workers"] = json!({"machineDeployments": entries});
        let plan = world.plan().unwrap();
        world.take(&plan);
        let again = world.plan().unwrap();
        prop_assert_eq!(again.changes().map(|s| s.note.clone()).collect::<Vec<_>>(), Vec::<String>::new());
        prop_assert_eq!(world.of_kind("MachineDeployment").len(), names.len());
    }
}
