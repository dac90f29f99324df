//! Authorities are rotated without a moment in which one machine does not trust another.

mod extensions;
mod guards;
mod workers;

use std::collections::BTreeSet;

use jiff::SignedDuration;
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use windlass_controller_runtime::Seen;
use windlass_controlplane_kubeadm::plan::{Action, WorkloadChange};
use windlass_controlplane_kubeadm::rotation::{
    Authority, COMPLETE, Data, ForeignKubeconfig, REPLACED_FOR, ROTATE, ROTATED, TOKEN_LIFETIME,
};
use windlass_pki::{Purpose, RotationStage};

use crate::authorities::{foreign, fresh, old, pem};
use crate::cases::check;
use crate::world::World;

/// A cluster at rest with workers, of which a rotation is asked.
fn asked(replicas: i32, workers: usize) -> World {
    asked_at("v1.35.0", replicas, workers)
}

/// The same with a version of Kubernetes.
fn asked_at(version: &str, replicas: i32, workers: usize) -> World {
    let mut world = World::new(replicas);
    world.control_plane.version = version.into();
    world.run();
    for worker in 0..workers {
        let now = world.now;
        world.trust.add_worker(&format!("w{worker}"), now);
    }
    annotate(&mut world, ROTATE, "one");
    world
}

fn annotate(world: &mut World, key: &str, value: &str) {
    let annotations = &mut world.control_plane.annotations;
    annotations.insert(key.to_owned(), value.to_owned());
}

/// Runs until nothing moves, workers included. Returns how many Machines were made.
fn run(world: &mut World) {
    for _ in 0..400 {
        let before = format!("{:?}{:?}", world.trust, world.machines);
        world.run();
        let now = world.now;
        world.trust.roll(now);
        world.check();
        if format!("{:?}{:?}", world.trust, world.machines) == before {
            return;
        }
    }
    panic!("never rests: {:?}", world.trust);
}

fn condition(world: &World) -> (String, String, String) {
    let conditions = world.control_plane.conditions.iter();
    let found = conditions
        .clone()
        .find(|condition| condition.type_ == "RotatingAuthorities");
    found.map_or_else(Default::default, |found| {
        (found.status.clone(), found.reason.clone(), found.message.clone())
    })
}

fn reason(world: &World) -> String {
    condition(world).1
}

/// All authorities are at rest with this certificate.
fn is_over(world: &World, authority: &str) {
    assert_eq!(world.trust.stages(), [None; 4]);
    for one in &world.trust.rotation.authorities {
        assert_eq!(
            (one.bundle().as_str(), &one.next),
            (authority, &None),
            "{:?}",
            one.purpose
        );
    }
    assert_eq!(world.trust.cluster_info, authority);
    if authority != old() {
        let left = BTreeSet::from([authority.to_owned(), foreign()]);
        assert_eq!(world.trust.extensions, left);
    }
    assert_eq!(world.trust.kubeconfig, (authority.to_owned(), authority.to_owned()));
}

#[test]
fn a_rotation_waits_for_the_user_between_its_phases_and_replaces_everything() {
    for (version, replicas, workers) in [
        ("v1.35.0", 1, 0),
        ("v1.30.0", 1, 2),
        ("v1.30.0", 3, 4),
        ("v1.36.0", 3, 4),
    ] {
        let mut world = asked_at(version, replicas, workers);
        let stage = if version == "v1.30.0" { "Renewing" } else { "Completing" };
        annotate(&mut world, TOKEN_LIFETIME, "2h");
        let first: Vec<String> = world.machines.keys().cloned().collect();
        run(&mut world);
        assert_eq!(reason(&world), "Prepared", "{:?}", condition(&world));
        assert!(condition(&world).2.contains(&format!("{COMPLETE}=one")));
        assert!(first.iter().all(|name| !world.machines.contains_key(name)));
        assert_eq!(world.trust.kubeconfig, (format!("{}{}", old(), fresh()), fresh()));
        let prepared: Vec<String> = world.machines.keys().cloned().collect();

        annotate(&mut world, COMPLETE, "one");
        run(&mut world);
        let (_, reason, message) = condition(&world);
        assert_eq!(reason, stage);
        assert!(message.starts_with("Tokens of service accounts"), "{message}");
        assert!(prepared.iter().all(|name| !world.machines.contains_key(name)));
        assert_eq!(world.trust.cluster_info, fresh());

        world.now += SignedDuration::from_hours(2);
        run(&mut world);
        is_over(&world, &fresh());
        assert_eq!(condition(&world).0, "False");
        assert_eq!(world.control_plane.annotations[ROTATED], "one");
        check(&world, &[]);
    }
}

