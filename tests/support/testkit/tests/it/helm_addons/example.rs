//! The example of the proposal, from the folder of examples.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};
use windlass_fake_providers::ChartLike;
use windlass_testkit::{ClusterOf, NAMESPACE};

use super::world::{repository, run};

const EXAMPLE: &str = include_str!("../../../../../../examples/helm-addons/calico-cni.yaml");

/// A chart with the example's name, which shows the example's values.
fn operator() -> ChartLike {
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  \
               installation: {{ toJson .Values.installation | quote }}\n";
    let probe = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: probe\n  annotations:\n    helm.sh/hook: test\nspec:\n  containers:\n  - name: a\n    \
                 image: example.com/a:1\n";
    ChartLike::new("tigera-operator", "3.24.0")
        .file("templates/map.yaml", map)
        .file("templates/tests/probe.yaml", probe)
}

// AD-025, AD-036, AD-041, AD-129, AD-130, AD-132: only the location of the chart and the trusted authority are changed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_cluster_gets_its_pools() {
    run("helm", async |world| {
        world.forge.chart("charts", &operator());
        let mut example: Value = serde_saphyr::from_str(EXAMPLE).unwrap();
        example["spec"]["repoURL"] = repository("charts").into();
        example["spec"]["tlsConfig"] = json!({"caSecret": {"name": "forge"}});
        world.apply_to(NAMESPACE, &example).await;
        let clusters: [(&str, &[&str]); 2] = [("one", &["10.0.0.0/16", "fd00::/48"]), ("two", &["10.1.0.0/16"])];
        for (name, blocks) in clusters {
            let mut cluster = ClusterOf::new(name, 1, 0).object();
            cluster["metadata"]["labels"] = json!({"calicoCNI": "enabled"});
            cluster["spec"]["clusterNetwork"]["pods"]["cidrBlocks"] = json!(blocks);
            world.apply_to(NAMESPACE, &cluster).await;
        }
        for (name, blocks) in clusters {
            world.deployed("calico-cni", name, 1).await;
            assert_eq!(
                world.listed(name).await,
                ["default/calico tigera-operator-3.24.0 r1 deployed"]
            );
            let shown = &world.data(name, "default", "calico").await["installation"];
            let pool = |block| json!({"cidr": block, "encapsulation": "None", "natOutgoing": "Enabled", "nodeSelector": "all()"});
            let pools: Vec<Value> = blocks.iter().map(pool).collect();
            assert_eq!(
                serde_json::from_str::<Value>(shown).unwrap(),
                json!({
                    "cni": {"type": "Calico", "ipam": {"type": "HostLocal"}},
                    "calicoNetwork": {"bgp": "Disabled", "mtu": 1350, "ipPools": pools},
                })
            );
            // The chart's tests for `helm test` do not run by themselves.
            let pods: Api<Pod> = Api::namespaced(world.client(name).await, "default");
            assert!(pods.list(&ListParams::default()).await.unwrap().items.is_empty());
        }
    })
    .await;
}
