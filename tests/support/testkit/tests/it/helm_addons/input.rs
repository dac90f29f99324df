//! Errors of charts are reported on the release, and on the HelmChartProxy with the name of the cluster. They affect nothing
//! else, and the controllers continue by themselves after a correction.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass_api_ext::addons::HelmReleaseProxy;
use windlass_fake_providers::{Demand, hosts};
use windlass_testkit::{leaks, reserved_port};

use super::world::{World, chart, chart_of, is_of, is_ready, repository, with_both};

/// The clusters of a test.
const BOTH: [&str; 2] = ["c1", "c2"];
/// The cluster with the error.
const ONE: [&str; 1] = ["c2"];
const FAILED: &str = "HelmInstallOrUpgradeFailed";
const PENDING: &str = "HelmReleasePending";
/// The user of repositories. The credentials must not be shown.
const USER: &str = "amy";
const PASSWORDS: [&str; 2] = ["marked-open-sesame", "marked-wrong-sesame"];

/// A HelmChartProxy with an error.
struct Case {
    name: &'static str,
    /// Fields of its spec.
    spec: Value,
    /// The affected clusters.
    clusters: &'static [&'static str],
    /// The reason on the release; empty without a release.
    reason: &'static str,
    parts: &'static [&'static str],
}

/// All cases; `down` is an address without a listener.
fn cases(down: &str) -> Vec<Case> {
    let case = |name, clusters, reason, parts, spec| Case {
        name,
        spec,
        clusters,
        reason,
        parts,
    };
    let untrusted = format!("https://{}/charts", hosts::UNTRUSTED);
    let registry = format!("oci://{}/charts", hosts::REGISTRY);
    let credentials = |secret: &str| json!({"secret": {"name": secret}, "key": "config.json"});
    let patient = json!({"timeout": "10m"});
    vec![
        case(
            "absent",
            &BOTH,
            FAILED,
            &["chart \"absent\""],
            json!({"chartName": "absent"}),
        ),
        case("unpublished", &BOTH, FAILED, &["9.9.9"], json!({"version": "9.9.9"})),
        case("beyond", &BOTH, FAILED, &["^9"], json!({"version": "^9"})),
        case(
            "future",
            &BOTH,
            FAILED,
            &["kubeVersion: >=1.99", "incompatible with Kubernetes v1.35"],
            json!({"chartName": "future"}),
        ),
        case("down", &BOTH, FAILED, &["connection refused"], json!({"repoURL": down})),
        case(
            "basic",
            &BOTH,
            FAILED,
            &["401"],
            json!({"repoURL": untrusted, "tlsConfig": {"insecureSkipTLSVerify": true}, "credentials": credentials("basic")}),
        ),
        case(
            "registry",
            &BOTH,
            FAILED,
            &["401"],
            json!({"repoURL": registry, "credentials": credentials("registry")}),
        ),
        case("untrusted", &BOTH, FAILED, &["x509"], json!({"repoURL": untrusted})),
        case(
            "keyless",
            &BOTH,
            "GetCACertificateFailed",
            &["there is no Secret default/keyless"],
            json!({"tlsConfig": {"caSecret": {"name": "keyless"}}}),
        ),
        case(
            "template",
            &ONE,
            "",
            &["line 1", "annotations"],
            json!({"valuesTemplate": "pods: {{ .Cluster.metadata.annotations.pods }}\n"}),
        ),
        case(
            "schema",
            &ONE,
            FAILED,
            &["schema", "replicas"],
            json!({"chartName": "strict", "valuesTemplate": "replicas: {{ .Cluster.metadata.labels.size }}\n"}),
        ),
        case(
            "installing",
            &ONE,
            PENDING,
            &["pending-install", "may still be going on"],
            json!({"options": patient}),
        ),
        case(
            "upgrading",
            &ONE,
            PENDING,
            &["pending-upgrade", "may still be going on"],
            json!({"options": patient}),
        ),
        case(
            "going",
            &ONE,
            FAILED,
            &["being terminated"],
            json!({"namespace": "going"}),
        ),
    ]
}

/// Credentials for a host.
async fn login(world: &World, secret: &str, host: &str, password: &str) {
    leaks::mark(password);
    let auths = json!({"auths": {host: {"username": USER, "password": password}}});
    world.secret(secret, &[("config.json", &auths.to_string())]).await;
}

