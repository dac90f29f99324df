//! `windlass demo` finishes, or fails with an explanation.

use serde_json::Value;

use crate::support::{Up, run};

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

/// The report of a demo with externally managed infrastructure.
fn externally_managed(more: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let small = ["--control-plane-replicas", "1", "--workers", "1"];
    let mut args = vec!["demo", "--externally-managed", "--output", "json"];
    args.extend(small.iter().chain(more));
    let finished = run(folder.path(), &args);
    finished.went_well();
    serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {finished:?}"))
}

// EX-005, EX-021, EX-024, EX-025, EX-053, EX-055, EX-057, EX-065, EX-079, EX-080
#[test]
fn externally_managed_infrastructure_is_waited_for_and_never_written() {
    let report = externally_managed(&[]);
    let steps: Vec<&str> = report["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["name"].as_str().unwrap())
        .collect();
    assert_eq!(steps, ["create", "provide", "scale", "upgrade", "refuse", "delete"]);
    let told = &report["externallyManaged"];
    assert_eq!(told["providerWrites"], 0);
    assert_eq!(told["objects"], 1);
    // The Cluster's label and owner come from the topology, everything else from the external system.
    assert_eq!(told["managers"], serde_json::json!(["capi-topology", "terraform"]));
    let waited = told["waitedFor"][0].as_str().unwrap();
    assert!(
        waited.contains("status.initialization.provisioned is false"),
        "{waited}"
    );
    let refusal = told["refusal"].as_str().unwrap();
    let words = "metadata.annotations: Forbidden: removal of externally managed annotation is not allowed";
    assert!(refusal.contains(words), "{refusal}");
}

// EX-004, EX-064, EX-065
#[test]
fn any_class_can_use_externally_managed_infrastructure() {
    let class = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/clusterclass-quick-start.yaml"
    );
    let report = externally_managed(&["--clusters", "3", "--class", class]);
    assert_eq!(report["externallyManaged"]["providerWrites"], 0);
    assert_eq!(report["externallyManaged"]["objects"], 3);
}

#[test]
fn a_step_that_takes_too_long_is_a_failure_with_the_conditions_that_explain_it() {
    let folder = tempfile::tempdir().unwrap();
    let finished = run(folder.path(), &["demo", "--workers", "100", "--timeout", "3s"]);
    finished.failed_with(&[
        "step create did not finish within 3 s",
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
fn an_interruption_has_the_exit_code_of_shells() {
    let folder = tempfile::tempdir().unwrap();
    let demo = Up::command(folder.path(), &["demo", "--clusters", "3", "--workers", "9"], "created");
    let finished = demo.interrupt();
    assert_eq!((finished.code, finished.signal), (Some(130), None), "{finished:?}");
    assert!(finished.stderr.ends_with("error: interrupted\n"), "{finished:?}");
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        0,
        "temporary files are left"
    );
}

#[test]
fn wrong_usage_and_failure_have_different_exit_codes() {
    let folder = tempfile::tempdir().unwrap();
    for args in [
        &["demo", "--workers", "many"][..],
        &["up", "--controllers", "unknown", "--data-dir", "x"],
        &["nothing"],
        &["up", "--log-level", "loud"],
    ] {
        assert_eq!(run(folder.path(), args).code, Some(2), "{args:?}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
