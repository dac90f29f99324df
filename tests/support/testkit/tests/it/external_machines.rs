//! Machines on externally managed infrastructure: what they need of it, and what they report when it is missing.

use kube::api::PostParams;
use serde_json::{Value, json};
use windlass_api::core::Cluster;
use windlass_api_ext::infrastructure::DevMachine;
use windlass_infra_dev::{Call, Cloud, Privileges};
use windlass_meta::ObjectKey;
use windlass_testkit::faults::Faults;
use windlass_testkit::{ByHand, Env, ExternalSystem, NAMESPACE, reserved_port};

/// The message of a DevMachine's condition that is not true, with this reason.
fn complaint<'a>(machine: &'a DevMachine, type_: &str) -> Option<(&'a str, &'a str)> {
    let conditions = &machine.status.as_ref()?.conditions;
    let condition = conditions.iter().find(|condition| condition.type_ == type_)?;
    (condition.status == "False").then_some((condition.reason.as_str(), condition.message.as_str()))
}

/// Waits until a DevMachine has a condition with this message.
async fn complains(env: &Env, type_: &str, reason: &str, words: &[&str]) {
    let says = |machine: &DevMachine| {
        complaint(machine, type_)
            .is_some_and(|(why, message)| why == reason && words.iter().all(|w| message.contains(w)))
    };
    env.wait_all::<DevMachine>(&format!("{type_} {reason} {words:?}"), |all| all.iter().any(&says))
        .await;
}

/// A control plane machine without a control plane object, with a Secret of bootstrap data.
async fn lone_control_plane_machine(env: &Env, cluster: &str) {
    let secrets: kube::Api<k8s_openapi::api::core::v1::Secret> = env.api();
    let secret = serde_json::from_value(json!({"metadata": {"name": "start"}, "stringData": {"value": "x"}})).unwrap();
    secrets.create(&PostParams::default(), &secret).await.unwrap();
    env.apply(&json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DevMachine",
        "metadata": {"name": "lone", "namespace": NAMESPACE, "labels": {"cluster.x-k8s.io/cluster-name": cluster}},
        "spec": {"backend": {"inMemory": {}}},
    }))
    .await;
    env.apply(&json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": {"name": "lone", "namespace": NAMESPACE, "labels": {
            "cluster.x-k8s.io/cluster-name": cluster, "cluster.x-k8s.io/control-plane": "",
        }},
        "spec": {
            "clusterName": cluster, "version": "v1.35.0", "bootstrap": {"dataSecretName": "start"},
            "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": "lone"},
        },
    }))
    .await;
}

// EX-040, EX-061, EX-069
#[tokio::test]
async fn a_control_plane_machine_names_what_the_external_system_left_out_and_goes_on_when_it_is_there() {
    let env = Env::start().await;
    let system = ExternalSystem::new(&env);
    let cluster = ByHand::new("half", 1, 0);
    let life = env.record("DevCluster", "half").await;
    system.create(&cluster).await;
    system.set_provisioned("half").await;
    let mut object = cluster.object("Cluster");
    object["spec"].as_object_mut().unwrap().remove("controlPlaneRef");
    env.apply(&object).await;
    lone_control_plane_machine(&env, "half").await;
    let reason = "WaitingForControlPlaneEndpoint";
    let both = "spec.controlPlaneEndpoint.host and spec.controlPlaneEndpoint.port of";
    let (there, here) = (
        format!("{both} DevCluster default/half"),
        format!("{both} Cluster default/half"),
    );
    complains(&env, "VMProvisioned", reason, &[&there, &here]).await;
    system
        .merge(
            "half",
            &json!({"spec": {"controlPlaneEndpoint": {"host": "127.0.0.1"}}}),
        )
        .await;
    let there = "for spec.controlPlaneEndpoint.port of DevCluster default/half";
    complains(&env, "VMProvisioned", reason, &[there]).await;
    let half = life.now().await;
    env.prod("half").await;
    assert_eq!(life.now().await.spec(), half.spec(), "no controller completes it");
    assert!(
        life.managers()
            .iter()
            .all(|manager| !manager.starts_with("capd-manager"))
    );

    system.set_endpoint("half", "127.0.0.1", reserved_port()).await;
    // The machine has no serving certificates, but it runs.
    let words = ["Secret default/half-ca does not exist"];
    complains(&env, "APIServerProvisioned", "Failed", &words).await;
    let key = ObjectKey::new(NAMESPACE, "lone");
    let runs = |machine: &DevMachine| machine.spec.as_ref().is_some_and(|spec| spec.provider_id.is_some());
    env.wait_for::<DevMachine>(&key, "runs", runs).await;
    assert!(
        env.writes_to("DevCluster", "half")
            .keys()
            .all(|write| !write.manager.starts_with("capd-manager"))
    );
    env.stop().await;
}

