//! Charts: version resolution, fetching, and access.

use std::time::Duration;

use serde_json::json;
use windlass_fake_providers::{ChartLike, Demand, Fault, hosts};
use windlass_helm::{ChartSource, Credentials, Engine as _, Freshness, Kind, Secret, Tls};

use crate::support::{World, simple, with_both};

/// A chart of the registry, below `charts`.
fn in_registry(world: &World, version: Option<&str>) -> ChartSource {
    ChartSource {
        repo_url: format!("oci://{}/charts", hosts::REGISTRY),
        ..world.source("web", version)
    }
}

/// The source in both types of repositories, with these versions published in each.
fn both_sorts(world: &World, versions: &[&str], version: Option<&str>) -> [ChartSource; 2] {
    for version in versions {
        world.forge.chart("charts", &simple(version));
        world.forge.push_chart("charts", &simple(version));
    }
    [world.source("web", version), in_registry(world, version)]
}

// AD-028, AD-060, AD-103, AD-104, AD-112, AD-113, AD-116
with_both!(versions_are_chosen_as_helm_chooses_them);
async fn versions_are_chosen_as_helm_chooses_them(world: World) -> World {
    let versions = ["1.0.0", "1.2.0", "1.10.0", "2.0.0", "2.1.0-rc.1", "0.9.0"];
    for (wanted, expect) in [
        (None, "2.0.0"),
        (Some(""), "2.0.0"),
        (Some("1.2.0"), "1.2.0"),
        (Some("v1.2.0"), "1.2.0"),
        (Some("^1.0"), "1.10.0"),
        (Some(">=0.1 <1.1"), "1.0.0"),
        (Some("2.1.0-rc.1"), "2.1.0-rc.1"),
        (Some(">2.0.0-0"), "2.1.0-rc.1"),
    ] {
        for source in both_sorts(&world, if wanted.is_none() { &versions } else { &[] }, wanted) {
            // A tag must match exactly.
            if wanted == Some("v1.2.0") && source.repo_url.starts_with("oci:") {
                continue;
            }
            let chart = world.helm.chart(&source, Freshness::Any).await;
            let chart = chart.unwrap_or_else(|error| panic!("{} {wanted:?}: {error}", source.repo_url));
            assert_eq!(
                (chart.name.as_str(), chart.version.as_str()),
                ("web", expect),
                "{} {wanted:?}",
                source.repo_url
            );
            assert_eq!(chart.app_version.as_deref(), Some("1.0"));
            assert!(chart.digest.starts_with("sha256:") && chart.archive.is_file());
        }
    }
    world
}

// 200 clusters cost one pull.
with_both!(all_who_ask_at_once_share_one_fetch);
async fn all_who_ask_at_once_share_one_fetch(world: World) -> World {
    for source in both_sorts(&world, &["1.0.0"], Some("1.0.0")) {
        let before = world.helm.counters().of("pull");
        let all = (0..200).map(|_| world.helm.chart(&source, Freshness::Now));
        let charts = futures::future::join_all(all).await;
        let first = charts[0].as_ref().unwrap();
        assert!(charts.iter().all(|chart| chart.as_ref().unwrap() == first));
        assert_eq!(world.helm.counters().of("pull") - before, 1);
    }
    assert_eq!(world.forge.count("web-1.0.0.tgz"), 1);
    assert_eq!(world.helm.counters().of("repo-update"), 1);
    world
}

with_both!(all_who_ask_at_once_share_an_error);
async fn all_who_ask_at_once_share_an_error(world: World) -> World {
    world.forge.fault("index.yaml", Fault::Status(503), None);
    let source = world.source("web", None);
    let all = (0..50).map(|_| world.helm.chart(&source, Freshness::Now));
    for chart in futures::future::join_all(all).await {
        assert_eq!(chart.unwrap_err().kind, Kind::RepositoryUnreachable);
    }
    assert_eq!(world.helm.counters().of("repo-update"), 1);
    // The next call tries again.
    world.forge.heal();
    world.forge.chart("charts", &simple("1.0.0"));
    assert_eq!(
        world.helm.chart(&source, Freshness::Any).await.unwrap().version,
        "1.0.0"
    );
    world
}

