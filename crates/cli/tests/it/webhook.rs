//! `windlass apiserver` and `windlass manager` as two programs, with admission between them.

use std::net::TcpListener;
use std::path::Path;

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use windlass_testkit::{Objects, reserved_port};

use crate::support::{Up, apiserver, objects, run};

const MANAGED_BY: &str = "cluster.x-k8s.io/managed-by";

fn manager_args<'a>(kubeconfig: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec![
        "manager",
        "--kubeconfig",
        kubeconfig,
        "--install-crds",
        "--log-level",
        "warn",
    ];
    args.extend(more);
    args
}

fn manager(folder: &Path, more: &[&str]) -> Up {
    let kubeconfig = folder.join("kubeconfig");
    Up::command(
        folder,
        &manager_args(kubeconfig.to_str().unwrap(), more),
        "controllers run against",
    )
}

fn dev_cluster(name: &str, annotations: &Value) -> Value {
    json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DevCluster",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"backend": {"inMemory": {}}},
    })
}

/// Tries to remove the annotation, like `kubectl annotate devcluster NAME cluster.x-k8s.io/managed-by-`.
async fn take_away(objects: &Objects, name: &str) -> Result<(), (u16, String)> {
    let patch = Patch::Merge(json!({"metadata": {"annotations": {MANAGED_BY: null}}}));
    let done = objects
        .dynamic("DevCluster")
        .patch(name, &PatchParams::default(), &patch)
        .await;
    done.map(drop).map_err(|error| match error {
        kube::Error::Api(status) => (status.code, status.message),
        other => panic!("not an answer of the server: {other}"),
    })
}

async fn configuration(objects: &Objects) -> ValidatingWebhookConfiguration {
    let api: Api<ValidatingWebhookConfiguration> = Api::all(objects.client().clone());
    api.get("windlass-validating-webhook-configuration").await.unwrap()
}

// EX-079, EX-080, EX-084, EX-087, T5
#[tokio::test]
async fn a_manager_on_the_network_keeps_the_annotation_while_it_runs_and_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let server = apiserver(folder.path());
    let objects = objects(folder.path()).await;
    let port = reserved_port();
    let (address, url) = (format!("127.0.0.1:{port}"), format!("https://localhost:{port}"));
    let flags = ["--webhook-address", &address, "--webhook-url", &url];

    let running = manager(folder.path(), &flags);
    assert!(
        running.said().contains(&format!("admission is answered on {address}")),
        "{}",
        running.said()
    );
    for name in ["theirs", "other"] {
        let managed = dev_cluster(name, &json!({MANAGED_BY: "terraform"}));
        objects.apply(&managed).await;
    }
    let (code, message) = take_away(&objects, "theirs").await.unwrap_err();
    assert!(
        code == 422 && message.contains("removal of externally managed annotation is not allowed"),
        "{message}"
    );
    let configured = configuration(&objects).await;
    running.interrupt().went_well();

    let (code, message) = take_away(&objects, "theirs").await.unwrap_err();
    assert!(code == 500 && message.contains("failed calling webhook"), "{message}");
    let api = objects.dynamic("DevCluster");
    api.delete("other", &DeleteParams::default()).await.unwrap();

    // A manager without webhooks says so, and does not change the configuration.
    let finished = manager(folder.path(), &[]).interrupt();
    finished.went_well();
    for words in ["DevCluster", MANAGED_BY, "--webhook-address"] {
        assert!(finished.stderr.contains(words), "no {words:?} in {}", finished.stderr);
    }
    assert_eq!(take_away(&objects, "theirs").await.unwrap_err().0, 500);

    let running = manager(folder.path(), &flags);
    assert_eq!(take_away(&objects, "theirs").await.unwrap_err().0, 422);
    assert_eq!(
        configuration(&objects).await,
        configured,
        "the same certificate, and nothing written"
    );
    running.interrupt().went_well();
    server.interrupt().went_well();
}

#[tokio::test]
async fn what_keeps_webhooks_from_being_served_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let server = apiserver(folder.path());
    let kubeconfig = folder.path().join("kubeconfig");
    let fails = |flags: &[&str], words: &[&str]| {
        run(folder.path(), &manager_args(kubeconfig.to_str().unwrap(), flags)).failed_with(words);
    };
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let port = taken.local_addr().unwrap().port().to_string();
    fails(
        &["--webhook-address", &address, "--webhook-url", "https://localhost:9443"],
        &[
            &format!("port {port} on 127.0.0.1 is in use"),
            "hint: ",
            "--webhook-address",
        ],
    );
    let empty = folder.path().join("certificates");
    std::fs::create_dir(&empty).unwrap();
    let url = [
        "--webhook-address",
        "127.0.0.1:0",
        "--webhook-url",
        "https://localhost:9443",
    ];
    let mut flags = url.to_vec();
    flags.extend(["--webhook-certificate-dir", empty.to_str().unwrap()]);
    fails(&flags, &[empty.to_str().unwrap(), "tls.crt", "hint: "]);
    fails(
        &[
            "--webhook-address",
            "127.0.0.1:0",
            "--webhook-service",
            "nowhere/windlass",
        ],
        &["Secret nowhere/", "hint: ", "kubectl create namespace nowhere"],
    );
    server.interrupt().went_well();
}
