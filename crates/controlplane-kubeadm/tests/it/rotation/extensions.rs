//! What aggregated API servers trust.

use super::*;

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
