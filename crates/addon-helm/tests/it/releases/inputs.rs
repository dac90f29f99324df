//! What a release needs besides its cluster.

use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use windlass_helm::{Credentials, Kind};

use super::env::{Env, condition, secrets, web};
use super::fake::Trouble;

// AD-101
#[tokio::test]
async fn a_missing_kubeconfig_is_reported_and_its_return_is_noticed() {
    let env = Env::start().await;
    let workload = env.cluster("c1").await;
    env.proxy("web", "c1", json!({})).await;
    env.deployed("web", 1).await;
    secrets(&env)
        .delete("c1-kubeconfig", &DeleteParams::default())
        .await
        .unwrap();
    env.blocked("web", "ClusterAvailable", "GetKubeconfigFailed", "c1-kubeconfig")
        .await;
    env.kubeconfig("c1", &workload).await;
    env.deployed("web", 1).await;
    // The watch of the new connection tells of changes as well.
    web(&workload).remove().await;
    env.until("it is installed again", async || env.helm.calls().len() == 2)
        .await;
}

// AD-143, features 475, 478: credentials and authorities come from Secrets, and are waited for.
#[tokio::test]
async fn credentials_and_authorities_are_waited_for() {
    let env = Env::start().await;
    let _workload = env.cluster("c1").await;
    let spec = json!({
        "credentials": {"secret": {"name": "registry"}, "key": "config.json"},
        "tlsConfig": {"caSecret": {"name": "authority"}},
    });
    env.proxy("web", "c1", spec).await;
    env.blocked(
        "web",
        "ClusterAvailable",
        "GetCredentialsFailed",
        "there is no Secret default/registry",
    )
    .await;
    env.secret("registry", "other", "hidden").await;
    env.blocked(
        "web",
        "ClusterAvailable",
        "GetCredentialsFailed",
        "has no key \"config.json\"",
    )
    .await;
    env.secret("registry", "config.json", "{\"hidden\": 1}").await;
    env.blocked(
        "web",
        "ClusterAvailable",
        "GetCACertificateFailed",
        "there is no Secret default/authority",
    )
    .await;
    env.secret("authority", "ca.crt", "an authority").await;
    env.deployed("web", 1).await;
    let source = env.helm.sources().pop().unwrap();
    match source.credentials {
        Some(Credentials::RegistryConfig(text)) => assert_eq!(text.reveal(), "{\"hidden\": 1}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(source.tls.unwrap().ca.as_deref(), Some("an authority"));
    let object = env.get("HelmReleaseProxy", "web").await.to_string();
    assert!(!object.contains("hidden"), "{object}");
}

/// Users of a namespace do not learn what another namespace has, and do not use it.
#[tokio::test]
async fn a_secret_of_another_namespace_has_to_allow_it() {
    let env = Env::start().await;
    let _workload = env.cluster("c1").await;
    let params = PatchParams::apply("test").force();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "platform"}});
    let namespaces: Api<Namespace> = Api::all(env.client.clone());
    namespaces
        .patch("platform", &params, &Patch::Apply(namespace))
        .await
        .unwrap();
    let platform: Api<Secret> = Api::namespaced(env.client.clone(), "platform");
    let secret = async |usable_from: &str, key: &str| {
        let annotations = json!({"addons.cluster.x-k8s.io/usable-from-namespaces": usable_from});
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "registry", "annotations": annotations},
            "stringData": { key: "{\"hidden\": 1}" },
        });
        platform
            .patch("registry", &params, &Patch::Apply(secret))
            .await
            .unwrap();
    };
    let spec = json!({"credentials": {"secret": {"name": "registry", "namespace": "platform"}, "key": "config.json"}});
    env.proxy("web", "c1", spec).await;
    let blocked = async || {
        let words = "Secret platform/registry cannot be used from namespace default";
        let object = env
            .blocked("web", "ClusterAvailable", "GetCredentialsFailed", words)
            .await;
        condition(&object, "ClusterAvailable")["message"].clone()
    };
    let absent = blocked().await;
    secret("", "other").await;
    assert_eq!(blocked().await, absent, "it is there, without the key");
    secret("team-a", "config.json").await;
    assert_eq!(blocked().await, absent, "it is there, for another namespace");
    assert!(env.helm.calls().is_empty());
    secret("team-a, default", "config.json").await;
    env.deployed("web", 1).await;
    match env.helm.sources().pop().unwrap().credentials {
        Some(Credentials::RegistryConfig(text)) => assert_eq!(text.reveal(), "{\"hidden\": 1}"),
        other => panic!("{other:?}"),
    }
}

// AD-113: a login in the address is passed to Helm separately, and is in no message.
#[tokio::test]
async fn a_login_in_the_address_is_passed_to_helm_separately() {
    let env = Env::start().await;
    let _workload = env.cluster("c1").await;
    let spec = json!({"repoURL": "https://amy:hush%40hush@charts.example/private"});
    env.proxy("web", "c1", spec).await;
    env.deployed("web", 1).await;
    let source = env.helm.sources().pop().unwrap();
    assert_eq!(source.repo_url, "https://charts.example/private");
    match source.credentials {
        Some(Credentials::Login { username, password, .. }) => {
            assert_eq!((username.as_str(), password.reveal()), ("amy", "hush@hush"));
        }
        other => panic!("{other:?}"),
    }
    let object = env.get("HelmReleaseProxy", "web").await;
    assert!(!object["status"].to_string().contains("hush"), "{object}");
}

