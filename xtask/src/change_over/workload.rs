//! The simulated workload cluster of a recorded management cluster: what Cluster API had written there, and what is there.

use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod, Secret};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_controller_runtime::{Metrics, transport};
use windlass_testkit::wait;

/// The field manager of what Cluster API's controllers write to workload clusters.
const MANAGER: &str = "manager";
/// The namespace of what kubeadm leaves.
const SYSTEM: &str = "kube-system";
/// The recorded bootstrap token: in place of all.
const TOKEN: (&str, &str) = ("abcdef", "0123456789abcdef");

/// A client by a kubeconfig.
pub(super) async fn connect(kubeconfig: &str) -> Result<kube::Client, String> {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).map_err(|error| error.to_string())?;
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let config = config.map_err(|error| error.to_string())?;
    transport::connect(&config, &Metrics::new()).map_err(|error| error.to_string())
}

/// Waits until the Nodes of all Machines that had one are there, with the etcd members of control planes, and writes to the Nodes what
/// Cluster API had written to them.
pub(super) async fn restore(client: &kube::Client, machines: &[&Value]) -> Result<(), String> {
    let nodes: Api<Node> = Api::all(client.clone());
    let pods: Api<Pod> = Api::namespaced(client.clone(), SYSTEM);
    let with_node: Vec<(&Value, &str)> = machines
        .iter()
        .filter_map(|machine| Some((*machine, machine["status"]["nodeRef"]["name"].as_str()?)))
        .collect();
    let up = tokio::time::timeout(wait::TIMEOUT, async {
        let mut looks = wait::looks();
        for (machine, node) in &with_node {
            let member = format!("etcd-{node}");
            while nodes.get(node).await.is_err() || is_control_plane(machine) && pods.get(&member).await.is_err() {
                looks.tick().await;
            }
        }
    });
    up.await
        .map_err(|_| "the Nodes of the workload cluster do not come".to_owned())?;
    let parameters = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    for (machine, node) in with_node {
        let patched = nodes.patch(node, &parameters, &Patch::Merge(marks(machine))).await;
        patched.map_err(|error| format!("Node {node}: {error}"))?;
    }
    let secrets: Api<Secret> = Api::namespaced(client.clone(), SYSTEM);
    let token = serde_json::from_value(token()).map_err(|error| error.to_string())?;
    let created = secrets.create(&PostParams::default(), &token).await;
    created
        .map(drop)
        .map_err(|error| format!("the bootstrap token: {error}"))
}

fn is_control_plane(machine: &Value) -> bool {
    machine["metadata"]["labels"]
        .get("cluster.x-k8s.io/control-plane")
        .is_some()
}

/// What Cluster API v1.14 leaves on the Node of a Machine.
fn marks(machine: &Value) -> Value {
    let metadata = &machine["metadata"];
    let owner = &metadata["ownerReferences"][0];
    let labels = metadata["labels"].as_object().into_iter().flatten();
    // Those that go to Nodes without an option. No recorded Machine has one of node-restriction.kubernetes.io or node.cluster.x-k8s.io.
    let synced: Vec<(&String, &Value)> = labels
        .filter(|(key, _)| key.starts_with("node-role.kubernetes.io/"))
        .collect();
    let keys: Vec<&str> = synced.iter().map(|(key, _)| key.as_str()).collect();
    let labels: serde_json::Map<String, Value> = synced
        .iter()
        .map(|(key, value)| ((*key).clone(), (*value).clone()))
        .collect();
    json!({"metadata": {
        "labels": labels,
        "annotations": {
            "cluster.x-k8s.io/annotations-from-machine": "",
            "cluster.x-k8s.io/cluster-name": machine["spec"]["clusterName"],
            "cluster.x-k8s.io/cluster-namespace": metadata["namespace"],
            "cluster.x-k8s.io/labels-from-machine": keys.join(","),
            "cluster.x-k8s.io/machine": metadata["name"],
            "cluster.x-k8s.io/owner-kind": owner["kind"],
            "cluster.x-k8s.io/owner-name": owner["name"],
        },
    }})
}

/// The bootstrap token of the recorded bootstrap data, which has not expired.
fn token() -> Value {
    let (id, secret) = TOKEN;
    let expiration = (jiff::Timestamp::now() + jiff::SignedDuration::from_mins(15)).strftime("%Y-%m-%dT%H:%M:%SZ");
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token",
        "metadata": {"name": format!("bootstrap-token-{id}"), "namespace": SYSTEM},
        "stringData": {
            "token-id": id, "token-secret": secret, "expiration": expiration.to_string(),
            "usage-bootstrap-authentication": "true", "usage-bootstrap-signing": "true",
            "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
            "description": "token generated by cluster-api-bootstrap-provider-kubeadm",
        },
    })
}

/// What is there that Cluster API reads or writes, without what kubelets report.
pub(super) async fn objects(client: &kube::Client) -> Result<Vec<Value>, String> {
    let mut found = list::<Node>(Api::all(client.clone()), "Node").await?;
    found.extend(list::<Pod>(Api::namespaced(client.clone(), SYSTEM), "Pod").await?);
    found.extend(list::<ConfigMap>(Api::namespaced(client.clone(), SYSTEM), "ConfigMap").await?);
    found.extend(list::<Secret>(Api::namespaced(client.clone(), SYSTEM), "Secret").await?);
    found.extend(list::<ClusterRole>(Api::all(client.clone()), "ClusterRole").await?);
    found.extend(list::<ClusterRoleBinding>(Api::all(client.clone()), "ClusterRoleBinding").await?);
    Ok(found)
}

async fn list<K>(api: Api<K>, kind: &str) -> Result<Vec<Value>, String>
where
    K: Clone + std::fmt::Debug + DeserializeOwned + serde::Serialize + kube::Resource,
{
    let wrong = |error: &dyn std::fmt::Display| format!("{kind}s of the workload cluster: {error}");
    let all = api.list(&ListParams::default()).await.map_err(|error| wrong(&error))?;
    let items = all.items.into_iter().map(|item| {
        let mut object = serde_json::to_value(item).map_err(|error| wrong(&error))?;
        object["kind"] = json!(format!("workload {kind}"));
        object.as_object_mut().and_then(|map| map.remove("status"));
        Ok(object)
    });
    items.collect()
}
