//! The end of a HelmReleaseProxy.

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use serde_json::json;
use windlass_helm::Kind;

use super::env::{Env, condition, web};
use super::fake::Trouble;

// T9, AD-097, AD-059: the release goes first, its namespace stays.
#[tokio::test]
async fn the_release_goes_first_and_its_namespace_stays() {
    let env = Env::start().await;
    let workload = env.cluster("c1").await;
    env.proxy("web", "c1", json!({})).await;
    let object = env.deployed("web", 1).await;
    assert_eq!(
        object["metadata"]["finalizers"],
        json!(["helmreleaseproxy.addons.cluster.x-k8s.io"])
    );
    env.delete("HelmReleaseProxy", "web").await;
    env.gone("web").await;
    assert!(web(&workload).newest().await.is_none());
    let namespaces: Api<Namespace> = Api::all(workload.client());
    assert!(namespaces.get("apps").await.is_ok());
    assert_eq!(env.helm.calls(), ["install apps/web 1.0.0", "uninstall apps/web"]);
}

// AD-098: not found is success.
#[tokio::test]
async fn a_release_that_is_gone_already_holds_nothing_up() {
    let env = Env::start().await;
    let workload = env.cluster("c1").await;
    env.helm.all("upgrade", Some(Trouble::Refused(Kind::Other, "no")));
    env.proxy("web", "c1", json!({})).await;
    env.deployed("web", 1).await;
    env.helm.all("install", Some(Trouble::Refused(Kind::Other, "no")));
    web(&workload).remove().await;
    env.delete("HelmReleaseProxy", "web").await;
    env.gone("web").await;
    assert!(!env.helm.calls().iter().any(|call| call.starts_with("uninstall")));
}

// T12, AD-045, AD-098: the Cluster is gone.
#[tokio::test]
async fn without_its_cluster_an_object_goes_at_once() {
    let env = Env::start().await;
    let workload = env.cluster("c1").await;
    env.proxy("web", "c1", json!({})).await;
    env.deployed("web", 1).await;
    env.delete("Cluster", "c1").await;
    env.blocked("web", "ClusterAvailable", "GetClusterFailed", "there is no Cluster")
        .await;
    env.delete("HelmReleaseProxy", "web").await;
    env.gone("web").await;
    assert!(web(&workload).newest().await.is_some(), "nothing was touched");
}

// T12, AD-045, AD-098: the Cluster is being deleted, and never answers again.
#[tokio::test]
async fn a_cluster_that_goes_and_cannot_be_reached_holds_nothing_up() {
    let env = Env::start().await;
    let workload = env.cluster("c1").await;
    env.proxy("web", "c1", json!({})).await;
    env.deployed("web", 1).await;
    env.merge(
        "Cluster",
        "c1",
        &json!({"metadata": {"finalizers": ["example.com/held"]}}),
    )
    .await;
    env.delete("Cluster", "c1").await;
    env.blocked("web", "ClusterAvailable", "Deleting", "being deleted")
        .await;
    // Nothing is installed or changed any more.
    env.proxy("web", "c1", json!({"values": "replicas: 3"})).await;
    env.poke("web", 2).await;
    assert_eq!(env.helm.calls(), ["install apps/web 1.0.0"]);
    drop(workload);
    env.delete("HelmReleaseProxy", "web").await;
    env.gone("web").await;
    env.merge("Cluster", "c1", &json!({"metadata": {"finalizers": null}}))
        .await;
}

// AD-097: a process that has just started has not connected yet. It uninstalls the release of a Cluster that goes and still answers.
#[tokio::test]
async fn a_restart_uninstalls_the_release_of_a_cluster_that_goes() {
    let mut env = Env::start().await;
    let workload = env.cluster("c1").await;
    env.proxy("web", "c1", json!({})).await;
    env.deployed("web", 1).await;
    env.stop_operating().await;
    let held = json!({"metadata": {"finalizers": ["example.com/held"]}});
    env.merge("Cluster", "c1", &held).await;
    env.delete("Cluster", "c1").await;
    env.delete("HelmReleaseProxy", "web").await;
    env.operate(&windlass_testkit::faults::Faults::none());
    env.gone("web").await;
    assert!(web(&workload).newest().await.is_none());
    assert_eq!(env.helm.calls(), ["install apps/web 1.0.0", "uninstall apps/web"]);
    env.merge("Cluster", "c1", &json!({"metadata": {"finalizers": null}}))
        .await;
}

// AD-045, AD-098: after a restart no attempt to connect is made without a kubeconfig in the Secret, or before the infrastructure is
// provisioned.
#[tokio::test]
async fn a_cluster_that_goes_and_cannot_even_be_tried_holds_nothing_up() {
    let mut env = Env::start().await;
    for name in ["keyless", "unprovisioned"] {
        let workload = env.cluster(name).await;
        env.proxy(name, name, json!({})).await;
        env.deployed(name, 1).await;
        drop(workload);
    }
    env.stop_operating().await;
    env.delete("Secret", "keyless-kubeconfig").await;
    env.secret("keyless-kubeconfig", "other", "x").await;
    let unprovisioned = json!({"initialization": {"infrastructureProvisioned": false}});
    env.status("Cluster", "unprovisioned", &unprovisioned).await;
    let held = json!({"metadata": {"finalizers": ["example.com/held"]}});
    for name in ["keyless", "unprovisioned"] {
        env.merge("Cluster", name, &held).await;
        env.delete("Cluster", name).await;
        env.delete("HelmReleaseProxy", name).await;
    }
    env.operate(&windlass_testkit::faults::Faults::none());
    for name in ["keyless", "unprovisioned"] {
        env.gone(name).await;
        env.merge("Cluster", name, &json!({"metadata": {"finalizers": null}}))
            .await;
    }
}

