//! Tokens, which run out.

use super::*;

#[test]
fn a_token_lives_until_its_machine_has_joined() {
    let at = |after: i64| Seen::Found(minutes(after));
    let early = Moment::at(minutes(2));
    let plan = planned(&worker(None, false), &early);
    assert_eq!((names(&plan), plan.requeue), (vec![], None));
    assert_eq!(early.next_deadline(), Some(minutes(5)));
    let extended = later(5, Some(at(15)), false);
    assert_eq!(names(&extended), ["extend token"]);
    assert!(matches!(&extended.actions[0], Action::ExtendToken { expires, .. } if *expires == minutes(20)));
    assert_eq!(extended.requeue, Some(Duration::from_mins(5)));
    let fresh = Moment::at(minutes(6));
    let plan = planned(&worker(Some(at(20)), false), &fresh);
    assert_eq!((names(&plan), plan.requeue), (vec![], Some(Duration::from_mins(5))));
    // It stops being fresh before it is looked at again. No reconcile is scheduled for that.
    assert_eq!(fresh.next_deadline(), None);
    let joined = Moment::at(minutes(5));
    let plan = planned(&worker(None, true), &joined);
    assert_eq!(
        (names(&plan), plan.requeue, joined.next_deadline()),
        (vec![], None, None)
    );
    let unread = later(5, Some(Seen::Failed("x".to_owned())), false);
    // The backoff after a failed read does not outgrow the life of the token.
    assert!(unread.blocked.is_some());
    assert_eq!(unread.requeue, Some(Duration::from_mins(5)));
    let leaving = world(false, WITH_TOKEN)
        .done()
        .with(|world| world.machine["metadata"]["deletionTimestamp"] = NOW.into())
        .plan();
    assert_eq!((names(&leaving), leaving.requeue), (vec![], None));
}

#[test]
fn the_token_of_a_pool_is_replaced_at_half_of_its_life() {
    let at = |after: i64| Some(Seen::Found(minutes(after)));
    // Until all its machines have joined, it is extended.
    assert_eq!(
        names(&planned(&of_pool(at(8), 1), &Moment::at(minutes(5)))),
        ["extend token"]
    );
    let early = Moment::at(minutes(5));
    let plan = planned(&of_pool(at(15), 2), &early);
    assert_eq!((names(&plan), plan.requeue), (vec![], Some(Duration::from_mins(5))));
    let half = minutes(15) - SignedDuration::from_mins(15) / 2;
    assert_eq!(early.next_deadline(), Some(half));
    let rotated = planned(&of_pool(at(15), 2), &Moment::at(half));
    assert_eq!(names(&rotated), ["create token", "replace data", "apply spec"]);
    let gone = planned(&of_pool(Some(Seen::NotFound), 2), &Moment::at(minutes(5)));
    assert_eq!(names(&gone), ["create token", "replace data", "apply spec"]);
    let mut unknown = of_pool(None, 2);
    unknown.token_expires = Some(Workload::NotTried("no attempt".to_owned()));
    assert_eq!(names(&planned(&unknown, &Moment::at(half))), Vec::<&str>::new());
}

#[test]
fn the_data_of_a_pool_is_made_again_when_it_is_lost() {
    let mut seen = of_pool(Some(Seen::Found(minutes(15))), 2);
    seen.data_secret = Seen::NotFound;
    let plan = planned(&seen, &Moment::at(minutes(1)));
    assert_eq!(names(&plan), ["create token", "create data", "apply spec"]);
    // Also where no token is needed.
    let mut config = (*seen.config).clone();
    let file = json!({"joinConfiguration": {"discovery": {"file": {"kubeConfigPath": "/etc/discovery"}}}});
    config.spec = serde_json::from_value(file).unwrap();
    seen.config = Arc::new(config);
    seen.token_expires = None;
    assert_eq!(names(&planned(&seen, &Moment::at(minutes(1)))), ["create data"]);
}

#[test]
fn data_of_another_object_is_not_replaced() {
    let mut seen = of_pool(Some(Seen::NotFound), 2);
    let other = json!([{"apiVersion": "v1", "kind": "Other", "name": "x", "uid": "u", "controller": true}]);
    seen.data_secret = Seen::Found(Arc::new(secret(&other)));
    let plan = planned(&seen, &Moment::at(minutes(5)));
    assert_eq!(names(&plan), Vec::<&str>::new());
    assert!(plan.blocked.unwrap().message.contains("controlled by Other x"));
}

#[test]
fn a_token_in_a_cluster_that_does_not_answer_is_neither_extended_nor_replaced() {
    for unknown in [
        Workload::NotTried("no attempt".to_owned()),
        down("no answer").map(|()| Seen::NotFound),
    ] {
        let mut seen = worker(None, false);
        seen.token_expires = Some(unknown);
        let plan = planned(&seen, &Moment::at(minutes(5)));
        assert_eq!((names(&plan), &plan.blocked), (vec![], &None));
        assert_eq!(plan.requeue, Some(Duration::from_mins(5)));
        assert_eq!(plan.data, Verdict::Available);
    }
}

#[test]
fn data_that_waits_to_be_made_again_keeps_the_timer_of_its_token() {
    let mut seen = worker(Some(Seen::NotFound), false);
    seen.material
        .as_mut()
        .unwrap()
        .certificates
        .insert(Purpose::ClusterCa, Seen::NotFound);
    let plan = planned(&seen, &Moment::at(minutes(5)));
    assert_eq!(names(&plan), [""; 0]);
    assert_eq!(plan.requeue, Some(Duration::from_mins(5)));
}

#[test]
fn a_token_that_vanished_is_replaced_with_the_data() {
    let plan = later(5, Some(Seen::NotFound), false);
    assert_eq!(names(&plan), ["create token", "replace data", "apply spec"]);
    assert!(data(&plan).contains("abcdef.0123456789abcdef"));
    assert_eq!(plan.data, Verdict::Available);
}
