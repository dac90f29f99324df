//! Kinds of infrastructure that have no controller at all: a client outside writes them, and the Cluster controller reads them by
//! the contract that their definitions name.

mod departures;
mod provider;

use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use serde_json::json;
use windlass_api::core::Cluster;

use self::provider::{GROUP, LEGACY, TERRA, condition, endpoint, is_only_adopted, phase, provisioned, says, until};
use crate::env::{Env, api};

// EX-004, EX-005, EX-032, EX-043, EX-044, EX-047, EX-048, EX-054, EX-055, EX-056, EX-095, CL-039, CL-057, CL-059, CL-063, CL-073,
// CL-080, CL-086, CL-091, CL-092, CL-093, CL-103, CL-104, CL-107, CL-112: a kind without any controller, by either contract, driven from
// outside.
#[tokio::test]
async fn a_client_outside_brings_a_cluster_up() {
    let domains = json!([{"name": "b"}, {"name": "a", "controlPlane": true, "attributes": {"rack": "1"}}]);
    let mapped = json!({"b": {}, "a": {"controlPlane": true, "attributes": {"rack": "1"}}});
    for (provider, domains, field) in [
        (TERRA, domains, "status.initialization.provisioned"),
        (LEGACY, mapped, "status.ready"),
    ] {
        let env = Env::empty().await;
        env.define(provider.definition()).await;
        env.run_cluster_controller();
        provider
            .create(&env, "infra", json!({"network": "n-1"}), json!([]))
            .await;
        provider.refer(&env, "d", "infra").await;
        provider.adopted(&env, "infra", "d").await;
        let waits = format!("{} infra: {field} is false", provider.kind);
        let cluster = says(&env, "d", "InfrastructureReady", &waits).await;
        assert_eq!(cluster["status"]["phase"], "Provisioning");
        assert!(!provisioned(&cluster));

        provider.spec(&env, "infra", endpoint("10.0.0.1")).await;
        provider
            .status(&env, "infra", json!({ "failureDomains": domains }))
            .await;
        let other = if provider.ready[1].is_empty() { TERRA } else { LEGACY };
        other.clone_ready_of(provider, &env).await;
        env.quiet().await;
        let cluster = phase(&env, "d", "Provisioning").await;
        assert!(
            !provisioned(&cluster),
            "the field of another contract counts for nothing"
        );
        assert_eq!(cluster["spec"].get("controlPlaneEndpoint"), None);
        assert_eq!(cluster["status"].get("failureDomains"), None);

        provider.ready(&env, "infra", true).await;
        let cluster = phase(&env, "d", "Provisioned").await;
        assert!(provisioned(&cluster));
        assert_eq!(
            cluster["spec"]["controlPlaneEndpoint"],
            json!({"host": "10.0.0.1", "port": 6443})
        );
        assert_eq!(
            cluster["status"]["failureDomains"],
            json!([{"name": "a", "controlPlane": true, "attributes": {"rack": "1"}}, {"name": "b", "controlPlane": false}])
        );
        assert_eq!(condition(&cluster, "InfrastructureReady")["status"], "True");
        env.quiet().await;
        is_only_adopted(&provider.get(&env, "infra").await, "d");
        assert_eq!(provider.writes(&env), 1, "adopted once, and never written again");
    }
}

// EX-051, EX-056, CL-044: what was ready before its Cluster is taken over before anything else is said of the Cluster.
#[tokio::test]
async fn infrastructure_may_be_ready_before_its_cluster() {
    let env = Env::empty().await;
    env.define(TERRA.definition()).await;
    TERRA.create(&env, "infra", endpoint("10.0.0.1"), json!([])).await;
    TERRA.ready(&env, "infra", true).await;
    env.run_cluster_controller();
    let clusters: Api<Cluster> = api(&env.client);
    let start = clusters
        .list(&ListParams::default())
        .await
        .unwrap()
        .metadata
        .resource_version;
    TERRA.refer(&env, "d", "infra").await;
    phase(&env, "d", "Provisioned").await;
    let mut events = clusters
        .watch(&WatchParams::default(), &start.unwrap())
        .await
        .unwrap()
        .boxed();
    let mut phases: Vec<String> = Vec::new();
    while phases.last().is_none_or(|phase| phase != "Provisioned") {
        if let Some(WatchEvent::Modified(cluster)) = events.try_next().await.unwrap()
            && cluster.metadata.name.as_deref() == Some("d")
        {
            phases.extend(cluster.status.and_then(|status| status.phase));
        }
    }
    assert_eq!(phases, ["Provisioned"], "one reconcile is enough");
    env.quiet().await;
    is_only_adopted(&TERRA.get(&env, "infra").await, "d");
}

