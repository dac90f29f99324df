//! Objects that come with a provider and are not its own.

use serde_json::{Value, json};
use windlass_fake_providers::LookAlike;

use crate::env::{Env, NAMESPACE, Of, V1ALPHA2, declaration};

const INFRA: Of<'_> = (V1ALPHA2, "InfrastructureProvider", "rig");
const SETTINGS: Of<'_> = ("v1", "ConfigMap", "rig-settings");
const ROLE: Of<'_> = ("rbac.authorization.k8s.io/v1", "ClusterRole", "rig-reader");

const MANIFESTS: &str = r"
apiVersion: v1
kind: ConfigMap
metadata:
  name: rig-settings
  namespace: nowhere
data:
  region: ${RIG_REGION}
  size: ${RIG_SIZE:=small}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: rig-reader
rules: []
";

async fn shelve(env: &Env, data: Value) {
    let metadata = json!({"name": "more", "namespace": NAMESPACE});
    env.apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}))
        .await;
}

// OP-065, OP-085, OP-104, OP-138
#[tokio::test(flavor = "multi_thread")]
async fn additional_manifests_are_part_of_the_provider() {
    let env = Env::start().await;
    env.with_core(V1ALPHA2).await;
    let rig = LookAlike::infrastructure("rig");
    env.shelve(&rig).await;
    env.shelve(&rig.clone().version("v1.1.0")).await;
    env.variables("variables", &rig).await;
    let spec = json!({
        "version": "v1.0.0", "configSecret": {"name": "variables"}, "additionalManifests": {"name": "more"},
    });
    env.apply(declaration(V1ALPHA2, INFRA.1, INFRA.2, spec)).await;
    let failed = ["ProviderInstalled", "False", "AdditionalManifestsMissing"];
    env.wait_told(INFRA, failed, &["ConfigMap providers/more", "create it"])
        .await;
    shelve(&env, json!({"manifest": MANIFESTS})).await;
    env.wait_told(INFRA, failed, &["ConfigMap providers/more has no key manifests"])
        .await;
    shelve(&env, json!({"manifests": MANIFESTS})).await;
    env.wait_installed(INFRA, "v1.0.0").await;
    // In the provider's namespace, with its variables, and repaired as everything of it.
    let settings = env.get(SETTINGS).await.unwrap();
    assert_eq!(settings["data"], json!({"region": "value", "size": "small"}));
    assert!(env.get(ROLE).await.is_some());
    env.delete(SETTINGS).await;
    env.wait(SETTINGS, "to be there again", |object| {
        object["data"]["size"] == "small"
    })
    .await;
    let uid = env.uid(ROLE).await;
    env.merge(INFRA, json!({"spec": {"version": "v1.1.0"}})).await;
    env.wait_installed(INFRA, "v1.1.0").await;
    assert_eq!(env.uid(ROLE).await, uid, "it is upgraded as well");
    env.merge(INFRA, json!({"spec": {"additionalManifests": null}})).await;
    env.wait(SETTINGS, "to be gone", Value::is_null).await;
    env.wait(ROLE, "to be gone", Value::is_null).await;
    env.wait_condition(INFRA, "Ready", "True", "DeploymentAvailable").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_installation_that_was_refused_is_rendered_from_what_is_corrected() {
    let env = Env::start().await;
    env.with_core(V1ALPHA2).await;
    let rig = LookAlike::infrastructure("rig").without_required_variables();
    env.shelve(&rig).await;
    let region = async |value: &str| {
        env.apply(json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "variables", "namespace": NAMESPACE},
            "stringData": {"RIG_REGION": value},
        }))
        .await;
    };
    let binding = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata:\n  name: rig-north\n\
                   roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: ${RIG_REGION}\n  name: view\n";
    // No kind of role.
    region("Region").await;
    shelve(&env, json!({"manifests": binding})).await;
    let spec = json!({
        "version": "v1.0.0", "configSecret": {"name": "variables"}, "additionalManifests": {"name": "more"},
    });
    env.apply(declaration(V1ALPHA2, INFRA.1, INFRA.2, spec)).await;
    let refused = ["ProviderInstalled", "False", "ComponentsApplyError"];
    env.wait_told(INFRA, refused, &["ClusterRoleBinding rig-north"]).await;
    region("ClusterRole").await;
    env.wait_installed(INFRA, "v1.0.0").await;
    let binding = (ROLE.0, "ClusterRoleBinding", "rig-north");
    assert!(env.get(binding).await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_installation_that_was_refused_is_rendered_from_another_source() {
    let env = Env::start().await;
    env.with_core(V1ALPHA2).await;
    let rig = LookAlike::infrastructure("rig").without_required_variables();
    let broken = format!(
        "{}\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata:\n  name: bad\n\
         roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: Region\n  name: view\n",
        rig.components()
    );
    env.shelve_text(&rig, &broken).await;
    env.apply(declaration(V1ALPHA2, INFRA.1, INFRA.2, json!({"version": "v1.0.0"})))
        .await;
    env.wait_told(
        INFRA,
        ["ProviderInstalled", "False", "ComponentsApplyError"],
        &["ClusterRoleBinding bad"],
    )
    .await;
    env.apply(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "good", "namespace": NAMESPACE,
            "labels": {"fork": "good", "provider.cluster.x-k8s.io/version": "v1.0.0"},
        },
        "data": {"components": rig.components(), "metadata": rig.metadata()},
    }))
    .await;
    let other = json!({"selector": {"matchLabels": {"fork": "good", "provider-components": null}}});
    env.merge(INFRA, json!({"spec": {"fetchConfig": other}})).await;
    env.wait_installed(INFRA, "v1.0.0").await;
}
