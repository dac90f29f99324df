//! What stops a rotation, and what goes on while it is stopped.

use super::*;

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
