//! Only the annotation on the infrastructure cluster makes infrastructure externally managed.

use kube::api::ListParams;
use serde_json::{Value, json};
use windlass_api::annotations::MANAGED_BY;
use windlass_api::is_externally_managed;
use windlass_contract::ContractVersion;
use windlass_contract::infra_cluster::{self, Endpoint};
use windlass_infra_dev::Call;
use windlass_testkit::{ByHand, Env, ExternalSystem, Life};

/// A Cluster and its DevCluster, without machines.
async fn apply(env: &Env, cluster: &ByHand, metadata: &Value) {
    let mut object = cluster.object("DevCluster");
    for (field, value) in metadata.as_object().unwrap() {
        object["metadata"][field] = value.clone();
    }
    env.apply(&object).await;
    let mut object = cluster.object("Cluster");
    object["spec"].as_object_mut().unwrap().remove("controlPlaneRef");
    env.apply(&object).await;
}

fn is_provisioned(life: &Life) -> impl Future<Output = windlass_testkit::Version> + '_ {
    life.until("provisioned", |version| {
        version.status()["initialization"]["provisioned"] == json!(true)
    })
}

// EX-012, EX-015, EX-016, EX-017, EX-018, EX-019, EX-020, EX-023, EX-024, EX-025, EX-027, EX-031, EX-064, EX-069
#[tokio::test]
async fn the_annotation_alone_decides_whatever_its_value() {
    let env = Env::start().await;
    let long = "x".repeat(1024);
    let external: Vec<Value> = [
        "",
        "false",
        "managed",
        "x",
        "terraform",
        "my system/1.0",
        "日本語",
        &long,
    ]
    .map(|value| json!({"annotations": {(MANAGED_BY): value}}))
    .into();
    let managed = [
        json!({}),
        json!({"annotations": {}}),
        json!({"labels": {(MANAGED_BY): "terraform"}}),
        json!({"annotations": {"cluster.x-k8s.io/replicas-managed-by": "terraform"}}),
    ];
    let mut lives = Vec::new();
    for (mode, cases) in [("external", &external[..]), ("managed", &managed[..])] {
        for (number, metadata) in cases.iter().enumerate() {
            let cluster = ByHand::new(&format!("{mode}-{number}"), 1, 0).managed();
            let life = env.record("DevCluster", cluster.name()).await;
            apply(&env, &cluster, metadata).await;
            lives.push((mode, cluster, life));
        }
    }
    // Paused and without an owner: the mode takes precedence over both.
    let lone = ByHand::new("lone", 1, 0);
    let mut object = lone.object("DevCluster");
    object["metadata"]["annotations"]["cluster.x-k8s.io/paused"] = json!("");
    let life = env.record("DevCluster", "lone").await;
    env.apply(&object).await;
    lives.push(("external", lone, life));

    for (_, _, life) in lives.iter().filter(|(mode, ..)| *mode == "managed") {
        let there = is_provisioned(life).await;
        assert_eq!(there.finalizers(), ["dockercluster.infrastructure.cluster.x-k8s.io"]);
        assert_eq!(there.spec()["controlPlaneEndpoint"]["host"], json!("127.0.0.1"));
    }
    env.prod("all").await;
    let calls = env.cloud().calls();
    for (mode, cluster, life) in &lives {
        let last = life.now().await;
        let is_external = *mode == "external";
        assert_eq!(is_externally_managed(&last.object), is_external, "{}", cluster.name());
        let wrote = life
            .managers()
            .iter()
            .any(|manager| manager.starts_with("capd-manager"));
        let called = calls.keys().any(|key| key.cluster == cluster.key());
        assert_eq!((wrote, called), (!is_external, !is_external), "{}", cluster.name());
        if is_external {
            assert_eq!((last.status(), last.finalizers().len()), (&Value::Null, 0));
            assert_eq!(last.spec()["controlPlaneEndpoint"], Value::Null);
            let writes = env.writes_to("DevCluster", cluster.name());
            assert!(writes.keys().all(|write| write.manager == "capi-manager"), "{writes:?}");
        }
    }
    // EX-018: external objects can be found by the annotation.
    let all = env.dynamic("DevCluster").list(&ListParams::default()).await.unwrap();
    let found = all.items.iter().filter(|object| is_externally_managed(*object));
    assert_eq!(found.count(), external.len() + 1);

    // EX-031: they are deleted at once, and no external infrastructure with them.
    for (mode, cluster, life) in &lives {
        env.delete("DevCluster", cluster.name()).await;
        life.until_gone().await;
        let counts = env.cloud().calls();
        let deleted = counts
            .keys()
            .any(|key| key.cluster == cluster.key() && key.call == Call::DeleteLoadBalancer);
        assert_eq!(deleted, *mode == "managed", "{}", cluster.name());
    }
    env.stop().await;
}

