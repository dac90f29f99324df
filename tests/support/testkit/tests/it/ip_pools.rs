//! IPAddressClaims, as an infrastructure provider makes them, and the pool of the dev provider, as an IPAM provider.

use serde_json::{Value, json};
use windlass_api::core::Cluster;
use windlass_api::ipam::{IPAddress, IPAddressClaim};
use windlass_api::owner;
use windlass_api_ext::infrastructure::DevIPPool;
use windlass_meta::ObjectKey;
use windlass_testkit::{Env, NAMESPACE};

pub(crate) fn pool(last: &str) -> Value {
    json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DevIPPool",
        "metadata": {"name": "pool", "namespace": NAMESPACE},
        "spec": {"first": "10.0.0.1", "last": last, "prefix": 24},
    })
}

pub(crate) fn claim(name: &str) -> Value {
    json!({
        "apiVersion": "ipam.cluster.x-k8s.io/v1beta2", "kind": "IPAddressClaim",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "clusterName": "c",
            "poolRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevIPPool", "name": "pool"},
        },
    })
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new(NAMESPACE, name)
}

/// Waits until a claim has Ready with this reason.
async fn says(env: &Env, name: &str, reason: &str) -> IPAddressClaim {
    let is_right = |claim: &IPAddressClaim| {
        let mut all = claim.status.iter().flat_map(|status| &status.conditions);
        all.any(|condition| condition.type_ == "Ready" && condition.reason == reason)
    };
    env.wait_for::<IPAddressClaim>(&key(name), reason, is_right).await
}

#[tokio::test]
async fn claims_get_addresses_and_give_them_back() {
    let env = Env::start().await;
    env.apply(&json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": "c", "namespace": NAMESPACE}, "spec": {"paused": true,
            "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevCluster", "name": "c"}},
    }))
    .await;
    env.apply(&pool("10.0.0.2")).await;
    for name in ["a", "b", "c"] {
        env.apply(&claim(name)).await;
    }
    env.rest().await;
    assert!(env.list::<IPAddress>().await.is_empty(), "the Cluster is paused");
    env.merge("Cluster", "c", &json!({"spec": {"paused": false}})).await;
    let held = |cluster: &Cluster| cluster.spec.paused != Some(true);
    env.wait_for::<Cluster>(&key("c"), "goes on", held).await;

    // Two claims have an address, and no two the same.
    let full = |pool: &DevIPPool| {
        let status = pool.status.clone().unwrap_or_default();
        (status.used, status.free) == (Some(2), Some(0))
    };
    env.wait_for::<DevIPPool>(&key("pool"), "two of two", full).await;
    let addresses = env.wait_all::<IPAddress>("two addresses", |all| all.len() == 2).await;
    let mut values: Vec<&str> = addresses.iter().map(|one| one.spec.address.as_str()).collect();
    values.sort_unstable();
    assert_eq!(values, ["10.0.0.1", "10.0.0.2"]);
    let (first, without) = (addresses[0].clone(), ["a", "b", "c"]);
    let first_name = first.metadata.name.clone().unwrap();
    let has_none = |name: &&str| addresses.iter().all(|one| one.metadata.name.as_deref() != Some(name));
    let without = without.into_iter().find(has_none).unwrap();
    let ready = says(&env, &first_name, "Ready").await;
    assert_eq!(ready.status.unwrap().address_ref.unwrap().name, first_name);
    assert!(owner::is_controlled_by(
        &first.metadata,
        ready.metadata.uid.as_deref().unwrap()
    ));
    says(&env, without, "PoolExhausted").await;

    // An address that is given back goes to the claim that waits.
    env.delete("IPAddressClaim", &first_name).await;
    says(&env, without, "Ready").await;
    let moved = env.api::<IPAddress>().get(without).await.unwrap();
    assert_eq!(moved.spec.address, first.spec.address);

    // A larger range serves more claims. The pool stays as long as one of them has an address.
    env.apply(&pool("10.0.0.9")).await;
    env.apply(&claim("d")).await;
    says(&env, "d", "Ready").await;
    env.delete("DevIPPool", "pool").await;
    env.apply(&claim("late")).await;
    says(&env, "late", "PoolNotReady").await;
    for claim in env.list::<IPAddressClaim>().await {
        env.delete("IPAddressClaim", claim.metadata.name.as_deref().unwrap())
            .await;
    }
    env.wait_all::<DevIPPool>("gone", <[DevIPPool]>::is_empty).await;
    assert!(env.list::<IPAddress>().await.is_empty());
    assert!(env.list::<IPAddressClaim>().await.is_empty());
    env.stop().await;
}
