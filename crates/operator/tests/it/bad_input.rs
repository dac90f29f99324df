//! What repositories and people get wrong: each has its condition with a reason and what to do, and what runs is left alone.

use serde_json::{Value, json};
use windlass_fake_providers::{Fault, Flaw, Forge, LookAlike, hosts};

use crate::env::{Env, NAMESPACE, Of, V1ALPHA1, V1ALPHA2, condition, plain};

const REPOSITORY: &str = "acme/rigs";
const URL: &str = "https://github.com/acme/rigs/releases";

fn rig(version: &str) -> LookAlike {
    let rig = LookAlike::infrastructure("rig").without_required_variables();
    rig.version(version)
}

/// What goes wrong with a version.
enum Wrong {
    /// The repository or the way to it: what requests have in them, `VERSION` being the version.
    Fault(&'static str, Fault),
    /// The component file.
    Flaw(Flaw),
    /// It was never published.
    Unpublished,
    /// It was published without its metadata.
    NoMetadata,
    /// It needs a variable that has no value.
    Needs(&'static str),
    /// It is looked for there.
    At(Value),
}

/// Words of a message.
type Words = &'static [&'static str];

/// What goes wrong, the reason, and words of the message.
type Case = (Wrong, &'static str, Words);

/// Where files are downloaded from, and where these really are.
const DOWNLOAD: &str = "releases/download/VERSION/infrastructure";
const FILE: &str = "githubusercontent.com/acme/rigs/VERSION/infrastructure";

fn cases() -> Vec<Case> {
    const FETCH: &str = "ComponentsFetchError";
    let fault = |place, fault, words: Words| (Wrong::Fault(place, fault), FETCH, words);
    let flaw = |flaw, words: Words| (Wrong::Flaw(flaw), FETCH, words);
    let at = |fetch: Value, words: Words| (Wrong::At(fetch), FETCH, words);
    vec![
        fault(
            REPOSITORY,
            Fault::Status(404),
            &["RepositoryNotFound", "acme/rigs", "GITHUB_TOKEN"],
        ),
        fault(
            DOWNLOAD,
            Fault::Status(404),
            &["FileNotFound", "infrastructure-components.yaml"],
        ),
        fault(
            DOWNLOAD,
            Fault::Status(403),
            &["Forbidden", "github.com does not allow"],
        ),
        fault(
            DOWNLOAD,
            Fault::RateLimited(3600),
            &["RateLimited", "no more requests", "until", "GITHUB_TOKEN"],
        ),
        fault(
            DOWNLOAD,
            Fault::Status(500),
            &["UnexpectedAnswer", "server has a problem"],
        ),
        fault(FILE, Fault::Truncated, &["Truncated", "connection broke"]),
        fault(DOWNLOAD, Fault::Html, &["WebPage", "sign-in page"]),
        fault(DOWNLOAD, Fault::HangUp, &["Unreachable", "check the address"]),
        flaw(Flaw::Html, &["WebPage", "web page"]),
        flaw(Flaw::Truncated, &["ends in the middle", "line"]),
        flaw(Flaw::Tab, &["tab", "line"]),
        flaw(Flaw::NoDeployment, &["no Deployment", "is it the right file"]),
        flaw(
            Flaw::TwinDeployments,
            &["infrastructure-rig-controller-manager", "twice"],
        ),
        flaw(Flaw::TwoNamespaces, &["Namespaces"]),
        flaw(
            Flaw::WrongDefinitionName,
            &["rigrigclusters.infrastructure.cluster.x-k8s.io"],
        ),
        flaw(Flaw::OpenVariable, &["v1.16.0", "line 463", "unclosed bracket"]),
        flaw(Flaw::NoKind, &["kind"]),
        (Wrong::Unpublished, FETCH, &["VersionNotFound", "there are v1.17.0"]),
        (Wrong::NoMetadata, FETCH, &["MetadataNotFound", "metadata.yaml"]),
        (
            Wrong::Needs("RIG_ANSWER"),
            "VariablesMissing",
            &["RIG_ANSWER", "Secret providers/variables"],
        ),
        at(
            json!({"url": format!("https://{}/rigs", hosts::UNTRUSTED)}),
            &["CertificateNotTrusted", hosts::UNTRUSTED, "PEM"],
        ),
        at(
            json!({"selector": {"matchLabels": {"shelf": "bare"}}}),
            &[
                "ConfigMapKeyMissing",
                "ConfigMap providers/bare",
                "\"metadata\"",
                "components",
            ],
        ),
        at(
            json!({"selector": {"matchLabels": {"shelf": "empty"}}}),
            &["ConfigMapNotFound", "shelf=empty", "create one"],
        ),
        (
            Wrong::At(json!({"url": "https://github.com/acme/rigs"})),
            "FetchConfigValidationError",
            &["https://github.com/acme/rigs", "{owner}/{repository}/releases"],
        ),
    ]
}

/// Makes it go wrong for a version; where its files are said to be.
async fn spoil(env: &Env, forge: &Forge, wrong: Wrong, version: &str) -> Value {
    forge.heal();
    let provider = match &wrong {
        Wrong::Flaw(flaw) => rig(version).with_flaw(*flaw),
        Wrong::Needs(variable) => rig(version).requires(variable),
        _ => rig(version),
    };
    match wrong {
        Wrong::Unpublished => {}
        Wrong::NoMetadata => {
            let components = (provider.components_file(), provider.components());
            forge.release(REPOSITORY, version, &[components]);
        }
        _ => forge.publish(REPOSITORY, &provider),
    }
    match wrong {
        Wrong::Fault(place, fault) => forge.fault(&place.replace("VERSION", version), fault, None),
        Wrong::At(fetch) => {
            // The version that is looked for is there, without what says its contract.
            env.apply(json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "bare", "namespace": NAMESPACE, "labels": {
                    "shelf": "bare", "provider.cluster.x-k8s.io/version": version,
                }},
                "data": {"components": provider.components()},
            }))
            .await;
            let mut all = json!({"url": null, "selector": null});
            all.as_object_mut().unwrap().extend(fetch.as_object().unwrap().clone());
            return all;
        }
        _ => {}
    }
    json!({"url": URL, "selector": null})
}

