//! Upgrade plans and turns.

use std::collections::BTreeMap;

use serde_json::Value;

use super::*;
use crate::hooks::Hooks;

fn check_plan(from: &str, workers: Option<&str>, target: &str, allowed: &[&str], expect: (&[&str], &[&str])) {
    let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
    let route = Route {
        control_plane: from,
        workers,
        target,
        allowed: &allowed,
    };
    let plan = plan("Cluster a/b", &route).unwrap();
    assert_eq!(
        (&plan.control_plane[..], &plan.workers[..]),
        (&owned(expect.0)[..], &owned(expect.1)[..])
    );
}

fn owned(list: &[&str]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

// TO-222, TO-223, TO-303, TO-304
#[test]
fn plans_go_through_every_minor_release() {
    check_plan("v1.35.0", Some("v1.35.0"), "v1.35.0", &[], (&[], &[]));
    check_plan("v1.35.0", Some("v1.35.0"), "v1.36.0", &[], (&["v1.36.0"], &["v1.36.0"]));
    check_plan("v1.36.0", Some("v1.35.0"), "v1.36.0", &[], (&[], &["v1.36.0"]));
    let (old, new) = ("v1.31.2+rke2r9", "v1.31.2+rke2r10");
    check_plan(old, Some(old), new, &[], (&[new], &[new]));
    check_plan(new, Some(old), new, &[], (&[], &[new]));
    check_plan("v1.35.0", None, "v1.35.2", &[], (&["v1.35.2"], &[]));
    check_plan(
        "v1.30.0",
        Some("v1.30.0"),
        "v1.35.0",
        &["v1.31.0", "v1.31.4", "v1.32.0", "v1.33.0", "v1.34.1", "v1.35.0"],
        (
            &["v1.31.4", "v1.32.0", "v1.33.0", "v1.34.1", "v1.35.0"],
            &["v1.33.0", "v1.35.0"],
        ),
    );
}

// TO-221, TO-222
#[test]
fn plans_refuse_to_skip_or_go_back() {
    let refuse = |from, target, part: &str| {
        let route = Route {
            control_plane: from,
            workers: None,
            target,
            allowed: &[],
        };
        let error = plan("Cluster a/b", &route).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
        assert_eq!(error.field, "spec.topology.version");
    };
    refuse("v1.33.0", "v1.35.0", "in one step");
    refuse("v1.35.0", "v1.34.0", "cannot go back");
    refuse("v1.35.0", "latest", "no semantic version");
}

fn upgrade_plan(cp: &[&str], workers: &[&str]) -> UpgradePlan {
    UpgradePlan {
        control_plane: owned(cp),
        workers: owned(workers),
    }
}

fn without_hooks(facts: &ControlPlaneFacts<'_>, plan: &UpgradePlan) -> ControlPlaneStep {
    let hooks = Hooks::default();
    control_plane(facts, plan, &mut Calls::new(&Value::Null, &hooks))
}

fn quiet<'a>() -> ControlPlaneFacts<'a> {
    ControlPlaneFacts {
        version: "v1.35.0",
        running: "v1.35.0",
        ..ControlPlaneFacts::default()
    }
}

// TO-305
#[test]
fn the_control_plane_waits_for_rest() {
    let plan = upgrade_plan(&["v1.36.0"], &["v1.36.0"]);
    let check = |facts: ControlPlaneFacts<'_>, version: &str, part: &str| {
        let step = without_hooks(&facts, &plan);
        assert_eq!(step.version, version);
        match &step.pending {
            Some(why) => assert!(!part.is_empty() && why.contains(part), "{why}"),
            None => assert_eq!(part, ""),
        }
    };
    check(quiet(), "v1.36.0", "");
    check(ControlPlaneFacts { running: "", ..quiet() }, "v1.35.0", "provisioned");
    check(
        ControlPlaneFacts {
            running: "v1.34.0",
            ..quiet()
        },
        "v1.35.0",
        "still upgrading",
    );
    // Some providers report no patch. What cannot be read may be behind.
    check(
        ControlPlaneFacts {
            running: "1.34",
            ..quiet()
        },
        "v1.35.0",
        "still upgrading",
    );
    check(
        ControlPlaneFacts {
            running: "1.35",
            ..quiet()
        },
        "v1.36.0",
        "",
    );
    check(
        ControlPlaneFacts {
            running: "new",
            ..quiet()
        },
        "v1.35.0",
        "still upgrading",
    );
    check(
        ControlPlaneFacts {
            scaling: true,
            ..quiet()
        },
        "v1.35.0",
        "scaling",
    );
    check(
        ControlPlaneFacts {
            held_back: Some("annotation a is set"),
            ..quiet()
        },
        "v1.35.0",
        "annotation",
    );
    let busy = ["md".to_owned()];
    check(
        ControlPlaneFacts {
            workers_upgrading: &busy,
            ..quiet()
        },
        "v1.35.0",
        "MachineDeployments",
    );
}

