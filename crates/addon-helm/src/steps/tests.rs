//! Who goes when.

use serde_json::Value;

use super::*;

fn steps(value: Value) -> RolloutSteps {
    serde_json::from_value(value).unwrap()
}

fn waiting(n: usize) -> Vec<Waiting> {
    let one = |idx| Waiting {
        is_late: false,
        cluster: format!("c{idx:03}"),
    };
    (0..n).map(one).collect()
}

/// The sizes of all steps when each becomes ready in the end.
fn sizes(steps: &RolloutSteps, total: usize) -> Vec<usize> {
    let mut sizes = Vec::new();
    let mut started = 0;
    while started < total {
        let gone = Gone {
            started,
            all_ready: true,
        };
        let next = next(Some(steps), total, gone, waiting(total - started)).len();
        assert!(next > 0, "{steps:?} stands still at {started} of {total}");
        sizes.push(next);
        started += next;
    }
    sizes
}

// AD-147: without steps all go at once.
#[test]
fn without_steps_all_go_at_once() {
    assert_eq!(next(None, 5, Gone::default(), waiting(5)).len(), 5);
    assert_eq!(
        next(Some(&RolloutSteps::default()), 5, Gone::default(), waiting(5)).len(),
        5
    );
}

#[test]
fn steps_grow_up_to_their_limit() {
    let check =
        |value: Value, total, expect: &[usize]| assert_eq!(sizes(&steps(value.clone()), total), expect, "{value}");
    check(json!({"stepInit": 2}), 5, &[2, 2, 1]);
    check(json!({"stepInit": 1, "stepIncrement": 1}), 10, &[1, 2, 3, 4]);
    check(
        json!({"stepInit": 1, "stepIncrement": 2, "stepLimit": 4}),
        12,
        &[1, 3, 4, 4],
    );
    check(
        json!({"stepInit": "10%", "stepIncrement": "5%", "stepLimit": "25%"}),
        100,
        &[10, 15, 20, 25, 25, 5],
    );
    check(json!({"stepInit": "1%"}), 3, &[1, 1, 1]);
    check(json!({"stepInit": 10, "stepLimit": 2}), 5, &[2, 2, 1]);
    check(json!({"stepInit": 100}), 3, &[3]);
}

#[test]
fn a_step_is_completed_and_the_next_one_waits_until_all_are_ready() {
    let steps = steps(json!({"stepInit": 2, "stepIncrement": 1}));
    let check = |started, all_ready, expect: usize| {
        let gone = Gone { started, all_ready };
        assert_eq!(
            next(Some(&steps), 20, gone, waiting(20 - started)).len(),
            expect,
            "{gone:?}"
        );
    };
    check(0, true, 2);
    check(0, false, 2);
    // Stopped in the middle of a step.
    check(1, false, 1);
    check(2, false, 0);
    check(2, true, 3);
    check(4, false, 1);
    check(5, false, 0);
    check(5, true, 4);
}

#[test]
fn clusters_go_by_name_and_those_that_are_not_there_yet_go_last() {
    let mut all = waiting(3);
    all.reverse();
    all[2].is_late = true;
    assert_eq!(next(None, 3, Gone::default(), all), ["c001", "c002", "c000"]);
}

#[test]
fn a_value_that_is_no_step_is_reported_by_its_field() {
    let check = |value: Value, expect: &[&str]| {
        let errors = problems(Some(&serde_json::from_value(value.clone()).unwrap()));
        let fields: Vec<&str> = errors.iter().map(|error| error.path.as_str()).collect();
        assert_eq!(fields, expect, "{value}");
    };
    check(json!({}), &[]);
    check(
        json!({"install": {"stepInit": 1, "stepIncrement": 0, "stepLimit": "100%"}}),
        &[],
    );
    check(json!({"install": {"stepInit": 0}}), &["spec.rollout.install.stepInit"]);
    check(
        json!({"upgrade": {"stepInit": "0%"}}),
        &["spec.rollout.upgrade.stepInit"],
    );
    check(
        json!({"upgrade": {"stepInit": "101%"}}),
        &["spec.rollout.upgrade.stepInit"],
    );
    check(
        json!({"upgrade": {"stepInit": "half"}}),
        &["spec.rollout.upgrade.stepInit"],
    );
    check(
        json!({"upgrade": {"stepInit": 1, "stepIncrement": -1}}),
        &["spec.rollout.upgrade.stepIncrement"],
    );
    check(json!({"upgrade": {"stepLimit": 5}}), &["spec.rollout.upgrade.stepInit"]);
}
