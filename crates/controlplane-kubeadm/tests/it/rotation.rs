//! Authorities are rotated without a moment in which one machine does not trust another.

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

/// Another program makes bootstrap data without marks: its Machines are not replaced without end.
#[test]
fn bootstrap_data_of_another_program_stops_the_rotation() {
    let mut world = asked(1, 0);
    for _ in 0..50 {
        world
            .trust
            .rotation
            .machines
            .values_mut()
            .for_each(|mark| *mark = Data::Unmarked);
        world.run();
    }
    assert_eq!(world.trust.stages(), [Some(RotationStage::Preparing); 4]);
    let made = world.machines.keys().next().unwrap().clone();
    assert!(
        condition(&world).2.contains(&format!("Machines {made} does not tell")),
        "{:?}",
        condition(&world)
    );
    world
        .trust
        .rotation
        .machines
        .values_mut()
        .for_each(|mark| *mark = Data::Unmarked);
    world.run();
    assert!(world.machines.contains_key(&made));
}

#[test]
fn machine_pools_wait_for_their_user() {
    let mut world = asked(1, 0);
    world.trust.rotation.pools.insert("pool".to_owned(), None);
    run(&mut world);
    let message = condition(&world).2;
    assert!(message.contains(&format!("{REPLACED_FOR}=one/Preparing")), "{message}");
    let replaced = Some("one/Preparing".to_owned());
    world.trust.rotation.pools.insert("pool".to_owned(), replaced);
    run(&mut world);
    assert_eq!(reason(&world), "Prepared");
}

#[test]
fn a_secret_that_lost_its_stage_stops_the_rotation_and_says_so() {
    let mut world = asked(3, 0);
    annotate(&mut world, COMPLETE, "one");
    run(&mut world);
    let etcd = &mut world.trust.rotation.authorities[1];
    etcd.state = None;
    etcd.trusted = vec![old()];
    let plan = world.reconcile(usize::MAX);
    assert!(!plan.actions.iter().any(Action::disruptive), "{:?}", plan.actions);
    let message = condition(&world).2;
    assert!(
        message.contains("authority etcd") && message.contains("restored"),
        "{message}"
    );
}

/// What keeps Secrets in step with another place may bring other certificates, and leaves annotations alone.
#[test]
fn a_secret_that_is_changed_on_the_way_stops_the_rotation_and_says_so() {
    type Change = fn(&mut Authority);
    let cases: [(bool, &str, Change); 5] = [
        (false, "next.crt is not the second", |ca| {
            ca.next = Some(pem("b3RoZXI="));
        }),
        (false, "does not hold", |ca| ca.trusted = vec![old()]),
        (false, "tls.key is of another", |ca| {
            ca.broken = Some("tls.key is of another".to_owned());
        }),
        (true, "does not hold", |ca| ca.trusted = vec![old(), fresh()]),
        (true, "does not hold", |ca| {
            ca.trusted = vec![old()];
            ca.holds = None;
        }),
    ];
    for (completing, expected, change) in cases {
        let mut world = asked(3, 2);
        if completing {
            annotate(&mut world, COMPLETE, "one");
        }
        run(&mut world);
        let before = world.trust.rotation.clone();
        change(&mut world.trust.rotation.authorities[0]);
        let changed = world.trust.rotation.authorities[0].clone();
        annotate(&mut world, COMPLETE, "one");
        let machines: Vec<String> = world.machines.keys().cloned().collect();
        world.now += SignedDuration::from_hours(2);
        run(&mut world);
        let message = condition(&world).2;
        assert!(
            message.contains("Secret default/demo-ca was changed") && message.contains(expected),
            "{message}"
        );
        assert_eq!(world.machines.keys().cloned().collect::<Vec<_>>(), machines);
        assert_eq!(world.trust.rotation.authorities[0], changed);
        // It goes on when the content is back.
        world.trust.rotation.authorities = before.authorities;
        for _ in 0..2 {
            run(&mut world);
            world.now += SignedDuration::from_hours(2);
        }
        run(&mut world);
        is_over(&world, &fresh());
    }
}

/// A user accepts what a Secret holds by taking the annotation off, unless that has no two authorities.
#[test]
fn a_changed_secret_can_be_accepted() {
    let mut world = asked(1, 0);
    run(&mut world);
    let other = pem("b3RoZXI=");
    let ca = &mut world.trust.rotation.authorities[0];
    (ca.next, ca.trusted, ca.holds) = (Some(other.clone()), vec![old(), other.clone()], None);
    run(&mut world);
    assert_eq!(reason(&world), "Prepared");
    let ca = world.trust.authority(Purpose::ClusterCa);
    assert_eq!(ca.trusted, [old(), other]);
}

