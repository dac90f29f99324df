//! The contract of IPAM: claims that a pool of the in-cluster provider serves, beside a pool of ours.

use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass_api::ipam::{IPAddress, IPAddressClaim};
use windlass_meta::ObjectKey;
use windlass_testkit::{Env, GoProvider, MANAGER, NAMESPACE, wait};

use super::{foreign, in_cluster};
use crate::ip_pools;

const GROUP: &str = "ipam.cluster.x-k8s.io";
const KIND: &str = "InClusterIPPool";

fn pool(name: &str, range: &str) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1alpha2"), "kind": KIND, "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"addresses": [range], "prefix": 24, "gateway": "10.0.0.254"},
    })
}

fn claim(name: &str, pool: &str, cluster: Option<&str>) -> Value {
    let mut claim = json!({
        "apiVersion": "ipam.cluster.x-k8s.io/v1beta2", "kind": "IPAddressClaim",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"poolRef": {"apiGroup": GROUP, "kind": KIND, "name": pool}},
    });
    if let Some(cluster) = cluster {
        claim["spec"]["clusterName"] = json!(cluster);
    }
    claim
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new(NAMESPACE, name)
}

fn pools(env: &Env, version: &str) -> Api<DynamicObject> {
    foreign(env, GROUP, version, KIND)
}

async fn apply_pool(env: &Env, version: &str, pool: &Value) -> kube::Result<DynamicObject> {
    let name = pool["metadata"]["name"].as_str().unwrap();
    let parameters = PatchParams::apply(MANAGER).force();
    pools(env, version).patch(name, &parameters, &Patch::Apply(pool)).await
}

/// Waits until the status of a pool counts these addresses: in all, used, free.
async fn counts(env: &Env, name: &str, expect: [u64; 3]) {
    let is_right = |all: &[DynamicObject]| {
        let status = all.first().map(|pool| &pool.data["status"]["ipAddresses"]);
        status.is_some_and(|status| ["total", "used", "free"].map(|field| status[field].as_u64()) == expect.map(Some))
    };
    let found = wait::until(pools(env, "v1alpha2"), Some(name), is_right).await;
    assert!(
        found.is_some(),
        "the pool never counts {expect:?}\n{}",
        env.explain().await
    );
}

/// Waits until a claim has its address.
async fn served(env: &Env, name: &str) -> IPAddress {
    let has_address = |claim: &IPAddressClaim| {
        let status = claim.status.as_ref();
        status.is_some_and(|status| status.address_ref.as_ref().is_some_and(|address| address.name == name))
    };
    env.wait_for::<IPAddressClaim>(&key(name), "has an address", has_address)
        .await;
    env.api::<IPAddress>().get(name).await.unwrap()
}

#[tokio::test]
async fn a_go_provider_serves_claims_beside_our_pool() {
    let provider = in_cluster("ipam-in-cluster", "--diagnostics-address");
    serves_claims(provider, "v1beta2").await;
}

/// This release reads and writes Clusters, claims and addresses in v1beta1.
#[tokio::test]
async fn a_go_provider_of_an_older_version_serves_claims_beside_our_pool() {
    let provider = in_cluster("ipam-in-cluster-1.0", "--metrics-bind-address");
    serves_claims(provider, "v1beta1").await;
}

/// `version` is the API version in which the provider reads and writes the kinds of IPAM.
async fn serves_claims(provider: GoProvider, version: &str) {
    let Some(built) = provider.required() else {
        return;
    };
    let env = Env::start().await;
    let mut manager = built.start(env.server(), |_| {}).await;

    // A claim waits while its Cluster is paused; one without a Cluster does not.
    env.apply(&json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": "c", "namespace": NAMESPACE}, "spec": {"paused": true,
            "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevCluster", "name": "c"}},
    }))
    .await;
    apply_pool(&env, "v1alpha2", &pool("pool", "10.0.0.1-10.0.0.2"))
        .await
        .unwrap();
    apply_pool(&env, "v1alpha2", &pool("other", "10.0.0.9")).await.unwrap();
    for name in ["a", "b", "c"] {
        env.apply(&claim(name, "pool", Some("c"))).await;
    }
    env.apply(&claim("free", "other", None)).await;
    served(&env, "free").await;
    assert_eq!(env.list::<IPAddress>().await.len(), 1, "the Cluster is paused");
    env.merge("Cluster", "c", &json!({"spec": {"paused": false}})).await;

    // Two claims get an address each, with everything that the contract asks for.
    counts(&env, "pool", [2, 2, 0]).await;
    let (mut values, mut without) = (Vec::new(), vec!["a", "b", "c"]);
    for address in env.list::<IPAddress>().await {
        let name = address.metadata.name.clone().unwrap();
        if name != "free" {
            without.retain(|one| *one != name);
            values.push(served(&env, &name).await.spec.address);
            is_by_contract(&env, &address, version).await;
        }
    }
    values.sort_unstable();
    assert_eq!(values, ["10.0.0.1", "10.0.0.2"]);
    let [waiting] = without[..] else {
        panic!("one claim waits, not {without:?}");
    };

    refuses(&env).await;
    converts(&env).await;

    // An address stays as long as its claim. The claim that waits gets what another gives back.
    let given = if waiting == "a" { "b" } else { "a" };
    let before = env.api::<IPAddress>().get(given).await.unwrap();
    env.delete("IPAddress", given).await;
    let kept = env.api::<IPAddress>().get(given).await.unwrap();
    assert!(kept.metadata.deletion_timestamp.is_some(), "its provider holds it");
    env.delete("IPAddressClaim", given).await;
    let moved = served(&env, waiting).await;
    assert_eq!(moved.spec.address, before.spec.address);

    beside_ours(&env).await;

    // Claims outlive their Cluster no longer than they are deleted themselves.
    env.delete("Cluster", "c").await;
    for claim in env.list::<IPAddressClaim>().await {
        env.delete("IPAddressClaim", claim.metadata.name.as_deref().unwrap())
            .await;
    }
    env.wait_all::<IPAddressClaim>("gone", <[IPAddressClaim]>::is_empty)
        .await;
    env.wait_all::<IPAddress>("gone", <[IPAddress]>::is_empty).await;
    for name in ["pool", "other", "old"] {
        counts_none_and_goes(&env, name).await;
    }
    manager.check().unwrap();
    drop(manager);
    env.stop().await;
}

