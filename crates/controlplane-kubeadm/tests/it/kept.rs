//! What a control plane keeps up on what it refers to: owners of its template, limits of Machines that are being deleted.

use serde_json::{Value, json};
use windlass_controlplane_kubeadm::plan::Action;

use crate::world::World;

fn owners_applied(world: &World) -> Option<Value> {
    let plan = world.plan();
    let object = plan.actions.iter().find_map(|action| match action {
        Action::OwnTemplate { object } => Some(object),
        _ => None,
    });
    object.map(|object| object["metadata"]["ownerReferences"].clone())
}

#[test]
fn the_owner_of_a_template_is_brought_up_to_date_and_other_clusters_stay() {
    let mut world = World::settled(1);
    assert_eq!(owners_applied(&world), None);
    let reference = |name: &str, uid: &str| json!({ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": name, "uid": uid });
    let own = reference("demo", "demo-uid");
    // From before a restore: garbage collection takes a template whose only owner is gone.
    world.template["metadata"]["ownerReferences"] = json!([reference("demo", "old")]);
    assert_eq!(owners_applied(&world), Some(json!([own])));
    world.template["metadata"]["ownerReferences"] = json!([reference("other", "other-uid")]);
    assert_eq!(
        owners_applied(&world),
        Some(json!([reference("other", "other-uid"), own]))
    );
}

#[test]
fn a_limit_that_is_taken_away_reaches_a_machine_that_is_being_deleted() {
    let mut world = World::settled(3);
    let name = world.machines.keys().next().unwrap().clone();
    let machine = world.machines.get_mut(&name).unwrap();
    machine.deletion = json!({ "nodeDrainTimeoutSeconds": 600, "nodeDeletionTimeoutSeconds": 10 });
    machine.deleted = Some(world.now);
    let patches = |world: &World| -> Vec<Value> {
        let plan = world.plan();
        let patches = plan.actions.iter().filter_map(|action| match action {
            Action::PatchMachine { name: of, patch } if *of == name => Some(patch.clone()),
            _ => None,
        });
        patches.collect()
    };
    let found = patches(&world);
    assert_eq!(found.len(), 1);
    let plan = world.plan();
    for action in &plan.actions {
        world.act(action);
    }
    assert_eq!(patches(&world), Vec::<Value>::new(), "and then nothing is sent");
}
