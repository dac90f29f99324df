//! Specifications that admission should have refused: nothing is created, replaced or deleted, the condition names field and remedy, and
//! all goes on once the field is corrected.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use windlass_api::core::v1beta2::Machine;
use windlass_api_kubeadm::controlplane::v1beta2::KubeadmControlPlane;
use windlass_etcd::{Alarm, AlarmKind, MemberId};
use windlass_meta::FakeClock;
use windlass_testkit::Kind;

use crate::play::cluster_key;
use crate::server::{World, wait_for};
use crate::year::{pass, reconciles};

pub(crate) async fn change(world: &World, spec: Value) {
    let patch = Patch::Merge(json!({ "spec": spec }));
    let api = world.api::<KubeadmControlPlane>();
    api.patch("cp", &PatchParams::default(), &patch).await.unwrap();
}

/// Waits until a condition says this for the specification as it is now.
pub(crate) async fn says(world: &World, condition: &str, text: &str) {
    let what = format!("{condition} with {text}");
    let is_it = |found: &Value| {
        let message = found["message"].as_str().unwrap_or_default();
        found["type"] == condition && message.contains(text)
    };
    let api = world.api::<KubeadmControlPlane>();
    wait_for(&api, "cp", &what, |plane| {
        let mut all = plane["status"]["conditions"].as_array().into_iter().flatten();
        all.any(is_it)
    })
    .await;
}

/// The Machines that stay.
async fn machines(world: &World) -> BTreeSet<String> {
    let all = world.list::<Machine>().await;
    let staying = all.iter().filter(|m| m["metadata"]["deletionTimestamp"].is_null());
    staying.map(|m| m["metadata"]["name"].to_string()).collect()
}

