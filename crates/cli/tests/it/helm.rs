//! Helm on the command line.

use crate::support::{Up, run};

// A new user finds it, and the options in its page exist.
#[test]
fn help_leads_to_charts_and_has_their_options() {
    let folder = tempfile::tempdir().unwrap();
    for command in ["up", "manager"] {
        let text = run(folder.path(), &["help", command]).stdout;
        for option in ["--helm <", "--helm-home", "--helm-chart-interval", "--helm-concurrency"] {
            assert!(text.contains(option), "{command} has no {option}: {text}");
        }
    }
    let refused = run(folder.path(), &["up", "--helm-concurrency", "0"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("1..=1000"), "{refused:?}");
}

// Windlass ships no helm: it reports at its start if helm is missing, and how to get it.
#[test]
fn a_missing_helm_is_reported_at_the_start_and_stops_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let finished = Up::start(folder.path(), &["--helm", "/nowhere/helm"]).interrupt();
    for part in [
        "no Helm chart can be installed",
        "/nowhere/helm",
        "https://helm.sh/docs/intro/install",
        "--helm",
    ] {
        assert!(finished.stderr.contains(part), "expected {part} in {}", finished.stderr);
    }
    finished.went_well();
}
