//! From the first release to the last, with changes by users and controllers.

use k8s_openapi::api::core::v1::Namespace;
use kube::api::Api;
use serde_json::json;
use windlass_api_ext::addons::HelmReleaseProxy;
use windlass_testkit::ClusterOf;

use super::world::{World, chart, chart_of, repository, run, with_both};

// T1, T3, T4, T5, T7, T9, AD-025, AD-029, AD-036, AD-095, AD-099, AD-109, AD-115, AD-133: the whole life of a release.
with_both!(a_chart_reaches_a_simulated_cluster_by_the_real_helm);
async fn a_chart_reaches_a_simulated_cluster_by_the_real_helm(world: &World) {
    world.forge.chart("charts", &chart("1.0.0"));
    world.clusters(&["c1"]).await;
    world.web(&json!({})).await;
    world.deployed("web", "c1", 1).await;
    assert_eq!(world.listed("c1").await, ["apps/web web-1.0.0 r1 deployed"]);
    assert_eq!(world.data("c1", "apps", "web").await["pods"], "192.168.0.0/16");
    // Another version, and other values.
    world.forge.chart("charts", &chart("1.1.0"));
    world
        .web(&json!({"version": "1.1.0", "valuesTemplate": "greeting: welcome\n"}))
        .await;
    world.deployed("web", "c1", 2).await;
    let now = world.data("c1", "apps", "web").await;
    assert_eq!(
        (now["greeting"].as_str(), now["version"].as_str()),
        ("welcome", "1.1.0")
    );
    // Changes by a user are reverted.
    let archive = world.archive(&chart("1.1.0")).await;
    let by_hand = ["upgrade", "web", &archive, "-n", "apps", "--set", "greeting=mine"];
    world.helm("c1", &by_hand).await;
    world.deployed("web", "c1", 4).await;
    assert_eq!(world.data("c1", "apps", "web").await["greeting"], "welcome");
    // The cluster is no longer selected.
    world.label("c1", None).await;
    world.env.wait_all::<HelmReleaseProxy>("none", <[_]>::is_empty).await;
    assert!(world.listed("c1").await.is_empty());
    let namespaces: Api<Namespace> = Api::all(world.client("c1").await);
    assert!(namespaces.get("apps").await.is_ok());
}

// T10, T13, AD-060, AD-103, AD-134: the newest version is followed, and a release that a user installed is left alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_newest_chart_is_followed_and_a_release_by_hand_is_left_alone() {
    run("helm", async |world| {
        world.forge.chart("charts", &chart("1.0.0"));
        let cluster = ClusterOf::new("c1", 1, 0);
        cluster.apply(&world.env).await;
        cluster.wait_running(&world.env).await;
        let archive = world.archive(&chart("0.9.0")).await;
        let by_hand = ["install", "web", &archive, "-n", "apps", "--create-namespace"];
        world.helm("c1", &by_hand).await;
        world.label("c1", Some("yes")).await;
        world.web(&json!({"version": null})).await;
        let reason = "HelmInstallOrUpgradeFailed";
        world.blocked("web", "c1", reason, &["the name is in use"]).await;
        // Another release name is free.
        world.web(&json!({"version": null, "releaseName": "ours"})).await;
        world.deployed("web", "c1", 1).await;
        world.forge.chart("charts", &chart("1.1.0"));
        world.deployed("web", "c1", 2).await;
        world.env.delete("HelmChartProxy", "web").await;
        world.env.wait_all::<HelmReleaseProxy>("none", <[_]>::is_empty).await;
        assert_eq!(world.listed("c1").await, ["apps/web web-0.9.0 r1 deployed"]);
    })
    .await;
}

