//! Machines whose Node is not known: one may be the cluster itself, and a member of etcd may run on it.

use serde_json::json;
use windlass_controller_runtime::Seen;
use windlass_controlplane_kubeadm::names::CERTIFICATES_EXPIRY;
use windlass_etcd::{Member, MemberId};

use crate::cases::{actions, check, name};
use crate::world::World;

/// Without a cloud provider's controller, no Node has a `providerID`, so that no Machine knows its Node.
#[test]
fn the_only_machine_of_a_cluster_stays_while_its_node_is_not_known() {
    let mut world = World::settled(1);
    let only = name(&world, 0);
    world.machines.get_mut(&only).unwrap().node = None;
    world.control_plane.version = "v1.35.1".into();
    check(&world, &[]);
    // Its status is lost with a backup.
    world.control_plane.initialized = false;
    check(&world, &[]);
    // And the cluster does not answer: what its API server's certificate was is still known.
    world.reachable = false;
    world.outage = Some((world.now, None));
    let machine = world.machines.get_mut(&only).unwrap();
    let Seen::Found(config) = &mut machine.config else {
        panic!("{:?}", machine.config);
    };
    config["metadata"]["annotations"][CERTIFICATES_EXPIRY] = json!("2030-01-01T00:00:00Z");
    check(&world, &[]);
}

#[test]
fn a_first_machine_with_another_version_goes_once_a_connection_was_tried() {
    let mut world = World::new(1);
    world.reconcile(usize::MAX);
    world.control_plane.version = "v1.35.1".into();
    let only = name(&world, 0);
    world.advance(&only);
    world.reachable = false;
    world.outage = None;
    assert!(!actions(&world).iter().any(|action| action.starts_with("delete")));
    world.outage = Some((world.now, None));
    check(&world, &[&format!("delete {only} (rollout)")]);
}

/// A Machine that joins reads what `kubeadm-config` says, whatever was tried before.
#[test]
fn a_change_that_is_taken_back_is_taken_back_in_the_configuration_too() {
    let mut world = World::settled(3);
    world.control_plane.version = "v1.36.0".into();
    check(&world, &["kubeadm-config v1.36.0", "rbac", "join"]);
    world.reconcile(usize::MAX);
    let joining = name(&world, 3);
    world.control_plane.version = "v1.35.0".into();
    let delete = format!("delete {joining} (rollout)");
    check(&world, &["kubeadm-config v1.35.0", "rbac", &delete]);
    // Also when no Machine of the other version is left to say so.
    world.machines.remove(&joining);
    world.progress.remove(&joining);
    world.control_plane.replicas = 5;
    check(&world, &["kubeadm-config v1.35.0", "rbac", "join"]);
}

#[test]
fn a_member_that_may_run_on_a_deleting_machine_leaves_first() {
    let mut world = World::settled(3);
    let gone = name(&world, 0);
    let machine = world.machines.get_mut(&gone).unwrap();
    (machine.node, machine.provider_id) = (None, None);
    machine.infra = Seen::Found(json!({}));
    machine.deleted = Some(world.now);
    world.advance(&gone);
    check(&world, &[&format!("remove member {gone}")]);
    // It may as well run on another Machine that does not know its Node.
    let other = name(&world, 1);
    world.machines.get_mut(&other).unwrap().node = None;
    check(&world, &[]);
    let notes = world.plan().notes;
    assert!(notes.iter().any(|note| note.message.contains(&other)), "{notes:?}");
    world.machines.get_mut(&other).unwrap().node = Some(other.clone());
    world.members.retain(|member| member.name != gone);
    check(&world, &[&format!("release {gone}")]);
    // Another member of unknown origin does not leave at the cost of the quorum.
    world.members.push(Member {
        id: MemberId(99),
        name: "stranger".into(),
        ..Member::default()
    });
    check(&world, &["remove member stranger"]);
    world.broken.push(other);
    world.broken.push(name(&world, 2));
    world.reconcile(0);
    check(&world, &[]);
}

#[test]
fn no_authority_is_made_while_machines_use_one_that_was_lost() {
    let mut world = World::settled(1);
    world.certificates = false;
    world.control_plane.initialized = false;
    check(&world, &[]);
    let only = name(&world, 0);
    let machine = world.machines.get_mut(&only).unwrap();
    (machine.node, machine.certificates_expiry) = (None, None);
    check(&world, &[]);
}
