//! One test for each kind of error: the messages of both helm versions are classified.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use windlass_apiserver::Authorization;
use windlass_fake_providers::{ChartLike, Fault, hosts};
use windlass_helm::{ChartSource, Engine as _, Freshness, HelmError, Install, Kind, Options, Secret, Status, Summary};

use crate::player::{BAD, GOOD, hook, play};
use crate::support::{Cluster, NO_RIGHTS, World, quick, simple, with_both};

/// Asserts the kind of an error, and words in its message.
#[track_caller]
fn check<T: std::fmt::Debug>(result: Result<T, HelmError>, kind: Kind, words: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.kind, kind, "{error}");
    assert!(error.message.contains(words), "expected \"{words}\" in: {error}");
    assert!(
        error.message.len() <= 2100 && !error.message.starts_with("Error"),
        "{error}"
    );
}

/// Installs a chart as `web`.
async fn install(world: &World, chart: &ChartLike, values: &str, options: &Options) -> Result<Summary, HelmError> {
    let chart = world.chart(chart).await;
    world.helm.install(&world.target(), &chart, values, options).await
}

/// A kubeconfig that would run a program.
const RUNS: &str = "{clusters: [{name: c, cluster: {}}], users: [{name: u, user: {exec: {command: x}}}]}";

// Windlass ships no helm, so the error says how to get one.
#[tokio::test]
async fn a_missing_helm_is_reported_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = windlass_helm::Settings::new(folder.path().join("home"));
    settings.search = Some(folder.path().into());
    let helm = windlass_helm::Helm::new(settings).unwrap();
    let why = helm.unusable().unwrap();
    assert!(
        why.contains("there is no program helm here") && why.contains("--helm"),
        "{why}"
    );
    let source = ChartSource {
        repo_url: "https://h".to_owned(),
        chart: "x".to_owned(),
        ..ChartSource::default()
    };
    check(
        helm.chart(&source, Freshness::Any).await,
        Kind::NotInstalled,
        "helm.sh/docs/intro/install",
    );

    // First a helm that is too old, then a file that is not a program.
    for (script, kind, words) in [
        ("#!/bin/sh\necho v3.9.4\n", Kind::TooOld, "v3.14 or newer is needed"),
        (
            "#!/bin/sh\necho unknown command >&2; exit 1\n",
            Kind::NotInstalled,
            "unknown command",
        ),
    ] {
        use std::os::unix::fs::PermissionsExt as _;
        let path = folder.path().join("helm");
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(helm.unusable(), None, "it is not known yet");
        check(helm.chart(&source, Freshness::Any).await, kind, words);
        assert!(helm.unusable().unwrap().contains(words));
    }
    helm.close().await;
}

with_both!(what_makes_no_sense_is_refused_before_helm_is_asked);
async fn what_makes_no_sense_is_refused_before_helm_is_asked(world: World) -> World {
    let chart = world.chart(&simple("1.0.0")).await;
    let ask = async |change: fn(&mut windlass_helm::Target)| {
        let mut target = world.target();
        change(&mut target);
        world.helm.install(&target, &chart, "", &quick()).await
    };
    check(
        ask(|target| "--all".clone_into(&mut target.release)).await,
        Kind::Invalid,
        "the name of a release",
    );
    check(
        ask(|target| target.kubeconfig = Secret::new("hidden")).await,
        Kind::Invalid,
        "kubeconfig: ",
    );
    check(
        ask(|target| target.kubeconfig = Secret::new(RUNS)).await,
        Kind::Invalid,
        "exec is not allowed",
    );
    let values = async |text| world.helm.install(&world.target(), &chart, text, &quick()).await;
    check(
        values("[hidden").await,
        Kind::ValuesInvalid,
        "values are not valid YAML",
    );
    check(
        values("- hidden").await,
        Kind::ValuesInvalid,
        "a mapping at the top, not a list",
    );
    assert_eq!(world.helm.counters().of("install"), 0);
    world
}

