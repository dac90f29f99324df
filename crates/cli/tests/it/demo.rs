//! `windlass demo`: to the end, or to a failure that explains itself.

use serde_json::Value;

use crate::support::run;

#[test]
fn it_goes_to_the_end_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let args = [
        "demo",
        "--output",
        "json",
        "--control-plane-replicas",
        "1",
        "--workers",
        "1",
    ];
    let finished = run(folder.path(), &args);
    finished.went_well();
    let report: Value = serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {finished:?}"));
    let steps: Vec<&str> = report["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["name"].as_str().unwrap())
        .collect();
    assert_eq!(steps, ["create", "scale", "upgrade", "delete"]);
    assert!(
        report["steps"]
            .as_array()
            .unwrap()
            .iter()
            .all(|step| step["seconds"].as_f64().unwrap() > 0.0)
    );
    assert!(report["writesPerMachine"].as_f64().unwrap() > 0.0);
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        0,
        "temporary files are left"
    );
}

#[test]
fn a_step_that_takes_too_long_is_a_failure_with_the_conditions_that_explain_it() {
    let folder = tempfile::tempdir().unwrap();
    let finished = run(folder.path(), &["demo", "--workers", "40", "--timeout", "1s"]);
    finished.failed_with(&[
        "step create did not finish within 1 s",
        "Cluster/quick-start",
        "Available=",
        "hint: --timeout gives it more time",
    ]);
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        0,
        "temporary files are left"
    );
}

#[test]
fn wrong_usage_is_told_apart_from_failure() {
    let folder = tempfile::tempdir().unwrap();
    for args in [
        &["demo", "--workers", "many"][..],
        &["up", "--controllers", "nobody", "--data-dir", "x"],
        &["nothing"],
    ] {
        assert_eq!(run(folder.path(), args).code, Some(2), "{args:?}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
