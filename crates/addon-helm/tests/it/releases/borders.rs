//! What the controller of releases does not do.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Secret};
use kube::Api;
use kube::api::ListParams;
use parking_lot::Mutex;
use serde_json::json;
use windlass_helm::Kind;
use windlass_testkit::Workload;
use windlass_testkit::faults::Faults;

use super::env::{Env, secrets, web};
use super::fake::Trouble;

// AD-100: its whole life long it reads no HelmChartProxies (the server does not know them), and of a HelmReleaseProxy it writes the name of
// the release, its own marks and the status.
#[tokio::test]
async fn a_release_is_made_of_its_object_alone() {
    let mut env = Env::idle().await;
    let requests: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
    let seen = requests.clone();
    env.operate(&Faults::when(move |request| {
        seen.lock().push((request.method.to_string(), request.path.clone()));
        None
    }));
    let _workload = env.cluster("c1").await;
    let declared = env.proxy("web", "c1", json!({"releaseName": null})).await;
    let stored = env.deployed("web", 1).await;
    let mut expect = declared["spec"].clone();
    expect["releaseName"] = stored["spec"]["releaseName"].clone();
    assert_eq!(stored["spec"], expect);
    assert_eq!(stored["metadata"]["labels"], declared["metadata"]["labels"]);
    env.proxy("web", "c1", json!({"releaseName": null, "values": "replicas: 2\n"}))
        .await;
    env.deployed("web", 2).await;
    env.delete("HelmReleaseProxy", "web").await;
    env.gone("web").await;
    let requests = requests.lock();
    assert!(requests.iter().any(|(_, path)| path.contains("/helmreleaseproxies")));
    for (method, path) in requests.iter() {
        assert!(!path.contains("/helmchartproxies"), "{method} {path}");
        let is_read = method == "GET";
        let is_kept = method == "PATCH" && path.contains("/helmreleaseproxies/web");
        assert!(is_read || is_kept || path.contains("/events"), "{method} {path}");
    }
}

/// Names of everything on a cluster that an add-on could consist of.
async fn objects(client: kube::Client) -> Vec<String> {
    let mut names = Vec::new();
    macro_rules! list {
        ($($kind:ty),*) => {$(
            let all: Api<$kind> = Api::all(client.clone());
            for object in all.list(&ListParams::default()).await.unwrap() {
                names.push(format!("{} {}", stringify!($kind), object.metadata.name.unwrap()));
            }
        )*};
    }
    list!(Namespace, Secret, ConfigMap, Deployment, Pod);
    names
}

// AD-013, AD-023, AD-024: what is on a workload cluster is put there by Helm. Without Helm nothing is, neither for the add-on nor for us.
#[tokio::test]
async fn only_helm_writes_to_a_workload_cluster() {
    let env = Env::start().await;
    let workload = env.cluster("c1").await;
    let before = objects(workload.client()).await;
    env.helm
        .all("install", Some(Trouble::Refused(Kind::ChartBroken, "no such thing")));
    env.proxy("web", "c1", json!({})).await;
    env.blocked("web", "HelmReleaseReady", "HelmInstallOrUpgradeFailed", "no such thing")
        .await;
    assert_eq!(objects(workload.client()).await, before);
    env.helm.all("install", None);
    env.deployed("web", 1).await;
    let added: Vec<String> = {
        let after = objects(workload.client()).await;
        after.into_iter().filter(|name| !before.contains(name)).collect()
    };
    assert_eq!(added, ["Namespace apps", "Secret sh.helm.release.v1.web.v1"]);
}

// AD-011, AD-018: a release goes where the kubeconfig of its Cluster leads, and nowhere without a Cluster. Where the Cluster is the
// management cluster itself, it is no other Cluster than the rest.
#[tokio::test]
async fn nothing_is_installed_but_through_the_kubeconfig_of_a_cluster() {
    let env = Env::start().await;
    env.proxy("web", "c1", json!({})).await;
    env.blocked(
        "web",
        "ClusterAvailable",
        "GetClusterFailed",
        "there is no Cluster default/c1",
    )
    .await;
    assert_eq!(env.helm.calls(), [""; 0]);
    let (one, other): (Workload, Workload) = (env.cluster("c1").await, env.cluster("c2").await);
    env.deployed("web", 1).await;
    assert!(web(&one).newest().await.is_some() && web(&other).newest().await.is_none());
    let here = secrets(&env).list(&ListParams::default().labels("owner=helm")).await;
    assert_eq!(
        here.unwrap().items.len(),
        0,
        "nothing is installed on the management cluster"
    );
    let everywhere: Api<Secret> = Api::all(env.client.clone());
    let all = everywhere.list(&ListParams::default()).await.unwrap();
    assert!(
        all.iter()
            .all(|secret| secret.type_.as_deref() != Some("helm.sh/release.v1"))
    );
}
