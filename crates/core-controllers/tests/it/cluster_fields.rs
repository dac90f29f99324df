//! What a Cluster can have in it: no data of a provider, but references.

use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass_api::core::Cluster;

use crate::env::{Env, dynamic};

fn clusters(env: &Env) -> Api<DynamicObject> {
    dynamic(&env.client, "cluster.x-k8s.io", "Cluster")
}

fn cluster(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": { "name": name, "namespace": "default" }, "spec": spec,
    })
}

fn reference() -> Value {
    json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevCluster", "name": "infra" })
}

// CL-020, CL-030, CL-023: what earlier versions had in a Cluster is refused by name, or left out.
#[tokio::test]
async fn a_cluster_has_no_data_of_its_provider() {
    let env = Env::empty().await;
    let mut wide = reference();
    for field in ["uid", "resourceVersion", "fieldPath", "namespace", "apiVersion"] {
        wide[field] = json!("x");
    }
    let spec = json!({ "infrastructureRef": wide, "providerSpec": { "value": { "region": "r" } } });
    let mut object = cluster("old", &spec);
    object["status"] = json!({ "providerStatus": { "ready": true }, "apiEndpoints": [] });
    // One at a time: a server does not have to report all of them.
    let applied = PatchParams::apply("user");
    for (field, at, value) in [
        ("spec.providerSpec", "/spec", json!({ "providerSpec": {} })),
        ("status.providerStatus", "/status", json!({ "providerStatus": {} })),
        (
            "spec.infrastructureRef.uid",
            "/spec",
            json!({ "infrastructureRef": { "uid": "x" } }),
        ),
    ] {
        let mut one = cluster("old", &json!({ "infrastructureRef": reference() }));
        one["status"] = json!({});
        *one.pointer_mut(at).unwrap() = value;
        let error = clusters(&env)
            .patch("old", &applied, &Patch::Apply(&one))
            .await
            .unwrap_err();
        assert!(error.to_string().contains(field), "{field}: {error}");
    }
    let made = serde_json::from_value(object).unwrap();
    clusters(&env).create(&PostParams::default(), &made).await.unwrap();
    let stored = serde_json::to_value(clusters(&env).get("old").await.unwrap()).unwrap();
    assert_eq!(stored["spec"].get("providerSpec"), None);
    assert_eq!(stored["spec"]["infrastructureRef"], reference());
    assert_eq!(stored["status"].get("providerStatus"), None);
}

// CL-024: a reference names its object.
#[tokio::test]
async fn a_reference_has_group_kind_and_name() {
    let env = Env::empty().await;
    for (field, wrong) in [
        ("apiGroup", ""),
        ("kind", ""),
        ("name", ""),
        ("name", "Upper"),
        ("kind", "with space"),
    ] {
        let mut reference = reference();
        reference[field] = json!(wrong);
        let object = cluster("wrong", &json!({ "infrastructureRef": reference }));
        let object = serde_json::from_value(object).unwrap();
        let refused = clusters(&env)
            .create(&PostParams::default(), &object)
            .await
            .unwrap_err();
        let kube::Error::Api(status) = refused else {
            panic!("{refused}")
        };
        assert_eq!(status.code, 422, "{field} {wrong:?}: {status:?}");
        let named = format!("spec.infrastructureRef.{field}");
        assert!(status.message.contains(&named), "{field} {wrong:?}: {}", status.message);
    }
}

// CL-027: without a reference there is nothing to wait for.
#[tokio::test]
async fn a_cluster_without_infrastructure_waits_for_none() {
    let env = Env::empty().await;
    env.run_cluster_controller();
    let plane = json!({ "apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "cp" });
    env.create::<Cluster>(json!({ "metadata": { "name": "bare" }, "spec": { "controlPlaneRef": plane } }))
        .await;
    env.until::<Cluster>("its infrastructure counts as there", |all| {
        all.iter().any(|cluster| {
            let status = cluster.status.as_ref();
            let done = status.and_then(|status| status.initialization.as_ref());
            cluster.metadata.name.as_deref() == Some("bare")
                && done.and_then(|done| done.infrastructure_provisioned) == Some(true)
        })
    })
    .await;
}
