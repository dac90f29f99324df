//! No secret is written where others may read: the log at its most detailed, events, conditions, metrics, command lines of children,
//! and files beside the data directory. The program makes and uses secrets of every kind for that, the right ones and wrong ones.

mod search;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use windlass_api::core::Cluster;
use windlass_api_ext::addons::HelmReleaseProxy;
use windlass_envtest::Tools;
use windlass_fake_providers::{ChartLike, Demand, Forge, LookAlike, Proxy, hosts};
use windlass_testkit::{ByHand, CLASS, ClusterOf, NAMESPACE, Objects, reserved_port, wait};

use self::search::{CommandLines, Needles};
use crate::support::{Up, objects};

const USER: &str = "amy";
/// The secrets of users.
const PASSWORD: &str = "marked-open-sesame-1";
const WRONG_PASSWORD: &str = "marked-wrong-sesame-2";
const TOKEN: &str = "marked-github-token-3";
const VARIABLE: &str = "marked-variable-4";
const BEARER: &str = "marked-bearer-5";
const CONTENT: &str = "marked-content-of-a-file-6";
const HASH: &str = "marked-hash-of-a-password-7";
const MARKED: [&str; 7] = [PASSWORD, WRONG_PASSWORD, TOKEN, VARIABLE, BEARER, CONTENT, HASH];

/// The servers of charts and of provider files, and the way to them.
struct Servers {
    forge: Forge,
    proxy: Proxy,
}

impl Servers {
    async fn start() -> Self {
        let forge = Forge::start().await.unwrap();
        let proxy = Proxy::start(forge.hosts(), None).await.unwrap();
        let map = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\n";
        forge.chart(
            "charts",
            &ChartLike::new("web", "1.0.0").file("templates/map.yaml", map),
        );
        forge.demand(hosts::WEB, Demand::Basic(USER.to_owned(), PASSWORD.to_owned()));
        forge.demand(hosts::GITHUB_API, Demand::Token(TOKEN.to_owned()));
        let acme = LookAlike::infrastructure("acme")
            .version("v1.0.0")
            .requires("NOT_GIVEN");
        forge.publish("acme/acme", &acme);
        Self { forge, proxy }
    }
}

/// A HelmChartProxy that logs in with the credentials of a Secret.
fn chart_proxy(name: &str, credentials: &str) -> Value {
    json!({
        "apiVersion": "addons.cluster.x-k8s.io/v1alpha1", "kind": "HelmChartProxy",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "clusterSelector": {}, "chartName": "web", "repoURL": format!("https://{}/charts", hosts::WEB),
            "releaseName": name, "namespace": "apps", "tlsConfig": {"caSecret": {"name": "forge"}},
            "credentials": {"secret": {"name": credentials}, "key": "config.json"},
        },
    })
}

async fn secret(objects: &Objects, name: &str, data: &Value) {
    let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data});
    let apply = (PatchParams::apply("test").force(), Patch::Apply(&object));
    objects.api::<Secret>().patch(name, &apply.0, &apply.1).await.unwrap();
}

/// Waits until both charts are at their ends: one is deployed, the login of the other is refused.
async fn charts(objects: &Objects) {
    for (name, password) in [("right", PASSWORD), ("wrong", WRONG_PASSWORD)] {
        let login = json!({"auths": {hosts::WEB: {"username": USER, "password": password}}});
        secret(objects, name, &json!({"config.json": login.to_string()})).await;
        objects.apply(&chart_proxy(name, name)).await;
    }
    let has = |all: &[HelmReleaseProxy], name: &str, status: &str| {
        let of = |proxy: &&HelmReleaseProxy| proxy.spec.release_name.as_deref() == Some(name);
        let mut conditions = all
            .iter()
            .filter(of)
            .flat_map(|proxy| proxy.status.iter().flat_map(|one| &one.conditions));
        conditions.any(|condition| {
            condition.type_ == "Ready" && condition.status == status && !condition.message.contains("wait")
        })
    };
    objects
        .wait_all::<HelmReleaseProxy>("one is deployed, the other is refused", |all| {
            has(all, "right", "True") && has(all, "wrong", "False")
        })
        .await;
}