/// Whatever holds a rotation up, a deletion that was begun goes on.
#[test]
fn a_deleted_machine_goes_while_a_rotation_is_stopped() {
    let mut world = asked(3, 0);
    run(&mut world);
    world.trust.rotation.authorities[0].next = Some(pem("b3RoZXI="));
    let name = world.machines.keys().next().unwrap().clone();
    world.machines.get_mut(&name).unwrap().deleted = Some(world.now);
    run(&mut world);
    assert!(condition(&world).2.contains("was changed"), "{:?}", condition(&world));
    assert!(!world.machines.contains_key(&name));
    assert_eq!(world.machines.len(), 2, "no Machine is made of what was changed");
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
fn workers_of_other_providers_are_judged_by_their_nodes_and_those_are_waited_for() {
    let mut world = asked(1, 1);
    world.trust.rotation.workers[0].data = Data::Unknown;
    world.trust.rotation.workers[0].node = None;
    world.trust.rotation.unread = Some("no route".to_owned());
    run(&mut world);
    let message = condition(&world).2;
    assert!(
        message.contains("Machines w0") && message.contains("no route"),
        "{message}"
    );
    world.trust.rotation.unread = None;
    run(&mut world);
    let message = condition(&world).2;
    assert!(
        message.contains("Machines w0") && message.contains("no Nodes"),
        "{message}"
    );
    world.trust.rotation.workers[0].node = Some("w0".to_owned());
    run(&mut world);
    assert_eq!(reason(&world), "Prepared");
    assert!(world.trust.rotation.workers.iter().all(|worker| worker.name != "w0"));
}

/// Marks do not come where another program makes the data of workers: they are rolled out once.
#[test]
fn workers_without_marks_are_not_rolled_out_without_end() {
    let mut world = asked(1, 1);
    for _ in 0..60 {
        world.run();
        let now = world.now;
        world.trust.roll(now);
        for worker in &mut world.trust.rotation.workers {
            worker.data = Data::Unmarked;
        }
        world.now += SignedDuration::from_mins(1);
    }
    assert_eq!(world.trust.rotation.workers[0].name, "w0+");
    assert!(condition(&world).2.contains("Machines w0+ are to be replaced"));
}

#[test]
fn a_rollout_that_a_user_put_off_is_named() {
    let mut world = asked(1, 1);
    let later = world.now + SignedDuration::from_hours(1000);
    world.trust.rotation.deployments.insert("md".to_owned(), Some(later));
    run(&mut world);
    let message = condition(&world).2;
    assert!(
        message.contains(&format!("spec.rollout.after of MachineDeployments md ({later})")),
        "{message}"
    );
}

#[test]
fn a_token_lifetime_that_is_no_duration_is_refused() {
    let mut world = asked(1, 0);
    annotate(&mut world, TOKEN_LIFETIME, "7d");
    run(&mut world);
    assert_eq!(world.trust.stages(), [None; 4]);
    assert!(condition(&world).2.contains("windlass.dev/token-lifetime is \"7d\""));
    annotate(&mut world, TOKEN_LIFETIME, "168h");
    annotate(&mut world, COMPLETE, "one");
    run(&mut world);
    annotate(&mut world, TOKEN_LIFETIME, "never");
    world.now += SignedDuration::from_hours(200);
    run(&mut world);
    assert_eq!(reason(&world), "Completing");
    annotate(&mut world, TOKEN_LIFETIME, "168h");
    run(&mut world);
    is_over(&world, &fresh());
}

#[test]
fn a_kubeconfig_of_a_user_has_to_trust_the_new_authority_first() {
    let mut world = asked(1, 0);
    annotate(&mut world, COMPLETE, "one");
    let kubeconfig = |trusts: String, is_older| Some(ForeignKubeconfig { trusts, is_older });
    world.trust.rotation.foreign_kubeconfig = kubeconfig(old(), false);
    run(&mut world);
    let (_, reason, message) = condition(&world);
    assert_eq!(reason, "Prepared");
    assert!(message.contains("Secret default/demo-kubeconfig"), "{message}");
    let both = format!("{}{}", old(), fresh());
    world.trust.rotation.foreign_kubeconfig = kubeconfig(both.clone(), true);
    run(&mut world);
    world.now += SignedDuration::from_hours(2);
    run(&mut world);
    let (_, reason, message) = condition(&world);
    assert_eq!(reason, "Completing");
    assert!(message.contains("client certificate is older"), "{message}");
    world.trust.rotation.foreign_kubeconfig = kubeconfig(both, false);
    run(&mut world);
    assert_eq!(world.control_plane.annotations[ROTATED], "one");
}

/// A rotation in its last stage, of which nothing is left to do but what aggregated API servers trust.
fn dropping(answer: Option<Seen<BTreeSet<String>>>) -> World {
    let mut world = asked(3, 0);
    annotate(&mut world, COMPLETE, "one");
    run(&mut world);
    world.now += SignedDuration::from_hours(2);
    world.trust.instead = answer;
    run(&mut world);
    world
}

fn drops(action: &Action) -> bool {
    matches!(
        action,
        Action::Workload(WorkloadChange::DropExtensionAuthorities { .. })
    )
}

#[test]
fn a_rotation_ends_only_when_aggregated_api_servers_do_not_trust_the_old_authorities() {
    let why = "the server is busy".to_owned();
    let mut world = dropping(Some(Seen::Failed(why.clone())));
    assert_eq!(world.trust.stages(), [Some(RotationStage::Dropping); 4]);
    let (status, reason, message) = condition(&world);
    assert_eq!((status.as_str(), reason.as_str()), ("True", "Dropping"));
    assert!(message.contains(&why), "{message}");
    assert!(world.plan().requeue.is_some_and(|wait| wait.as_secs() <= 15));
    assert_eq!(world.trust.extensions, BTreeSet::from([old(), fresh(), foreign()]));

    world.trust.instead = None;
    let plan = world.reconcile(usize::MAX);
    assert!(plan.actions.iter().any(drops), "{:?}", plan.actions);
    assert_eq!(world.trust.extensions, BTreeSet::from([fresh(), foreign()]));
    assert_eq!(world.trust.stages(), [Some(RotationStage::Dropping); 4]);
    assert!(condition(&world).2.contains("Aggregated API servers"));
    assert!(plan.requeue.is_some_and(|wait| wait.as_secs() <= 2));

    let plan = world.reconcile(usize::MAX);
    assert!(!plan.actions.iter().any(drops), "{:?}", plan.actions);
    is_over(&world, &fresh());
    run(&mut world);
    check(&world, &[]);
    let dropped = |one: &Authority| one.dropped.is_empty();
    assert!(world.trust.rotation.authorities.iter().all(dropped));
}

#[test]
fn nothing_is_taken_from_aggregated_api_servers_before_the_last_machine_is_replaced() {
    let mut world = asked(3, 0);
    annotate(&mut world, COMPLETE, "one");
    run(&mut world);
    world.now += SignedDuration::from_hours(2);
    for _ in 0..400 {
        let plan = world.plan();
        if plan.actions.iter().any(drops) {
            let outdated = world.machines.keys().filter(|name| {
                let made = &world.trust.rotation.machines[*name];
                *made != Data::Marked(world.trust.rotation.mark())
            });
            assert_eq!(outdated.count(), 0);
            return;
        }
        world.now += SignedDuration::from_secs(1);
        world.reconcile(usize::MAX);
        let names: Vec<String> = world.machines.keys().cloned().collect();
        for name in names {
            world.advance(&name);
        }
    }
    panic!("never: {:?}", world.trust);
}

#[test]
fn a_cluster_that_tells_aggregated_api_servers_nothing_needs_no_change() {
    let world = dropping(Some(Seen::NotFound));
    assert_eq!(world.trust.stages(), [None; 4]);
    assert_eq!(world.control_plane.annotations[ROTATED], "one");
    assert_eq!(world.trust.extensions, BTreeSet::from([old(), fresh(), foreign()]));
}

/// What a user took over for another use is trusted still.
#[test]
fn what_is_trusted_in_another_way_stays() {
    let mut world = asked(3, 0);
    annotate(&mut world, COMPLETE, "one");
    world.trust.rotation.authorities[1].rotates = false;
    run(&mut world);
    world.now += SignedDuration::from_hours(2);
    run(&mut world);
    assert_eq!(world.control_plane.annotations[ROTATED], "one");
    assert_eq!(world.trust.extensions, BTreeSet::from([old(), fresh(), foreign()]));
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