with_both!(charts_and_versions_that_are_not_there);
async fn charts_and_versions_that_are_not_there(world: World) -> World {
    world.forge.chart("charts", &simple("1.0.0"));
    world.forge.push_chart("charts", &simple("1.0.0"));
    let registry = format!("oci://{}/charts", hosts::REGISTRY);
    for url in [format!("https://{}/charts", hosts::WEB), registry] {
        let ask = async |chart: &str, version: Option<&str>| {
            let source = ChartSource {
                repo_url: url.clone(),
                ..world.source(chart, version)
            };
            world.helm.chart(&source, Freshness::Any).await
        };
        for version in [None, Some("1.0.0"), Some("^1")] {
            let words = format!("{url} has no chart \"none\"");
            check(ask("none", version).await, Kind::ChartNotFound, &words);
        }
        for version in ["9.9.9", "^9"] {
            let words = format!("chart \"web\" of {url} has no version {version}");
            check(ask("web", Some(version)).await, Kind::VersionNotFound, &words);
        }
    }
    world
}

with_both!(a_range_that_is_none);
async fn a_range_that_is_none(world: World) -> World {
    world.forge.chart("charts", &simple("1.0.0"));
    let source = world.source("web", Some("not a version"));
    check(
        world.helm.chart(&source, Freshness::Any).await,
        Kind::Invalid,
        "improper constraint",
    );
    world
}

with_both!(repositories_that_do_not_answer_as_such);
async fn repositories_that_do_not_answer_as_such(world: World) -> World {
    let ask = async |url: &str| {
        let source = ChartSource {
            repo_url: url.to_owned(),
            plain_http: true,
            ..world.source("web", None)
        };
        let helm = world.engine(|settings| settings.environment.clear());
        let chart = helm.chart(&source, Freshness::Now).await;
        helm.close().await;
        chart
    };
    // A port without a listener, and a name that does not exist.
    let closed = format!("127.0.0.1:{}", windlass_envtest::reserved_port().unwrap());
    for url in [
        format!("https://{closed}"),
        format!("http://{closed}"),
        format!("oci://{closed}/x"),
    ] {
        check(ask(&url).await, Kind::RepositoryUnreachable, "connection refused");
    }
    check(
        ask("https://no.such.host.invalid/x").await,
        Kind::RepositoryUnreachable,
        "",
    );

    world.forge.chart("charts", &simple("1.0.0"));
    for (fault, words) in [
        (Fault::Status(404), "404"),
        (Fault::Status(500), "500"),
        (Fault::Html, ""),
        (Fault::HangUp, "EOF"),
        (Fault::Truncated, "EOF"),
    ] {
        world.forge.fault("index.yaml", fault, None);
        let chart = world.helm.chart(&world.source("web", None), Freshness::Now).await;
        check(chart, Kind::RepositoryUnreachable, words);
        world.forge.heal();
    }
    world
}

with_both!(a_silent_repository_times_out);
async fn a_silent_repository_times_out(world: World) -> World {
    let helm = world.engine(|settings| settings.fetch_limit = Duration::from_millis(1500));
    world.forge.fault("index.yaml", Fault::Stall, None);
    check(
        helm.chart(&world.source("web", None), Freshness::Now).await,
        Kind::TimedOut,
        "did not end within 1 s",
    );
    helm.close().await;
    world
}

with_both!(what_is_no_chart);
async fn what_is_no_chart(world: World) -> World {
    world.forge.chart("charts", &simple("1.0.0"));
    world
        .forge
        .fault("web-1.0.0.tgz", Fault::Content("this is no archive".to_owned()), None);
    let chart = world.helm.chart(&world.source("web", None), Freshness::Now).await;
    check(chart, Kind::ChartBroken, "");
    world.forge.heal();
    let library = ChartLike::new("lib", "1.0.0").says("type", json!("library"));
    check(
        install(&world, &library, "", &quick()).await,
        Kind::ChartBroken,
        "library charts are not installable",
    );
    let lacking = simple("1.1.0").says(
        "dependencies",
        json!([{"name": "part", "version": "0.1.0", "repository": ""}]),
    );
    check(install(&world, &lacking, "", &quick()).await, Kind::ChartBroken, "part");
    world
}

