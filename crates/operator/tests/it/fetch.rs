//! Providers from releases and artifacts.

use serde_json::{Value, json};
use windlass_fake_providers::{Demand, Forge, LookAlike, hosts};
use windlass_testkit::leaks;

use crate::env::{Env, NAMESPACE, Of, V1ALPHA1, V1ALPHA2, plain};

const URL: &str = "https://github.com/acme/rigs/releases";
/// A token and a password that are right, and a wrong one.
const TOKEN: &str = "marked-open-sesame";
const WRONG: &str = "marked-wrong-sesame";
const CAPI: &str = "kubernetes-sigs/cluster-api";

fn infrastructure(name: &str, version: &str) -> LookAlike {
    LookAlike::infrastructure(name)
        .without_required_variables()
        .version(version)
}

/// What was downloaded of releases: version and file.
fn downloaded(forge: &Forge, repository: &str) -> Vec<String> {
    let prefix = format!("/{repository}/releases/download/");
    let seen = forge.seen().into_iter();
    seen.filter_map(|seen| seen.path.strip_prefix(&prefix).map(str::to_owned))
        .collect()
}

async fn secret(env: &Env, name: &str, data: Value) {
    leaks::mark(TOKEN);
    leaks::mark(WRONG);
    let metadata = json!({"name": name, "namespace": NAMESPACE});
    env.apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data}))
        .await;
}

// OP-008, OP-009, OP-070, OP-147, OP-148, OP-149, OP-154
#[tokio::test(flavor = "multi_thread")]
async fn known_names_need_nothing_else() {
    let (env, forge) = Env::forged().await;
    for provider in [
        LookAlike::core(),
        LookAlike::bootstrap("kubeadm"),
        LookAlike::control_plane("kubeadm"),
    ] {
        forge.publish(CAPI, &provider);
    }
    let kinds = [
        (V1ALPHA1, "ControlPlaneProvider", "kubeadm"),
        (V1ALPHA1, "BootstrapProvider", "kubeadm"),
        (V1ALPHA1, "CoreProvider", "cluster-api"),
    ];
    for of in kinds {
        let mut bare = plain(of, &Value::Null);
        bare.as_object_mut().unwrap().remove("spec");
        env.apply(bare).await;
    }
    for of in kinds {
        let stored = env.wait_installed(of, "v1.0.0").await;
        assert_eq!(stored["spec"]["version"], "v1.0.0");
        env.wait_condition(of, "Ready", "True", "DeploymentAvailable").await;
    }
    let all = downloaded(&forge, CAPI);
    for family in ["core", "bootstrap", "control-plane"] {
        assert!(all.contains(&format!("v1.0.0/{family}-components.yaml")), "{all:?}");
    }
    let of = (V1ALPHA2, "InfrastructureProvider", "nosuch");
    forge.forget();
    env.apply(plain(of, &json!({}))).await;
    let told = ["PreflightCheckPassed", "False", "UnknownProvider"];
    env.wait_told(of, told, &["nosuch", "spec.fetchConfig"]).await;
    // OP-151
    assert_eq!(forge.seen(), []);
}

// OP-012, OP-013, OP-056, OP-072, OP-087, OP-109, OP-152, OP-153, OP-154, OP-155
#[tokio::test(flavor = "multi_thread")]
async fn the_latest_release_is_chosen_once_and_others_when_they_are_asked_for() {
    let (env, forge) = Env::forged().await;
    env.with_core(V1ALPHA2).await;
    let enterprise = format!("https://{}/acme/rags/releases", hosts::ENTERPRISE);
    let both = [
        ((V1ALPHA1, "InfrastructureProvider", "rig"), "acme/rigs", URL),
        (
            (V1ALPHA2, "InfrastructureProvider", "rag"),
            "acme/rags",
            enterprise.as_str(),
        ),
    ];
    for (of, repository, url) in both {
        for version in ["v1.9.0", "v1.10.0", "v1.11.0-rc.0"] {
            forge.publish(repository, &infrastructure(of.2, version));
        }
        forge.draft(repository, "v2.0.0");
        env.apply(plain(of, &json!({"fetchConfig": {"url": url}}))).await;
    }
    for (of, repository, _) in both {
        let stored = env.wait_installed(of, "v1.10.0").await;
        assert_eq!(stored["spec"]["version"], "v1.10.0");
        env.wait_condition(of, "Ready", "True", "DeploymentAvailable").await;
        let mut files = downloaded(&forge, repository);
        files.sort();
        files.dedup();
        assert_eq!(
            files,
            ["v1.10.0/infrastructure-components.yaml", "v1.10.0/metadata.yaml"]
        );
        forge.publish(repository, &infrastructure(of.2, "v1.12.0"));
    }
    // A newer release, and another address, are nothing to do anything about.
    let moved = |repository: &str| repository.replace("acme/", "moved/");
    forge.forget();
    for (of, repository, url) in both {
        let moved = moved(repository);
        let url = url.replace(repository, &moved);
        env.merge(of, json!({"spec": {"fetchConfig": {"url": url}}})).await;
        env.wait_installed(of, "v1.10.0").await;
        forge.publish(&moved, &infrastructure(of.2, "v1.12.0"));
    }
    assert_eq!(forge.seen(), []);
    for (of, ..) in both {
        env.merge(of, json!({"spec": {"version": "v1.12.0"}})).await;
    }
    for (of, ..) in both {
        env.wait_installed(of, "v1.12.0").await;
        env.wait_condition(of, "Ready", "True", "DeploymentAvailable").await;
    }
    for (_, repository, _) in both {
        let files = downloaded(&forge, &moved(repository));
        assert!(
            files.iter().all(|file| file.starts_with("v1.12.0/")) && !files.is_empty(),
            "{files:?}"
        );
    }
    assert_eq!(forge.count("acme/rigs") + forge.count("acme/rags"), 0);
}

