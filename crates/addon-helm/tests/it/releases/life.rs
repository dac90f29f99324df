//! A release from its installation on.

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use serde_json::json;
use windlass_helm::{Kind, Status, values};

use super::env::{Env, MARK, condition, web};
use super::fake::Trouble;

// T2, T3, AD-034, AD-035, AD-059, AD-071, AD-095, AD-134: nothing before the control plane is initialized; then the release is there, marked.
#[tokio::test]
async fn a_release_is_installed_when_the_control_plane_is_initialized() {
    let env = Env::start().await;
    let workload = env.unready_cluster("c1").await;
    env.proxy("web", "c1", json!({})).await;
    let waiting = env
        .blocked("web", "ClusterAvailable", "NotInitialized", "control plane")
        .await;
    assert_eq!(
        condition(&waiting, "HelmReleaseReady")["reason"],
        "PreparingToHelmInstall"
    );
    assert_eq!((env.helm.calls().len(), workload.requests_for("secrets")), (0, 0));
    env.initialize("c1").await;
    let object = env.deployed("web", 1).await;
    assert_eq!(env.helm.calls(), ["install apps/web 1.0.0"]);
    let annotations = &object["metadata"]["annotations"];
    assert_eq!(
        annotations["helmreleaseproxy.addons.cluster.x-k8s.io/release-successfully-installed"],
        "true"
    );
    let release = web(&workload).newest().await.unwrap();
    assert_eq!(release.values, values::parse("replicas: 1").unwrap());
    assert_eq!(release.labels[MARK], "default.of-web");
    let namespaces: Api<Namespace> = Api::all(workload.client());
    assert!(namespaces.get("apps").await.is_ok());
}

// T4, T5, AD-040, AD-096, AD-099, AD-104
#[tokio::test]
async fn a_change_of_values_or_version_is_one_new_revision() {
    let env = Env::start().await;
    let workload = env.cluster("c1").await;
    env.helm.publish("web", "1.1.0");
    env.proxy("web", "c1", json!({})).await;
    env.deployed("web", 1).await;
    env.proxy("web", "c1", json!({"values": "replicas: 2\n"})).await;
    env.deployed("web", 2).await;
    env.proxy("web", "c1", json!({"values": "replicas: 2\n", "version": "1.1.0"}))
        .await;
    env.deployed("web", 3).await;
    // Other words for the same data.
    env.proxy(
        "web",
        "c1",
        json!({"values": "{\"replicas\": 2.0}", "version": "v1.1.0"}),
    )
    .await;
    env.deployed("web", 3).await;
    env.proxy("web", "c1", json!({"values": "replicas: 2\n", "version": "1.0.0"}))
        .await;
    env.deployed("web", 4).await;
    let calls = [
        "install apps/web 1.0.0",
        "upgrade apps/web 1.0.0",
        "upgrade apps/web 1.1.0",
        "upgrade apps/web 1.0.0",
    ];
    assert_eq!(env.helm.calls(), calls);
    assert_eq!(web(&workload).newest().await.unwrap().version, "1.0.0");
}

// T6, AD-096, AD-103: what is as it should be costs nothing, however often it is looked at.
#[tokio::test]
async fn a_release_at_rest_asks_for_nothing() {
    let env = Env::start().await;
    let workload = env.cluster("c1").await;
    env.proxy("web", "c1", json!({})).await;
    env.deployed("web", 1).await;
    env.poke("web", 1).await;
    let before = env.get("HelmReleaseProxy", "web").await;
    let asked = (
        workload.requests_for("secrets"),
        env.helm.calls(),
        env.helm.sources().len(),
    );
    env.poke("web", 10).await;
    let after = env.get("HelmReleaseProxy", "web").await;
    assert_eq!(before["status"], after["status"]);
    assert_eq!(
        (
            workload.requests_for("secrets"),
            env.helm.calls(),
            env.helm.sources().len()
        ),
        asked
    );
}