/// Everything that is installed, as it is stored.
async fn installed(env: &Env, provider: &LookAlike) -> Vec<Value> {
    let (label, deployment) = (provider.label(), provider.deployment_names().remove(0));
    let definition = format!("{}s.{}", provider.kinds()[0].to_lowercase(), provider.group());
    let all = [
        ("apps/v1", "Deployment", deployment.as_str()),
        ("v1", "ServiceAccount", &format!("{label}-manager")),
        (
            "rbac.authorization.k8s.io/v1",
            "ClusterRole",
            &format!("{label}-manager-role"),
        ),
        (
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            definition.as_str(),
        ),
        ("clusterctl.cluster.x-k8s.io/v1alpha3", "Provider", label.as_str()),
    ];
    let mut found = Vec::new();
    for of in all {
        found.push(env.get(of).await.unwrap_or_else(|| panic!("{of:?} is not there")));
    }
    found
}

async fn everything_goes_wrong(api: &'static str, with: Value) {
    let (env, forge) = Env::forged().await;
    env.with_core(api).await;
    forge.publish(REPOSITORY, &rig("v1.0.0"));
    env.variables("variables", &rig("v1.0.0").requires("GITHUB_REGION"))
        .await;
    let of: Of<'_> = (api, "InfrastructureProvider", "rig");
    let mut spec = json!({"version": "v1.0.0", "fetchConfig": {"url": URL}});
    spec.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
    env.apply(plain(of, &spec)).await;
    env.wait_installed(of, "v1.0.0").await;
    env.wait_condition(of, "Ready", "True", "DeploymentAvailable").await;
    let before = installed(&env, &rig("v1.0.0")).await;
    for (at, (wrong, reason, words)) in cases().into_iter().enumerate() {
        let version = format!("v1.{}.0", at + 1);
        let fetch = spoil(&env, &forge, wrong, &version).await;
        env.merge(of, json!({"spec": {"version": version, "fetchConfig": fetch}}))
            .await;
        env.wait_told(of, ["ProviderUpgraded", "False", reason], words).await;
        let stored = env.get(of).await.unwrap();
        let message = condition(&stored, "ProviderInstalled")["message"].to_string();
        assert!(message.contains("version v1.0.0 is installed"), "{message}");
        assert_eq!(condition(&stored, "Ready")["status"], "True");
        assert_eq!(
            installed(&env, &rig("v1.0.0")).await,
            before,
            "after {version}, {words:?}"
        );
        let back = json!({"version": "v1.0.0", "fetchConfig": {"url": URL, "selector": null}});
        env.merge(of, json!({ "spec": back })).await;
        env.wait_condition(of, "ProviderUpgraded", "True", "ProviderUpgraded")
            .await;
    }
    // Once the repository has recovered, it goes on by itself.
    let version = "v1.100.0";
    let fault = Wrong::Fault("releases/download", Fault::Status(502));
    let fetch = spoil(&env, &forge, fault, version).await;
    env.merge(of, json!({"spec": {"version": version, "fetchConfig": fetch}}))
        .await;
    env.wait_told(of, ["ProviderUpgraded", "False", "ComponentsFetchError"], &["502"])
        .await;
    forge.heal();
    env.wait_installed(of, version).await;
    env.wait_condition(of, "ProviderUpgraded", "True", "ProviderUpgraded")
        .await;
}

// OP-082, OP-134, OP-136, OP-137, OP-138, OP-139, OP-140, OP-141, OP-142, OP-145, OP-163
#[tokio::test(flavor = "multi_thread")]
async fn what_runs_survives_every_mistake() {
    everything_goes_wrong(V1ALPHA2, json!({"configSecret": {"name": "variables"}})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_survives_every_mistake_through_the_older_api() {
    everything_goes_wrong(V1ALPHA1, json!({"secretName": "variables"})).await;
}