/// Waits until a provider's files are fetched with a token, and cannot be rendered without a variable that is not given.
async fn provider(objects: &Objects) {
    secret(objects, "variables", &json!({"GITHUB_TOKEN": TOKEN, "OTHER": VARIABLE})).await;
    let provider = json!({
        "apiVersion": "operator.cluster.x-k8s.io/v1alpha2", "kind": "InfrastructureProvider",
        "metadata": {"name": "acme", "namespace": NAMESPACE},
        "spec": {
            "version": "v1.0.0", "configSecret": {"name": "variables"},
            "fetchConfig": {"url": "https://github.com/acme/acme/releases"},
        },
    });
    objects.apply(&provider).await;
    let says = |all: &[DynamicObject]| {
        all.iter()
            .any(|one| one.data["status"].to_string().contains("NOT_GIVEN"))
    };
    let api = objects.dynamic("InfrastructureProvider.operator.cluster.x-k8s.io");
    if wait::until(api.clone(), Some("acme"), says).await.is_none() {
        let found = api.get("acme").await.unwrap();
        panic!("it does not name the missing variable: {}", found.data["status"]);
    }
}

/// Waits until a cluster runs whose machines have Ignition, a file and a user with secrets, and until its authorities are both trusted: there are
/// bootstrap tokens and private keys of all kinds in it, in another encoding than that of cloud-config.
async fn ignition(objects: &Objects) {
    secret(
        objects,
        "contents",
        &json!({"file": CONTENT, "hash": format!("$6${HASH}")}),
    )
    .await;
    let from = |key: &str| json!({"secret": {"name": "contents", "key": key}});
    let cluster = ByHand::new("flatcar", 1, 1).managed();
    for mut object in cluster.objects() {
        let spec = match object["kind"].as_str() {
            Some("KubeadmControlPlane") => &mut object["spec"]["kubeadmConfigSpec"],
            Some("KubeadmConfigTemplate") => &mut object["spec"]["template"]["spec"],
            _ => {
                objects.apply(&object).await;
                continue;
            }
        };
        spec["format"] = "ignition".into();
        spec["files"] = json!([{"path": "/etc/secret", "permissions": "0600", "contentFrom": from("file")}]);
        spec["users"] = json!([{"name": "admin", "passwdFrom": from("hash")}]);
        objects.apply(&object).await;
    }
    cluster.shape().wait_running(objects).await;
    let name = "flatcar-control-plane";
    let begin = json!({"metadata": {"annotations": {"windlass.dev/rotate-authorities": "one"}}});
    objects.merge("KubeadmControlPlane", name, &begin).await;
    let is_prepared = |all: &[DynamicObject]| {
        let conditions = all.iter().filter_map(|one| one.data["status"]["conditions"].as_array());
        conditions
            .flatten()
            .any(|condition| condition["type"] == "RotatingAuthorities" && condition["reason"] == "Prepared")
    };
    let api = objects.dynamic("KubeadmControlPlane.controlplane.cluster.x-k8s.io");
    if wait::until(api.clone(), Some(name), is_prepared).await.is_none() {
        let found = api.get(name).await.unwrap();
        panic!("its rotation is not prepared: {}", found.data["status"]);
    }
}

/// Waits until a broken kubeconfig with a token in it is reported.
async fn broken_kubeconfig(objects: &Objects, cluster: &ClusterOf) {
    let broken = format!("users:\n- name: admin\n  user:\n    token: {BEARER}\n   wrong: indent\n");
    secret(
        objects,
        &format!("{}-kubeconfig", cluster.key().name),
        &json!({"value": broken}),
    )
    .await;
    let is_reported = |found: &Cluster| {
        let conditions = found.status.iter().flat_map(|status| status.conditions.iter());
        conditions
            .filter(|condition| condition.type_ == "RemoteConnectionProbe")
            .any(|condition| condition.status != "True")
    };
    objects
        .wait_for::<Cluster>(&cluster.key(), "its broken kubeconfig to be reported", is_reported)
        .await;
}