// T7, AD-096: one new revision reverts a manual change. A release that was removed by hand is installed again.
#[tokio::test]
async fn a_manual_change_is_reverted() {
    let env = Env::start().await;
    let workload = env.cluster("c1").await;
    env.proxy("web", "c1", json!({})).await;
    env.deployed("web", 1).await;
    let release = web(&workload);
    let mut changed = release.newest().await.unwrap();
    changed.revision = 2;
    changed.values = values::parse("replicas: 9").unwrap();
    release.store(&changed).await;
    env.deployed("web", 3).await;
    assert_eq!(
        release.newest().await.unwrap().values,
        values::parse("replicas: 1").unwrap()
    );
    release.remove().await;
    env.until("it is installed again", async || {
        release
            .newest()
            .await
            .is_some_and(|release| release.revision == 1 && release.status == Status::Deployed)
    })
    .await;
    env.deployed("web", 1).await;
    assert_eq!(env.helm.calls().len(), 3, "{:?}", env.helm.calls());
}

// AD-060, AD-103, AD-104: the newest version is followed, asked for once for all clusters.
#[tokio::test]
async fn the_newest_version_is_followed_and_asked_for_once() {
    let mut env = Env::idle().await;
    env.settings.ask_every = std::time::Duration::from_millis(300);
    env.operate(&windlass_testkit::faults::Faults::none());
    let clusters = [
        env.cluster("c1").await,
        env.cluster("c2").await,
        env.cluster("c3").await,
    ];
    for name in ["c1", "c2"] {
        env.proxy(name, name, json!({"version": null})).await;
    }
    env.proxy("c3", "c3", json!({})).await;
    for name in ["c1", "c2", "c3"] {
        env.deployed(name, 1).await;
    }
    env.helm.publish("web", "1.1.0");
    for name in ["c1", "c2"] {
        env.deployed(name, 2).await;
    }
    assert_eq!(web(&clusters[0]).newest().await.unwrap().version, "1.1.0");
    assert_eq!(web(&clusters[2]).newest().await.unwrap().version, "1.0.0");
    let object = env.get("HelmReleaseProxy", "c1").await;
    assert_eq!(
        object["spec"].get("version"),
        None,
        "what was found is not written down"
    );
    // Both are woken by one answer: from one to the next, the repository is asked once and not twice.
    let of_all: Vec<_> = env
        .helm
        .sources()
        .into_iter()
        .filter(|source| source.version.is_none())
        .collect();
    assert_eq!(of_all.len() as u64, env.helm.asked());
    let upgrades = env
        .helm
        .calls()
        .iter()
        .filter(|call| call.starts_with("upgrade"))
        .count();
    assert_eq!(upgrades, 2);
}

// T13, AD-134, AD-098
#[tokio::test]
async fn a_release_of_another_owner_is_untouched_to_the_end() {
    let env = Env::start().await;
    let workload = env.cluster("c1").await;
    let release = web(&workload);
    let foreign = super::fake::Stored {
        revision: 1,
        status: Status::Deployed,
        chart: "other".to_owned(),
        version: "9.0.0".to_owned(),
        values: values::parse("mine: true").unwrap(),
        labels: [].into(),
        since: jiff::Timestamp::UNIX_EPOCH,
        description: "by hand".to_owned(),
    };
    release.make_namespace().await;
    release.store(&foreign).await;
    let before = release.stored().await;
    env.proxy("web", "c1", json!({})).await;
    env.blocked(
        "web",
        "HelmReleaseReady",
        "HelmInstallOrUpgradeFailed",
        "the name is in use",
    )
    .await;
    env.delete("HelmReleaseProxy", "web").await;
    env.gone("web").await;
    assert_eq!(release.stored().await, before);
    assert_eq!(env.helm.calls(), [""; 0]);
}

// AD-134: handed over by who knows better, or installed by another implementation.
#[tokio::test]
async fn a_release_without_a_mark_is_taken_over_when_the_object_says_so() {
    let env = Env::start().await;
    let workload = env.cluster("c1").await;
    let release = web(&workload);
    env.proxy("web", "c1", json!({})).await;
    env.deployed("web", 1).await;
    let mut unmarked = release.newest().await.unwrap();
    unmarked.labels.clear();
    release.store(&unmarked).await;
    env.proxy("web", "c1", json!({"values": "replicas: 2\n"})).await;
    env.deployed("web", 2).await;
    assert_eq!(release.newest().await.unwrap().labels[MARK], "default.of-web");
}