// AD-028, AD-037, AD-115
with_both!(a_chart_for_another_kubernetes);
async fn a_chart_for_another_kubernetes(world: World) -> World {
    let chart = simple("1.0.0").says("kubeVersion", json!(">=1.99.0"));
    check(
        install(&world, &chart, "", &quick()).await,
        Kind::KubeVersionRefused,
        &format!("incompatible with Kubernetes {}", world.cluster.version().await),
    );
    assert_eq!(world.cluster.newest(&world.target()).await, None);
    world
}

with_both!(values_that_the_schema_refuses);
async fn values_that_the_schema_refuses(world: World) -> World {
    let schema = json!({"type": "object", "properties": {"replicas": {"type": "integer", "minimum": 1}}});
    let chart = simple("1.0.0").file("values.schema.json", &schema.to_string());
    check(
        install(&world, &chart, "replicas: many", &quick()).await,
        Kind::ValuesRefused,
        "replicas",
    );
    install(&world, &chart, "replicas: 3", &quick()).await.unwrap();
    world
}

with_both!(templates_that_cannot_be_rendered);
async fn templates_that_cannot_be_rendered(world: World) -> World {
    for (i, (template, words)) in [
        ("{{ fail \"there is no oven\" }}", "there is no oven"),
        ("{{ required \"an oven is needed\" .Values.oven }}", "an oven is needed"),
        ("{{ .Values.greeting.deep.deeper }}", "templates/bad.yaml"),
        ("{{ if }}", "templates/bad.yaml"),
        ("{{ include \"none\" . }}", "none"),
        ("{{ oven }}", "oven"),
        ("a: b: c\n", "templates/bad.yaml"),
    ]
    .into_iter()
    .enumerate()
    {
        let chart = simple(&format!("1.0.{i}")).file("templates/bad.yaml", template);
        check(install(&world, &chart, "", &quick()).await, Kind::TemplateFailed, words);
    }
    world
}

// AD-134
with_both!(a_release_name_that_is_taken);
async fn a_release_name_that_is_taken(world: World) -> World {
    install(&world, &simple("1.0.0"), "greeting: mine", &quick())
        .await
        .unwrap();
    check(
        install(&world, &simple("1.0.0"), "", &quick()).await,
        Kind::NameInUse,
        "still in use",
    );
    assert_eq!(world.cluster.history(&world.target()).await.len(), 1);
    world
}

with_both!(a_release_that_is_not_there);
async fn a_release_that_is_not_there(world: World) -> World {
    let chart = world.chart(&simple("1.0.0")).await;
    check(
        world.helm.upgrade(&world.target(), &chart, "", &quick()).await,
        Kind::ReleaseNotFound,
        "web",
    );
    check(
        world.helm.rollback(&world.target(), 1, &quick()).await,
        Kind::ReleaseNotFound,
        "",
    );
    world.helm.install(&world.target(), &chart, "", &quick()).await.unwrap();
    check(
        world.helm.rollback(&world.target(), 7, &quick()).await,
        Kind::ReleaseNotFound,
        "7",
    );
    world
}

with_both!(a_resource_of_another_release);
async fn a_resource_of_another_release(world: World) -> World {
    world
        .cluster
        .create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": world.cluster.namespace}}))
        .await;
    let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": world.cluster.namespace}, "data": {"of": "them"}});
    world.cluster.create(theirs).await;
    check(
        install(&world, &simple("1.0.0"), "", &quick()).await,
        Kind::ResourceExists,
        "ConfigMap \"web\"",
    );
    assert_eq!(
        world.cluster.get::<ConfigMap>("web").await["data"],
        json!({"of": "them"})
    );
    let take = Options {
        take_ownership: true,
        ..quick()
    };
    install(&world, &simple("1.0.0"), "", &take).await.unwrap();
    world
}

