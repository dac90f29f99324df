//! MachinePools of a topology.

use serde_json::{Value, json};

use super::kinds;
use crate::model::text;
use crate::plan::Action;
use crate::status::report;
use crate::testing::World;

/// The usual world with one MachinePool of three.
fn world() -> World {
    let mut world = World::in_memory();
    let reference = |api: &str, kind: &str| json!({"templateRef": {"apiVersion": api, "kind": kind, "name": "pool"}});
    let (bootstrap, infrastructure) = (
        "bootstrap.cluster.x-k8s.io/v1beta2",
        "infrastructure.cluster.x-k8s.io/v1beta2",
    );
    let template = |api: &str, kind: &str, spec: Value| {
        json!({
            "apiVersion": api, "kind": kind, "metadata": {"name": "pool", "namespace": "default"},
            "spec": {"template": {"metadata": {"labels": {"of": "template"}}, "spec": spec}},
        })
    };
    world.templates.push(template(
        infrastructure,
        "DevMachinePoolTemplate",
        json!({"backend": {"inMemory": {}}}),
    ));
    // The name is taken by no other template of the kind.
    world.templates.push(template(
        bootstrap,
        "KubeadmConfigTemplate",
        json!({"joinConfiguration": {"nodeRegistration": {"name": "n"}}}),
    ));
    world.class["spec"]["workers"]["machinePools"] = json!([{
        "class": "pool",
        "metadata": {"labels": {"of": "class", "a": "1"}, "annotations": {"b": "2"}},
        "bootstrap": reference(bootstrap, "KubeadmConfigTemplate"),
        "infrastructure": reference(infrastructure, "DevMachinePoolTemplate"),
        "failureDomains": ["x", "y"], "minReadySeconds": 5,
        "deletion": {"nodeDrainTimeoutSeconds": 7, "nodeDeletionTimeoutSeconds": 8},
    }]);
    world.cluster["spec"]["topology"]["workers"] = json!({"machinePools": [pool("mp-0")]});
    world
}

fn pool(name: &str) -> Value {
    json!({"class": "pool", "name": name, "replicas": 3})
}

fn entry(world: &mut World) -> &mut Value {
    &mut world.cluster["spec"]["topology"]["workers"]["machinePools"][0]
}

fn upgrade(world: &mut World, version: &str) {
    world.cluster["spec"]["topology"]["version"] = version.into();
}

/// The versions that the Nodes of the only pool have.
fn nodes(world: &mut World, versions: &[&str]) {
    let name = text(world.only("MachinePool"), "/metadata/name").to_owned();
    let versions = versions.iter().map(|version| (*version).to_owned()).collect();
    world.machine_versions.insert(name, versions);
}

fn version(world: &World) -> &str {
    text(world.only("MachinePool"), "/spec/template/spec/version")
}

// TO-022, TO-023, TO-024, TO-252, TO-274, TO-283
#[test]
fn a_pool_is_made_of_its_class_and_its_entry() {
    let mut world = world();
    let entry = entry(&mut world);
    entry["deletion"] = json!({"nodeDrainTimeoutSeconds": 9});
    entry["metadata"] = json!({"labels": {"of": "topology"}});
    entry["taints"] = json!([{"key": "k", "effect": "NoSchedule", "propagation": "Always"}]);
    let made = kinds(&world.settle());
    assert_eq!(
        made[made.len() - 3..],
        ["Created DevMachinePool", "Created KubeadmConfig", "Created MachinePool"]
    );
    let pool = world.only("MachinePool");
    let name = text(pool, "/metadata/name");
    assert!(name.starts_with("demo000-mp-0-"), "{name}");
    let labels = json!({
        "cluster.x-k8s.io/cluster-name": "demo000", "topology.cluster.x-k8s.io/owned": "",
        "topology.cluster.x-k8s.io/pool-name": "mp-0", "of": "topology", "a": "1",
    });
    assert_eq!(pool["metadata"]["labels"], labels);
    assert_eq!(
        pool["spec"]["template"]["metadata"],
        json!({"labels": labels, "annotations": {"b": "2"}})
    );
    let machine = &pool["spec"]["template"]["spec"];
    assert_eq!(
        (
            &pool["spec"]["replicas"],
            &pool["spec"]["failureDomains"],
            &machine["minReadySeconds"]
        ),
        (&json!(3), &json!(["x", "y"]), &json!(5))
    );
    assert_eq!(
        machine["deletion"],
        json!({"nodeDrainTimeoutSeconds": 9, "nodeDeletionTimeoutSeconds": 8})
    );
    assert_eq!(machine["taints"][0]["key"], "k");
    for (kind, reference) in [
        ("KubeadmConfig", &machine["bootstrap"]["configRef"]),
        ("DevMachinePool", &machine["infrastructureRef"]),
    ] {
        let object = world.only(kind);
        assert_eq!(
            (&reference["kind"], &reference["name"]),
            (&json!(kind), &object["metadata"]["name"])
        );
        let metadata = &object["metadata"];
        assert_eq!(metadata["labels"]["topology.cluster.x-k8s.io/pool-name"], "mp-0");
        assert_eq!(metadata["labels"]["of"], "template");
        assert_eq!(metadata["ownerReferences"][0]["controller"], Value::Null);
        let from = &metadata["annotations"]["cluster.x-k8s.io/cloned-from-name"];
        assert_eq!(from, "pool");
    }
}

