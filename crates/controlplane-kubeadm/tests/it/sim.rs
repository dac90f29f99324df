//! The planner in a small world that does not misbehave: how many rounds it takes, and what it leaves alone. What happens in a world that
//! does is shown by the simulation of the whole controller.

use jiff::SignedDuration;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use windlass_testkit::seeds::simulate;

use crate::world::World;

fn check_rest(world: &World, replicas: usize, version: &str, what: &str) {
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
