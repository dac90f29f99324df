//! The examples of the proposal, on a server: what is refused as it is written there, and what its correction installs.

use serde_json::{Value, json};
use windlass_fake_providers::{Forge, LookAlike};

use crate::env::{Env, Of, V1ALPHA1};

const AWS: &str = "kubernetes-sigs/cluster-api-provider-aws";
const INFRA: &str = "InfrastructureProvider";

/// The documents of an example.
macro_rules! example {
    ($name:literal) => {{
        let text = include_str!(concat!("../../../api-operator/tests/it/examples/", $name));
        let documents: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
        documents
    }};
}

/// A management cluster with a core, and a forge.
async fn start(namespace: &str) -> (Env, Forge) {
    let (env, forge) = Env::forged().await;
    env.with_core(V1ALPHA1).await;
    env.namespace(namespace).await;
    (env, forge)
}

async fn secret(env: &Env, namespace: &str, name: &str, values: Value) {
    let metadata = json!({"name": name, "namespace": namespace});
    env.apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": values}))
        .await;
}

async fn is_refused(env: &Env, object: &Value, words: &[&str]) {
    let answer = env.create("kubectl", object).await.unwrap_err().to_string();
    for word in words {
        assert!(answer.contains(word), "no {word:?} in {answer}");
    }
}

/// The Deployment of a provider, and its container `manager`.
async fn manager(env: &Env, namespace: &str, provider: &LookAlike) -> Value {
    let name = format!("{namespace}/{}", provider.deployment_names().remove(0));
    let deployment = env.get(("apps/v1", "Deployment", &name)).await.unwrap();
    deployment["spec"]["template"]["spec"]["containers"][0].clone()
}

// OP-018, OP-041, OP-042, OP-064, OP-075, OP-076, OP-077, OP-108, OP-172, OP-173, OP-235
#[tokio::test(flavor = "multi_thread")]
async fn flags_and_another_image_of_aws() {
    let (env, forge) = start("capa-system").await;
    let aws = LookAlike::infrastructure("aws")
        .without_required_variables()
        .requires("AWS_REGION")
        .version("v0.6.0");
    forge.publish(AWS, &aws);
    let placeholders = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": {"AWS_REGION": "..."},
        "metadata": {"name": "aws-variables", "namespace": "capa-system"},
    });
    is_refused(&env, &placeholders, &["base64"]).await;
    let flags = example!("01-aws-flags.yaml");
    is_refused(&env, &flags[0], &["metricsAddress"]).await;
    env.apply(flags[1].clone()).await;
    let of: Of<'_> = (V1ALPHA1, INFRA, "capa-system/aws");
    let missing = ["ProviderInstalled", "False", "ConfigSecretMissing"];
    env.wait_told(of, missing, &["capa-system/aws-variables"]).await;
    secret(
        &env,
        "capa-system",
        "aws-variables",
        json!({"AWS_REGION": "eu-north-1"}),
    )
    .await;
    env.wait_installed(of, "v0.6.0").await;
    let args = manager(&env, "capa-system", &aws).await["args"].to_string();
    for flag in [
        "--awscluster-concurrency=12",
        "--awsmachine-concurrency=11",
        "--sync-period=11m0s",
        "=:8181",
    ] {
        assert!(args.contains(flag), "no {flag} in {args}");
    }
    let credentials = (
        "v1",
        "Secret",
        "capa-system/infrastructure-aws-manager-bootstrap-credentials",
    );
    let stored = env.get(credentials).await.unwrap();
    assert_eq!(stored["data"]["aws_region"], "ZXUtbm9ydGgtMQ==");

    let image = example!("02-aws-image.yaml");
    let mut other = image[0].clone();
    other["metadata"]["name"] = json!("other");
    is_refused(&env, &other, &["image", "object"]).await;
    env.apply(image[1].clone()).await;
    let deployment = format!("capa-system/{}", aws.deployment_names().remove(0));
    let changed = |deployment: &Value| {
        let manager = &deployment["spec"]["template"]["spec"]["containers"][0];
        manager["image"] == "gcr.io/myregistry/capa-controller:v0.6.0-foo"
            && !manager.to_string().contains("concurrency")
    };
    env.wait(("apps/v1", "Deployment", &deployment), "another image", changed)
        .await;
    env.wait_installed(of, "v0.6.0").await;
}

