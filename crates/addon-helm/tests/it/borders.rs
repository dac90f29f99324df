//! What depends on what: the two controllers know nothing of each other, and what other add-on providers can use knows nothing of Helm.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;
use windlass_api::core::Cluster;
use windlass_testkit::faults::Faults;

use crate::env::Env;

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The sources of a folder or file without its tests and comments, file by file.
fn sources(path: &Path, found: &mut Vec<(PathBuf, String)>) {
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            sources(&entry.unwrap().path(), found);
        }
    } else if !["tests.rs", "testing.rs", "properties.rs"].contains(&path.file_name().unwrap().to_str().unwrap()) {
        let text = std::fs::read_to_string(path).unwrap();
        let body = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap();
        let lines = body.lines().filter(|line| !line.trim_start().starts_with("//"));
        found.push((path.to_owned(), lines.collect::<Vec<_>>().join("\n")));
    }
}

/// Of this crate.
fn own(names: &[&str]) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for name in names {
        sources(&crates().join("addon-helm/src").join(name), &mut found);
    }
    assert!(found.len() >= names.len());
    found
}

fn none_says(files: &[(PathBuf, String)], words: &[&str]) {
    for (path, text) in files {
        for word in words {
            assert!(!text.contains(word), "{} says {word}", path.display());
        }
    }
}

/// What a crate needs to run: the names of its `[dependencies]`.
fn needs(name: &str) -> Vec<String> {
    let manifest = std::fs::read_to_string(crates().join(name).join("Cargo.toml")).unwrap();
    let table = manifest.split("\n[dependencies]\n").nth(1).unwrap();
    let lines = table.lines().take_while(|line| !line.starts_with('['));
    let names = lines.filter_map(|line| line.split(['.', ' ', '=']).next());
    let names: Vec<String> = names.filter(|name| !name.is_empty()).map(str::to_owned).collect();
    assert!(!names.is_empty(), "{name}");
    names
}

fn needs_none_of(name: &str, others: &[&str]) {
    let needs = needs(name);
    for other in others {
        assert!(!needs.iter().any(|need| need == other), "{name} needs {other}");
    }
}

const CHARTS: [&str; 9] = [
    "chart_proxy",
    "chart_proxy.rs",
    "cluster.rs",
    "desired.rs",
    "lookup.rs",
    "names.rs",
    "rules.rs",
    "steps.rs",
    "version.rs",
];
const RELEASES: [&str; 2] = ["release_proxy", "release_proxy.rs"];

// AD-093: neither Helm nor a connection to a workload cluster can be reached from the controller of charts.
#[test]
fn the_controller_of_charts_knows_nothing_of_helm() {
    let files = own(&CHARTS);
    none_says(
        &files,
        &[
            "windlass_helm",
            "windlass_cluster_cache",
            "release_proxy::",
            "kubeconfig",
        ],
    );
}

// AD-100: no templates, no selectors, no HelmChartProxies. AD-024: of what a cluster has it reads releases; what writes is Helm.
#[test]
fn the_controller_of_releases_knows_nothing_of_charts_and_templates() {
    let files = own(&RELEASES);
    let words = [
        "chart_proxy::",
        "windlass_addon_values",
        "windlass_contract",
        "crate::desired",
    ];
    none_says(&files, &words);
    let types = [
        "HelmChartProxySpec",
        "::HelmChartProxy",
        "HelmChartProxy>",
        "{HelmChartProxy",
        "HelmChartProxy,",
    ];
    none_says(&files, &types);
    let reach: Vec<_> = files
        .into_iter()
        .filter(|(_, text)| text.contains(".client()"))
        .collect();
    let [(path, text)] = &reach[..] else {
        panic!("{reach:?}")
    };
    assert!(path.ends_with("release_proxy/releases.rs"));
    for write in [
        ".create(",
        ".patch(",
        ".replace(",
        ".delete(",
        ".delete_collection(",
        ".request(",
    ] {
        assert!(!text.contains(write), "{write}");
    }
}

// AD-013, AD-015: charts are fetched, rendered, stored and installed by Helm. Who asks it has neither what renders, nor what fetches, nor what
// writes to clusters.
#[test]
fn what_a_package_manager_does_is_left_to_helm() {
    let others = [
        "windlass-gotemplate",
        "windlass-provider-repository",
        "windlass-provider-components",
        "kube",
        "hyper",
        "hyper-util",
        "reqwest",
        "tar",
    ];
    needs_none_of("helm", &others);
    needs_none_of(
        "addon-helm",
        &[
            "windlass-gotemplate",
            "windlass-provider-repository",
            "windlass-provider-components",
            "tar",
        ],
    );
}