with_both!(a_kind_that_the_cluster_has_not);
async fn a_kind_that_the_cluster_has_not(world: World) -> World {
    let oven = "apiVersion: example.com/v1\nkind: Oven\nmetadata:\n  name: big\n";
    let chart = simple("1.0.0").file("templates/oven.yaml", oven);
    check(install(&world, &chart, "", &quick()).await, Kind::KindUnknown, "Oven");
    world
}

// AD-145
with_both!(a_resource_that_the_cluster_refuses_leaves_a_failed_release_that_can_be_put_right);
async fn a_resource_that_the_cluster_refuses_leaves_a_failed_release_that_can_be_put_right(world: World) -> World {
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: bad\ndata:\n  {{ .Values.key | quote }}: x\n";
    let chart = world.chart(&simple("1.0.0").file("templates/bad.yaml", map)).await;
    let target = world.target();
    check(
        world
            .helm
            .install(&target, &chart, "key: 'not allowed!'", &quick())
            .await,
        Kind::ResourceRefused,
        "not allowed!",
    );
    let failed = world.cluster.newest(&target).await.unwrap();
    assert_eq!((failed.status, failed.revision), (Status::Failed, 1));
    assert!(failed.description.contains("not allowed!"), "{}", failed.description);
    let summary = world
        .helm
        .upgrade(&target, &chart, "key: allowed", &quick())
        .await
        .unwrap();
    assert_eq!((summary.revision, summary.status), (2, Status::Deployed));
    world
}

with_both!(an_atomic_upgrade_that_fails_is_undone);
async fn an_atomic_upgrade_that_fails_is_undone(world: World) -> World {
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: bad\ndata:\n  {{ .Values.key | quote }}: x\n";
    let chart = world.chart(&simple("1.0.0").file("templates/bad.yaml", map)).await;
    let target = world.target();
    let atomic = Options {
        atomic: true,
        ..quick()
    };
    check(
        world
            .helm
            .install(&target, &chart, "key: 'not allowed!'", &atomic)
            .await,
        Kind::ResourceRefused,
        "not allowed!",
    );
    assert_eq!(world.cluster.newest(&target).await, None);
    world
        .helm
        .install(&target, &chart, "key: allowed", &atomic)
        .await
        .unwrap();
    check(
        world
            .helm
            .upgrade(&target, &chart, "key: 'not allowed!'", &atomic)
            .await,
        Kind::ResourceRefused,
        "not allowed!",
    );
    let newest = world.cluster.newest(&target).await.unwrap();
    assert_eq!(
        (newest.revision, newest.status, newest.description.as_str()),
        (3, Status::Deployed, "Rollback to 1")
    );
    world
}

with_both!(a_hook_that_fails);
async fn a_hook_that_fails(world: World) -> World {
    let _player = play(&world.cluster.client);
    for (i, event) in ["pre-install", "post-install"].into_iter().enumerate() {
        let chart = simple(&format!("1.0.{i}")).file("templates/hook.yaml", &hook(event, &format!("check{BAD}")));
        check(install(&world, &chart, "", &quick()).await, Kind::HookFailed, event);
        world.helm.uninstall(&world.target(), &quick()).await.unwrap();
    }
    install(&world, &simple("1.1.0"), "", &quick()).await.unwrap();
    for (i, event) in ["pre-upgrade", "post-upgrade"].into_iter().enumerate() {
        let chart = simple(&format!("1.2.{i}")).file("templates/hook.yaml", &hook(event, &format!("check{BAD}")));
        let chart = world.chart(&chart).await;
        check(
            world.helm.upgrade(&world.target(), &chart, "", &quick()).await,
            Kind::HookFailed,
            event,
        );
    }
    let good = simple("1.3.0").file("templates/hook.yaml", &hook("post-upgrade", &format!("check{GOOD}")));
    let good = world.chart(&good).await;
    world.helm.upgrade(&world.target(), &good, "", &quick()).await.unwrap();
    world
}