// TO-059: without replicas another controller has the number.
#[test]
fn replicas_that_are_not_set_are_left_to_others() {
    let mut world = world();
    entry(&mut world).as_object_mut().unwrap().remove("replicas");
    world.settle();
    assert_eq!(world.only("MachinePool")["spec"].get("replicas"), None);
}

// TO-311: the control plane, then the pools, one at a time.
#[test]
fn pools_are_upgraded_one_after_another_behind_the_control_plane() {
    let mut world = world();
    world.cluster["spec"]["topology"]["workers"]["machinePools"] = json!([pool("mp-0"), pool("mp-1")]);
    world.settle();
    world.control_plane_ready();
    upgrade(&mut world, "v1.36.0");
    assert_eq!(
        kinds(&world.settle()),
        ["Updated KubeadmControlPlane", "Updated Cluster"]
    );
    let told = report(&world.plan().unwrap().progress);
    let message = told.message.lines().nth(2).unwrap();
    assert!(
        message.starts_with("  * MachinePools demo000-mp-0-")
            && message.ends_with(" pending upgrade to version v1.36.0"),
        "{}",
        told.message
    );
    world.control_plane_ready();
    let names: Vec<String> = world
        .of_kind("MachinePool")
        .iter()
        .map(|pool| text(pool, "/metadata/name").to_owned())
        .collect();
    for name in &names {
        world.machine_versions.insert(name.clone(), vec!["v1.35.0".to_owned()]);
    }
    for name in &names {
        assert_eq!(kinds(&world.settle())[0], "Updated MachinePool", "{name}");
        let told = report(&world.plan().unwrap().progress);
        assert!(
            told.message
                .contains(&format!("MachinePool {name} upgrading to version v1.36.0"))
        );
        world.machine_versions.insert(name.clone(), vec!["v1.36.0".to_owned()]);
    }
    assert_eq!(report(&world.plan().unwrap().progress).reason, "ReconcileSucceeded");
}

// TO-311: MachineDeployments first, but for those that an annotation holds back.
#[test]
fn pools_wait_for_the_deployments() {
    let mut world = world();
    world.cluster["spec"]["topology"]["workers"]["machineDeployments"] =
        json!([{"class": "default-worker", "name": "md-0", "replicas": 1}]);
    world.settle();
    world.control_plane_ready();
    nodes(&mut world, &["v1.35.0"]);
    upgrade(&mut world, "v1.36.0");
    world.settle();
    world.control_plane_ready();
    let deployment = text(world.only("MachineDeployment"), "/metadata/name").to_owned();
    world
        .machine_versions
        .insert(deployment.clone(), vec!["v1.35.0".to_owned()]);
    assert_eq!(kinds(&world.settle()), ["Updated MachineDeployment"]);
    let deferred = json!({"annotations": {"topology.cluster.x-k8s.io/defer-upgrade": ""}});
    let mut held = world.plan().unwrap();
    assert_eq!(held.progress.pools.pending.len(), 1);
    world.machine_versions.insert(deployment, vec!["v1.36.0".to_owned()]);
    assert_eq!(kinds(&world.settle())[0], "Updated MachinePool");
    world.cluster["spec"]["topology"]["workers"]["machineDeployments"][0]["metadata"] = deferred;
    nodes(&mut world, &["v1.36.0"]);
    world.settle();
    upgrade(&mut world, "v1.37.0");
    world.settle();
    world.control_plane_ready();
    held = world.plan().unwrap();
    assert_eq!(held.progress.deployments.deferred.len(), 1);
    assert_eq!(held.progress.pools.upgrading.len(), 1, "{:?}", held.progress);
}