/// A namespace that is being deleted, and blocked by an object in it.
async fn begin_to_delete(world: &World, cluster: &str, namespace: &str) -> Api<ConfigMap> {
    let client = world.client(cluster).await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let object = serde_json::from_value(json!({"metadata": {"name": namespace}})).unwrap();
    namespaces.create(&PostParams::default(), &object).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client, namespace);
    let held = json!({"metadata": {"name": "held", "finalizers": ["example.com/hold"]}});
    let held = serde_json::from_value(held).unwrap();
    maps.create(&PostParams::default(), &held).await.unwrap();
    namespaces.delete(namespace, &DeleteParams::default()).await.unwrap();
    maps
}

/// Leaves two releases of these names as a killed manager does: one partly installed, one partly upgraded.
async fn leave_half_done(world: &World, cluster: &str) {
    let hook = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: never\n  annotations:\n    helm.sh/hook: pre-install,pre-upgrade\nspec:\n  \
                template:\n    spec:\n      restartPolicy: Never\n      containers:\n      - {name: a, image: example.com/a:1}\n";
    let endless = world.archive(&chart("0.2.0").file("templates/hook.yaml", hook)).await;
    let plain = world.archive(&chart("0.1.0")).await;
    let owner = |name: &str| format!("helmreleaseproxy.addons.cluster.x-k8s.io/owner=default.{name}");
    let install = |name, archive, owner| {
        [
            "install",
            name,
            archive,
            "-n",
            "apps",
            "--create-namespace",
            "--labels",
            owner,
        ]
    };
    let (installing, upgrading) = (owner("installing"), owner("upgrading"));
    world.helm(cluster, &install("upgrading", &plain, &upgrading)).await;
    world
        .break_off(
            cluster,
            "apps/installing",
            &install("installing", &endless, &installing),
        )
        .await;
    world
        .break_off(
            cluster,
            "apps/upgrading",
            &["upgrade", "upgrading", &endless, "-n", "apps"],
        )
        .await;
}

// AD-037, AD-086, AD-102, AD-115, AD-126, AD-140, AD-145, AD-147; T14
with_both!(errors_are_reported_block_nothing_else_and_can_be_corrected);
async fn errors_are_reported_block_nothing_else_and_can_be_corrected(world: &World) {
    let (name, password) = (USER.to_owned(), PASSWORDS[0].to_owned());
    world
        .forge
        .demand(hosts::UNTRUSTED, Demand::Basic(name.clone(), password.clone()));
    world.forge.demand(hosts::REGISTRY, Demand::Login(name, password));
    let replicas = json!({"type": "object", "properties": {"replicas": {"type": "integer"}}});
    let strict = chart_of("strict", "1.0.0").file("values.schema.json", &replicas.to_string());
    world.forge.chart("charts", &strict);
    let future = chart_of("future", "1.0.0").says("kubeVersion", ">=1.99".into());
    world.forge.chart("charts", &future);
    world.forge.chart("charts", &chart("1.0.0"));
    world.forge.push_chart("charts", &chart("1.0.0"));
    login(world, "basic", hosts::UNTRUSTED, PASSWORDS[1]).await;
    login(world, "registry", hosts::REGISTRY, PASSWORDS[1]).await;
    world.clusters(&BOTH).await;
    let says = |labels: Value, annotations: Value| json!({"metadata": {"labels": labels, "annotations": annotations}});
    let right = says(json!({"size": "3"}), json!({"pods": "10.0.0.0/8"}));
    world.env.merge("Cluster", "c1", &right).await;
    world
        .env
        .merge("Cluster", "c2", &says(json!({"size": "many"}), json!({})))
        .await;
    world.web(&json!({})).await;
    for cluster in BOTH {
        world.deployed("web", cluster, 1).await;
    }
    leave_half_done(world, "c2").await;
    let held = begin_to_delete(world, "c2", "going").await;

    let down = format!("https://127.0.0.1:{}/charts", reserved_port());
    let cases = cases(&down);
    for case in &cases {
        world.chart_proxy(case.name, &case.spec).await;
    }
    for case in &cases {
        check(world, case).await;
    }
    // A HelmChartProxy without an error is installed.
    world.web(&json!({"valuesTemplate": "greeting: welcome\n"})).await;
    for cluster in BOTH {
        world.deployed("web", cluster, 2).await;
    }

    world.forge.chart("charts", &chart_of("absent", "1.0.0"));
    world.forge.chart("charts", &chart("9.9.9"));
    world.forge.chart("charts", &chart_of("future", "1.0.1"));
    let present = json!({"chartName": "future", "version": "1.0.1"});
    world.chart_proxy("future", &present).await;
    let there = json!({"repoURL": repository("charts")});
    for name in ["down", "untrusted"] {
        world.chart_proxy(name, &there).await;
    }
    login(world, "basic", hosts::UNTRUSTED, PASSWORDS[0]).await;
    login(world, "registry", hosts::REGISTRY, PASSWORDS[0]).await;
    world.secret("keyless", &[("ca.crt", &world.forge.authority())]).await;
    world.env.merge("Cluster", "c2", &right).await;
    for name in ["installing", "upgrading"] {
        world.chart_proxy(name, &json!({"options": {"timeout": "1s"}})).await;
    }
    let let_go = json!({"metadata": {"finalizers": null}});
    held.patch("held", &PatchParams::default(), &Patch::Merge(&let_go))
        .await
        .unwrap();
    let expect = (cases.len() + 1) * BOTH.len();
    let is_mended = |all: &[HelmReleaseProxy]| all.len() == expect && all.iter().all(is_ready);
    world.env.wait_all("all mended", is_mended).await;
    for case in &cases {
        world.told(case.name, "Ready", &[], &[]).await;
    }
}

