//! `windlass lint` and `windlass test` as a user or a CI job runs them.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{Finished, run, run_with};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

fn class() -> String {
    fs::read_to_string(examples().join("clusterclass-quick-start.yaml")).unwrap()
}

/// Runs the program in a new folder with these files.
fn with_files(files: &[(&str, &str)], args: &[&str]) -> Finished {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    run_with(folder.path(), args, "")
}

fn exits(finished: &Finished, code: i32, words: &[&str]) {
    assert_eq!(finished.code, Some(code), "{finished:?}");
    for word in words {
        let has = finished.stdout.contains(word) || finished.stderr.contains(word);
        assert!(has, "no {word:?} in {finished:?}");
    }
}

#[test]
fn examples_are_good_and_their_tests_pass() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| examples().join(name).display().to_string();
    let classes = [
        path("clusterclass-quick-start.yaml"),
        path("cluster-quick-start.yaml"),
        path("externally-managed"),
    ];
    let args: Vec<&str> = ["lint", "--strict"]
        .into_iter()
        .chain(classes.iter().map(String::as_str))
        .collect();
    exits(&run(folder.path(), &args), 0, &[": 0 errors, 0 warnings\n"]);
    let tests = path("class-tests");
    exits(
        &run(folder.path(), &["test", &tests]),
        0,
        &["4 cases: 4 passed, 0 failed\n"],
    );
    // Golden files are those that --update would write.
    let golden = fs::read(examples().join("class-tests/golden/defaults.yaml")).unwrap();
    exits(&run(folder.path(), &["test", "--update", &tests]), 0, &["4 passed"]);
    assert!(fs::read(examples().join("class-tests/golden/defaults.yaml")).unwrap() == golden);
}

#[test]
fn findings_have_a_file_a_line_and_a_remedy() {
    let bad = class().replacen("name: quick-start-cluster\n", "name: quick-start-clusters\n", 1);
    let found = with_files(&[("a/class.yaml", &bad)], &["lint", "a"]);
    exits(
        &found,
        1,
        &[
            "a/class.yaml:12:7: error: ClusterClass quick-start: spec.infrastructure.templateRef.name: DevClusterTemplate \
             quick-start-clusters of infrastructure.cluster.x-k8s.io/v1beta2 is not in the files [template-reference]\n    \
             is \"quick-start-cluster\" meant?\n",
            "6 objects: 1 error, 0 warnings\n",
        ],
    );
    assert_eq!(found.stderr, "");
    let json = with_files(&[("class.yaml", &bad)], &["lint", "--output", "json", "class.yaml"]);
    exits(&json, 1, &[]);
    let document: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&document["errors"], &document["objects"]), (&1.into(), &6.into()));
    let finding = &document["findings"][0];
    assert_eq!(
        (
            &finding["line"],
            &finding["column"],
            &finding["check"],
            &finding["severity"]
        ),
        (&12.into(), &7.into(), &"template-reference".into(), &"error".into())
    );
}

#[test]
fn warnings_fail_only_with_strict() {
    let unused = class().replacen(
        "  variables:\n",
        "  variables:\n    - name: unused\n      required: false\n      schema: {openAPIV3Schema: {type: string}}\n",
        1,
    );
    let files = [("class.yaml", unused.as_str())];
    exits(
        &with_files(&files, &["lint", "class.yaml"]),
        0,
        &["unused-variable", "0 errors, 1 warning\n"],
    );
    exits(
        &with_files(&files, &["lint", "--strict", "class.yaml"]),
        1,
        &["0 errors, 1 warning\n"],
    );
}

#[test]
fn standard_input_is_read() {
    let folder = tempfile::tempdir().unwrap();
    exits(
        &run_with(folder.path(), &["lint", "-"], &class()),
        0,
        &["6 objects: 0 errors"],
    );
    exits(
        &run_with(folder.path(), &["lint", "-"], "kind: ["),
        1,
        &["<stdin>:1:", "is not valid YAML"],
    );
    exits(
        &run_with(folder.path(), &["lint", "-"], "# nothing\n"),
        2,
        &["error: there is no object in the files"],
    );
}

