//! Errors that prevent the start or writes name their cause, and lose no data.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use windlass_testkit::{CLASS, ClusterOf};

use crate::support::{Finished, Up, objects, run};

fn up(folder: &Path) -> Finished {
    let data = folder.join("data");
    run(folder, &["up", "--port", "0", "--data-dir", data.to_str().unwrap()])
}

/// All files below a folder, with their contents.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            found.push((path.clone(), fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn a_port_in_use_is_named_and_the_folder_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let data = folder.path().join("data");
    for command in ["up", "apiserver"] {
        let finished = run(
            folder.path(),
            &[command, "--port", &port, "--data-dir", data.to_str().unwrap()],
        );
        finished.failed_with(&[&format!("port {port} on 127.0.0.1 is in use"), "hint: ", "--port"]);
        assert_eq!(contents(&data), []);
    }
}

#[tokio::test]
async fn a_folder_that_cannot_be_used_is_named_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let running = Up::start(folder.path(), &[]);
    objects(folder.path()).await.apply_yaml(CLASS).await;
    let data = folder.path().join("data");
    let store = data.join("store");
    let name = store.display().to_string();
    up(folder.path()).failed_with(&[&name, "in use by another process"]);
    running.interrupt().went_well();
    let good = contents(&data);

    let refused = |words: &[&str]| {
        let before = contents(&data);
        up(folder.path()).failed_with(words);
        assert!(contents(&data) == before, "a refused start changed the folder");
    };
    let (marker, log) = (store.join("windlass-store-format"), store.join("log-0000000001"));
    fs::write(&marker, "windlass store 99\n").unwrap();
    refused(&[&name, "windlass store 99", "windlass store 2", "a newer version"]);
    fs::remove_file(&marker).unwrap();
    refused(&[&name, "log-0000000001", "windlass-store-format"]);
    fs::write(&marker, "windlass store 2\n").unwrap();
    let whole = fs::read(&log).unwrap();
    for length in [0, 100, whole.len() / 2] {
        fs::write(&log, &whole[..length]).unwrap();
        refused(&[&name, "damaged", "restore a snapshot"]);
    }
    fs::remove_file(&log).unwrap();
    refused(&[&name, "damaged"]);

    // With the correct files restored, no data is lost.
    for (path, bytes) in good {
        fs::write(path, bytes).unwrap();
    }
    let running = Up::start(folder.path(), &[]);
    let class = objects(folder.path())
        .await
        .dynamic("ClusterClass")
        .get("quick-start")
        .await;
    assert!(class.is_ok(), "{class:?}");
    running.interrupt().went_well();
}

