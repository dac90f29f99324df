//! Several programs `windlass manager` on one API server: one leads, and the others wait.

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use windlass_api::core::MachineDeployment;
use windlass_controller_runtime::ObjectKey;
use windlass_testkit::Objects;

use crate::support::{Up, apiserver, objects};

const LEADS: &str = "controllers run against";
const WAITS: &str = "waits for Lease default/windlass-manager, which";

fn manager(folder: &std::path::Path, more: &[&str], says: &str) -> Up {
    let kubeconfig = folder.join("kubeconfig");
    let mut args = vec!["manager", "--install-crds", "--log-level", "warn", "--kubeconfig"];
    args.push(kubeconfig.to_str().unwrap());
    args.extend(more);
    Up::command(folder, &args, says)
}

async fn lease(objects: &Objects) -> (String, i32) {
    let leases: Api<Lease> = Api::namespaced(objects.client().clone(), "default");
    let spec = leases.get("windlass-manager").await.unwrap().spec.unwrap();
    (spec.holder_identity.unwrap(), spec.lease_transitions.unwrap())
}

fn deployment(name: &str) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "clusterName": "none", "selector": {}, "template": {"spec": {
                "clusterName": "none",
                "bootstrap": {"dataSecretName": "data"},
                "infrastructureRef": {
                    "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachineTemplate", "name": "none",
                },
            }},
        },
    })
}

/// Waits for the finalizer of a MachineDeployment, which its controller writes first.
async fn reconciled(objects: &Objects, name: &str) {
    let has_finalizer = |object: &MachineDeployment| object.metadata.finalizers.is_some();
    let key = ObjectKey::new("default", name);
    objects.wait_for(&key, "its controller works", has_finalizer).await;
}

#[tokio::test]
async fn a_process_that_was_frozen_writes_nothing_more_after_another_one_took_over() {
    let folder = tempfile::tempdir().unwrap();
    let server = apiserver(folder.path());
    let objects = objects(folder.path()).await;
    let timing = [
        "--leader-elect-lease-duration=3s",
        "--leader-elect-renew-deadline=2s",
        "--leader-elect-retry-period=300ms",
    ];
    let with = |controllers: &'static str| {
        let mut flags = vec!["--controllers", controllers];
        flags.extend(timing);
        flags
    };
    let mut first = manager(folder.path(), &with("machinedeployment"), LEADS);
    // Another set of controllers, so that what the first process writes can be told apart.
    let mut second = manager(folder.path(), &with("machineset"), WAITS);
    let (holder, changes) = lease(&objects).await;
    assert!(second.said().contains(&holder), "{}", second.said());
    objects.apply(&deployment("before")).await;
    reconciled(&objects, "before").await;

    first.signal("STOP");
    objects.apply(&deployment("after")).await;
    second.says(LEADS);
    let (heir, after) = lease(&objects).await;
    assert!(heir != holder && after == changes + 1, "{heir} {after}");
    first.signal("CONT");
    let ended = first.finished();
    let why = "error: the controllers had to stop at once: Lease default/windlass-manager ";
    assert!(ended.code == Some(1) && ended.stderr.contains(why), "{ended:?}");
    let untouched: MachineDeployment = objects.api().get("after").await.unwrap();
    assert_eq!(untouched.metadata.finalizers, None);
    assert_eq!(lease(&objects).await.0, heir, "it releases only what it holds");
    second.interrupt().went_well();
    server.interrupt().went_well();
}

#[tokio::test]
async fn a_leader_that_stops_hands_over_at_once_and_one_that_is_killed_is_followed_when_its_lease_ends() {
    let folder = tempfile::tempdir().unwrap();
    let server = apiserver(folder.path());
    let objects = objects(folder.path()).await;
    let first = manager(folder.path(), &[], LEADS);
    let short = [
        "--leader-elect-lease-duration=2s",
        "--leader-elect-renew-deadline=1500ms",
        "--leader-elect-retry-period=300ms",
    ];
    // This one looks at the Lease every ten minutes. So it takes over only because it notices the release.
    let patient = [
        "--leader-elect-lease-duration=40m",
        "--leader-elect-renew-deadline=30m",
        "--leader-elect-retry-period=10m",
    ];
    let mut heir = manager(folder.path(), &patient, WAITS);
    first.interrupt().went_well();
    heir.says(LEADS);
    objects.apply(&deployment("a")).await;
    reconciled(&objects, "a").await;
    let mut second = manager(folder.path(), &short, WAITS);
    heir.interrupt().went_well();
    second.says(LEADS);

    let mut third = manager(folder.path(), &short, WAITS);
    second.kill();
    third.says(LEADS);
    // A candidate that is stopped leaves the Lease alone.
    let fourth = manager(folder.path(), &short, WAITS);
    let held = lease(&objects).await;
    fourth.interrupt().went_well();
    assert_eq!(lease(&objects).await, held);
    // Without the election a process asks for nothing.
    let alone = manager(folder.path(), &["--leader-elect=false"], LEADS);
    alone.interrupt().went_well();
    third.interrupt().went_well();
    assert_eq!(lease(&objects).await, (String::new(), held.1));
    server.interrupt().went_well();
}

#[tokio::test]
async fn a_leader_whose_requests_hang_ends_in_time_and_releases_its_lease() {
    let folder = tempfile::tempdir().unwrap();
    let server = apiserver(folder.path());
    let objects = objects(folder.path()).await;
    let leader = manager(folder.path(), &["--controllers", "machinedeployment"], LEADS);
    // A webhook that accepts connections and never answers.
    let webhook = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", webhook.local_addr().unwrap());
    let hooks: ValidatingWebhookConfiguration = serde_json::from_value(json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "hangs"},
        "webhooks": [{
            "name": "hangs.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "timeoutSeconds": 30, "failurePolicy": "Fail", "clientConfig": {"url": url},
            "rules": [{
                "apiGroups": ["cluster.x-k8s.io"], "apiVersions": ["*"], "resources": ["machinedeployments"],
                "operations": ["UPDATE"],
            }],
        }],
    }))
    .unwrap();
    let all: Api<ValidatingWebhookConfiguration> = Api::all(objects.client().clone());
    all.create(&PostParams::default(), &hooks).await.unwrap();
    objects.apply(&deployment("a")).await;
    let hanging = webhook.accept().await.unwrap();
    let ended = leader.interrupt();
    assert_eq!((ended.code, ended.signal), (Some(0), None), "{ended:?}");
    assert!(
        ended.stderr.contains("controllers did not end within 20 s"),
        "{ended:?}"
    );
    assert_eq!(lease(&objects).await.0, "");
    drop(hanging);
    server.interrupt().went_well();
}
