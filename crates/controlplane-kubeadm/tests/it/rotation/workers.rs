//! Workers, which others replace.

use super::*;

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