#[test]
fn files_that_cannot_be_read_are_no_findings() {
    let check = |files: &[(&str, &str)], args: &[&str], words: &[&str]| exits(&with_files(files, args), 2, words);
    check(
        &[],
        &["lint", "none.yaml"],
        &["error: cannot read none.yaml: No such file"],
    );
    check(
        &[("a/b.txt", "x")],
        &["lint", "a"],
        &["a has no file whose name ends in .yaml"],
    );
    check(&[("a.yaml", "\0")], &["lint", "a.yaml"], &["a.yaml is no text"]);
    check(
        &[("a.yaml", "a: 1")],
        &["test", "a.yaml"],
        &["there is no ClusterClassTest"],
    );
    let test = "apiVersion: test.windlass.dev/v1alpha1\nkind: ClusterClassTest\nmetadata: {name: t}\nspec:\n  files: [none.yaml]\n  cases: [{name: a}]\n";
    check(&[("t.yaml", test)], &["test", "t.yaml"], &["cannot read none.yaml"]);
    let misspelt = test.replace("name: a", "nmae: a");
    check(&[("t.yaml", &misspelt)], &["test", "t.yaml"], &["t.yaml:6: ", "nmae"]);
    check(
        &[("t.yaml", test), ("none.yaml", &class())],
        &["test", "--filter", "x", "t.yaml"],
        &["no case has \"x\""],
    );
}

#[test]
fn failing_cases_show_differences_in_all_outputs() {
    let class = class();
    let test = "apiVersion: test.windlass.dev/v1alpha1
kind: ClusterClassTest
metadata: {name: \"quick & start\"}
spec:
  files: [class.yaml]
  cases:
  - name: good
  - name: bad
    expect:
      objects: [{kind: KubeadmControlPlane, spec: {version: v1.0.0}}]
      golden: golden/bad.yaml
";
    let files = [("class.yaml", class.as_str()), ("t.yaml", test)];
    let text = with_files(&files, &["test", "t.yaml"]);
    exits(
        &text,
        1,
        &[
            "FAIL t.yaml: quick & start: bad\n",
            "at controlPlane: spec.version: expected \"v1.0.0\", got \"v1.36.0\"\n",
            "golden file golden/bad.yaml does not exist; --update writes it\n",
            "2 cases: 1 passed, 1 failed\n",
        ],
    );
    assert!(!text.stdout.contains("kind: KubeadmControlPlane"), "{text:?}");
    let verbose = with_files(&files, &["test", "--verbose", "t.yaml"]);
    exits(
        &verbose,
        1,
        &["pass t.yaml: quick & start: good\n", "    kind: KubeadmControlPlane\n"],
    );
    exits(
        &with_files(&files, &["test", "--filter", "good", "t.yaml"]),
        0,
        &["1 case: 1 passed, 0 failed\n"],
    );
    let json = with_files(&files, &["test", "--output", "json", "t.yaml"]);
    let document: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&document["cases"], &document["failed"]), (&2.into(), &1.into()));
    assert_eq!(document["suites"][0]["cases"][1]["result"], "failed");
    let junit = with_files(&files, &["test", "--output", "junit", "t.yaml"]);
    exits(
        &junit,
        1,
        &[
            "<testsuites tests=\"2\" failures=\"1\" errors=\"0\">",
            "<testsuite name=\"quick &amp; start\" file=\"t.yaml\" tests=\"2\" failures=\"1\" errors=\"0\">",
            "<testcase name=\"good\" classname=\"quick &amp; start\"/>",
            "expected &quot;v1.0.0&quot;, got &quot;v1.36.0&quot;",
        ],
    );
}

#[test]
fn golden_files_are_written_on_demand_and_then_compared() {
    let folder = tempfile::tempdir().unwrap();
    let test = "apiVersion: test.windlass.dev/v1alpha1\nkind: ClusterClassTest\nmetadata: {name: t}\nspec:\n  files: [class.yaml]\n  cases: [{name: a, expect: {golden: golden/a.yaml}}]\n";
    fs::write(folder.path().join("class.yaml"), class()).unwrap();
    fs::write(folder.path().join("t.yaml"), test).unwrap();
    let test = |args: &[&str]| run_with(folder.path(), &[&["test", "t.yaml"], args].concat(), "");
    exits(&test(&[]), 1, &["does not exist"]);
    exits(&test(&["--update"]), 0, &["1 passed"]);
    exits(&test(&[]), 0, &["1 passed"]);
    let golden = folder.path().join("golden/a.yaml");
    let text = fs::read_to_string(&golden).unwrap();
    assert!(text.contains("kind: KubeadmControlPlane\n"), "{text}");
    fs::write(&golden, text.replacen("127.0.0.1", "127.0.0.2", 1)).unwrap();
    exits(
        &test(&[]),
        1,
        &["certSANs[1]: expected \"127.0.0.2\", got \"127.0.0.1\""],
    );
    // A class that is wrong gives no golden file.
    fs::write(
        folder.path().join("class.yaml"),
        class().replacen("op: add", "op: move", 1),
    )
    .unwrap();
    exits(
        &test(&["--update"]),
        1,
        &[
            "error t.yaml: t: a",
            "Unsupported value: \"move\"",
            "1 could not be run",
        ],
    );
    assert!(fs::read_to_string(&golden).unwrap().contains("127.0.0.2"));
}
