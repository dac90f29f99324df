//! `windlass up`: it becomes ready, and continues its work after a stop or a kill.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use windlass_api::core::{Cluster, Machine};
use windlass_testkit::{CLASS, ClusterOf};

use crate::support::{Up, objects};

fn is_running(machine: &Machine) -> bool {
    machine
        .status
        .as_ref()
        .is_some_and(|status| status.phase.as_deref() == Some("Running"))
}

/// A cluster with slow workers, so that the state after the first running machine is an intermediate one.
fn with_slow_workers(cluster: &ClusterOf) -> Value {
    let mut object = cluster.object();
    let workers = &mut object["spec"]["topology"]["workers"]["machineDeployments"][0];
    workers["variables"] = json!({"overrides": [{"name": "startupDuration", "value": "4s"}]});
    object
}

// CL-082
#[tokio::test]
async fn a_creation_goes_on_after_a_kill_and_after_ctrl_c() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = ClusterOf::new("tough", 3, 3);
    let up = Up::start(folder.path(), &[]);
    let first = objects(folder.path()).await;
    first.apply_yaml(CLASS).await;
    first.apply(&with_slow_workers(&cluster)).await;
    let machines = first
        .wait_all::<Machine>("one of them runs", |machines| machines.iter().any(is_running))
        .await;
    up.kill();
    assert!(
        machines.iter().filter(|machine| is_running(machine)).count() < 6,
        "the creation was over"
    );
    let begun: Vec<_> = machines.into_iter().map(|machine| machine.metadata.uid).collect();

    let up = Up::start(folder.path(), &[]);
    let second = objects(folder.path()).await;
    cluster.wait_running(&second).await;
    let uids = |all: Vec<Machine>| -> Vec<_> { all.into_iter().map(|machine| machine.metadata.uid).collect() };
    let running = uids(second.list().await);
    assert!(
        begun.iter().all(|uid| running.contains(uid)),
        "what was begun is not begun again"
    );
    up.interrupt().went_well();

    let up = Up::start(folder.path(), &[]);
    let third = objects(folder.path()).await;
    assert_eq!(uids(third.list().await), running);
    let fewer = cluster.workers(1);
    third.apply(&with_slow_workers(&fewer)).await;
    fewer.wait_running(&third).await;
    third.delete("Cluster", "tough").await;
    third.wait_gone("tough").await;
    assert_eq!(third.list::<Cluster>().await.len(), 0);
    up.interrupt().went_well();
}

#[tokio::test]
async fn it_answers_on_its_port_with_a_kubeconfig_for_its_owner_only() {
    let folder = tempfile::tempdir().unwrap();
    let port = windlass_envtest::reserved_port().unwrap();
    let up = Up::start(folder.path(), &["--port", &port.to_string()]);
    assert!(
        up.said().contains(&format!("https://127.0.0.1:{port}")),
        "{}",
        up.said()
    );
    let kubeconfig = folder.path().join("kubeconfig");
    assert!(
        up.said()
            .contains(&format!("kubectl --kubeconfig {}", kubeconfig.display())),
        "{}",
        up.said()
    );
    let mode = std::fs::metadata(&kubeconfig).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let version = objects(folder.path()).await.client().apiserver_version().await.unwrap();
    assert_eq!(version.major, "1");
    let finished = up.interrupt();
    finished.went_well();
    // No server answers, and the folder is unlocked.
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
    let port = port.to_string();
    Up::start(folder.path(), &["--port", &port]).interrupt().went_well();
}

#[test]
fn a_file_of_tokens_that_others_may_read_is_reported_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    std::fs::write(&tokens, "sesame,ann,\n").unwrap();
    for (mode, lines) in [(0o600, 0), (0o640, 1), (0o604, 1)] {
        std::fs::set_permissions(&tokens, std::fs::Permissions::from_mode(mode)).unwrap();
        let running = Up::start(folder.path(), &["--token-auth-file", tokens.to_str().unwrap()]);
        let finished = running.interrupt();
        finished.went_well();
        let warnings = finished.stderr.lines().filter(|line| line.contains("chmod 600"));
        assert_eq!(warnings.count(), lines, "{mode:o}: {}", finished.stderr);
        assert!(!finished.stderr.contains("sesame"), "{}", finished.stderr);
    }
}

#[tokio::test]
async fn log_lines_can_be_found_by_cluster_namespace_and_name() {
    let folder = tempfile::tempdir().unwrap();
    let (data, kubeconfig) = (folder.path().join("data"), folder.path().join("kubeconfig"));
    let line = [
        "up",
        "--data-dir",
        data.to_str().unwrap(),
        "--kubeconfig",
        kubeconfig.to_str().unwrap(),
        "--port",
        "0",
        "--log-format",
        "json",
        "-v",
        "2",
    ];
    let log = folder.path().join("log");
    let up = Up::logged(folder.path(), &line, &log, "kubectl --kubeconfig");
    let objects = objects(folder.path()).await;
    objects.apply_yaml(CLASS).await;
    let cluster = ClusterOf::new("logged", 1, 0);
    cluster.apply(&objects).await;
    cluster.wait_running(&objects).await;
    assert_eq!(up.interrupt().code, Some(0));
    let log = std::fs::read_to_string(&log).unwrap();
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let created = lines.iter().find(|line| line["message"] == "created Machine");
    let created = created.unwrap_or_else(|| panic!("{lines:?}"));
    assert_eq!(
        json!([created["controller"], created["namespace"], created["Cluster"]]),
        json!(["kubeadmcontrolplane", "default", "default/logged"]),
        "{created}"
    );
    assert!(created["name"].as_str().unwrap().starts_with("logged-"), "{created}");
}