with_both!(a_hook_that_takes_too_long);
async fn a_hook_that_takes_too_long(world: World) -> World {
    let chart = simple("1.0.0").file("templates/hook.yaml", &hook("post-install", "never"));
    let short = Options {
        timeout: Duration::from_secs(2),
        ..quick()
    };
    check(install(&world, &chart, "", &short).await, Kind::TimedOut, "");
    assert_eq!(
        world.cluster.newest(&world.target()).await.unwrap().status,
        Status::Failed
    );
    world
}

// AD-038
with_both!(what_is_waited_for_and_does_not_come);
async fn what_is_waited_for_and_does_not_come(world: World) -> World {
    let web = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  selector: {matchLabels: {a: b}}\n  template:\n    \
               metadata: {labels: {a: b}}\n    spec: {containers: [{name: a, image: example.com/a:1}]}\n";
    let chart = simple("1.0.0").file("templates/web.yaml", web);
    let wait = Options {
        wait: true,
        timeout: Duration::from_secs(2),
        ..quick()
    };
    check(install(&world, &chart, "", &wait).await, Kind::TimedOut, "");
    world
}

with_both!(a_namespace_that_is_going);
async fn a_namespace_that_is_going(world: World) -> World {
    world
        .cluster
        .create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": world.cluster.namespace}}))
        .await;
    let held = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "namespace": world.cluster.namespace, "finalizers": ["example.com/hold"]}});
    world.cluster.create(held).await;
    let namespaces: kube::Api<k8s_openapi::api::core::v1::Namespace> = kube::Api::all(world.cluster.client.clone());
    namespaces
        .delete(&world.cluster.namespace, &kube::api::DeleteParams::default())
        .await
        .unwrap();
    check(
        install(&world, &simple("1.0.0"), "", &quick()).await,
        Kind::NamespaceTerminating,
        &world.cluster.namespace,
    );
    world
}

with_both!(a_namespace_that_is_not_to_be_made);
async fn a_namespace_that_is_not_to_be_made(world: World) -> World {
    let options = Options {
        install: Install {
            create_namespace: false,
            ..Install::default()
        },
        ..quick()
    };
    check(
        install(&world, &simple("1.0.0"), "", &options).await,
        Kind::NamespaceNotFound,
        &world.cluster.namespace,
    );
    world
}

with_both!(a_cluster_that_does_not_answer);
async fn a_cluster_that_does_not_answer(mut world: World) -> World {
    let chart = world.chart(&simple("1.0.0")).await;
    world.cluster.stop();
    let short = Options {
        timeout: Duration::from_secs(5),
        ..quick()
    };
    check(
        world.helm.install(&world.target(), &chart, "", &short).await,
        Kind::ClusterUnreachable,
        "",
    );
    check(
        world.helm.upgrade(&world.target(), &chart, "", &short).await,
        Kind::ClusterUnreachable,
        "",
    );
    check(
        world.helm.uninstall(&world.target(), &short).await,
        Kind::ClusterUnreachable,
        "",
    );
    world
}

with_both!(a_cluster_that_does_not_know_us_or_does_not_let_us);
async fn a_cluster_that_does_not_know_us_or_does_not_let_us(world: World) -> World {
    let chart = world.chart(&simple("1.0.0")).await;
    let mut target = world.target();
    target.kubeconfig = world.cluster.kubeconfig("token-of-a-stranger");
    check(
        world.helm.install(&target, &chart, "", &quick()).await,
        Kind::ClusterForbidden,
        "",
    );
    let strict = Cluster::start(Authorization::Rbac).await;
    target.kubeconfig = strict.kubeconfig(NO_RIGHTS);
    check(
        world.helm.install(&target, &chart, "", &quick()).await,
        Kind::ClusterForbidden,
        "guest",
    );
    check(
        world.helm.uninstall(&target, &quick()).await,
        Kind::ClusterForbidden,
        "guest",
    );
    world
}