type Annotations = BTreeMap<String, String>;

fn entry(annotation: Option<&str>) -> Annotations {
    annotation.map(|a| (a.to_owned(), String::new())).into_iter().collect()
}

fn done() -> ControlPlaneStep {
    ControlPlaneStep {
        version: "v1.36.0".to_owned(),
        ..ControlPlaneStep::default()
    }
}

fn turns(entries: &[(&Annotations, &str, bool)], cp: &ControlPlaneStep, n: usize) -> String {
    let facts: Vec<WorkerFacts<'_>> = entries
        .iter()
        .map(|(annotations, version, upgrading)| WorkerFacts {
            annotations,
            version,
            upgrading: *upgrading,
        })
        .collect();
    let plan = upgrade_plan(&[], &["v1.36.0"]);
    workers(&facts, cp, &plan, n)
        .iter()
        .map(|s| match s {
            WorkerStep { starting: true, .. } => 'S',
            WorkerStep { deferred: true, .. } => 'D',
            WorkerStep { pending: true, .. } => 'P',
            WorkerStep { upgrading: true, .. } => 'U',
            _ => '.',
        })
        .collect()
}

// TO-306, TO-307, TO-308
#[test]
fn workers_take_turns_in_order() {
    let (a, b, c) = (entry(None), entry(None), entry(None));
    let old = "v1.35.0";
    let new = "v1.36.0";
    let all = [(&a, old, false), (&b, old, false), (&c, old, false)];
    assert_eq!(turns(&all, &done(), 1), "SPP");
    assert_eq!(turns(&all, &done(), 2), "SSP");
    assert_eq!(turns(&[(&a, new, true), (&b, old, false)], &done(), 1), "UP");
    assert_eq!(turns(&[(&a, new, false), (&b, old, false)], &done(), 1), ".S");
    let upgrading = ControlPlaneStep {
        upgrading: true,
        ..done()
    };
    assert_eq!(turns(&all, &upgrading, 3), "PPP");
    let scaling = ControlPlaneStep {
        scaling: true,
        ..done()
    };
    assert_eq!(turns(&all, &scaling, 3), "PPP");
    let held = entry(Some(keys::HOLD_UPGRADE_SEQUENCE));
    assert_eq!(
        turns(&[(&a, old, false), (&held, old, false), (&c, old, false)], &done(), 3),
        "SDD"
    );
    let deferred = entry(Some(keys::DEFER_UPGRADE));
    assert_eq!(
        turns(
            &[(&a, old, false), (&deferred, old, false), (&c, old, false)],
            &done(),
            3
        ),
        "SDS"
    );
}

// TO-304
#[test]
fn workers_never_overtake_the_control_plane() {
    let a = entry(None);
    let behind = ControlPlaneStep {
        version: "v1.35.0".to_owned(),
        ..ControlPlaneStep::default()
    };
    assert_eq!(turns(&[(&a, "v1.35.0", false)], &behind, 1), "P");
}