/// Asserts that a case is reported as it should be, and only where it should be.
async fn check(world: &World, case: &Case) {
    for cluster in case.clusters.iter().filter(|_| !case.reason.is_empty()) {
        let words = world.blocked(case.name, cluster, case.reason, case.parts).await;
        assert!(!PASSWORDS.iter().any(|password| words.contains(password)), "{words}");
    }
    for cluster in BOTH.iter().filter(|cluster| !case.clusters.contains(cluster)) {
        world.deployed(case.name, cluster, 1).await;
    }
    let named = match case.clusters {
        [one] => format!("Cluster {one}"),
        all => format!("Clusters {}", all.join(", ")),
    };
    let reason = if case.reason.is_empty() {
        "ValueParsingFailed"
    } else {
        "NotReady"
    };
    let parts = [&[named.as_str(), case.reason], case.parts].concat();
    let others = BOTH.into_iter().filter(|cluster| !case.clusters.contains(cluster));
    let others: Vec<&str> = others.chain(PASSWORDS).collect();
    world.told(case.name, reason, &parts, &others).await;
    let releases = world.env.list::<HelmReleaseProxy>().await;
    let has_one = |cluster: &&str| releases.iter().any(|release| is_of(release, case.name, cluster));
    assert!(case.reason.is_empty() != has_one(&"c2"), "{}", case.name);
}

/// Writes another server into the kubeconfig of a cluster.
async fn lead(world: &World, cluster: &str, kubeconfig: &str) {
    let secrets: Api<Secret> = world.env.api();
    let patch = json!({"stringData": {"value": kubeconfig}});
    let name = format!("{cluster}-kubeconfig");
    secrets
        .patch(&name, &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
}

// AD-098, AD-101, AD-143, AD-147
with_both!(a_cluster_that_cannot_be_reached_holds_no_other_up);
async fn a_cluster_that_cannot_be_reached_holds_no_other_up(world: &World) {
    world.forge.chart("charts", &chart("1.0.0"));
    world.clusters(&BOTH).await;
    world.web(&json!({})).await;
    for cluster in BOTH {
        world.deployed("web", cluster, 1).await;
    }
    let right = world.kubeconfig("c2").await;
    let line = right
        .lines()
        .find(|line| line.trim_start().starts_with("server:"))
        .unwrap();
    let nowhere = format!("    server: https://127.0.0.1:{}", reserved_port());
    lead(world, "c2", &right.replace(line, &nowhere)).await;
    world.web(&json!({"valuesTemplate": "greeting: welcome\n"})).await;
    world.deployed("web", "c1", 2).await;
    let parts = ["Cluster c2 cannot be reached"];
    world.blocked("web", "c2", "ConnectionDown", &parts).await;
    world
        .told("web", "NotReady", &["Cluster c2: ", parts[0]], &["c1"])
        .await;
    // A deletion waits until the cluster is reachable.
    world.chart_proxy("late", &json!({})).await;
    world.deployed("late", "c1", 1).await;
    world.blocked("late", "c2", "ConnectionDown", &parts).await;
    world.env.delete("HelmChartProxy", "web").await;
    let gone = |all: &[HelmReleaseProxy]| !all.iter().any(|release| is_of(release, "web", "c1"));
    let all = world.env.wait_all("that on c1 to be gone", gone).await;
    assert!(all.iter().any(|release| is_of(release, "web", "c2")));
    lead(world, "c2", &right).await;
    world.deployed("late", "c2", 1).await;
    world
        .env
        .wait_all::<HelmReleaseProxy>("two", |all| all.len() == 2)
        .await;
    for cluster in BOTH {
        assert_eq!(world.listed(cluster).await, ["apps/late web-1.0.0 r1 deployed"]);
    }
}