#[test]
fn nothing_begins_before_the_control_plane_rests_and_every_authority_can_be_rotated() {
    let mut world = asked(3, 0);
    world.control_plane.version = "v1.36.0".into();
    world.reconcile(usize::MAX);
    assert_eq!(world.trust.stages(), [None; 4]);

    let mut world = asked(1, 0);
    world.trust.rotation.authorities[2].is_ours = false;
    run(&mut world);
    assert_eq!(world.trust.stages(), [None; 4]);
    let (_, reason, message) = condition(&world);
    assert_eq!(reason, "Waiting");
    assert!(
        message.contains("Secret default/demo-proxy") && message.contains("next.crt"),
        "{message}"
    );
    // The user brings a pair.
    let brought = pem("dXNlcg==");
    world.trust.rotation.authorities[2].next = Some(brought.clone());
    run(&mut world);
    assert_eq!(self::reason(&world), "Prepared");
    let proxy = world.trust.authority(Purpose::FrontProxyCa);
    assert_eq!(proxy.bundle(), format!("{}{brought}", old()));

    let mut world = asked(1, 0);
    world.trust.rotation.authorities[0].broken = Some("tls.key is missing".to_owned());
    run(&mut world);
    assert!(condition(&world).2.contains("tls.key is missing"));
}

#[test]
fn a_rotation_that_is_not_asked_for_any_more_is_taken_back_until_the_new_authorities_sign() {
    let mut world = asked(3, 2);
    run(&mut world);
    world.control_plane.annotations.remove(ROTATE);
    run(&mut world);
    is_over(&world, &old());
    assert_eq!(condition(&world).0, "");
    assert!(!world.control_plane.annotations.contains_key(ROTATED));

    let mut world = asked(3, 2);
    annotate(&mut world, COMPLETE, "one");
    run(&mut world);
    assert_eq!(world.trust.stages(), [Some(RotationStage::Completing); 4]);
    world.control_plane.annotations.remove(ROTATE);
    world.now += SignedDuration::from_hours(2);
    run(&mut world);
    is_over(&world, &fresh());
}

/// Times of creation are new after a move: what tells how old a machine is, is its Node.
#[test]
fn machines_that_were_moved_are_replaced_all_the_same() {
    let mut world = asked(1, 2);
    annotate(&mut world, COMPLETE, "one");
    let moves = [RotationStage::Preparing, RotationStage::Completing];
    for stage in moves {
        // Until workers are next.
        for _ in 0..100 {
            world.run();
            let state = world.trust.authority(Purpose::ClusterCa).state.clone();
            if state.is_some_and(|state| state.stage == stage && state.workers.is_some()) {
                break;
            }
            let now = world.now;
            world.trust.roll(now);
        }
        world.now += SignedDuration::from_mins(5);
        let now = world.now;
        world.trust.moved(now);
        world.machines.values_mut().for_each(|machine| machine.created = now);
        run(&mut world);
        assert_eq!(world.trust.stages(), [Some(stage); 4]);
        world.trust.found_again();
    }
    run(&mut world);
    world.now += SignedDuration::from_hours(2);
    run(&mut world);
    is_over(&world, &fresh());
}

/// Times are whole seconds: a Machine of the second in which the rotation begins was made before it.
#[test]
fn machines_of_the_second_in_which_a_rotation_begins_are_replaced() {
    let mut world = asked(1, 0);
    let now = world.now;
    for (name, machine) in &mut world.machines {
        machine.created = now;
        world.trust.rotation.joined.insert(name.clone(), now);
    }
    let name = world.machines.keys().next().unwrap().clone();
    for _ in 0..3 {
        world.reconcile(usize::MAX);
    }
    let message = condition(&world).2;
    assert_eq!(message, format!("Control plane Machines {name} are to be replaced"));
    run(&mut world);
    assert_eq!(reason(&world), "Prepared");
}

/// A rotation that is ended by hand leaves bundles, which controller managers cannot sign with.
#[test]
fn a_bundle_that_is_left_has_a_signing_certificate_beside_it() {
    let mut world = asked(1, 0);
    run(&mut world);
    world.control_plane.annotations.remove(ROTATE);
    for one in &mut world.trust.rotation.authorities {
        one.state = None;
    }
    world.control_plane.version = "v1.36.0".into();
    world.reconcile(usize::MAX);
    assert_eq!(condition(&world).0, "", "the rotation is over");
    let mut written = None;
    for _ in 0..20 {
        let plan = world.reconcile(usize::MAX);
        written = written.or(plan.actions.into_iter().find_map(|action| match action {
            Action::Workload(WorkloadChange::KubeadmConfig { configuration, .. }) => Some(configuration),
            _ => None,
        }));
        let names: Vec<String> = world.machines.keys().cloned().collect();
        for name in names {
            world.advance(&name);
        }
    }
    let arguments = &written.unwrap()["controllerManager"]["extraArgs"];
    assert!(
        arguments.to_string().contains("/etc/kubernetes/pki/signing-ca.crt"),
        "{arguments}"
    );
}