#[test]
fn paths_that_cannot_be_used_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("data");
    fs::write(&file, "a file").unwrap();
    up(folder.path()).failed_with(&[file.to_str().unwrap()]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "a file");

    let finished = run(
        folder.path(),
        &["apiserver", "--port", "0", "--data-dir", file.to_str().unwrap()],
    );
    finished.failed_with(&[&format!("--data-dir {} is a file, not a directory", file.display())]);
    let elsewhere = folder.path().join("no/such/kubeconfig");
    let fresh = folder.path().join("fresh");
    let finished = run(
        folder.path(),
        &[
            "up",
            "--port",
            "0",
            "--data-dir",
            fresh.to_str().unwrap(),
            "--kubeconfig",
            elsewhere.to_str().unwrap(),
        ],
    );
    finished.failed_with(&["no/such of --kubeconfig does not exist", "hint: create it"]);
    assert!(!fresh.exists() && !folder.path().join("no").exists(), "nothing is made");

    let started = |class: &Path| {
        let finished = run(folder.path(), &["demo", "--class", class.to_str().unwrap()]);
        assert_eq!(finished.stdout, "", "nothing starts");
        finished
    };
    let class = folder.path().join("class.yaml");
    started(&class).failed_with(&["cannot read", "class.yaml"]);
    fs::write(&class, "a: b: c\n").unwrap();
    let finished = started(&class);
    finished.failed_with(&["class.yaml cannot be used: ", "line 1"]);
    assert!(!finished.stderr.contains("-->"), "{finished:?}");

    let missing = folder.path().join("no-such-kubeconfig");
    let finished = run(folder.path(), &["manager", "--kubeconfig", missing.to_str().unwrap()]);
    finished.failed_with(&[&format!("kubeconfig {} does not exist", missing.display())]);
    let text = json!({
        "apiVersion": "v1", "kind": "Config",
        "contexts": [{"name": "one", "context": {"cluster": "a", "user": "a"}}, {"name": "two"}],
    });
    fs::write(&missing, text.to_string()).unwrap();
    let of = |context: &[&str]| {
        let mut line = vec!["manager", "--kubeconfig", missing.to_str().unwrap()];
        line.extend(context);
        run(folder.path(), &line)
    };
    of(&["--context", "nope"]).failed_with(&["has no context \"nope\"; it has: one, two", "hint: name one of them"]);
    of(&[]).failed_with(&["has no current context; it has: one, two", "hint: name one of them"]);
    let finished = run(folder.path(), &["manager"]);
    finished.failed_with(&[
        "kubeconfig ~/.kube/config cannot be used",
        "hint: name a kubeconfig with --kubeconfig",
    ]);
    fs::write(&missing, "rubbish: [").unwrap();
    let finished = run(folder.path(), &["manager", "--kubeconfig", missing.to_str().unwrap()]);
    finished.failed_with(&[missing.to_str().unwrap()]);
}

#[test]
fn a_server_that_does_not_answer_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let port = windlass_envtest::reserved_port().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let text = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "a",
        "clusters": [{"name": "a", "cluster": {"server": format!("http://127.0.0.1:{port}")}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "users": [{"name": "a", "user": {}}],
    });
    fs::write(&kubeconfig, text.to_string()).unwrap();
    let finished = run(
        folder.path(),
        &["manager", "--kubeconfig", kubeconfig.to_str().unwrap()],
    );
    finished.failed_with(&[&format!("http://127.0.0.1:{port}"), "hint: "]);
}

// TO-178
#[test]
fn a_management_cluster_that_is_too_old_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // What `/version` of such a server says.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut asked = [0; 4096];
            let _ = stream.read(&mut asked);
            let version = json!({
                "major": "1", "minor": "21", "gitVersion": "v1.21.14", "gitCommit": "", "gitTreeState": "", "buildDate": "",
                "goVersion": "", "compiler": "", "platform": "",
            });
            let body = version.to_string();
            let length = body.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
            );
            let _ = stream.write_all(format!("{head}{body}").as_bytes());
        }
    });
    let kubeconfig = folder.path().join("kubeconfig");
    let text = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "a",
        "clusters": [{"name": "a", "cluster": {"server": format!("http://{address}")}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "users": [{"name": "a", "user": {}}],
    });
    fs::write(&kubeconfig, text.to_string()).unwrap();
    let finished = run(
        folder.path(),
        &[
            "manager",
            "--install-crds",
            "--kubeconfig",
            kubeconfig.to_str().unwrap(),
        ],
    );
    finished.failed_with(&["is Kubernetes v1.21.14", "v1.22 is the oldest", "hint: "]);
}