#[test]
fn the_control_plane_waits_for_pools_that_are_being_upgraded() {
    let mut world = world();
    world.settle();
    world.control_plane_ready();
    nodes(&mut world, &["v1.35.0", "v1.34.0"]);
    upgrade(&mut world, "v1.36.0");
    assert_eq!(kinds(&world.settle()), ["Updated Cluster"], "the mark of an upgrade");
    let told = report(&world.plan().unwrap().progress);
    assert!(
        told.message.contains("MachinePools are upgrading: demo000-mp-0-"),
        "{}",
        told.message
    );
    nodes(&mut world, &["v1.35.0"]);
    assert_eq!(kinds(&world.settle())[0], "Updated KubeadmControlPlane");
}

// Row 309
#[test]
fn annotations_hold_pools_back() {
    for annotation in ["defer-upgrade", "hold-upgrade-sequence"] {
        let mut world = world();
        world.settle();
        world.control_plane_ready();
        nodes(&mut world, &["v1.35.0"]);
        let key = format!("topology.cluster.x-k8s.io/{annotation}");
        entry(&mut world)["metadata"]["annotations"] = json!({key: ""});
        upgrade(&mut world, "v1.36.0");
        world.settle();
        world.control_plane_ready();
        assert_eq!(world.settle(), Vec::<String>::new());
        assert_eq!(
            report(&world.plan().unwrap().progress).reason,
            "MachinePoolsUpgradeDeferred"
        );
        entry(&mut world)["metadata"] = json!({});
        assert_eq!(kinds(&world.settle())[0], "Updated MachinePool");
        assert_eq!(version(&world), "v1.36.0");
    }
}

// TO-265: bootstrap and infrastructure are changed in place, and keep their names.
#[test]
fn a_changed_template_changes_the_objects_in_place() {
    let mut world = world();
    world.settle();
    let before: Vec<_> = world.objects.keys().cloned().collect();
    for template in &mut world.templates {
        if template["metadata"]["name"] == "pool" {
            template["spec"]["template"]["spec"]["more"] = true.into();
        }
    }
    assert_eq!(
        kinds(&world.settle()),
        ["Updated DevMachinePool", "Updated KubeadmConfig"]
    );
    assert_eq!(before, world.objects.keys().cloned().collect::<Vec<_>>());
}