// TO-223
#[test]
fn chained_upgrades_stop_for_the_workers() {
    let plan = upgrade_plan(&["v1.34.0", "v1.35.0"], &["v1.33.0", "v1.35.0"]);
    let facts = ControlPlaneFacts {
        version: "v1.33.0",
        running: "v1.33.0",
        ..ControlPlaneFacts::default()
    };
    let step = without_hooks(&facts, &plan);
    assert_eq!(step.version, "v1.33.0");
    assert!(step.pending.as_deref().is_some_and(|w| w.contains("first")), "{step:?}");
    let a = entry(None);
    let worker = WorkerFacts {
        annotations: &a,
        version: "v1.30.0",
        upgrading: false,
    };
    let steps = workers(&[worker], &step, &plan, 1);
    assert_eq!(steps[0].version, "v1.33.0");
    assert!(steps[0].starting);
}

// TO-215
#[test]
fn concurrency_is_a_positive_number() {
    assert_eq!(concurrency("c", None), Ok(1));
    assert_eq!(concurrency("c", Some("3")), Ok(3));
    assert!(concurrency("c", Some("0")).is_err());
    assert!(concurrency("c", Some("x")).is_err());
}

// Rows 304, 343: the versions that an extension gives are checked.
#[test]
fn versions_of_an_extension_are_checked() {
    let route = |workers: Option<&'static str>| Route {
        control_plane: "v1.33.0",
        workers,
        target: "v1.36.0",
        allowed: &[],
    };
    let check = |cp: &[&str], workers: &[&str], from: Option<&'static str>| {
        given("ClusterClass a/c", &route(from), &upgrade_plan(cp, workers)).map_err(|error| error.to_string())
    };
    let steps = ["v1.34.1", "v1.35.0", "v1.36.0"];
    let whole = check(&steps, &["v1.35.0", "v1.36.0"], Some("v1.33.0")).unwrap();
    assert_eq!(whole, upgrade_plan(&steps, &["v1.35.0", "v1.36.0"]));
    // As few as the skew allows.
    assert_eq!(check(&steps, &[], Some("v1.33.0")).unwrap().workers, ["v1.36.0"]);
    assert_eq!(
        check(&steps, &[], Some("v1.31.0")).unwrap().workers,
        ["v1.34.1", "v1.36.0"]
    );
    assert_eq!(check(&steps, &[], None).unwrap().workers, Vec::<String>::new());
    let refuse = |cp: &[&str], workers: &[&str], part: &str| {
        let error = check(cp, workers, Some("v1.33.0")).unwrap_err();
        assert!(
            error.starts_with("ClusterClass a/c: spec.upgrade.external.generateUpgradePlanExtension: ")
                && error.contains(part),
            "{error}"
        );
    };
    refuse(
        &["v1.35.0", "v1.36.0"],
        &[],
        "item 0; expecting a version with minor 33 or 34, found version v1.35.0",
    );
    refuse(
        &["v1.34.0", "v1.34.0", "v1.36.0"],
        &[],
        "item 1; version v1.34.0 must be greater than v1.34.0",
    );
    refuse(
        &["v1.34.0", "v1.35.0"],
        &[],
        "must end with version v1.36.0, ends with v1.35.0 instead",
    );
    refuse(&["one"], &[], "no semantic version");
    refuse(&[], &[], "ends with v1.33.0 instead");
    refuse(
        &steps,
        &["v1.34.0", "v1.36.0"],
        "versions v1.34.0 doesn't match any versions in the control plane upgrade plan",
    );
    refuse(
        &steps,
        &["v1.35.0"],
        "workers upgrade plan must end with version v1.36.0, ends with v1.35.0 instead",
    );
    refuse(
        &steps,
        &["v1.36.0", "v1.35.0"],
        "item 1; version v1.35.0 must be greater than v1.36.0",
    );
}