// AD-014, AD-017: no other feature needs this one, nor does what all of them stand on.
#[test]
fn nothing_of_the_core_needs_add_ons() {
    let ours = ["windlass-addon-helm", "windlass-addon-values", "windlass-helm"];
    for name in [
        "core-controllers",
        "core-topology",
        "bootstrap-kubeadm",
        "controlplane-kubeadm",
        "infra-dev",
        "controller-runtime",
        "cluster-cache",
        "conditions",
        "contract",
        "topology",
        "api",
    ] {
        needs_none_of(name, &ours);
        let mut files = Vec::new();
        sources(&crates().join(name).join("src"), &mut files);
        none_says(&files, &["windlass_api_ext::addons", "addons::v1alpha1"]);
    }
}

// AD-158, AD-159, AD-160: the selector, the template, and what decides about the inventory can be had without Helm.
#[test]
fn what_other_providers_can_use_knows_nothing_of_helm() {
    let helm = ["windlass-helm", "windlass-addon-helm", "windlass-api-ext"];
    for name in ["contract", "addon-values", "gotemplate"] {
        needs_none_of(name, &helm);
        let mut files = Vec::new();
        sources(&crates().join(name).join("src"), &mut files);
        none_says(&files, &["windlass_helm", "HelmChartProxy", "HelmReleaseProxy"]);
    }
    none_says(&own(&["desired.rs", "names.rs", "steps.rs"]), &["windlass_helm"]);
    assert!(
        needs("addon-helm").iter().any(|need| need == "windlass-contract"),
        "the same selector is used here"
    );
}

// AD-148: nothing is registered at, or asked of, the hooks of a cluster's life.
#[test]
fn no_hook_of_the_runtime_is_used() {
    let all: Vec<_> = [own(&CHARTS), own(&RELEASES)].concat();
    none_says(
        &all,
        &[
            "ExtensionConfig",
            "hooks.runtime",
            "runtime.cluster.x-k8s.io",
            "BeforeClusterUpgrade",
        ],
    );
    let mut files = Vec::new();
    for name in ["addons", "addons.rs"] {
        sources(&crates().join("api-ext/src").join(name), &mut files);
    }
    none_says(&files, &["runtime.cluster.x-k8s.io", "ExtensionConfig"]);
}

// AD-093: it asks the management cluster for the kinds that it decides from, and writes HelmReleaseProxies and its own status. A kubeconfig
// that is there is not even looked at.
#[tokio::test(flavor = "multi_thread")]
async fn charts_cost_requests_for_objects_and_no_others() {
    let mut env = Env::idle().await;
    env.cluster("c1").await;
    env.merge_status::<Cluster>(
        "c1",
        json!({"status": {"initialization": {"controlPlaneInitialized": true}}}),
    )
    .await;
    let requests: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
    let seen = requests.clone();
    env.run(&Faults::when(move |request| {
        seen.lock().push((request.method.to_string(), request.path.clone()));
        None
    }));
    env.chart(json!({"valuesTemplate": "a: 1\n"})).await;
    env.served(&["c1"]).await;
    env.chart(json!({"valuesTemplate": "a: 2\n"})).await;
    env.releases("the new values", |all| all[0].spec.values.as_deref() == Some("a: 2\n"))
        .await;
    env.all_ready().await;
    env.told("Ready", "True", "Ready", &[]).await;
    env.chart(json!({"namespace": "other"})).await;
    env.releases("another one", |all| {
        all.first().is_some_and(|one| one.spec.release_namespace() == "other")
    })
    .await;
    let requests = requests.lock();
    let mut written = 0;
    for (method, path) in requests.iter() {
        assert!(!path.contains("/secrets"), "{method} {path}");
        let own = ["/helmreleaseproxies", "/helmchartproxies", "/events"];
        if method != "GET" {
            assert!(own.iter().any(|plural| path.contains(plural)), "{method} {path}");
            written += usize::from(path.contains("/helmreleaseproxies"));
        }
    }
    // Created, changed, deleted, created again.
    assert_eq!(written, 4);
}