// OP-063, OP-148, OP-176, OP-235
#[tokio::test(flavor = "multi_thread")]
async fn limits_of_the_control_plane() {
    let namespace = "capi-kubeadm-control-plane-system";
    let (env, forge) = start(namespace).await;
    let kubeadm = LookAlike::control_plane("kubeadm").version("v0.3.10");
    forge.publish("kubernetes-sigs/cluster-api", &kubeadm);
    secret(&env, namespace, "capi-variables", json!({})).await;
    env.apply(example!("03-kubeadm-resources.yaml")[0].clone()).await;
    let name = format!("{namespace}/kubeadm");
    env.wait_installed((V1ALPHA1, "ControlPlaneProvider", &name), "v0.3.10")
        .await;
    assert_eq!(
        manager(&env, namespace, &kubeadm).await["resources"],
        json!({"limits": {"cpu": "100m", "memory": "30Mi"}, "requests": {"cpu": "100m", "memory": "20Mi"}})
    );
}

// OP-007, OP-150, OP-152, OP-235
#[tokio::test(flavor = "multi_thread")]
async fn a_repository_of_ones_own_and_one_that_is_known() {
    let (env, forge) = start("capz-system").await;
    env.namespace("capv-system").await;
    for (namespace, name, repository, secret_name) in [
        (
            "capz-system",
            "myazure",
            "myorg/awesome-azure-provider",
            "azure-variables",
        ),
        (
            "capv-system",
            "vsphere",
            "kubernetes-sigs/cluster-api-provider-vsphere",
            "vsphere-variables",
        ),
    ] {
        let provider = LookAlike::infrastructure(name).without_required_variables();
        forge.publish(repository, &provider.version("v0.4.9"));
        secret(&env, namespace, secret_name, json!({"UNUSED": "value"})).await;
        forge.forget();
        let documents = if name == "myazure" {
            example!("04-myazure-url.yaml")
        } else {
            example!("06-vsphere.yaml")
        };
        env.apply(documents[0].clone()).await;
        let of = format!("{namespace}/{name}");
        env.wait_installed((V1ALPHA1, INFRA, &of), "v0.4.9").await;
        let others: Vec<_> = forge
            .seen()
            .into_iter()
            .filter(|s| !s.path.contains(repository))
            .collect();
        assert_eq!(others, []);
    }
}

// OP-164, OP-165, OP-235
#[tokio::test(flavor = "multi_thread")]
async fn azure_behind_an_air_gap() {
    let (env, forge) = start("capz-system").await;
    let azure = |version: &str| {
        let azure = LookAlike::infrastructure("azure").without_required_variables();
        azure.version(version)
    };
    let documents = example!("08-azure-configmaps.yaml");
    let mut shelf = documents[0].clone();
    let mut declared = documents[2].clone();
    secret(&env, "capz-system", "azure-variables", json!({})).await;
    env.apply(shelf.clone()).await;
    declared["spec"]["version"] = json!("v0.4.8");
    env.apply(declared.clone()).await;
    let of: Of<'_> = (V1ALPHA1, INFRA, "capz-system/azure");
    let empty = ["ProviderInstalled", "False", "ComponentsFetchError"];
    env.wait_told(of, empty, &["ConfigMap capz-system/v0.4.8", "is empty"])
        .await;
    for version in ["v0.4.8", "v0.4.9"] {
        shelf["metadata"]["name"] = json!(version);
        let provider = azure(version);
        shelf["data"] = json!({"components": provider.components(), "metadata": provider.metadata()});
        env.apply(shelf.clone()).await;
    }
    env.wait_installed(of, "v0.4.8").await;
    declared["spec"]["version"] = json!("v0.4.9");
    env.apply(declared).await;
    env.wait_installed(of, "v0.4.9").await;
    let image = manager(&env, "capz-system", &azure("v0.4.9")).await["image"].to_string();
    assert!(image.contains(":v0.4.9"), "{image}");
    assert_eq!(forge.seen(), []);
}
