//! Defaults of variables are stored in Clusters.

use serde_json::{Value, json};

use crate::env::Env;

fn class(variables: &[(&str, &str)]) -> Value {
    let variable = |(name, default): &(&str, &str)| {
        let schema = json!({"type": "string", "default": default});
        json!({"name": name, "required": false, "schema": {"openAPIV3Schema": schema}})
    };
    let variables: Vec<Value> = variables.iter().map(variable).collect();
    json!({"spec": {
        "variables": variables,
        "patches": [{"name": "server", "definitions": [{
            "selector": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "VSphereClusterTemplate",
                "matchResources": {"infrastructureCluster": true},
            },
            "jsonPatches": [{
                "op": "replace", "path": "/spec/template/spec/server", "valueFrom": {"variable": "server"},
            }],
        }]}],
    }})
}

// TO-089, TO-090, TO-091
#[tokio::test]
async fn a_default_that_comes_to_the_class_is_stored_and_stays_when_it_changes() {
    let env = Env::start().await;
    env.apply_example().await;
    let has = async |expected: Value| {
        env.wait("the defaults in the Cluster", async || {
            let cluster = env.get("Cluster", "foo").await?;
            (cluster["spec"]["topology"]["variables"] == expected).then_some(cluster)
        })
        .await
    };
    env.merge("ClusterClass", "mixed", class(&[("server", "first.example.com")]))
        .await;
    let first = json!({"name": "server", "value": "first.example.com"});
    has(json!([first])).await;
    let changed = env
        .wait("the default in the infrastructure", async || {
            let all = env.generated("VSphereCluster").await;
            (all[0]["spec"]["server"] == "first.example.com").then_some(all[0].clone())
        })
        .await;
    // The other one shows that the class was seen.
    let both = [("server", "second.example.com"), ("other", "x")];
    env.merge("ClusterClass", "mixed", class(&both)).await;
    let cluster = has(json!([first, {"name": "other", "value": "x"}])).await;
    env.reconciled("ReconcileSucceeded").await;
    assert_eq!(
        env.generated("VSphereCluster").await[0]["metadata"]["resourceVersion"],
        changed["metadata"]["resourceVersion"]
    );
    assert_eq!(
        env.get("Cluster", "foo").await.unwrap()["metadata"]["generation"],
        cluster["metadata"]["generation"],
        "it is written once"
    );
    env.stop().await;
}