#[tokio::test]
async fn a_full_disk_refuses_writes_and_loses_nothing_that_was_answered() {
    let folder = tempfile::tempdir().unwrap();
    let running = Up::start_limited(folder.path(), 30_000, &[]);
    let limited = objects(folder.path()).await;
    let filler = "x".repeat(500_000);
    let object = |number: usize| -> ConfigMap {
        let object = json!({"metadata": {"name": format!("filler-{number}")}, "data": {"filler": filler}});
        serde_json::from_value(object).unwrap()
    };
    let mut answered = 0;
    let refusal = loop {
        match limited
            .api::<ConfigMap>()
            .create(&kube::api::PostParams::default(), &object(answered))
            .await
        {
            Ok(_) => answered += 1,
            Err(kube::Error::Api(status)) => break status,
            Err(other) => panic!("not an answer of the server: {other}"),
        }
        assert!(answered < 200, "the limit does not limit");
    };
    assert!(
        refusal.code >= 500 && refusal.message.contains("cannot be written"),
        "{refusal:?}"
    );
    // It still answers requests that need no disk space.
    assert_eq!(limited.list::<ConfigMap>().await.len(), answered);
    running.interrupt();

    let running = Up::start(folder.path(), &[]);
    let roomy = objects(folder.path()).await;
    let found: Vec<_> = roomy.list::<ConfigMap>().await;
    assert_eq!(found.len(), answered);
    assert!(found.iter().all(|map| map.data.as_ref().unwrap()["filler"] == filler));
    roomy
        .api::<ConfigMap>()
        .create(&kube::api::PostParams::default(), &object(answered))
        .await
        .unwrap();
    running.interrupt().went_well();
}

/// The status code of `/readyz`.
fn readiness(port: &str) -> String {
    let mut stream = std::net::TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    stream
        .write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap_or_default().to_owned()
}

// Controllers that want to write meanwhile fill no log and use no CPU, and the end is noticed by a program at rest.
#[tokio::test]
async fn a_full_disk_is_reported_in_few_lines_until_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let port = windlass_envtest::reserved_port().unwrap();
    let port = port.to_string();
    let address = format!("127.0.0.1:{port}");
    let running = Up::start_limited(folder.path(), 20_000, &["--health-addr", &address]);
    let objects = objects(folder.path()).await;
    objects.apply_yaml(CLASS).await;
    let filler = |size: usize, number: usize| -> ConfigMap {
        let name = format!("filler-{size}-{number}");
        serde_json::from_value(json!({"metadata": {"name": name}, "data": {"filler": "x".repeat(size)}})).unwrap()
    };
    let parameters = kube::api::PostParams::default();
    let mut names = 0;
    // A cluster that is being created wants to write all the time.
    let cluster = ClusterOf::new("storm", 3, 3);
    cluster.apply(&objects).await;
    for size in [500_000, 20_000, 100] {
        loop {
            names += 1;
            let made = objects
                .api::<ConfigMap>()
                .create(&parameters, &filler(size, names))
                .await;
            if made.is_err() {
                break;
            }
        }
    }
    assert_eq!(readiness(&port), "503");
    let (began, ticks) = (std::time::Instant::now(), running.cpu_ticks());
    let mut looks = windlass_testkit::wait::looks();
    while began.elapsed() < Duration::from_secs(20) {
        looks.tick().await;
        let _ = objects
            .api::<ConfigMap>()
            .create(&parameters, &filler(100_000, names))
            .await;
    }
    let used = running.cpu_ticks() - ticks;
    assert!(used < 1000, "{used} hundredths of a second of CPU in 20 s");
    running.make_room();
    let recovery = async {
        while readiness(&port) != "200" {
            looks.tick().await;
        }
    };
    tokio::time::timeout(windlass_testkit::wait::TIMEOUT, recovery)
        .await
        .unwrap();
    cluster.wait_running(&objects).await;
    let finished = running.interrupt();
    let lines = finished
        .stderr
        .lines()
        .filter(|line| line.contains("cannot be written"));
    let lines = lines.count();
    assert!((1..200).contains(&lines), "{lines} lines: {}", finished.stderr);
}

#[test]
fn a_disk_that_is_full_from_the_start_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let finished = std::process::Command::new("sh")
        .args([
            "-c",
            "trap '' XFSZ; ulimit -f 100; exec \"$0\" \"$@\"",
            env!("CARGO_BIN_EXE_windlass"),
        ])
        .args(["up", "--port", "0", "--data-dir", data.to_str().unwrap()])
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    let stderr = String::from_utf8(finished.stderr).unwrap();
    assert_eq!(finished.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains(data.to_str().unwrap()), "{stderr}");
    Up::start(folder.path(), &[]).interrupt().went_well();
}