/// What all may read who may read objects: events, and everything of our objects but their specs, in which users write what they want.
async fn readable(objects: &Objects) -> String {
    let mut text = String::new();
    for kind in windlass_manager::registry::kinds::KINDS {
        for object in objects
            .dynamic(&kind.full_name())
            .list(&ListParams::default())
            .await
            .unwrap()
        {
            text.push_str(&serde_json::to_string(&object.metadata).unwrap());
            text.push_str(&object.data["status"].to_string());
        }
    }
    let events: Api<k8s_openapi::api::events::v1::Event> = Api::all(objects.client().clone());
    let events = events.list(&ListParams::default()).await.unwrap();
    assert!(!events.items.is_empty());
    text.push_str(&serde_json::to_string(&events.items).unwrap());
    text
}

async fn secrets(objects: &Objects) -> Vec<Secret> {
    let all: Api<Secret> = Api::all(objects.client().clone());
    all.list(&ListParams::default()).await.unwrap().items
}

/// What scrapers read without rights (`--insecure-diagnostics`).
pub(crate) fn metrics(address: &str) -> String {
    let mut connection = TcpStream::connect(address).unwrap();
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    answer
}

/// All files below a folder, but what belongs to the administrator alone.
fn files(folder: &Path, into: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name());
        if name == "data" || name == "kubeconfig" || name == "log" {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            files(&path, into);
        } else {
            into.push_str(&String::from_utf8_lossy(&std::fs::read(&path).unwrap()));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_is_in_what_others_may_read() {
    let Some(helm) = Tools::required("helm4") else {
        return;
    };
    let servers = Servers::start().await;
    let (folder, authority) = (tempfile::tempdir().unwrap(), tempfile::NamedTempFile::new().unwrap());
    std::fs::write(authority.path(), servers.forge.authority()).unwrap();
    let log = folder.path().join("log");
    let way = format!("http://{}", servers.proxy.address());
    let variables = [("HTTPS_PROXY", way.as_str()), ("NO_PROXY", "127.0.0.1")];
    let scraped = format!("127.0.0.1:{}", reserved_port());
    let more = [
        "--insecure-diagnostics",
        "--diagnostics-address",
        &scraped,
        "--helm",
        helm.to_str().unwrap(),
        "--provider-ca-file",
        authority.path().to_str().unwrap(),
    ];
    let up = Up::start_traced(folder.path(), &log, &variables, &more);
    let children = CommandLines::of(up.pid());

    let objects = objects(folder.path()).await;
    objects.apply_yaml(CLASS).await;
    secret(&objects, "forge", &json!({"ca.crt": servers.forge.authority()})).await;
    let cluster = ClusterOf::new("c1", 1, 1);
    cluster.apply(&objects).await;
    cluster.wait_running(&objects).await;
    let mut needles = Needles::of(&[], &MARKED);
    ignition(&objects).await;
    charts(&objects).await;
    provider(&objects).await;
    needles.add(&secrets(&objects).await);
    let mut shown = readable(&objects).await;
    broken_kubeconfig(&objects, &cluster).await;
    needles.add(&secrets(&objects).await);
    shown.push_str(&readable(&objects).await);
    objects.delete("Cluster", "c1").await;
    shown.push_str(&readable(&objects).await);
    let scraped = metrics(&scraped);
    let finished = up.interrupt();
    assert_eq!(finished.code, Some(0), "{finished:?}");

    let log = std::fs::read_to_string(&log).unwrap();
    let children = children.end();
    let mut left = String::new();
    files(folder.path(), &mut left);
    // What is searched is there, and would be found.
    assert!(log.lines().count() > 1000 && log.contains("TRACE"), "the log is short");
    assert!(scraped.contains("controller_runtime_reconcile_total"), "{scraped}");
    assert!(children.contains(" install right "), "no helm was seen: {children}");
    assert!(needles.kinds() >= 4, "{needles:?}");
    let all = format!("{needles:?}");
    for name in [
        "bootstrap token: flatcar-",
        "bootstrap token: c1-",
        "private key: flatcar-ca[next.key]",
    ] {
        assert!(all.contains(name), "{name}: {all}");
    }
    for mark in MARKED {
        assert!(!needles.found(&format!("a line with {mark} in it")).is_empty());
    }
    for (place, text) in [
        ("the log", &log),
        ("standard output", &finished.stdout),
        ("events and objects", &shown),
        ("metrics", &scraped),
        ("command lines", &children),
        ("files", &left),
    ] {
        let found = needles.found(text);
        assert!(found.is_empty(), "in {place}: {found:?}");
    }
}