/// Checks an address against the contract: its claim, its pool, its owners, its protection.
async fn is_by_contract(env: &Env, address: &IPAddress, version: &str) {
    let name = address.metadata.name.as_deref().unwrap();
    let claim = env.api::<IPAddressClaim>().get(name).await.unwrap();
    let found = serde_json::to_value(address).unwrap();
    assert_eq!(found["spec"]["claimRef"], json!({"name": name}));
    assert_eq!(
        found["spec"]["poolRef"],
        json!({"apiGroup": GROUP, "kind": KIND, "name": "pool"})
    );
    assert_eq!(found["spec"]["prefix"], 24);
    assert_eq!(found["spec"]["gateway"], "10.0.0.254");
    let owners = address.metadata.owner_references.as_deref().unwrap_or_default();
    let of = |kind: &str| owners.iter().find(|owner| owner.kind == kind).unwrap();
    assert_eq!(Some(&of("IPAddressClaim").uid), claim.metadata.uid.as_ref());
    assert_eq!(of("IPAddressClaim").controller, Some(true));
    assert_eq!(of("IPAddressClaim").api_version, format!("{GROUP}/{version}"));
    assert_ne!(of(KIND).controller, Some(true));
    for finalizers in [&claim.metadata.finalizers, &address.metadata.finalizers] {
        assert!(finalizers.iter().flatten().any(|name| name.starts_with(GROUP)));
    }
}

/// The webhooks of the provider are called: a pool in use is neither deleted nor cut.
async fn refuses(env: &Env) {
    let refused = pools(env, "v1alpha2").delete("pool", &DeleteParams::default()).await;
    let why = refused.unwrap_err().to_string();
    assert!(why.contains("Pool has IPAddresses allocated"), "{why}");
    let why = apply_pool(env, "v1alpha2", &pool("pool", "10.0.0.1"))
        .await
        .unwrap_err();
    assert!(why.to_string().contains("do not contain allocated addresses"), "{why}");
}

/// Its conversion webhook is called: an object of the older version is stored and read in the newer one, and back.
async fn converts(env: &Env) {
    let old = json!({
        "apiVersion": format!("{GROUP}/v1alpha1"), "kind": KIND, "metadata": {"name": "old", "namespace": NAMESPACE},
        "spec": {"subnet": "10.0.2.0/29"},
    });
    let old: DynamicObject = serde_json::from_value(old).unwrap();
    let created = pools(env, "v1alpha1").create(&PostParams::default(), &old).await;
    created.unwrap_or_else(|error| panic!("the older version is not taken: {error}"));
    let new = pools(env, "v1alpha2").get("old").await.unwrap();
    assert_eq!(new.data["spec"]["addresses"], json!(["10.0.2.1-10.0.2.6"]));
    assert_eq!(new.data["spec"]["prefix"], 29);
    let old = pools(env, "v1alpha1").get("pool").await.unwrap();
    assert_eq!(old.types.unwrap().api_version, format!("{GROUP}/v1alpha1"));
    assert_eq!(old.data["spec"]["addresses"], json!(["10.0.0.1-10.0.0.2"]));
}

/// Each provider serves the claims of its own pools only.
async fn beside_ours(env: &Env) {
    let mut ours = ip_pools::pool("10.0.0.1");
    ours["metadata"]["name"] = json!("ours");
    env.apply(&ours).await;
    let mut claim = ip_pools::claim("ours");
    claim["spec"]["poolRef"]["name"] = json!("ours");
    env.apply(&claim).await;
    assert_eq!(served(env, "ours").await.spec.address, "10.0.0.1");
    for claim in env.list::<IPAddressClaim>().await {
        let is_ours = claim.metadata.name.as_deref() == Some("ours");
        let managers = claim.metadata.managed_fields.iter().flatten();
        let mut names = managers.filter_map(|entry| entry.manager.as_deref());
        let by_ours = names.any(|manager| manager == "devippool-claim-status");
        assert_eq!(by_ours, is_ours, "{:?}", claim.metadata.name);
    }
}

/// A pool that nothing uses can be deleted.
async fn counts_none_and_goes(env: &Env, name: &str) {
    let api = pools(env, "v1alpha2");
    let unused = |all: &[DynamicObject]| {
        all.first()
            .is_some_and(|pool| pool.data["status"]["ipAddresses"]["used"] == 0)
    };
    let found = wait::until(api.clone(), Some(name), unused).await;
    assert!(found.is_some(), "{name} is in use for ever");
    api.delete(name, &DeleteParams::default()).await.unwrap();
    let gone = wait::until(api, Some(name), <[DynamicObject]>::is_empty).await;
    assert!(gone.is_some(), "{name} never goes");
}