// EX-041, EX-042: the external system of these tests writes the same as a provider would.
#[tokio::test]
async fn what_an_external_system_writes_is_as_the_contract_asks() {
    let env = Env::builder().without_controllers().start().await;
    let system = ExternalSystem::new(&env);
    let cluster = ByHand::new("asked", 1, 0);
    system.create(&cluster).await;
    let contract = ContractVersion::V1Beta2;
    let read = async || serde_json::to_value(env.dynamic("DevCluster").get("asked").await.unwrap()).unwrap();
    let before = read().await;
    assert_eq!(infra_cluster::read_endpoint(&before), Endpoint::Absent);
    assert!(infra_cluster::provisioned_lack(&before, contract).is_some());
    system
        .merge_status(
            "asked",
            &json!({"failureDomains": [{"name": "zone-a", "controlPlane": true}]}),
        )
        .await;
    system.provision("asked", "127.0.0.1", 6443).await;
    let after = read().await;
    assert!(matches!(infra_cluster::read_endpoint(&after), Endpoint::Complete(_)));
    assert_eq!(infra_cluster::provisioned_lack(&after, contract), None);
    assert_eq!(infra_cluster::failure_domains(&after, contract).len(), 1);
    assert_eq!(
        (
            infra_cluster::failure_reason(&after),
            infra_cluster::failure_message(&after)
        ),
        (None, None)
    );
    env.stop().await;
}

/// Adds the annotation to an object and to its templates.
fn annotate(object: &mut Value) {
    let annotation = json!({ (MANAGED_BY): "terraform" });
    object["metadata"]["annotations"] = annotation.clone();
    match object["kind"].as_str().unwrap_or_default() {
        "KubeadmControlPlane" => object["spec"]["machineTemplate"]["metadata"]["annotations"] = annotation,
        "MachineDeployment" | "DevMachineTemplate" | "KubeadmConfigTemplate" => {
            object["spec"]["template"]["metadata"]["annotations"] = annotation;
        }
        _ => {}
    }
}

// EX-011, EX-013, EX-039
#[tokio::test]
async fn the_annotation_means_nothing_on_other_kinds() {
    let env = Env::start().await;
    let cluster = ByHand::new("odd", 1, 1).managed();
    for mut object in cluster.objects() {
        if object["kind"] != "DevCluster" {
            annotate(&mut object);
        }
        env.apply(&object).await;
    }
    cluster.wait_running(&env).await;
    let annotated = [
        "Cluster",
        "KubeadmControlPlane",
        "MachineDeployment",
        "MachineSet",
        "Machine",
        "DevMachine",
        "KubeadmConfig",
    ];
    for kind in annotated {
        let all = env.dynamic(kind).list(&ListParams::default()).await.unwrap();
        for object in all.items {
            let name = object.metadata.name.clone().unwrap();
            env.merge(
                kind,
                &name,
                &json!({"metadata": {"annotations": {(MANAGED_BY): "terraform"}}}),
            )
            .await;
        }
    }
    let grown = cluster.workers(2).control_plane(3);
    for kind in ["KubeadmControlPlane", "MachineDeployment"] {
        let mut object = grown.object(kind);
        annotate(&mut object);
        env.apply(&object).await;
    }
    grown.wait_running(&env).await;
    env.delete("Cluster", "odd").await;
    env.wait_gone("odd").await;
    env.stop().await;
}