// OP-138, OP-140, OP-224
#[tokio::test(flavor = "multi_thread")]
async fn a_private_repository_wants_a_token_from_the_secret_of_the_provider() {
    let (env, forge) = Env::forged().await;
    env.with_core(V1ALPHA2).await;
    forge.publish("acme/rigs", &infrastructure("rig", "v1.0.0"));
    forge.demand(hosts::GITHUB_API, Demand::Token(TOKEN.to_owned()));
    let of = (V1ALPHA2, "InfrastructureProvider", "rig");
    let spec = json!({"fetchConfig": {"url": URL}, "configSecret": {"name": "variables"}});
    secret(&env, "variables", json!({"GITHUB_TOKEN": WRONG})).await;
    env.apply(plain(of, &spec)).await;
    let told = ["ProviderInstalled", "False", "InvalidGithubTokenError"];
    env.wait_told(of, told, &["api.github.com", "GITHUB_TOKEN"]).await;
    secret(&env, "variables", json!({"GITHUB_TOKEN": TOKEN})).await;
    env.wait_installed(of, "v1.0.0").await;
}

// OP-020
#[tokio::test(flavor = "multi_thread")]
async fn artifacts_of_a_registry_are_installed_and_upgraded() {
    let (env, forge) = Env::forged().await;
    env.with_core(V1ALPHA2).await;
    let both: [(Of<'_>, Value); 2] = [
        (
            (V1ALPHA2, "InfrastructureProvider", "rig"),
            json!({"oci": "registry.example.com/capi/rig"}),
        ),
        (
            (V1ALPHA1, "InfrastructureProvider", "rag"),
            json!({"url": "oci://registry.example.com/capi/rag"}),
        ),
    ];
    forge.demand(hosts::REGISTRY, Demand::Login("me".to_owned(), TOKEN.to_owned()));
    secret(&env, "registry", json!({"OCI_USERNAME": "me", "OCI_PASSWORD": TOKEN})).await;
    for (of, fetch) in &both {
        for version in ["v1.0.0", "v1.1.0", "v1.2.0-rc.0"] {
            let files = infrastructure(of.2, version).files();
            forge.artifact(&format!("capi/{}", of.2), version, &files);
        }
        env.apply(plain(*of, &json!({"fetchConfig": fetch}))).await;
        let told = ["ProviderInstalled", "False", "ComponentsFetchError"];
        env.wait_told(*of, told, &["Unauthorized", "OCI_USERNAME"]).await;
        let with = match of.0 {
            V1ALPHA1 => json!({"secretName": "registry"}),
            _ => json!({"configSecret": {"name": "registry"}}),
        };
        env.merge(*of, json!({"spec": with})).await;
        let stored = env.wait_installed(*of, "v1.1.0").await;
        assert_eq!(stored["spec"]["version"], "v1.1.0");
        forge.artifact(
            &format!("capi/{}", of.2),
            "v1.3.0",
            &infrastructure(of.2, "v1.3.0").files(),
        );
        env.merge(*of, json!({"spec": {"version": "v1.3.0"}})).await;
        env.wait_installed(*of, "v1.3.0").await;
        env.wait_condition(*of, "Ready", "True", "DeploymentAvailable").await;
    }
    let elsewhere = |host: &str| ![hosts::REGISTRY, hosts::REGISTRY_FILES, hosts::REGISTRY_TOKENS].contains(&host);
    let others: Vec<_> = forge.seen().into_iter().filter(|seen| elsewhere(&seen.host)).collect();
    assert_eq!(others, []);
}