// EX-051, CL-025, CL-040, CL-075, CL-076, CL-077, CL-078, CL-081, CL-103: the kind, its contract label and the object may come in any
// order, long after the Cluster has come to rest.
#[tokio::test]
async fn whatever_comes_last_wakes_the_cluster() {
    let env = Env::empty().await;
    env.run_cluster_controller();
    TERRA.refer(&env, "d", "infra").await;
    until(&env, "d", "that the kind is unknown", |cluster| {
        condition(cluster, "InfrastructureReady")["reason"] == "InternalError"
    })
    .await;
    env.rests().await;
    let mut definition = TERRA.definition();
    let labels = definition["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("labels")
        .unwrap();
    env.define(definition).await;
    until(&env, "d", "that the contract is unknown", |cluster| {
        condition(cluster, "InfrastructureReady")["message"]
            .as_str()
            .is_some_and(|message| message.contains("contract labels"))
    })
    .await;
    env.rests().await;
    env.label_definition("terraclusters.infrastructure.example.org", &labels)
        .await;
    says(&env, "d", "InfrastructureReady", "TerraCluster does not exist").await;
    env.rests().await;
    TERRA.create(&env, "infra", endpoint("10.0.0.1"), json!([])).await;
    TERRA.adopted(&env, "infra", "d").await;
    env.rests().await;
    TERRA.ready(&env, "infra", true).await;
    phase(&env, "d", "Provisioned").await;
    assert_eq!(env.failures("cluster"), 0);
}

// EX-044, EX-045, CL-025, CL-112: a provider moves to the present contract while its objects stay as they are.
#[tokio::test]
async fn a_new_contract_label_changes_what_is_read() {
    let env = Env::empty().await;
    env.define(LEGACY.definition()).await;
    env.run_cluster_controller();
    LEGACY.create(&env, "infra", endpoint("10.0.0.1"), json!([])).await;
    LEGACY
        .status(&env, "infra", json!({"initialization": {"provisioned": true}}))
        .await;
    LEGACY.refer(&env, "d", "infra").await;
    says(
        &env,
        "d",
        "InfrastructureReady",
        "LegacyCluster infra: status.ready is false",
    )
    .await;
    env.rests().await;
    let labels = json!({"cluster.x-k8s.io/v1beta2": "v1beta1"});
    env.label_definition("legacyclusters.infrastructure.example.org", &labels)
        .await;
    let cluster = phase(&env, "d", "Provisioned").await;
    assert!(provisioned(&cluster));
    is_only_adopted(&LEGACY.get(&env, "infra").await, "d");
}

// EX-012, EX-028, EX-055, CL-032, CL-060, CL-097: no client writes anything for a long time: no attempts, no failures, no time that runs
// out.
#[tokio::test]
async fn a_cluster_waits_for_events_and_for_nothing_else() {
    let env = Env::empty().await;
    env.define(TERRA.definition()).await;
    env.run_cluster_controller();
    TERRA
        .create(
            &env,
            "infra",
            json!({"controlPlaneEndpoint": {"host": "10.0.0.1"}}),
            json!([]),
        )
        .await;
    TERRA.refer(&env, "d", "infra").await;
    let flag = "TerraCluster infra: status.initialization.provisioned is false";
    let waits = format!("{flag}, spec.controlPlaneEndpoint.port is not set");
    says(&env, "d", "InfrastructureReady", &waits).await;
    env.rests().await;
    assert_eq!(env.failures("cluster"), 0);
    let cluster = says(&env, "d", "InfrastructureReady", &waits).await;
    assert_eq!(cluster["status"]["phase"], "Provisioning");
    assert_eq!(cluster["status"].get("initialization"), None);
    let object = TERRA.get(&env, "infra").await;
    assert_eq!(object.get("status"), None, "no controller makes it ready");

    TERRA
        .spec(
            &env,
            "infra",
            json!({"controlPlaneEndpoint": {"host": null, "port": 6443}}),
        )
        .await;
    let waits = format!("{flag}, spec.controlPlaneEndpoint.host is not set");
    says(&env, "d", "InfrastructureReady", &waits).await;
    for (odd, why) in [
        (
            json!("10.0.0.1:6443"),
            "spec.controlPlaneEndpoint is not an object with host and port",
        ),
        (
            json!({"host": "10.0.0.1", "port": "6443"}),
            "spec.controlPlaneEndpoint.port is not a number from 1 to 65535",
        ),
    ] {
        TERRA.spec(&env, "infra", json!({ "controlPlaneEndpoint": null })).await;
        TERRA.spec(&env, "infra", json!({ "controlPlaneEndpoint": odd })).await;
        says(&env, "d", "InfrastructureReady", &format!("{flag}, {why}")).await;
    }
    // EX-047: what is provisioned without an endpoint leaves the Cluster waiting for one.
    TERRA.ready(&env, "infra", true).await;
    let cluster = until(&env, "d", "that it is provisioned", provisioned).await;
    assert_eq!(cluster["status"]["phase"], "Provisioning");
    assert_eq!(condition(&cluster, "InfrastructureReady")["status"], "True");
    let lacks = "spec.controlPlaneEndpoint.port is not a number from 1 to 65535";
    says(
        &env,
        "d",
        "ControlPlaneInitialized",
        &format!(
            "Waiting for the first control plane machine to have status.nodeRef set\n\
             Cluster spec.controlPlaneEndpoint is not set, TerraCluster infra: {lacks}"
        ),
    )
    .await;
    TERRA.spec(&env, "infra", endpoint("10.0.0.1")).await;
    phase(&env, "d", "Provisioned").await;
    assert_eq!(env.failures("cluster"), 0);
    assert_eq!(TERRA.writes(&env), 1);
}

// EX-046, EX-047, EX-049, CL-006, CL-103: two systems at one object, and no word of ours in it.
#[tokio::test]
async fn whatever_others_fight_over_the_cluster_keeps_what_it_has() {
    let env = Env::empty().await;
    env.define(TERRA.definition()).await;
    env.run_cluster_controller();
    TERRA.create(&env, "infra", endpoint("10.0.0.1"), json!([])).await;
    TERRA.ready(&env, "infra", true).await;
    TERRA.refer(&env, "d", "infra").await;
    phase(&env, "d", "Provisioned").await;
    for round in 0..25 {
        TERRA.spec(&env, "infra", endpoint(&format!("10.0.1.{round}"))).await;
        TERRA.ready(&env, "infra", round % 2 == 0).await;
        TERRA.spec(&env, "infra", endpoint(&format!("10.0.2.{round}"))).await;
    }
    TERRA
        .status(
            &env,
            "infra",
            json!({"initialization": {"provisioned": false}, "conditions": [{"type": "Ready", "status": "False",
                "reason": "Contested", "message": "two of us", "lastTransitionTime": "2026-02-01T00:00:00Z"}]}),
        )
        .await;
    let cluster = says(&env, "d", "InfrastructureReady", "two of us").await;
    let ready = condition(&cluster, "InfrastructureReady");
    assert_eq!(
        (&ready["status"], &ready["reason"]),
        (&json!("False"), &json!("Contested"))
    );
    env.quiet().await;
    let cluster = phase(&env, "d", "Provisioned").await;
    assert!(provisioned(&cluster));
    assert_eq!(cluster["spec"]["controlPlaneEndpoint"]["host"], "10.0.0.1");
    assert_eq!(TERRA.writes(&env), 1);
    assert_eq!(env.failures("cluster"), 0);
    env.rests().await;
    is_only_adopted(&TERRA.get(&env, "infra").await, "d");
}

// EX-048, EX-049, CL-103, CL-104: what a Cluster may not carry does not keep it from saying the rest.
#[tokio::test]
async fn odd_status_of_a_provider_does_not_stop_the_cluster() {
    let env = Env::empty().await;
    env.define(LEGACY.definition()).await;
    env.define(TERRA.definition()).await;
    env.run_cluster_controller();
    TERRA.create(&env, "infra", endpoint("10.0.0.1"), json!([])).await;
    let odd = json!({
        "initialization": {"provisioned": true},
        "failureDomains": [{"name": "a"}, {"name": "a"}, {"name": ""}, 7, {"name": "x".repeat(300)}],
        "failureReason": "x", "failureMessage": "y".repeat(20_000),
        "conditions": [{"type": "Ready", "status": "False", "reason": "No good reason", "message": "z".repeat(50_000)}],
    });
    TERRA.status(&env, "infra", odd).await;
    TERRA.refer(&env, "d", "infra").await;
    let cluster = phase(&env, "d", "Provisioned").await;
    assert_eq!(
        cluster["status"]["failureDomains"],
        json!([{"name": "a", "controlPlane": false}])
    );
    assert_eq!(
        condition(&cluster, "InfrastructureReady")["reason"],
        "InvalidConditionReported"
    );

    LEGACY.create(&env, "infra", endpoint("10.0.0.2"), json!([])).await;
    let failed = json!({"ready": true, "failureReason": "CreateError", "failureMessage": "no quota", "conditions": [
        {"type": "Ready", "status": "False", "severity": "Error", "reason": "NoQuota", "message": "ask for more"}]});
    LEGACY.status(&env, "infra", failed).await;
    LEGACY.refer(&env, "e", "infra").await;
    let cluster = phase(&env, "e", "Provisioned").await;
    let deprecated = &cluster["status"]["deprecated"]["v1beta1"];
    assert_eq!(deprecated["failureReason"], "CreateError");
    assert_eq!(
        deprecated["failureMessage"],
        "Failure detected from referenced resource infrastructure.example.org/v1beta1, Kind=LegacyCluster with name \"infra\": no quota"
    );
    let ready = condition(&cluster, "InfrastructureReady");
    assert_eq!(
        (&ready["reason"], &ready["message"]),
        (&json!("NoQuota"), &json!("ask for more"))
    );
    assert_eq!(env.failures("cluster"), 0);
}

// EX-052 from this side, CL-102: a paused Cluster takes nothing over and adopts nothing; what was written meanwhile counts afterwards.
#[tokio::test]
async fn a_paused_cluster_looks_later() {
    let env = Env::empty().await;
    env.define(TERRA.definition()).await;
    env.run_cluster_controller();
    TERRA.create(&env, "infra", endpoint("10.0.0.1"), json!([])).await;
    TERRA.ready(&env, "infra", true).await;
    let reference = json!({"apiGroup": GROUP, "kind": "TerraCluster", "name": "infra"});
    env.create::<Cluster>(json!({"metadata": {"name": "d"}, "spec": {"paused": true, "infrastructureRef": reference}}))
        .await;
    until(&env, "d", "that it is paused", |cluster| {
        condition(cluster, "Paused")["status"] == "True"
    })
    .await;
    env.quiet().await;
    assert_eq!(TERRA.writes(&env), 0);
    env.patch::<Cluster>("d", json!({"spec": {"paused": false}})).await;
    phase(&env, "d", "Provisioned").await;
    TERRA.adopted(&env, "infra", "d").await;
}

// EX-008, EX-013, EX-054, EX-058, EX-092: the switch is the infrastructure provider's alone.
#[test]
fn no_controller_of_ours_knows_the_annotation() {
    let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut read = 0;
    let mut folders: Vec<_> = [
        "core-controllers",
        "core-topology",
        "topology",
        "controlplane-kubeadm",
        "bootstrap-kubeadm",
        "cluster-cache",
    ]
    .map(|name| crates.join(name).join("src"))
    .into();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && name != "tests" {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                read += 1;
                for word in ["externally_managed", "MANAGED_BY", "x-k8s.io/managed-by"] {
                    let used = text
                        .lines()
                        .any(|line| line.contains(word) && !line.contains("REPLICAS_MANAGED_BY"));
                    assert!(!used, "{} speaks of {word}", path.display());
                }
            }
        }
    }
    assert!(read > 100, "{read} files are too few to be all of them");
}