/// Asks for what cannot be, looks that nothing happens, and corrects it.
async fn refused(world: &World, spec: Value, (condition, text): (&str, &str), right: Value) {
    let before = machines(world).await;
    change(world, spec).await;
    says(world, condition, text).await;
    // Attempts that follow change nothing either.
    let attempts = || world.kit.metrics().reconciles("kubeadmcontrolplane", "error");
    let seen = attempts();
    world.fake.changed(&cluster_key());
    tokio::time::timeout(Duration::from_mins(3), async {
        while attempts() == seen {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .expect("another attempt");
    assert_eq!(machines(world).await, before, "{text}");
    assert_eq!(world.fake.etcd.state().members.len(), before.len());
    change(world, right).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_of_machines_that_cannot_be_change_nothing() {
    let world = World::start_unadmitted(3, json!({})).await;
    world.settled(3, "v1.35.0").await;
    for (replicas, why) in [
        (0, "spec.replicas is 0, but a control plane has at least one Machine"),
        (
            2,
            "spec.replicas is 2, but etcd on the Machines needs an odd number: set it to 1 or 3",
        ),
    ] {
        let right = json!({ "replicas": 3 });
        refused(&world, json!({ "replicas": replicas }), ("ScalingDown", why), right).await;
    }
    let why = "Scaling up from 3 to 4 replicas is blocked because:\n* spec.replicas is 4";
    let right = json!({ "replicas": 5 });
    refused(&world, json!({ "replicas": 4 }), ("ScalingUp", why), right).await;
    world.settled(5, "v1.35.0").await;

    let surge = |surge: i32| json!({ "rollout": { "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": surge } } } });
    let why = "spec.rollout.strategy.rollingUpdate.maxSurge is 2: set it to 0 or 1";
    refused(&world, surge(2), ("ScalingUp", why), surge(1)).await;
    world.settled(5, "v1.35.0").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_that_cannot_be_reached_begin_no_rollout() {
    let world = World::start_unadmitted(3, json!({})).await;
    world.settled(3, "v1.35.0").await;
    for (version, why) in [
        (
            "latest",
            "* spec.version: \"latest\" is not a version: expected MAJOR.MINOR.PATCH, such as \"v1.32.1\"",
        ),
        ("v1.36", "* spec.version: \"v1.36\" is not a version"),
        (
            "v1.37.0",
            "* spec.version is v1.37.0, but a Machine is at v1.35.0 and kubeadm upgrades by one minor version: set it to a v1.36",
        ),
        ("v2.0.0", "* spec.version is v2.0.0, but a Machine is at v1.35.0"),
        (
            "v1.34.9",
            "* spec.version is v1.34.9, older than v1.35.0 of the Machines",
        ),
    ] {
        let right = json!({ "version": "v1.35.0" });
        refused(&world, json!({ "version": version }), ("RollingOut", why), right).await;
        world.settled(3, "v1.35.0").await;
    }
    change(&world, json!({ "version": "v1.36.0" })).await;
    world.settled(3, "v1.36.0").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_version_that_is_none_makes_no_machine() {
    let world = World::start_unadmitted(1, json!({ "version": "v1.35" })).await;
    says(
        &world,
        "ScalingUp",
        "Scaling up from 0 to 1 replicas is blocked because:\n* spec.version: \"v1.35\" is not a version",
    )
    .await;
    assert!(machines(&world).await.is_empty());
    change(&world, json!({ "version": "v1.35.0" })).await;
    world.settled(1, "v1.35.0").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_are_managed_as_long_as_they_run_on_machines() {
    let world = World::start_unadmitted(3, json!({})).await;
    world.settled(3, "v1.35.0").await;
    let external = json!({
        "endpoints": ["https://etcd.example.com:2379"],
        "caFile": "/ca.crt", "certFile": "/client.crt", "keyFile": "/client.key",
    });
    let etcd = |etcd: Value| json!({ "kubeadmConfigSpec": { "clusterConfiguration": { "etcd": etcd } } });
    let before = machines(&world).await;
    change(&world, etcd(json!({ "external": external }))).await;
    let why = "etcd.external is set, but the members of etcd run on the Machines: remove it, or create a new cluster";
    says(&world, "RollingOut", why).await;
    assert_eq!(machines(&world).await, before);
    // A Machine that a user deletes takes its member along.
    let gone = before.first().unwrap().trim_matches('"').to_owned();
    let api = world.api::<Machine>();
    api.delete(&gone, &DeleteParams::default()).await.unwrap();
    let done = kube::runtime::wait::await_condition(api, &gone, |machine: Option<&kube::api::DynamicObject>| {
        machine.is_none()
    });
    let done = tokio::time::timeout(Duration::from_mins(3), done).await;
    done.expect("it goes").unwrap();
    let members: BTreeSet<String> = world.fake.etcd.state().members.iter().map(|m| m.name.clone()).collect();
    assert!(members.len() == 2 && !members.contains(&gone), "{members:?}");
    change(&world, etcd(Value::Null)).await;
    world.settled(3, "v1.35.0").await;
    assert_eq!(world.fake.etcd.state().members.len(), 3);
}

/// kubeadm sets its default taint when it is given no taints, and none when it is given an empty list.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_list_of_taints_is_another_specification_than_none() {
    let with = |registration: Value| json!({ "nodeRegistration": registration });
    let kubeadm = with(json!({ "criSocket": "unix:///run/x" }));
    let kubeadm = json!({ "initConfiguration": kubeadm, "joinConfiguration": kubeadm });
    let world = World::start_with(1, json!({ "kubeadmConfigSpec": kubeadm })).await;
    world.settled(1, "v1.35.0").await;
    for configuration in [with(json!({ "taints": [] })), with(json!({ "taints": null }))] {
        let before = machines(&world).await;
        let kubeadm = json!({ "initConfiguration": configuration, "joinConfiguration": configuration });
        change(&world, json!({ "kubeadmConfigSpec": kubeadm })).await;
        let name = before.first().unwrap().trim_matches('"').to_owned();
        let gone = kube::runtime::wait::await_condition(
            world.api::<Machine>(),
            &name,
            |machine: Option<&kube::api::DynamicObject>| machine.is_none(),
        );
        let gone = tokio::time::timeout(Duration::from_mins(3), gone).await;
        gone.unwrap_or_else(|_| panic!("{configuration}: nothing is rolled out"))
            .unwrap();
        world.settled(1, "v1.35.0").await;
    }
}

/// etcd sends no events.
#[tokio::test]
async fn an_alarm_of_a_quiet_etcd_is_noticed_in_time() {
    let why = "requests to other processes time out while the timers of this one move";
    if Kind::leaves_out(&[Kind::Embedded], why) {
        return;
    }
    let clock = FakeClock::new(Timestamp::now());
    let world = World::start_at(clock.clone(), 1, Value::Null).await;
    world.settled(1, "v1.35.0").await;
    // Whatever is still to be looked at after the start has been.
    let mut looks = windlass_testkit::wait::looks();
    for _ in 0..2 {
        pass(&clock, Duration::from_hours(1)).await;
        let (mut last, mut same) = (0, 0);
        while same < 100 {
            looks.tick().await;
            let now = reconciles(&world);
            same = if now == last { same + 1 } else { 0 };
            last = now;
        }
    }
    let alarm = Alarm {
        member: MemberId(1),
        kind: AlarmKind::NoSpace,
    };
    world.fake.etcd.state().alarms.push(alarm);
    pass(&clock, Duration::from_mins(11)).await;
    says(&world, "EtcdClusterHealthy", "Etcd reports alarms: NOSPACE").await;
}