// AD-107: of two that want one name, the first has it, and the second says why not.
#[tokio::test]
async fn two_that_want_one_name_do_not_share_a_release() {
    let env = Env::start().await;
    let workload = env.cluster("c1").await;
    env.proxy("first", "c1", json!({})).await;
    env.deployed("first", 1).await;
    env.proxy("second", "c1", json!({"values": "replicas: 7\n"})).await;
    env.blocked(
        "second",
        "HelmReleaseReady",
        "HelmInstallOrUpgradeFailed",
        "default/of-first",
    )
    .await;
    env.delete("HelmReleaseProxy", "second").await;
    env.gone("second").await;
    env.deployed("first", 1).await;
    assert_eq!(
        web(&workload).newest().await.unwrap().values,
        values::parse("replicas: 1").unwrap()
    );
}

// AD-145
#[tokio::test]
async fn a_failure_is_reported_and_tried_again() {
    let env = Env::start().await;
    let _workload = env.cluster("c1").await;
    let words = "Deployment web is invalid";
    env.helm
        .all("install", Some(Trouble::Failed(Kind::ResourceRefused, words)));
    env.helm
        .all("upgrade", Some(Trouble::Failed(Kind::ResourceRefused, words)));
    env.proxy("web", "c1", json!({})).await;
    let failed = env
        .blocked("web", "HelmReleaseReady", "HelmInstallOrUpgradeFailed", words)
        .await;
    assert_eq!(condition(&failed, "Ready")["reason"], "HelmInstallOrUpgradeFailed");
    env.wait("HelmReleaseProxy", "web", "failed", |object| {
        object["status"]["status"] == "failed"
    })
    .await;
    env.until("it was tried again", async || env.helm.calls().len() >= 3)
        .await;
    env.helm.all("install", None);
    env.helm.all("upgrade", None);
    env.wait("HelmReleaseProxy", "web", "ready", |object| {
        condition(object, "Ready")["status"] == "True"
    })
    .await;
    let object = env.get("HelmReleaseProxy", "web").await;
    assert_eq!(object["status"]["status"], "deployed");
}

// Feature 470
#[tokio::test]
async fn what_is_installed_once_stays_as_it_is() {
    let env = Env::start().await;
    let workload = env.cluster("c1").await;
    let once = |values: &str| json!({"reconcileStrategy": "InstallOnce", "values": values});
    env.proxy("web", "c1", once("replicas: 1")).await;
    env.deployed("web", 1).await;
    env.proxy("web", "c1", once("replicas: 2")).await;
    env.deployed("web", 1).await;
    env.delete("HelmReleaseProxy", "web").await;
    env.gone("web").await;
    assert!(web(&workload).newest().await.is_some());
    assert_eq!(env.helm.calls(), ["install apps/web 1.0.0"]);
}

// AD-092
#[tokio::test]
async fn a_paused_cluster_is_left_alone() {
    let env = Env::start().await;
    let _workload = env.cluster("c1").await;
    env.merge("Cluster", "c1", &json!({"spec": {"paused": true}})).await;
    env.proxy("web", "c1", json!({})).await;
    env.wait("HelmReleaseProxy", "web", "paused", |object| {
        condition(object, "Paused")["status"] == "True"
    })
    .await;
    assert_eq!(env.helm.calls(), [""; 0]);
    env.merge("Cluster", "c1", &json!({"spec": {"paused": false}})).await;
    env.deployed("web", 1).await;
}

#[tokio::test]
async fn operations_that_take_long_hold_no_other_up() {
    let env = Env::start().await;
    let _workload = env.cluster("c1").await;
    env.helm.all("install", Some(Trouble::Hangs));
    for n in 0..12 {
        let release = format!("slow-{n}");
        env.proxy(
            &release,
            "c1",
            json!({"releaseName": release, "options": {"wait": true}}),
        )
        .await;
    }
    env.until("all have begun", async || env.helm.calls().len() == 12).await;
    env.helm.all("install", None);
    env.proxy("web", "c1", json!({})).await;
    env.deployed("web", 1).await;
    let told = [
        r#"windlass_helm_operations_total{operation="install",result="success"} 1"#,
        r#"windlass_helm_releases{status="deployed"} 1"#,
        r#"windlass_helm_releases{status="pending-install"} 12"#,
    ];
    env.until("metrics tell of it", async || {
        told.iter().all(|line| env.metrics().contains(line))
    })
    .await;
}