#[tokio::test]
async fn an_endpoint_that_cannot_be_listened_on_is_named_and_used_once_it_can() {
    let env = Env::start().await;
    let system = ExternalSystem::new(&env);
    // The endpoint is on another host.
    let far = ByHand::new("far", 1, 0);
    system.create(&far).await;
    system.provision("far", "api.example.com", 6443).await;
    far.apply_rest(&env).await;
    let words = [
        "spec.controlPlaneEndpoint.host of Cluster default/far",
        "\"api.example.com\"",
        "localhost",
    ];
    complains(&env, "VMProvisioned", "WaitingForControlPlaneEndpoint", &words).await;
    // A load balancer fixes this.
    let cloud = env.cloud();
    let at = cloud
        .create_load_balancer(&far.key(), ([127, 0, 0, 1], 0).into())
        .await
        .unwrap();
    env.look_until("the machine to be behind the load balancer", || {
        cloud.machines(&far.key()).values().any(|is_member| *is_member)
    })
    .await;
    assert!(tokio::net::TcpStream::connect(at).await.is_ok());

    // Another process has the port.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let near = ByHand::new("near", 1, 0);
    system.create(&near).await;
    system.provision("near", "localhost", port).await;
    near.apply_rest(&env).await;
    let value = format!("is localhost:{port}");
    let words = ["spec.controlPlaneEndpoint of Cluster default/near", &value, "in use"];
    complains(&env, "APIServerProvisioned", "Failed", &words).await;
    drop(taken);
    let is_up = |cluster: &Cluster| {
        let done = cluster
            .status
            .as_ref()
            .and_then(|status| status.initialization.as_ref());
        done.is_some_and(|done| done.control_plane_initialized == Some(true))
    };
    env.wait_for::<Cluster>(&near.key(), "control plane initialized", is_up)
        .await;
    env.stop().await;
}

// EX-058, EX-059, EX-060, EX-068: only contract fields, in a layout that the provider itself never creates.
#[tokio::test]
async fn clusters_that_share_a_port_at_addresses_of_their_own_come_up_again_after_a_restart() {
    let mut env = Env::start().await;
    let system = ExternalSystem::new(&env);
    let port = reserved_port();
    let hosts = ["127.0.0.2", "127.0.0.3"];
    let clusters = [ByHand::new("two", 1, 1), ByHand::new("three", 1, 1)];
    for (cluster, host) in clusters.iter().zip(hosts) {
        system.create(cluster).await;
        system.provision(cluster.name(), host, port).await;
        cluster.apply_rest(&env).await;
    }
    for cluster in &clusters {
        cluster.wait_running(&env).await;
    }
    env.stop_controllers().await;
    for host in hosts {
        assert!(tokio::net::TcpStream::connect((host, port)).await.is_err(), "{host}");
    }
    env.start_controllers(&Faults::none());
    env.prod("again").await;
    let cloud = env.cloud();
    for (cluster, host) in clusters.iter().zip(hosts) {
        assert!(tokio::net::TcpStream::connect((host, port)).await.is_ok(), "{host}");
        assert_eq!(cloud.load_balancer(&cluster.key()), None);
        assert_eq!(cloud.machines(&cluster.key()).len(), 2);
        env.delete("Cluster", cluster.name()).await;
        env.wait_gone(cluster.name()).await;
        assert!(
            tokio::net::TcpListener::bind((host, port)).await.is_ok(),
            "{host} is free again"
        );
    }
    env.stop().await;
}

// EX-064, EX-069, EX-072, EX-077
#[tokio::test]
async fn credentials_for_machines_are_enough_for_one_mode_and_refused_for_the_other() {
    let cloud = Cloud::new();
    let env = Env::builder()
        .cloud(&cloud.handle("provider", Privileges::MachinesOnly))
        .start()
        .await;
    env.apply_yaml(windlass_testkit::CLASS).await;
    env.looked(&["clusterclass"]).await;
    assert!(
        cloud.calls().is_empty(),
        "nothing is asked of the cloud before there is something to do"
    );
    let system = ExternalSystem::new(&env);
    let (own, other) = (ByHand::new("own", 1, 0).managed(), ByHand::new("other", 1, 1));
    let life = env.record("DevCluster", "own").await;
    own.apply(&env).await;
    system.create(&other).await;
    system.provision("other", "127.0.0.1", reserved_port()).await;
    other.apply_rest(&env).await;
    let is_refused = || {
        let counts = cloud.calls();
        counts
            .iter()
            .any(|(key, count)| key.cluster == own.key() && key.call == Call::CreateLoadBalancer && count.refused > 0)
    };
    env.look_until("the managed one is refused", is_refused).await;
    life.until("says why", |version| {
        let mut conditions = version.status()["conditions"].as_array().into_iter().flatten();
        conditions
            .any(|ready| ready["type"] == "Ready" && ready["status"] == "False" && ready["reason"] == "NotAllowed")
    })
    .await;
    env.wait_for::<Cluster>(&other.key(), "control plane initialized", |cluster| {
        let done = cluster
            .status
            .as_ref()
            .and_then(|status| status.initialization.as_ref());
        done.is_some_and(|done| done.control_plane_initialized == Some(true))
    })
    .await;
    for (key, count) in cloud.calls() {
        assert_eq!(count.refused > 0, key.cluster == own.key(), "{key:?}");
    }
    assert_eq!(life.now().await.spec()["controlPlaneEndpoint"], Value::Null);
    env.stop().await;
}