// What was refused is tried at once with other credentials, however long the pause was to be.
#[tokio::test]
async fn other_credentials_are_tried_at_once() {
    let mut env = Env::idle().await;
    env.settings.retry = windlass_controller_runtime::Backoff::new(
        std::time::Duration::from_secs(9999),
        std::time::Duration::from_secs(9999),
    );
    env.operate(&windlass_testkit::faults::Faults::none());
    let _workload = env.cluster("c1").await;
    env.helm
        .next("install", Trouble::Refused(Kind::Unauthorized, "401 Unauthorized"));
    env.secret("registry", "config.json", "{}").await;
    env.proxy(
        "web",
        "c1",
        json!({"credentials": {"secret": {"name": "registry"}, "key": "config.json"}}),
    )
    .await;
    env.blocked(
        "web",
        "HelmReleaseReady",
        "HelmInstallOrUpgradeFailed",
        "401 Unauthorized",
    )
    .await;
    env.poke("web", 3).await;
    assert_eq!(env.helm.calls().len(), 1);
    env.secret("registry", "config.json", "{\"auths\": {}}").await;
    env.deployed("web", 1).await;
}

#[tokio::test]
async fn a_missing_helm_is_reported() {
    let env = Env::start().await;
    let _workload = env.cluster("c1").await;
    env.helm
        .make_unusable(Some("there is no helm here: install it from https://helm.sh"));
    env.proxy("web", "c1", json!({})).await;
    env.blocked(
        "web",
        "HelmReleaseReady",
        "HelmInstallOrUpgradeFailed",
        "https://helm.sh",
    )
    .await;
    assert_eq!(env.helm.calls(), [""; 0]);
    env.helm.make_unusable(None);
    env.poke("web", 1).await;
    env.deployed("web", 1).await;
}

// AD-103, AD-145: a repository without an answer is polled again after its delay, not with every event of a release. One that could not be
// polled without Helm is polled as soon as there is a helm.
#[tokio::test]
async fn a_repository_without_an_answer_is_not_polled_by_every_reconcile() {
    let mut env = Env::idle().await;
    let hour = std::time::Duration::from_hours(1);
    env.settings.retry = windlass_controller_runtime::Backoff::new(hour, hour);
    env.operate(&windlass_testkit::faults::Faults::none());
    let _workload = env.cluster("c1").await;
    let absent = json!({"version": null, "chartName": "absent"});
    env.proxy("absent", "c1", absent).await;
    let reason = "HelmInstallOrUpgradeFailed";
    env.blocked("absent", "HelmReleaseReady", reason, "no such chart").await;
    env.poke("absent", 5).await;
    assert_eq!(env.helm.asked(), 1);
    env.helm.make_unusable(Some("there is no helm here"));
    env.proxy("later", "c1", json!({"version": null, "chartName": "later"}))
        .await;
    env.blocked("later", "HelmReleaseReady", reason, "there is no helm here")
        .await;
    env.helm.publish("later", "1.0.0");
    env.helm.make_unusable(None);
    env.poke("later", 1).await;
    env.deployed("later", 1).await;
    assert_eq!(env.helm.asked(), 2);
}

// AD-161: an object reaches only Clusters of its own namespace.
#[tokio::test]
async fn a_cluster_of_another_namespace_is_never_reached() {
    let env = Env::start().await;
    let workload = env.cluster("c1").await;
    env.proxy("web", "c1", json!({"clusterRef": {"name": "c1", "namespace": "other"}}))
        .await;
    env.blocked(
        "web",
        "ClusterAvailable",
        "GetClusterFailed",
        "spec.clusterRef.namespace is other",
    )
    .await;
    assert_eq!((env.helm.calls().len(), workload.requests_for("secrets")), (0, 0));
}

#[tokio::test]
async fn values_that_are_none_are_refused_until_they_change() {
    let env = Env::start().await;
    let _workload = env.cluster("c1").await;
    env.proxy("web", "c1", json!({"values": "- hidden\n"})).await;
    let blocked = env
        .blocked(
            "web",
            "HelmReleaseReady",
            "HelmInstallOrUpgradeFailed",
            "spec.values cannot be used",
        )
        .await;
    assert!(!blocked["status"].to_string().contains("hidden"));
    assert_eq!(env.helm.calls(), [""; 0]);
    env.proxy("web", "c1", json!({})).await;
    env.deployed("web", 1).await;
}

// AD-114: an object that a user wrote by hand is held to the same rules, before any repository or Helm is asked, and reports the error.
#[tokio::test]
async fn an_address_that_no_chart_may_have_is_never_asked() {
    let env = Env::start().await;
    let _workload = env.cluster("c1").await;
    env.proxy(
        "web",
        "c1",
        json!({"repoURL": "http://charts.example.com", "version": null}),
    )
    .await;
    env.blocked(
        "web",
        "HelmReleaseReady",
        "HelmInstallOrUpgradeFailed",
        "spec.repoURL: Invalid value: \"http://charts.example.com\": expected https://",
    )
    .await;
    env.poke("web", 1).await;
    assert_eq!(
        (env.helm.calls().len(), env.helm.asked(), env.helm.sources().len()),
        (0, 0, 0)
    );
    // The address of a release cannot be changed.
    env.delete("HelmReleaseProxy", "web").await;
    env.gone("web").await;
    env.proxy("web", "c1", json!({})).await;
    env.deployed("web", 1).await;
}
