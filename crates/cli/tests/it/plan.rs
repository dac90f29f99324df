//! `windlass plan` as a user or a CI job runs it: from files, and about a running management cluster.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use windlass_testkit::{CLASS, ClusterOf};

use crate::support::{Finished, Up, objects, run};

/// Files of a management cluster and of a change, in a folder of their own.
fn files(change: &ClusterOf) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let before = ClusterOf::new("fleet-1", 3, 2).object();
    fs::create_dir(folder.path().join("before")).unwrap();
    fs::write(folder.path().join("before/class.yaml"), CLASS).unwrap();
    fs::write(folder.path().join("before/cluster.json"), before.to_string()).unwrap();
    fs::write(folder.path().join("after.json"), change.object().to_string()).unwrap();
    folder
}

fn offline(folder: &Path, more: &[&str]) -> Finished {
    let path = |name: &str| folder.join(name).display().to_string();
    let (before, after) = (path("before"), path("after.json"));
    let mut args = vec!["plan", "--offline", &before, "-f", &after];
    args.extend(more);
    run(folder, &args)
}

fn exits(finished: &Finished, code: i32) {
    assert_eq!((finished.code, finished.signal), (Some(code), None), "{finished:?}");
}

/// The same change in each format.
fn in_all_formats(plan: impl Fn(&str) -> Finished, machines: u64) {
    let text = plan("text");
    exits(&text, 2);
    assert!(
        text.stdout.contains(&format!("Machines: {machines} replaced")),
        "{text:?}"
    );
    let as_json = plan("json");
    exits(&as_json, 2);
    let document: Value = serde_json::from_str(&as_json.stdout).unwrap();
    assert_eq!(document["summary"]["machinesReplaced"], machines, "{document:#}");
    assert_eq!(document["summary"]["changedClusters"], 1, "{document:#}");
    let as_yaml = plan("yaml");
    exits(&as_yaml, 2);
    let same: Value = serde_saphyr::from_str(&as_yaml.stdout).unwrap();
    assert_eq!(same, document);
    let markdown = plan("markdown");
    exits(&markdown, 2);
    assert!(
        markdown.stdout.contains(&format!("{machines} replaced")),
        "{markdown:?}"
    );
    assert!(
        markdown
            .stdout
            .lines()
            .any(|line| line.starts_with('|') || line.starts_with('#')),
        "{markdown:?}"
    );
    for finished in [&text, &as_json, &as_yaml, &markdown] {
        assert_eq!(finished.stderr, "", "only the plan is printed");
    }
}

#[test]
fn files_are_planned_in_all_formats() {
    let folder = files(&ClusterOf::new("fleet-1", 3, 2).version("v1.36.0"));
    in_all_formats(|format| offline(folder.path(), &["--output", format]), 5);
    let folder = files(&ClusterOf::new("fleet-1", 3, 2));
    exits(&offline(folder.path(), &[]), 0);
}

#[test]
fn wrong_usage_has_another_exit_code_than_a_change() {
    let folder = tempfile::tempdir().unwrap();
    // 2 would be a change.
    for args in [
        &["plan"][..],
        &["plan", "--bogus"],
        &["--bogus", "plan"],
        &["--log-level", "warn", "plan", "-o", "xml"],
        &["plan", "--offline", "missing", "-f", "missing"],
    ] {
        exits(&run(folder.path(), args), 1);
    }
    for args in [
        &["--log-level", "plan", "lint"][..],
        &["lint", "--bogus", "plan"],
        &["manager", "--namespace", "plan", "--bogus"],
    ] {
        exits(&run(folder.path(), args), 2);
    }
}

