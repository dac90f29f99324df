//! Control planes whose Machines are replaced because of their age, and are spread over failure domains.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use windlass_api::core::Machine;
use windlass_testkit::{ByHand, Env, ExternalSystem};

async fn names(env: &Env) -> BTreeSet<String> {
    let machines = env.list::<Machine>().await.into_iter();
    machines.filter_map(|machine| machine.metadata.name).collect()
}

#[tokio::test]
async fn machines_that_are_older_than_a_date_are_replaced_once_it_has_come() {
    let env = Env::start().await;
    let cluster = ByHand::new("dated", 3, 0).managed();
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    let roll = async |after: Timestamp| {
        let rollout = json!({ "spec": { "rollout": { "after": after.to_string() } } });
        env.merge("KubeadmControlPlane", "dated-control-plane", &rollout).await;
    };
    let now = Timestamp::from_second(Timestamp::now().as_second()).unwrap();
    roll(now + SignedDuration::from_hours(1)).await;
    env.rest().await;
    assert_eq!(env.created("machines"), 3, "the date has not come");

    // Nothing but the time leads to it: the date is later than the change. API servers know the age of objects in whole seconds.
    let before = names(&env).await;
    let now = Timestamp::from_second(Timestamp::now().as_second()).unwrap();
    roll(now + SignedDuration::from_secs(8)).await;
    let replaced = |machines: &[Machine]| {
        let is_old = |machine: &Machine| machine.metadata.name.as_ref().is_some_and(|name| before.contains(name));
        machines.len() == 3 && !machines.iter().any(is_old)
    };
    env.wait_all::<Machine>("younger Machines", replaced).await;
    cluster.wait_running(&env).await;
    env.rest().await;
    let after = names(&env).await;

    // The date stays in the past.
    env.prod("again").await;
    env.rest().await;
    assert_eq!(names(&env).await, after);
    assert_eq!(env.created("machines"), 6, "a Machine was replaced more than once");
    let etcd = env.cloud().etcd(&cluster.key()).unwrap();
    assert_eq!(etcd.most_missing, 0, "{etcd:?}");
    env.stop().await;
}

/// How many Machines that stay are in each failure domain.
fn spread(machines: &[Machine]) -> BTreeMap<String, usize> {
    let mut spread: BTreeMap<String, usize> = ["a", "b", "c"].map(|name| (name.to_owned(), 0)).into();
    for machine in machines.iter().filter(|m| m.metadata.deletion_timestamp.is_none()) {
        *spread
            .entry(machine.spec.failure_domain.clone().unwrap_or_default())
            .or_default() += 1;
    }
    spread
}

#[tokio::test]
async fn machines_are_spread_over_the_failure_domains_of_control_planes() {
    let env = Env::start().await;
    let system = ExternalSystem::new(&env);
    let mut cluster = ByHand::new("zones", 3, 0);
    cluster.apply(&env).await;
    let domain = |name: &str, control_plane: bool| json!({ "name": name, "controlPlane": control_plane });
    let domains: [Value; 4] = [
        domain("a", true),
        domain("b", true),
        domain("c", true),
        domain("workers", false),
    ];
    let status = json!({ "failureDomains": domains });
    system.merge_status("zones", &status).await;
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let address = env.cloud().create_load_balancer(&cluster.key(), any).await.unwrap();
    system.provision("zones", "127.0.0.1", address.port()).await;

    for (replicas, expected) in [(3, [1, 1, 1]), (5, [1, 2, 2]), (3, [1, 1, 1])] {
        cluster = cluster.control_plane(replicas);
        env.apply(&cluster.object("KubeadmControlPlane")).await;
        let done = |machines: &[Machine]| {
            let counts: Vec<usize> = spread(machines).into_values().collect();
            assert_eq!(counts.len(), 3, "a Machine is in another failure domain: {machines:?}");
            let (most, least) = (counts.iter().max(), counts.iter().min());
            assert!(
                most.unwrap() - least.unwrap() <= 1,
                "{counts:?} on the way to {replicas}"
            );
            machines.len() == replicas
        };
        env.wait_all::<Machine>("as many Machines", done).await;
        cluster.wait_running(&env).await;
        let mut counts: Vec<usize> = spread(&env.list::<Machine>().await).into_values().collect();
        counts.sort_unstable();
        assert_eq!(counts, expected);
    }
    env.stop().await;
}
