//! Whatever goes wrong on the way: there is one release in the end, and it is the right one.

use serde_json::json;
use windlass_testkit::faults::{Fault, Faults};

use super::env::Env;
use super::fake::Place;

/// The release of an object, whatever its name is, and how many there are.
async fn releases(workload: &windlass_testkit::Workload) -> Vec<String> {
    use k8s_openapi::api::core::v1::Secret;
    let secrets: kube::Api<Secret> = kube::Api::all(workload.client());
    let found = secrets
        .list(&kube::api::ListParams::default().labels("owner=helm"))
        .await
        .unwrap();
    found
        .items
        .into_iter()
        .filter_map(|secret| secret.metadata.name)
        .collect()
}

// AD-078: the process dies in the middle of any of its writes; the next one ends with exactly one release, under one name.
#[tokio::test]
async fn a_crash_at_any_write_leads_to_one_release() {
    for write in 1..=6 {
        let mut env = Env::idle().await;
        let workload = env.cluster("c1").await;
        env.proxy("web", "c1", json!({"releaseName": null, "options": {"timeout": "1s"}}))
            .await;
        let faults = Faults::dying_at_write(write);
        env.operate(&faults);
        // With fewer writes than that it is done before.
        let done = env.until("it is dead or done", async || {
            let object = env.get("HelmReleaseProxy", "web").await;
            super::env::condition(&object, "Ready")["status"] == "True"
        });
        tokio::select! {
            () = faults.died() => {}
            () = done => {}
        }
        env.stop_operating().await;
        env.operate(&Faults::none());
        let object = env.deployed("web", 1).await;
        let name = object["spec"]["releaseName"].as_str().unwrap();
        assert!(name.starts_with("web-"), "{name}");
        let annotations = &object["metadata"]["annotations"];
        assert_eq!(
            annotations["helmreleaseproxy.addons.cluster.x-k8s.io/is-release-name-generated"],
            "true"
        );
        assert_eq!(
            releases(&workload).await,
            [format!("sh.helm.release.v1.{name}.v1")],
            "death at write {write}"
        );
        env.delete("HelmReleaseProxy", "web").await;
        env.gone("web").await;
        assert!(releases(&workload).await.is_empty());
    }
}

#[tokio::test]
async fn conflicts_and_lost_answers_do_not_lead_to_a_second_release() {
    let mut env = Env::idle().await;
    let workload = env.cluster("c1").await;
    let faults = Faults::when(|seen| match (seen.is_write(), seen.number % 4) {
        (true, 0) => Some(Fault::AnswerLost),
        (true, 1) => Some(Fault::Refused(409)),
        (true, 2) => Some(Fault::Lost),
        _ => None,
    });
    env.operate(&faults);
    env.proxy("web", "c1", json!({"releaseName": null})).await;
    let object = env.deployed("web", 1).await;
    let name = object["spec"]["releaseName"].as_str().unwrap();
    assert_eq!(releases(&workload).await.len(), 1);
    assert_eq!(env.helm.calls(), [format!("install apps/{name} 1.0.0")]);
    env.proxy("web", "c1", json!({"releaseName": name, "values": "replicas: 2"}))
        .await;
    env.deployed("web", 2).await;
    assert_eq!(env.helm.calls().len(), 2);
    env.delete("HelmReleaseProxy", "web").await;
    env.gone("web").await;
    assert!(releases(&workload).await.is_empty());
}

// A restart finds everything as it should be, and asks Helm for nothing.
#[tokio::test]
async fn a_restart_changes_nothing() {
    let mut env = Env::start().await;
    let workload = env.cluster("c1").await;
    env.proxy("web", "c1", json!({})).await;
    env.deployed("web", 1).await;
    env.stop_operating().await;
    let before = Place::new(workload.client(), "apps", "web").stored().await;
    env.operate(&Faults::none());
    env.until("it is looked at", async || env.looks() > 0).await;
    env.poke("web", 2).await;
    env.deployed("web", 1).await;
    assert_eq!(env.helm.calls(), ["install apps/web 1.0.0"]);
    assert_eq!(Place::new(workload.client(), "apps", "web").stored().await, before);
}

#[tokio::test]
async fn a_repository_that_does_not_answer_keeps_no_other_chart_waiting() {
    let mut env = Env::idle().await;
    env.settings.at_a_time = 1;
    env.helm.silence("slow");
    env.operate(&Faults::none());
    let workload = env.cluster("c1").await;
    for name in ["slow-1", "slow-2"] {
        env.proxy(name, "c1", json!({"chartName": "slow", "releaseName": name}))
            .await;
        env.blocked(name, "HelmReleaseReady", "HelmReleasePending", "going on")
            .await;
    }
    env.proxy("web", "c1", json!({})).await;
    env.deployed("web", 1).await;
    env.delete("HelmReleaseProxy", "web").await;
    env.gone("web").await;
    for name in ["slow-1", "slow-2"] {
        env.delete("HelmReleaseProxy", name).await;
        env.gone(name).await;
    }
    assert!(releases(&workload).await.is_empty());
}

#[tokio::test]
async fn a_restart_changes_nothing_of_a_chart_whose_artifact_has_another_name() {
    let mut env = Env::idle().await;
    env.helm.publish("mirror/charts-web", "1.0.0");
    env.helm.alias("mirror/charts-web", "web");
    env.operate(&Faults::none());
    let _workload = env.cluster("c1").await;
    let mirrored = json!({"repoURL": "oci://registry.example.com", "chartName": "mirror/charts-web"});
    env.proxy("web", "c1", mirrored).await;
    env.deployed("web", 1).await;
    env.stop_operating().await;
    env.operate(&Faults::none());
    env.until("it is looked at", async || env.looks() > 0).await;
    env.poke("web", 2).await;
    env.deployed("web", 1).await;
    assert_eq!(env.helm.calls(), ["install apps/web 1.0.0"]);
}

#[tokio::test]
async fn a_repository_that_fails_is_not_asked_once_for_each_release() {
    let mut env = Env::idle().await;
    let minute = std::time::Duration::from_mins(1);
    env.settings.retry = windlass_controller_runtime::Backoff::new(minute, minute);
    env.operate(&Faults::none());
    let _workload = env.cluster("c1").await;
    for number in 0..10 {
        let name = format!("r{number}");
        env.proxy(&name, "c1", json!({"chartName": "none", "releaseName": name}))
            .await;
        let failed = "HelmInstallOrUpgradeFailed";
        env.blocked(&name, "HelmReleaseReady", failed, "has no such chart")
            .await;
    }
    let asked = env.helm.sources().len();
    // Once more if the minute is over.
    assert!(asked <= 2, "{asked}");
}
