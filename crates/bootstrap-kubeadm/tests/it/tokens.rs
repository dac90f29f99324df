//! A machine that takes long to boot: its token and its data wait for it, however long.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use windlass_api::core::v1beta2::Machine;
use windlass_api_kubeadm::bootstrap::KubeadmConfig;
use windlass_bootstrap_kubeadm::TokenTtl;
use windlass_meta::Clock as _;
use windlass_testkit::Kind;

use crate::world::{World, writes};

#[tokio::test]
async fn a_machine_that_boots_late_finds_its_token_and_its_data() {
    let why = "requests to other processes time out while the timers of this one move";
    if Kind::leaves_out(&[Kind::Embedded], why) {
        return;
    }
    let world = World::start(TokenTtl::default()).await;
    world
        .until::<KubeadmConfig>("m", "ready", |config| config["status"]["dataSecretName"] == "m")
        .await;
    world.rests().await;
    let (made, used) = (writes(&world.management), writes(&world.workload));
    assert_eq!(world.tokens().await.len(), 1);
    assert_eq!(used, BTreeMap::from([("create secrets".to_owned(), 1)]));
    for minute in 0..180 {
        world.pass(Duration::from_mins(1)).await;
        let now = world.clock.now();
        let tokens = world.tokens().await;
        assert!(
            tokens.len() == 1 && tokens[0] > now,
            "minute {minute}: {tokens:?} at {now}"
        );
    }
    // The token is extended each third of its life, and never before a sixth is over. Nothing else is written.
    let extended = writes(&world.workload)["patch secrets"];
    assert!((30..=72).contains(&extended), "{extended}");
    assert_eq!(writes(&world.management), made);

    // Data whose owner is lost belongs to its KubeadmConfig again, without another event.
    let lost = Patch::Merge(json!({ "metadata": { "ownerReferences": null } }));
    let secrets: Api<Secret> = Api::namespaced(world.client(), "default");
    secrets.patch("m", &PatchParams::default(), &lost).await.unwrap();
    world
        .until::<Secret>("m", "owned again", |secret| {
            secret["metadata"]["ownerReferences"][0]["kind"] == "KubeadmConfig"
        })
        .await;
    world.rests().await;

    // Once the machine has joined, its token ends.
    world
        .status::<Machine>("m", json!({ "status": { "nodeRef": { "name": "m" } } }))
        .await;
    world.rests().await;
    let before = (writes(&world.management), writes(&world.workload));
    for _ in 0..40 {
        world.pass(Duration::from_hours(13)).await;
    }
    assert_eq!((writes(&world.management), writes(&world.workload)), before);
    assert!(world.tokens().await[0] < world.clock.now());
}

#[tokio::test]
async fn a_token_lives_as_long_as_chosen() {
    let why = "requests to other processes time out while the timers of this one move";
    if Kind::leaves_out(&[Kind::Embedded], why) {
        return;
    }
    let day = Duration::from_hours(24);
    let world = World::start(TokenTtl::new(day).unwrap()).await;
    let ready = |config: &Value| config["status"]["dataSecretName"] == "m";
    world.until::<KubeadmConfig>("m", "ready", ready).await;
    world.rests().await;
    let life = || async { world.tokens().await[0].duration_since(world.clock.now()).unsigned_abs() };
    let first = life().await;
    assert!(
        first > Duration::from_hours(23) && first < Duration::from_hours(25),
        "{first:?}"
    );
    // It is extended after a third of its life, not before.
    world.pass(Duration::from_hours(7)).await;
    assert_eq!(writes(&world.workload).get("patch secrets"), None);
    for _ in 0..3 {
        world.pass(Duration::from_hours(7)).await;
        assert!(life().await > Duration::from_hours(8));
    }
    assert!(writes(&world.workload)["patch secrets"] <= 3);
}