// AD-103, AD-104
with_both!(a_new_version_is_found_when_the_list_is_read_again);
async fn a_new_version_is_found_when_the_list_is_read_again(world: World) -> World {
    for source in both_sorts(&world, &["1.0.0"], None) {
        let ask = async |fresh| world.helm.chart(&source, fresh).await.unwrap().version;
        assert_eq!(ask(Freshness::Any).await, "1.0.0");
        both_sorts(&world, &["1.1.0"], None);
        assert_eq!(ask(Freshness::Any).await, "1.0.0");
        assert_eq!(ask(Freshness::Within(Duration::from_hours(1))).await, "1.0.0");
        assert_eq!(ask(Freshness::Within(Duration::ZERO)).await, "1.1.0");
        both_sorts(&world, &["1.2.0"], None);
        assert_eq!(ask(Freshness::Now).await, "1.2.0");
        // For the second type.
        world.forge.forget();
        if source.repo_url.starts_with("https:") {
            let again = world.source("web", Some("1.0.0"));
            assert_eq!(world.helm.chart(&again, Freshness::Now).await.unwrap().version, "1.0.0");
            break;
        }
    }
    world
}

with_both!(a_list_that_has_not_changed_costs_no_pull);
async fn a_list_that_has_not_changed_costs_no_pull(world: World) -> World {
    world.forge.chart("charts", &simple("1.0.0"));
    let source = world.source("web", None);
    for _ in 0..3 {
        world.helm.chart(&source, Freshness::Now).await.unwrap();
    }
    let counters = world.helm.counters();
    assert_eq!(
        (
            counters.of("repo-update"),
            counters.of("pull"),
            counters.of("show-chart")
        ),
        (3, 1, 1)
    );
    world
}

// AD-116
with_both!(an_exact_version_that_came_later_is_looked_for_once_more);
async fn an_exact_version_that_came_later_is_looked_for_once_more(world: World) -> World {
    world.forge.chart("charts", &simple("1.0.0"));
    world
        .helm
        .chart(&world.source("web", None), Freshness::Any)
        .await
        .unwrap();
    world.forge.chart("charts", &simple("1.1.0"));
    let chart = world
        .helm
        .chart(&world.source("web", Some("1.1.0")), Freshness::Any)
        .await
        .unwrap();
    assert_eq!(chart.version, "1.1.0");
    assert_eq!(world.helm.counters().of("repo-update"), 2);
    // From then on it is pinned, and no request is made.
    world.forge.forget();
    world
        .helm
        .chart(&world.source("web", Some("1.1.0")), Freshness::Now)
        .await
        .unwrap();
    assert_eq!(world.forge.seen().len(), 0);
    world
}

with_both!(an_archive_that_was_spoilt_is_fetched_again);
async fn an_archive_that_was_spoilt_is_fetched_again(world: World) -> World {
    let chart = world.chart(&simple("1.0.0")).await;
    for spoil in [
        (|path: &std::path::Path| std::fs::write(path, "spoilt").unwrap()) as fn(&std::path::Path),
        |path| std::fs::remove_file(path).unwrap(),
    ] {
        spoil(&chart.archive);
        let again = world
            .helm
            .chart(&world.source("web", Some("1.0.0")), Freshness::Any)
            .await
            .unwrap();
        assert_eq!(again, chart);
        assert_eq!(std::fs::read(&again.archive).unwrap(), simple("1.0.0").archive());
    }
    world
}

fn login(password: &str) -> Credentials {
    Credentials::Login {
        username: "amy".to_owned(),
        password: Secret::new(password),
        pass_everywhere: false,
    }
}

fn config(host: &str, password: &str) -> Credentials {
    let auths = json!({"auths": {host: {"username": "amy", "password": password}}});
    Credentials::RegistryConfig(Secret::new(auths.to_string()))
}

