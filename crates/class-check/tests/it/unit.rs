//! Unit tests of classes: what passes, what fails, and what is refused to be run.

use std::collections::BTreeMap;

use windlass_class_check::File;
use windlass_class_check::unit::{CaseResult, SuiteResult, run, suites};

use crate::world::{CLASS, changed, files, kinds};

fn suite_text(cases: &str) -> String {
    let head = "apiVersion: test.windlass.dev/v1alpha1
kind: ClusterClassTest
metadata: {name: quick-start}
spec:
  files: [class.yaml]
  cluster:
    spec:
      topology:
        version: v1.35.0
        controlPlane: {replicas: 3}
        workers: {machineDeployments: [{class: default-worker, name: md-0, replicas: 2}]}
  cases:
";
    format!("{head}{cases}")
}

fn results(class: &str, cases: &str, goldens: &BTreeMap<String, String>) -> SuiteResult {
    let text = suite_text(cases);
    let name = "t.yaml".to_owned();
    let suites = suites(&File { name, text }).unwrap();
    run(&suites[0], &files(&[("class.yaml", class)]), goldens, kinds())
}

fn failures(cases: &str) -> Vec<String> {
    let mut result = results(CLASS, cases, &BTreeMap::new());
    let CaseResult {
        failures, is_broken, ..
    } = result.cases.remove(0);
    assert!(!is_broken, "{failures:?}");
    failures
}

#[test]
fn generated_objects_are_compared_as_subsets() {
    let none: [&str; 0] = [];
    assert_eq!(
        failures(
            "  - name: a
    variables: {nodeLabel: blue}
    expect:
      objects:
      - {kind: KubeadmControlPlane, place: controlPlane, spec: {replicas: 3}}
      - {kind: DevMachineTemplate, place: machineDeployments/md-0}
      - {kind: DevCluster, place: infrastructureCluster, metadata: {namespace: default, uid: null}}
      absent:
      - {kind: MachinePool}
"
        ),
        none
    );
    let found = failures(
        "  - name: a
    expect:
      objects:
      - {kind: KubeadmControlPlane, spec: {replicas: 5, none: {}}}
      - {kind: DevMachineTemplate}
      - {kind: MachinePool, place: machinePools/mp-0}
      absent:
      - {kind: MachineDeployment}
",
    );
    assert_eq!(found.len(), 5, "{found:#?}");
    assert!(
        found[0].ends_with("at controlPlane: spec.none: differs (- expected, + got)\n  -{}")
            || found[0].contains("spec.none: expected {}, got nothing"),
        "{found:#?}"
    );
    assert!(found[1].ends_with("spec.replicas: expected 5, got 3"), "{found:#?}");
    assert!(found[2].starts_with("DevMachineTemplate is ambiguous"), "{found:#?}");
    assert!(
        found[3].starts_with("MachinePool at machinePools/mp-0 is not generated"),
        "{found:#?}"
    );
    assert!(
        found[4].contains("is generated, and expected to be absent"),
        "{found:#?}"
    );
}

#[test]
fn the_cluster_has_its_defaults() {
    let none: [&str; 0] = [];
    assert_eq!(
        failures(
            "  - name: a
    expect:
      objects:
      - kind: Cluster
        spec: {topology: {variables: [{name: startupDuration, value: 0s}, {name: certSANs}, {name: nodeLabel}]}}
"
        ),
        none
    );
}

#[test]
fn refusals_are_expected_or_failures() {
    let none: [&str; 0] = [];
    let refused = "  - name: a
    variables: {startupDuration: 10, other: 1}
    expect:
      refused:
      - {field: 'spec.topology.variables[startupDuration].value', message: must be of type string}
      - {message: variable is not defined}
";
    assert_eq!(failures(refused), none);
    let found = failures("  - name: a\n    variables: {startupDuration: 10}\n");
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(
        found[0].starts_with("refused: Cluster default/test: spec.topology.variables[startupDuration].value: "),
        "{found:#?}"
    );
    let found = failures("  - name: a\n    expect: {refused: [{message: x}]}\n");
    assert_eq!(found, ["the Cluster is accepted, and a refusal is expected"]);
}

#[test]
fn a_cluster_of_another_class_is_no_case() {
    let found = failures("  - name: a\n    cluster: {spec: {topology: {classRef: {name: other}}}}\n");
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(
        found[0].contains("spec.topology.classRef: is not the class of the test, default/quick-start"),
        "{found:#?}"
    );
}

#[test]
fn golden_files_hold_everything_but_the_ends_of_names() {
    let cases = "  - name: a\n    expect: {golden: a.yaml}\n";
    let first = results(CLASS, cases, &BTreeMap::new());
    assert!(first.cases[0].failures[0].contains("does not exist"), "{first:?}");
    let (path, text) = first.cases[0].golden.clone().unwrap();
    assert_eq!(path, "a.yaml");
    assert!(text.contains("name: test-md-0-xxxxx"), "{text}");
    let goldens = BTreeMap::from([(path, text)]);
    assert!(results(CLASS, cases, &goldens).cases[0].failures.is_empty());
    let other = changed(&[("certSANs: [localhost, 127.0.0.1]", "certSANs: [localhost]")]);
    let found = results(&other, cases, &goldens).cases.remove(0).failures;
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(
        found[0].contains("certSANs: differs") && found[0].contains("\n  -- 127.0.0.1"),
        "{found:#?}"
    );
}

#[test]
fn a_class_that_is_refused_cannot_be_tested() {
    let broken = changed(&[("op: add", "op: move")]);
    let result = results(&broken, "  - name: a\n  - name: b\n", &BTreeMap::new());
    assert_eq!((result.broken(), result.failed()), (2, 0));
    assert!(result.cases[0].failures[0].contains("class.yaml:"), "{result:?}");
    let lacking: Vec<&str> = CLASS.split("---\n").take(2).collect();
    let result = results(&lacking.join("---\n"), "  - name: a\n", &BTreeMap::new());
    assert!(
        result.cases[0].failures[0].contains("is not in the files"),
        "{result:?}"
    );
}

#[test]
fn files_of_another_form_are_refused_with_a_line() {
    let check = |text: &str, line: usize, words: &str| {
        let name = "t.yaml".to_owned();
        let findings = suites(&File {
            name,
            text: text.to_owned(),
        })
        .unwrap_err();
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].message.contains(words), "{findings:?}");
        assert_eq!(findings[0].position.line, line, "{findings:?}");
    };
    let good = suite_text("  - name: a\n");
    check(
        &good.replace("  - name: a", "  - name: a\n    expcet: {}"),
        14,
        "expcet",
    );
    check(&good.replace("v1alpha1", "v1"), 1, "is no ClusterClassTest");
    check(&format!("{good}  - name: a\n"), 1, "a name of its own");
    check(&good.replace("files: [class.yaml]", "files: []"), 1, "spec.files");
    check(&good.replace("files: [class.yaml]", "files: ['-']"), 1, "spec.files");
    for golden in ["/tmp/x", "../x", "a/../../x", "''"] {
        let text = suite_text(&format!("  - name: a\n    expect: {{golden: {golden}}}\n"));
        check(&text, 1, "must be below the directory");
    }
    check(&format!("a: 1\n---\n{good}   x"), 16, "did not find expected key");
    let name = "t.yaml".to_owned();
    let none = suites(&File {
        name,
        text: CLASS.to_owned(),
    })
    .unwrap();
    assert!(none.is_empty());
}