#[test]
fn a_machine_that_is_still_to_get_its_data_gets_it_before_a_rotation_is_taken_back() {
    let mut world = asked(3, 0);
    run(&mut world);
    world.control_plane.annotations.remove(ROTATE);
    let name = world.machines.keys().next().unwrap().clone();
    let mark = world
        .trust
        .rotation
        .machines
        .insert(name.clone(), Data::Coming)
        .unwrap();
    let plan = world.reconcile(usize::MAX);
    assert!(!plan.actions.iter().any(Action::disruptive), "{:?}", plan.actions);
    assert!(
        condition(&world)
            .2
            .contains(&format!("bootstrap data of Machines {name}"))
    );
    assert_eq!(world.trust.stages(), [Some(RotationStage::Preparing); 4]);
    world.trust.rotation.machines.insert(name, mark);
    // A pair of a user stays for the next time.
    world.trust.rotation.authorities[2].is_ours = false;
    let plan = world.reconcile(usize::MAX);
    let makes = |action: &Action| matches!(action, Action::CreateMachine { .. });
    assert!(!plan.actions.iter().any(makes), "{:?}", plan.actions);
    assert_eq!(world.trust.stages(), [None; 4]);
    assert_eq!(world.trust.authority(Purpose::FrontProxyCa).next, Some(fresh()));
    assert_eq!(world.trust.authority(Purpose::ClusterCa).next, None);
}

#[test]
fn another_rotation_may_follow() {
    let mut world = asked(1, 1);
    annotate(&mut world, COMPLETE, "one");
    run(&mut world);
    world.now += SignedDuration::from_hours(2);
    run(&mut world);
    is_over(&world, &fresh());
    for one in &mut world.trust.rotation.authorities {
        one.next = Some(pem("dHdv"));
    }
    annotate(&mut world, ROTATE, "two");
    annotate(&mut world, COMPLETE, "two");
    run(&mut world);
    world.now += SignedDuration::from_hours(2);
    run(&mut world);
    is_over(&world, &pem("dHdv"));
}

/// Interruptions between any two actions, moves and changes by the user: all machines trust each other all the time, and the
/// rotation ends.
#[test]
fn a_rotation_survives_interruptions_and_changes() {
    for seed in 0..12 {
        let mut random = SmallRng::seed_from_u64(seed);
        let version = if seed % 4 < 2 { "v1.30.0" } else { "v1.35.0" };
        let workers = usize::try_from(seed % 3).unwrap();
        let mut world = asked_at(version, if seed % 2 == 0 { 3 } else { 1 }, workers);
        annotate(&mut world, TOKEN_LIFETIME, "10m");
        if random.random_bool(0.5) {
            annotate(&mut world, COMPLETE, "one");
        }
        for _ in 0..random.random_range(20..400) {
            world.now += SignedDuration::from_secs(random.random_range(0..40));
            let limit = random.random_range(0..5);
            world.reconcile(if limit == 4 { usize::MAX } else { limit });
            world.check();
            let names: Vec<String> = world.machines.keys().cloned().collect();
            for name in names {
                if random.random_bool(0.7) {
                    world.advance(&name);
                }
                world.check();
            }
            if random.random_bool(0.3) {
                let now = world.now;
                world.trust.roll(now);
                world.check();
            }
            if random.random_bool(0.01) {
                let now = world.now;
                world.trust.moved(now);
                world.machines.values_mut().for_each(|machine| machine.created = now);
            }
            if random.random_bool(0.1) {
                world.trust.found_again();
            }
            if random.random_bool(0.01) {
                world.control_plane.version = format!("{}1", version.trim_end_matches('0'));
            }
            if random.random_bool(0.01) {
                world.control_plane.replicas = 3;
            }
        }
        annotate(&mut world, COMPLETE, "one");
        world.trust.found_again();
        for _ in 0..3 {
            run(&mut world);
            world.now += SignedDuration::from_mins(11);
        }
        run(&mut world);
        is_over(&world, &fresh());
    }
}