// TO-063, TO-159: patches select pools by class, and see their variables and builtins.
#[test]
fn patches_select_pools_and_see_their_facts() {
    let mut world = world();
    world.class["status"]["variables"] = json!([{"name": "size", "definitions": [
        {"from": "inline", "required": false, "schema": {"openAPIV3Schema": {"type": "string"}}}]}]);
    let places = |kind: &str, api: &str| json!({"apiVersion": api, "kind": kind, "matchResources": {"machinePoolClass": {"names": ["po*"]}}});
    let patch = |path: &str, from: Value| json!({"op": "add", "path": path, "valueFrom": from});
    world.class["spec"]["patches"] = json!([{"name": "p", "definitions": [
        {
            "selector": places("DevMachinePoolTemplate", "infrastructure.cluster.x-k8s.io/v1beta2"),
            "jsonPatches": [
                patch("/spec/template/spec/size", json!({"variable": "size"})),
                patch("/spec/template/spec/name", json!({"variable": "builtin.machinePool.topologyName"})),
                patch("/spec/template/spec/class", json!({"variable": "builtin.machinePool.class"})),
                patch("/spec/template/spec/version", json!({"variable": "builtin.machinePool.version"})),
                patch("/spec/template/spec/replicas", json!({"variable": "builtin.machinePool.replicas"})),
                patch("/spec/template/spec/config", json!({"variable": "builtin.machinePool.bootstrap.configRef.name"})),
                patch("/spec/template/spec/label", json!({"template": r#"{{ index .builtin.machinePool.metadata.labels "of" }}"#})),
            ],
        },
    ]}]);
    let topology = &mut world.cluster["spec"]["topology"];
    topology["variables"] = json!([{"name": "size", "value": "small"}]);
    topology["workers"]["machinePools"][0]["variables"] = json!({"overrides": [{"name": "size", "value": "large"}]});
    world.settle();
    let config = world.only("KubeadmConfig")["metadata"]["name"].clone();
    let spec = &world.only("DevMachinePool")["spec"];
    assert_eq!(
        *spec,
        json!({
            "backend": {"inMemory": {}}, "size": "large", "name": "mp-0", "class": "pool", "version": "v1.35.0",
            "replicas": 3, "config": config, "label": "class",
        })
    );
}

#[test]
fn a_pool_that_leaves_the_topology_goes() {
    let mut world = world();
    world.settle();
    world.cluster["spec"]["topology"]["workers"] = json!({});
    let plan = world.plan().unwrap();
    let gone: Vec<&str> = plan.changes().map(|step| step.note.as_str()).collect();
    assert_eq!(gone.len(), 1);
    assert!(
        gone[0].contains("the topology has no entry \"mp-0\" any more"),
        "{gone:?}"
    );
}

#[test]
fn what_a_pool_has_lost_is_not_made_again() {
    let mut world = world();
    world.settle();
    let name = text(world.only("DevMachinePool"), "/metadata/name").to_owned();
    world.objects.remove(&("DevMachinePool".to_owned(), name));
    let plan = world.plan().unwrap();
    let problem = plan.left[0].to_string();
    assert!(
        problem.contains("DevMachinePool") && problem.contains("restore it"),
        "{problem}"
    );
    let is_of_pool = |action: &Action| matches!(action, Action::Apply(object) if object["kind"] == "DevMachinePool");
    assert!(!plan.steps.iter().any(|step| is_of_pool(&step.action)));
}

#[test]
fn a_class_that_does_not_exist_is_named() {
    let mut world = world();
    entry(&mut world)["class"] = "other".into();
    let error = world.plan().unwrap_err().to_string();
    assert!(
        error.contains("spec.topology.workers.machinePools[0].class: MachinePool class \"other\" does not exist in"),
        "{error}"
    );
}

// Both kinds go through a chain of versions: one that has the version of the control plane keeps no other from it.
#[test]
fn a_chain_of_versions_brings_deployments_and_pools_to_each_step() {
    let mut world = world();
    world.class["spec"]["kubernetesVersions"] =
        json!(["v1.31.0", "v1.32.0", "v1.33.0", "v1.34.0", "v1.35.0", "v1.36.0"]);
    world.cluster["spec"]["topology"]["version"] = "v1.31.0".into();
    world.cluster["spec"]["topology"]["workers"]["machineDeployments"] =
        json!([{"class": "default-worker", "name": "md-0", "replicas": 1}]);
    world.settle();
    upgrade(&mut world, "v1.36.0");
    let version = |world: &World, kind: &str| text(world.only(kind), "/spec/template/spec/version").to_owned();
    let mut seen = Vec::new();
    for _ in 0..20 {
        world.control_plane_ready();
        for kind in ["MachineDeployment", "MachinePool"] {
            let name = text(world.only(kind), "/metadata/name").to_owned();
            let now = version(&world, kind);
            world.machine_versions.insert(name, vec![now]);
        }
        world.settle();
        seen.push((version(&world, "MachineDeployment"), version(&world, "MachinePool")));
    }
    seen.dedup();
    assert!(seen.contains(&("v1.34.0".to_owned(), "v1.34.0".to_owned())), "{seen:?}");
    let pools = version(&world, "MachinePool");
    assert_eq!(pools, "v1.36.0", "{seen:?}");
}