// T8, AD-090: a change of an immutable field creates another release, once the old one is deleted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_makes_way_for_one_elsewhere() {
    run("helm", async |world| {
        for (folder, name) in [("charts", "web"), ("charts", "site"), ("more", "site")] {
            world.forge.chart(folder, &chart_of(name, "1.0.0"));
        }
        world.clusters(&["c1"]).await;
        world.web(&json!({})).await;
        let mut proxy = world.deployed("web", "c1", 1).await;
        let mut spec = json!({});
        for (field, value, release, listed) in [
            ("namespace", "moved".to_owned(), "moved/web", "moved/web web-1.0.0"),
            (
                "releaseName",
                "named".to_owned(),
                "moved/named",
                "moved/named web-1.0.0",
            ),
            ("chartName", "site".to_owned(), "moved/named", "moved/named site-1.0.0"),
            ("repoURL", repository("more"), "moved/named", "moved/named site-1.0.0"),
        ] {
            spec[field] = value.into();
            let history = world.history("c1", release, async || world.web(&spec).await).await;
            assert!(history.iter().any(Vec::is_empty), "{field}: {history:?}");
            assert!(history.iter().all(|now| now.len() <= 1), "{field}: {history:?}");
            let now = world.deployed("web", "c1", 1).await;
            assert_ne!(now.metadata.uid, proxy.metadata.uid, "{field}");
            assert_eq!(world.listed("c1").await, [format!("{listed} r1 deployed")], "{field}");
            proxy = now;
        }
    })
    .await;
}

// T11, T12, AD-033, AD-040, AD-045, AD-056, AD-066, AD-078, AD-097, AD-098, AD-149
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn releases_come_again_and_go_with_their_cluster_and_with_nothing_else() {
    run("helm", async |world| {
        world.forge.chart("charts", &chart("1.0.0"));
        world.clusters(&["c1", "c2"]).await;
        world.web(&json!({})).await;
        // A name is generated for it, and the chart's default values apply.
        let plain =
            |version: &str| json!({"releaseName": null, "namespace": null, "valuesTemplate": null, "version": version});
        world.chart_proxy("plain", &plain("1.0.0")).await;
        let versioned = json!({"valuesTemplate": "greeting: {{ .Cluster.spec.topology.version }}\n"});
        world.chart_proxy("versioned", &versioned).await;
        for cluster in ["c1", "c2"] {
            for proxy in ["web", "plain", "versioned"] {
                world.deployed(proxy, cluster, 1).await;
            }
        }
        let first = world.deployed("plain", "c2", 1).await;
        let name = first.spec.release_name().unwrap();
        assert!(name.starts_with("web-") && first.is_release_name_generated(), "{name}");
        assert_eq!(world.data("c2", "default", name).await["greeting"], "hello");

        // A user deletes a HelmReleaseProxy.
        let old = world.deployed("web", "c1", 1).await;
        let name_of_old = old.metadata.name.as_deref().unwrap();
        let deleted = async || world.env.delete("HelmReleaseProxy", name_of_old).await;
        let history = world.history("c1", "apps/web", deleted).await;
        let is_gone = |now: &Vec<String>| !now.iter().any(|name| name.starts_with("apps/web "));
        assert!(history.iter().any(is_gone), "{history:?}");
        let new = world.deployed("web", "c1", 1).await;
        assert_ne!(new.metadata.uid, old.metadata.uid);

        // Another version of Kubernetes changes the values that contain it.
        let cluster = ClusterOf::new("c2", 1, 0).version("v1.36.0");
        let before = world.deployed("web", "c2", 1).await;
        cluster.apply(&world.env).await;
        world.deployed("versioned", "c2", 2).await;
        assert_eq!(world.data("c2", "apps", "versioned").await["greeting"], "v1.36.0");
        cluster.wait_running(&world.env).await;
        assert_eq!(
            world.deployed("web", "c2", 1).await.metadata.generation,
            before.metadata.generation
        );
        // Another version of the chart is installed on request.
        world.forge.chart("charts", &chart("1.1.0"));
        world.chart_proxy("plain", &plain("1.1.0")).await;
        for cluster in ["c1", "c2"] {
            world.deployed("plain", cluster, 2).await;
        }
        let left = [
            "apps/versioned web-1.0.0 r2 deployed".to_owned(),
            "apps/web web-1.0.0 r1 deployed".to_owned(),
            format!("default/{name} web-1.1.0 r2 deployed"),
        ];
        assert_eq!(world.listed("c2").await, left);

        // A Cluster is deleted, without effect on the other.
        world.env.delete("Cluster", "c1").await;
        world.env.wait_gone("c1").await;
        for proxy in ["web", "plain", "versioned"] {
            world.told(proxy, "Ready", &[], &[]).await;
        }
        assert_eq!(world.env.list::<HelmReleaseProxy>().await.len(), 3);
        world.env.looked(&["helmchartproxy", "helmreleaseproxy"]).await;
        assert_eq!(world.listed("c2").await, left);
    })
    .await;
}