// AD-098: the Cluster exists and cannot be reached: that is reported, and the release goes when it can be.
#[tokio::test]
async fn a_cluster_that_cannot_be_reached_is_waited_for() {
    let env = Env::start().await;
    let workload = env.cluster("c1").await;
    env.proxy("web", "c1", json!({})).await;
    env.deployed("web", 1).await;
    let other = windlass_testkit::Workload::start().await;
    env.secret("c1-kubeconfig", "value", &other.kubeconfig()).await;
    other.stop();
    let blocked = env
        .blocked("web", "ClusterAvailable", "ConnectionDown", "cannot be reached")
        .await;
    assert_eq!(condition(&blocked, "HelmReleaseReady")["status"], "Unknown");
    assert_eq!(
        blocked["status"]["status"], "deployed",
        "what was known stays to be seen"
    );
    env.delete("HelmReleaseProxy", "web").await;
    env.wait("HelmReleaseProxy", "web", "reported", |object| {
        let is_reported =
            condition(object, "ClusterAvailable")["observedGeneration"] == object["metadata"]["generation"];
        object["metadata"]["deletionTimestamp"].is_string() && is_reported
    })
    .await;
    env.kubeconfig("c1", &workload).await;
    env.gone("web").await;
    assert!(web(&workload).newest().await.is_none());
}

#[tokio::test]
async fn a_release_that_cannot_be_uninstalled_is_reported_and_tried_again() {
    let env = Env::start().await;
    let workload = env.cluster("c1").await;
    env.proxy("web", "c1", json!({})).await;
    env.deployed("web", 1).await;
    env.helm.all(
        "uninstall",
        Some(Trouble::Refused(Kind::HookFailed, "the hook pre-delete failed")),
    );
    env.delete("HelmReleaseProxy", "web").await;
    env.blocked(
        "web",
        "HelmReleaseReady",
        "HelmReleaseDeletionFailed",
        "the hook pre-delete failed",
    )
    .await;
    assert!(web(&workload).newest().await.is_some());
    env.helm.all("uninstall", None);
    env.gone("web").await;
    assert!(web(&workload).newest().await.is_none());
}

// What is installed for an object that goes is not waited for, and leaves nothing.
#[tokio::test]
async fn an_installation_is_ended_when_its_object_goes() {
    let env = Env::start().await;
    let workload = env.cluster("c1").await;
    env.helm.next("install", Trouble::Hangs);
    env.proxy("web", "c1", json!({"options": {"wait": true}})).await;
    let release = web(&workload);
    env.until("it has begun", async || release.newest().await.is_some())
        .await;
    env.delete("HelmReleaseProxy", "web").await;
    env.gone("web").await;
    assert!(release.newest().await.is_none());
    assert_eq!(env.helm.calls(), ["install apps/web 1.0.0", "uninstall apps/web"]);
}

// Helm undoes or records what it did after it was asked to end: nothing else works on the release meanwhile.
#[tokio::test]
async fn an_uninstall_waits_until_helm_has_ended() {
    let env = Env::start().await;
    let workload = env.cluster("c1").await;
    let let_go = std::sync::Arc::new(tokio::sync::Notify::new());
    env.helm.next("install", Trouble::HangsOn(let_go.clone()));
    env.proxy("web", "c1", json!({"options": {"wait": true}})).await;
    let release = web(&workload);
    env.until("it has begun", async || release.newest().await.is_some())
        .await;
    env.delete("HelmReleaseProxy", "web").await;
    env.blocked("web", "HelmReleaseReady", "HelmReleasePending", "is ended")
        .await;
    // Longer than any delay after a failure.
    let mut looks = tokio::time::interval(std::time::Duration::from_millis(700));
    looks.tick().await;
    looks.tick().await;
    assert_eq!(env.helm.calls(), ["install apps/web 1.0.0"]);
    let_go.notify_one();
    env.gone("web").await;
    assert!(release.newest().await.is_none(), "nothing is left");
    assert_eq!(env.helm.calls(), ["install apps/web 1.0.0", "uninstall apps/web"]);
}

#[tokio::test]
async fn a_deletion_does_not_wait_out_the_failures_of_upgrades() {
    let mut env = Env::idle().await;
    env.settings.retry_lasting = windlass_controller_runtime::Backoff::new(
        std::time::Duration::from_hours(1),
        std::time::Duration::from_hours(1),
    );
    env.operate(&windlass_testkit::faults::Faults::none());
    let workload = env.cluster("c1").await;
    env.proxy("web", "c1", json!({})).await;
    env.deployed("web", 1).await;
    env.helm.all(
        "upgrade",
        Some(Trouble::Refused(
            Kind::ValuesRefused,
            "the schema of the chart refuses them",
        )),
    );
    env.proxy("web", "c1", json!({"values": "replicas: many"})).await;
    let failed = "HelmInstallOrUpgradeFailed";
    env.blocked("web", "HelmReleaseReady", failed, "the schema of the chart")
        .await;
    env.delete("HelmReleaseProxy", "web").await;
    env.gone("web").await;
    assert!(web(&workload).newest().await.is_none());
}
