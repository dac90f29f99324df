//! What patches see of the metadata of objects, and what they may change of it.

use serde_json::{Value, json};

use crate::testing::World;

/// A patch of the control plane template, or of machine templates of the worker class.
fn patch(kind: &str, resources: Value, operations: Value) -> Value {
    let group = match kind {
        "KubeadmControlPlaneTemplate" => "controlplane.cluster.x-k8s.io/v1beta2",
        _ => "infrastructure.cluster.x-k8s.io/v1beta2",
    };
    json!({"name": "p", "definitions": [{
        "selector": {"apiVersion": group, "kind": kind, "matchResources": resources},
        "jsonPatches": operations,
    }]})
}

fn of_control_plane(operations: Value) -> Value {
    patch("KubeadmControlPlaneTemplate", json!({"controlPlane": true}), operations)
}

/// A world whose control plane has labels from class and topology.
fn world(patch: Value) -> World {
    let mut world = World::in_memory();
    world.class["spec"]["controlPlane"]["metadata"] = json!({"labels": {"tier": "class", "zone": "class"}});
    world.cluster["spec"]["topology"]["controlPlane"]["metadata"] =
        json!({"labels": {"tier": "topology"}, "annotations": {"note": "topology"}});
    world.class["spec"]["patches"] = json!([patch]);
    world.settle();
    world
}

#[test]
fn a_patch_may_change_labels_that_come_from_class_and_topology() {
    let world = world(of_control_plane(json!([
        {"op": "replace", "path": "/spec/template/metadata/labels/tier", "value": "patched"},
        {"op": "remove", "path": "/spec/template/metadata/labels/zone"},
        {"op": "replace", "path": "/spec/template/metadata/annotations/note", "value": "patched"},
    ])));
    let control_plane = world.only("KubeadmControlPlane");
    let labels = &control_plane["metadata"]["labels"];
    assert_eq!((&labels["tier"], labels.get("zone")), (&json!("patched"), None));
    assert_eq!(control_plane["metadata"]["annotations"]["note"], "patched");
    // Machines keep what class and topology give them.
    let machines = &control_plane["spec"]["machineTemplate"]["metadata"];
    assert_eq!(
        (&machines["labels"]["tier"], &machines["labels"]["zone"]),
        (&json!("topology"), &json!("class"))
    );
    assert_eq!(machines["annotations"]["note"], "topology");
}

#[test]
fn no_patch_takes_away_whose_an_object_is() {
    let owned = "/spec/template/metadata/labels/topology.cluster.x-k8s.io~1owned";
    let world = world(of_control_plane(json!([
        {"op": "replace", "path": owned, "value": "no"},
        {"op": "remove", "path": "/spec/template/metadata/labels/cluster.x-k8s.io~1cluster-name"},
        {"op": "remove", "path": "/spec/template/metadata/annotations/cluster.x-k8s.io~1cloned-from-name"},
    ])));
    let metadata = &world.only("KubeadmControlPlane")["metadata"];
    assert_eq!(metadata["labels"]["topology.cluster.x-k8s.io/owned"], "");
    assert_eq!(metadata["labels"]["cluster.x-k8s.io/cluster-name"], "demo000");
    assert_eq!(
        metadata["annotations"]["cluster.x-k8s.io/cloned-from-name"],
        "in-memory-control-plane"
    );
}

#[test]
fn copies_of_machine_templates_show_their_place_to_patches() {
    let entry = "/metadata/labels/topology.cluster.x-k8s.io~1deployment-name";
    let resources = json!({"machineDeploymentClass": {"names": ["default-worker"]}});
    let world = world(patch(
        "DevMachineTemplate",
        resources,
        json!([
            {"op": "replace", "path": entry, "value": "another"},
            {"op": "add", "path": "/metadata/labels/added", "value": "yes"},
        ]),
    ));
    let copies = world.of_kind("DevMachineTemplate");
    let added = copies
        .iter()
        .find(|copy| copy["metadata"]["labels"]["added"] == "yes")
        .unwrap();
    assert_eq!(
        added["metadata"]["labels"]["topology.cluster.x-k8s.io/deployment-name"],
        "md-0"
    );
}

#[test]
fn fields_of_machines_of_the_control_plane_are_not_for_patches() {
    let mut world = World::in_memory();
    let own =
        json!({"metadata": {"labels": {"own": "template"}}, "spec": {"deletion": {"nodeDrainTimeoutSeconds": 600}}});
    world.templates[1]["spec"]["template"]["spec"]["machineTemplate"] = own;
    world.class["spec"]["patches"] = json!([of_control_plane(json!([
        {"op": "replace", "path": "/spec/template/spec/machineTemplate/metadata/labels/own", "value": "patched"},
        {"op": "add", "path": "/spec/template/spec/machineTemplate/metadata/labels/more", "value": "patched"},
        {"op": "replace", "path": "/spec/template/spec/machineTemplate/spec/deletion/nodeDrainTimeoutSeconds", "value": 1},
    ]))]);
    world.settle();
    let machines = &world.only("KubeadmControlPlane")["spec"]["machineTemplate"];
    assert_eq!(machines["metadata"]["labels"]["own"], "template");
    assert_eq!(machines["metadata"]["labels"].get("more"), None);
    assert_eq!(machines["spec"]["deletion"]["nodeDrainTimeoutSeconds"], 600);
}