with_both!(only_repositories_get_credentials);
async fn only_repositories_get_credentials(world: World) -> World {
    world
        .forge
        .demand(hosts::WEB, Demand::Basic("amy".to_owned(), "open-sesame".to_owned()));
    world.forge.demand(
        hosts::REGISTRY,
        Demand::Login("amy".to_owned(), "open-sesame".to_owned()),
    );
    for source in both_sorts(&world, &["1.0.0"], None) {
        let host = source.repo_url.split('/').nth(2).unwrap().to_owned();
        for good in [login("open-sesame"), config(&host, "open-sesame")] {
            let source = ChartSource {
                credentials: Some(good),
                ..source.clone()
            };
            assert_eq!(
                world.helm.chart(&source, Freshness::Now).await.unwrap().version,
                "1.0.0"
            );
        }
        for bad in [
            None,
            Some(login("wrong-sesame")),
            Some(config(&host, "wrong-sesame")),
            Some(config("elsewhere.example.com", "open-sesame")),
        ] {
            let source = ChartSource {
                credentials: bad,
                ..source.clone()
            };
            // A chart that is readable for one user is not returned to another.
            let error = world.helm.chart(&source, Freshness::Any).await.unwrap_err();
            assert_eq!(error.kind, Kind::Unauthorized, "{error}");
            assert!(!error.message.contains("sesame"), "{error}");
        }
    }
    let strangers = [hosts::REGISTRY_FILES];
    for seen in world
        .forge
        .seen()
        .iter()
        .filter(|seen| strangers.contains(&seen.host.as_str()))
    {
        assert_eq!(seen.authorization, None, "{seen:?}");
    }
    world
}

with_both!(trust_is_what_the_source_says);
async fn trust_is_what_the_source_says(world: World) -> World {
    for source in both_sorts(&world, &["1.0.0"], None) {
        for tls in [
            None,
            Some(Tls::default()),
            Some(Tls {
                ca: None,
                insecure_skip_verify: false,
            }),
        ] {
            let source = ChartSource { tls, ..source.clone() };
            let error = world.helm.chart(&source, Freshness::Any).await.unwrap_err();
            assert_eq!(error.kind, Kind::CertificateNotTrusted, "{error}");
        }
        let careless = Tls {
            ca: None,
            insecure_skip_verify: true,
        };
        let source = ChartSource {
            tls: Some(careless),
            ..source
        };
        assert_eq!(
            world.helm.chart(&source, Freshness::Any).await.unwrap().version,
            "1.0.0"
        );
    }
    world
}

// AD-114
with_both!(plain_http_has_to_be_allowed);
async fn plain_http_has_to_be_allowed(world: World) -> World {
    let address = world.forge.plain();
    for (url, allowed) in [
        (format!("http://{address}/charts"), false),
        (format!("http://{address}/charts"), true),
        // Without it, helm 3 uses plain HTTP for registries on loopback, but not for others.
        (format!("oci://{address}/charts"), true),
    ] {
        let [source, _] = both_sorts(&world, &["1.0.0"], None);
        let source = ChartSource {
            repo_url: url,
            plain_http: allowed,
            tls: None,
            ..source
        };
        let chart = world.helm.chart(&source, Freshness::Any).await;
        assert_eq!(chart.is_ok(), allowed, "{}: {chart:?}", source.repo_url);
    }
    world
}

with_both!(the_network_is_reached_through_the_proxy_that_is_set);
async fn the_network_is_reached_through_the_proxy_that_is_set(world: World) -> World {
    world.chart(&simple("1.0.0")).await;
    let seen = world.proxy.seen();
    assert!(
        !seen.is_empty()
            && seen
                .iter()
                .all(|line| line.starts_with(&format!("CONNECT {}:443", hosts::WEB))),
        "{seen:?}"
    );
    world
}

with_both!(charts_are_bounded);
async fn charts_are_bounded(world: World) -> World {
    let small = world.engine(|settings| settings.largest_chart = 1000);
    // Data that does not compress.
    let noise: Vec<String> = (0..2000_u64)
        .map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_string())
        .collect();
    let noise = noise.concat();
    let large = ChartLike::new("web", "1.0.0").file("noise", &noise);
    world.forge.chart("charts", &large);
    let error = small
        .chart(&world.source("web", None), Freshness::Any)
        .await
        .unwrap_err();
    assert_eq!(error.kind, Kind::ChartBroken);
    assert!(error.message.contains("1000 are allowed"), "{error}");
    small.close().await;
    world
}