#[test]
fn what_a_server_would_not_store_is_no_plan_and_has_a_place() {
    let folder = files(&ClusterOf::new("fleet-1", 3, 2));
    let class = folder.path().join("before/class.yaml");
    let place = |line: usize, column: usize| format!("{}:{line}:{column}: error: ", class.display());
    for (from, to, line, words) in [
        (
            "  infrastructure:\n",
            "  infrastructre:\n",
            8,
            "spec.infrastructre: unknown field",
        ),
        (
            "required: false",
            "required: sometimes",
            38,
            "spec.variables[0].required: Invalid value",
        ),
    ] {
        fs::write(&class, CLASS.replacen(from, to, 1)).unwrap();
        let finished = offline(folder.path(), &[]);
        let at = CLASS
            .lines()
            .position(|one| one == from.trim_end() || one.trim() == from)
            .unwrap()
            + 1;
        assert_eq!(at, line, "the line of {from:?}");
        let column = CLASS.lines().nth(at - 1).unwrap().find(from.trim()).unwrap() + 1;
        finished.failed_with(&[&place(line, column), words]);
        assert_eq!(finished.stdout, "");
    }
    // An object that was on a server, in a list, with a field of another release.
    fs::write(&class, CLASS).unwrap();
    let mut stored = ClusterOf::new("fleet-2", 1, 1).object();
    stored["metadata"]["uid"] = "b0a7".into();
    stored["spec"]["topology"]["workers"]["machineDeployments"][0]["replica"] = 3.into();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [stored]});
    fs::write(folder.path().join("before/list.json"), format!("{list:#}")).unwrap();
    offline(folder.path(), &[]).failed_with(&[
        "before/list.json:",
        "Cluster default/fleet-2: spec.topology.workers.machineDeployments[0].replica: unknown field",
        "is \"replicas\" meant?",
    ]);
    // In the change, as the server says it.
    fs::remove_file(folder.path().join("before/list.json")).unwrap();
    let mut change = ClusterOf::new("fleet-1", 3, 2).object();
    change["spec"]["topology"]["versoin"] = "v1.36.0".into();
    fs::write(folder.path().join("after.json"), change.to_string()).unwrap();
    let finished = offline(folder.path(), &[]);
    exits(&finished, 1);
    assert!(finished.stdout.contains("versoin"), "{finished:?}");
}

#[tokio::test]
async fn changes_of_a_stored_class_and_of_the_class_of_a_cluster_are_planned() {
    let folder = tempfile::tempdir().unwrap();
    let up = Up::start(folder.path(), &[]);
    let admin = objects(folder.path()).await;
    let cluster = ClusterOf::new("live", 1, 2);
    admin.apply_yaml(CLASS).await;
    admin
        .apply_yaml(&CLASS.replace("name: quick-start", "name: next"))
        .await;
    cluster.apply(&admin).await;
    cluster.wait_running(&admin).await;
    let kubeconfig = folder.path().join("kubeconfig").display().to_string();
    let plan = |more: &[&str]| {
        let mut args = vec!["plan", "--kubeconfig", &kubeconfig];
        args.extend(more);
        run(folder.path(), &args)
    };
    let set = [
        "--class",
        "quick-start",
        "--set",
        "spec.patches[name=node-label].enabledIf=\"true\"",
    ];
    in_all_formats(|format| plan(&[&set[..], &["-o", format]].concat()), 2);
    // The templates have the same content under other names, so nothing is replaced.
    let moved = plan(&["--rebase", "live=next", "-o", "json"]);
    exits(&moved, 2);
    let document: Value = serde_json::from_str(&moved.stdout).unwrap();
    assert_eq!(
        (
            &document["summary"]["machinesReplaced"],
            &document["changes"][0]["fields"][0]["to"]
        ),
        (&json!(0), &json!("next")),
        "{document:#}"
    );
    let missing = plan(&["--rebase", "live=none"]);
    exits(&missing, 1);
    assert!(missing.stdout.contains("none not found"), "{missing:?}");
    plan(&["--rebase", "absent=next"]).failed_with(&["Cluster default/absent does not exist"]);
    plan(&["--class", "absent", "--set", "spec.x=1"]).failed_with(&["absent"]);
    let same = plan(&[
        "--class",
        "quick-start",
        "--set",
        "spec.patches[name=node-label].description=Labels the worker nodes at registration.",
    ]);
    exits(&same, 0);
    up.interrupt().went_well();
}
