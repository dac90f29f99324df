//! A control plane from start to end.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;
use tokio::time::MissedTickBehavior;
use windlass_envtest::{ControlPlane, Options, StartError, Tools};

/// Set in the process that a test starts and kills. Without it, the victim test does nothing.
const VICTIM: &str = "WINDLASS_ENVTEST_VICTIM";

fn is_running(pid: &str) -> bool {
    // A zombie counts as ended.
    let status = std::fs::read_to_string(Path::new("/proc").join(pid).join("status")).unwrap_or_default();
    status.contains("State:") && !status.contains("State:\tZ")
}

async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let mut looks = tokio::time::interval(Duration::from_millis(50));
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let waiting = async {
        while !is_so().await {
            looks.tick().await;
        }
    };
    tokio::time::timeout(Duration::from_mins(3), waiting).await.expect(what);
}

#[tokio::test]
async fn it_answers_collects_garbage_and_leaves_nothing() {
    if Tools::required_control_plane().is_none() {
        return;
    }
    let control_plane = ControlPlane::start(&Options::default()).await.unwrap();
    let client = control_plane.client().await.unwrap();
    assert!(client.apiserver_version().await.unwrap().git_version.starts_with("v1."));
    let used = control_plane.usage();
    assert_eq!(used.len(), 3);
    assert!(used.iter().all(|(_, used)| used.memory > 1 << 20), "{used:?}");

    let namespaces: Api<Namespace> = Api::all(client.clone());
    let named = |name: &str| ObjectMeta {
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    };
    let namespace = Namespace {
        metadata: named("n"),
        ..Namespace::default()
    };
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client, "n");
    let map = ConfigMap {
        metadata: named("m"),
        ..ConfigMap::default()
    };
    maps.create(&PostParams::default(), &map).await.unwrap();
    namespaces.delete("n", &DeleteParams::default()).await.unwrap();
    until("the namespace goes with what is in it", async || {
        namespaces.get_opt("n").await.unwrap().is_none()
    })
    .await;

    let folder = control_plane.folder().to_owned();
    drop(control_plane);
    assert!(!folder.exists());
}

#[tokio::test]
async fn a_reset_brings_the_earlier_state_back() {
    if Tools::required_control_plane().is_none() {
        return;
    }
    let control_plane = ControlPlane::start(&Options::default()).await.unwrap();
    let client = control_plane.client().await.unwrap();
    let mut baseline = control_plane.baseline().await.unwrap();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let names = async |list: ListParams| {
        let found = maps.list(&list).await.unwrap().items;
        found
            .into_iter()
            .filter_map(|map| map.metadata.name)
            .collect::<Vec<_>>()
    };
    let before = names(ListParams::default()).await;
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.a.b"},
        "spec": {
            "group": "a.b", "scope": "Namespaced", "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    for round in 0..3 {
        let create = PostParams::default();
        let map: ConfigMap =
            serde_json::from_value(json!({"metadata": {"name": "m", "finalizers": ["a.b/c"]}})).unwrap();
        maps.create(&create, &map).await.unwrap();
        let definition: CustomResourceDefinition = serde_json::from_value(definition.clone()).unwrap();
        definitions.create(&create, &definition).await.unwrap();
        until("the definition is served", async || {
            let request = http::Request::get("/apis/a.b/v1/things").body(Vec::new()).unwrap();
            client.request_text(request).await.is_ok()
        })
        .await;
        let label = Patch::Merge(json!({"metadata": {"labels": {"round": round.to_string()}}}));
        namespaces
            .patch("default", &PatchParams::default(), &label)
            .await
            .unwrap();

        let begun = std::time::Instant::now();
        control_plane.reset(&mut baseline).await.unwrap();
        assert!(begun.elapsed() < Duration::from_mins(1));
        // In etcd, and in the caches.
        assert_eq!(names(ListParams::default()).await, before);
        assert_eq!(names(ListParams::default().match_any()).await, before);
        assert_eq!(definitions.list(&ListParams::default()).await.unwrap().items, []);
        let default = namespaces.get("default").await.unwrap();
        assert!(!default.labels().contains_key("round"), "{:?}", default.metadata);
        let request = http::Request::get("/apis/a.b/v1/things").body(Vec::new()).unwrap();
        assert!(client.request_text(request).await.is_err());
    }
}

#[tokio::test]
async fn strangers_have_no_rights() {
    if Tools::required_control_plane().is_none() {
        return;
    }
    let options = Options {
        controllers: false,
        ..Options::default()
    };
    let control_plane = ControlPlane::start(&options).await.unwrap();
    let text = control_plane.kubeconfig_of("jane", "nobodies").unwrap();
    let kubeconfig = Kubeconfig::from_yaml(&text).unwrap();
    let all = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &all).await.unwrap();
    let client = kube::Client::try_from(config).unwrap();
    let error = Api::<Namespace>::all(client).get("default").await.unwrap_err();
    assert!(error.to_string().contains("User \"jane\" cannot get"), "{error}");
}

#[tokio::test]
async fn a_program_that_ends_is_named_with_its_last_words() {
    if Tools::required_control_plane().is_none() {
        return;
    }
    let options = Options {
        apiserver_flags: vec!["--no-such-flag".to_owned()],
        ..Options::default()
    };
    match ControlPlane::start(&options).await.unwrap_err() {
        StartError::Ended { program, log, .. } => {
            assert_eq!(program, "kube-apiserver");
            assert!(log.contains("no-such-flag"), "{log}");
        }
        error => panic!("{error}"),
    }
}

/// Not a claim on its own: the process that the next test kills.
#[tokio::test]
async fn nothing_outlives_a_process_that_is_killed_victim() {
    let Some(report) = std::env::var_os(VICTIM) else {
        return;
    };
    let options = Options {
        controllers: false,
        ..Options::default()
    };
    let control_plane = ControlPlane::start(&options).await.unwrap();
    let pids = control_plane
        .pids()
        .iter()
        .map(u32::to_string)
        .collect::<Vec<_>>()
        .join(" ");
    let text = format!("{}\n{pids}\n.\n", control_plane.folder().display());
    std::fs::write(report, text).unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn nothing_outlives_a_process_that_is_killed() {
    if Tools::required_control_plane().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report");
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "life::nothing_outlives_a_process_that_is_killed_victim"])
        .env(VICTIM, &report)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let read = || std::fs::read_to_string(&report).unwrap_or_default();
    until("the victim reports", async || read().ends_with(".\n")).await;
    victim.kill().unwrap();
    victim.wait().unwrap();
    let text = read();
    let mut lines = text.lines();
    let files = Path::new(lines.next().unwrap()).to_owned();
    let pids: Vec<&str> = lines.next().unwrap().split(' ').collect();
    assert_eq!(pids.len(), 2);
    until("its children end", async || !pids.iter().any(|pid| is_running(pid))).await;
    until("their files are gone", async || !files.exists()).await;
}
