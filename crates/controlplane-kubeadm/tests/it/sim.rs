//! The planner in a small world, with interruptions and in any order of events.

use jiff::SignedDuration;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use windlass_testkit::seeds::simulate;

use crate::world::World;

/// Lets events happen in an order that follows from the seed, every reconcile being cut off somewhere, until all rests.
fn shuffle(world: &mut World, seed: u64, what: &str) {
    let mut random = SmallRng::seed_from_u64(seed);
    let wanted = usize::try_from(world.control_plane.replicas).unwrap();
    let most = world.machines.len().max(wanted + 1);
    for _ in 0..700 {
        world.now += SignedDuration::from_secs(1);
        let names: Vec<String> = world.machines.keys().cloned().collect();
        if names.is_empty() || random.random_range(0..3) == 0 {
            // One in two attempts is cut off, as by a crash or a refused write.
            let limit = if random.random_range(0..2) == 0 {
                usize::MAX
            } else {
                random.random_range(0..6)
            };
            world.reconcile(limit);
        } else {
            let at = random.random_range(0..names.len());
            world.advance(&names[at]);
        }
        world.check();
        assert!(
            world.machines.len() <= most,
            "{what}: too many Machines with seed {seed}"
        );
    }
    world.run();
}

pub(crate) fn check_rest(world: &World, replicas: usize, version: &str, what: &str) {
    assert_eq!(world.machines.len(), replicas, "{what}");
    assert_eq!(world.members.len(), replicas, "{what}");
    assert!(
        world.versions().iter().all(|v| *v == version),
        "{what}: {:?}",
        world.versions()
    );
    let of_init = world
        .machines
        .values()
        .filter(|m| {
            m.config
                .found()
                .is_some_and(|c| c["spec"]["initConfiguration"].is_object())
        })
        .count();
    assert!(of_init <= 1, "{what}: {of_init} Machines initialise the cluster");
    let available = &world.last_status["conditions"][0];
    assert_eq!(available["type"], "Available", "{what}");
    assert_eq!(available["status"], "True", "{what}: {available}");
}

#[test]
fn a_control_plane_comes_up_scales_upgrades_and_goes_in_any_order_of_events() {
    simulate(0..4, 4, |seed| {
        let mut world = World::new(3);
        shuffle(&mut world, seed, "create");
        check_rest(&world, 3, "v1.35.0", "create");

        world.control_plane.replicas = 5;
        shuffle(&mut world, seed + 100, "scale up");
        check_rest(&world, 5, "v1.35.0", "scale up");

        world.control_plane.replicas = 3;
        shuffle(&mut world, seed + 200, "scale down");
        check_rest(&world, 3, "v1.35.0", "scale down");

        world.control_plane.version = "v1.36.0".into();
        world.control_plane.generation += 1;
        shuffle(&mut world, seed + 300, "upgrade");
        check_rest(&world, 3, "v1.36.0", "upgrade");
        assert_eq!(world.kube_proxy, "registry.k8s.io/kube-proxy:v1.36.0");

        world.control_plane.deleting = true;
        world.run();
        assert!(world.machines.is_empty());
        assert!(!world.finalizer);
    });
}

#[test]
fn an_upgrade_without_surge_never_has_more_machines_than_asked_for() {
    simulate(0..3, 3, |seed| {
        let mut world = World::settled(3);
        world.control_plane.max_surge = 0;
        world.control_plane.version = "v1.36.0".into();
        let mut random = SmallRng::seed_from_u64(seed);
        for _ in 0..600 {
            world.now += SignedDuration::from_secs(1);
            let names: Vec<String> = world.machines.keys().cloned().collect();
            if random.random_range(0..2) == 0 {
                world.reconcile(usize::MAX);
            } else {
                world.advance(&names[random.random_range(0..names.len())]);
            }
            world.check();
            assert!((2..=3).contains(&world.machines.len()), "{:?}", world.machines.keys());
        }
        check_rest(&world, 3, "v1.36.0", "upgrade without surge");
    });
}

#[test]
fn a_settled_control_plane_is_left_alone() {
    let mut world = World::settled(3);
    let before = format!("{world:?}");
    world.reconcile(usize::MAX);
    assert_eq!(before, format!("{world:?}"));
}

#[test]
fn joins_follow_one_another_without_idle_rounds() {
    // Each Machine needs three steps to come up; nothing else may cost a round.
    let mut world = World::new(3);
    let rounds = world.run();
    assert!(rounds <= 3 * 4 + 3, "{rounds} rounds for three Machines");
}

#[test]
fn an_interrupted_creation_is_completed_with_the_same_names() {
    let mut world = World::new(1);
    world.reconcile(usize::MAX);
    let (name, machine) = world.machines.iter_mut().next().unwrap();
    // The program ended after the Machine was written.
    machine.config = windlass_controller_runtime::Seen::NotFound;
    machine.infra = windlass_controller_runtime::Seen::NotFound;
    let name = name.clone();
    world.run();
    assert_eq!(world.machines.keys().collect::<Vec<_>>(), [&name]);
    let machine = &world.machines[&name];
    assert!(machine.config.found().unwrap()["spec"]["initConfiguration"].is_object());
    assert!(machine.infra.found().is_some());
}
