//! Behind an air gap: everything comes from ConfigMaps, and no request leaves the cluster.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use windlass_api_operator::ProviderType;
use windlass_fake_providers::LookAlike;
use windlass_provider_components::images;
use windlass_provider_repository::configmaps::{PART, Pack, pack};
use windlass_provider_repository::{Files, Names};
use windlass_testkit::faults::Faults;

use crate::env::{Env, NAMESPACE, Of, V1ALPHA2, declaration, plain};

const INFRA: Of<'_> = (V1ALPHA2, "InfrastructureProvider", "rig");

fn rig(version: &str) -> LookAlike {
    let rig = LookAlike::infrastructure("rig")
        .without_required_variables()
        .deployments(2);
    rig.version(version)
}

/// The ConfigMap that holds a look-alike's files, compressed where they are more than it takes.
fn packed(provider: &LookAlike, namespace: &str) -> ConfigMap {
    let files = Files {
        components: provider.components(),
        metadata: provider.metadata(),
        from: String::new(),
    };
    let what = Pack {
        names: &Names::new(ProviderType::Infrastructure, provider.name()),
        version: provider.release(),
        namespace,
        labels: BTreeMap::from([("shelf".to_owned(), "rigs".to_owned())]),
    };
    let mut maps = pack(&what, &files).unwrap();
    assert_eq!(maps.len(), 1);
    maps.remove(0)
}

/// The same in three pieces.
fn split(map: &ConfigMap) -> Vec<ConfigMap> {
    let content = &map.binary_data.as_ref().unwrap()["components"].0;
    let pieces = content.chunks(content.len().div_ceil(3)).enumerate();
    let piece = |(index, piece): (usize, &[u8])| {
        let mut part = map.clone();
        let name = part.metadata.name.get_or_insert_default();
        *name = format!("{name}-{index}");
        let annotations = part.metadata.annotations.get_or_insert_default();
        annotations.insert(PART.to_owned(), format!("{}/3", index + 1));
        part.data = part.data.filter(|_| index == 1);
        part.binary_data = Some([("components".to_owned(), ByteString(piece.to_vec()))].into());
        part
    };
    pieces.map(piece).collect()
}

async fn shelve(env: &Env, map: &ConfigMap) {
    let mut object = serde_json::to_value(map).unwrap();
    object["apiVersion"] = json!("v1");
    object["kind"] = json!("ConfigMap");
    env.apply(object).await;
}

/// The images of everything that a provider runs.
async fn images_of(env: &Env, provider: &LookAlike) -> Vec<String> {
    let mut objects = Vec::new();
    for name in provider.deployment_names() {
        objects.push(env.get(("apps/v1", "Deployment", &name)).await.unwrap());
    }
    images::list(&objects)
}

// OP-057, OP-140, OP-156, OP-157, OP-158, OP-162, OP-163, OP-166, OP-169, OP-170, OP-175
#[tokio::test(flavor = "multi_thread")]
async fn nothing_outside_the_cluster_is_asked() {
    let (mut env, forge) = Env::idle_forged().await;
    env.overrides = serde_json::from_value(json!({"all": {"repository": "mirror.internal/capi"}})).unwrap();
    env.operate(&Faults::none());
    env.with_core(V1ALPHA2).await;
    env.namespace("elsewhere").await;
    shelve(&env, &packed(&rig("v1.0.0"), NAMESPACE)).await;
    shelve(&env, &packed(&rig("v1.5.0"), "elsewhere")).await;
    let expressions = json!([{"key": "shelf", "operator": "In", "values": ["rigs", "rags"]}]);
    let container = json!({"name": "proxy", "imageUrl": "other.internal/proxy:v1"});
    let spec = json!({
        "fetchConfig": {"selector": {"matchExpressions": expressions}},
        "deployment": {"containers": [container]},
    });
    env.apply(plain(INFRA, &spec)).await;
    env.wait_installed(INFRA, "v1.0.0").await;
    env.wait_condition(INFRA, "Ready", "True", "DeploymentAvailable").await;
    assert_eq!(
        images_of(&env, &rig("v1.0.0")).await,
        [
            "mirror.internal/capi/infrastructure-rig-controller:v1.0.0",
            "other.internal/proxy:v1"
        ]
    );

    let [first, second, third] = split(&packed(&rig("v1.1.0").padded_to(1_010_000), NAMESPACE))
        .try_into()
        .unwrap();
    shelve(&env, &first).await;
    shelve(&env, &third).await;
    env.merge(INFRA, json!({"spec": {"version": "v1.1.0"}})).await;
    let failed = ["ProviderUpgraded", "False", "ComponentsFetchError"];
    env.wait_told(INFRA, failed, &["ConfigMapDamaged", "piece 2 of 3 is missing"])
        .await;
    shelve(&env, &second).await;
    env.wait_installed(INFRA, "v1.1.0").await;
    assert_eq!(
        images_of(&env, &rig("v1.1.0")).await,
        [
            "mirror.internal/capi/infrastructure-rig-controller:v1.1.0",
            "other.internal/proxy:v1"
        ]
    );
    env.merge(INFRA, json!({"spec": {"version": "v1.5.0"}})).await;
    env.wait_told(INFRA, failed, &["VersionNotFound", "v1.1.0, v1.0.0"])
        .await;
    // OP-161: the same version of another provider in the same namespace.
    let other = LookAlike::infrastructure("rag").without_required_variables();
    env.shelve(&other).await;
    env.apply(declaration(V1ALPHA2, INFRA.1, "rag", json!({}))).await;
    env.wait_installed((V1ALPHA2, INFRA.1, "rag"), "v1.0.0").await;
    assert_eq!(forge.seen(), [], "a request left the cluster");
}
