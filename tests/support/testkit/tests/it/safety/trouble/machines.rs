//! Hosts and kubelets fail.

use serde_json::json;
use windlass_api::core::Machine;
use windlass_infra_dev::Trouble;

use super::super::dark::{cut, mend};
use super::super::hosts;
use super::Site;

#[tokio::test]
async fn a_leader_that_works_hands_over_before_it_is_replaced() {
    let site = Site::start("marked", 3).await;
    site.check(60, 60).await;
    let leader = site.leader();
    let mark = json!({ "metadata": { "annotations": { "cluster.x-k8s.io/remediate-machine": "" } } });
    site.env.merge("Machine", &leader, &mark).await;
    site.replaces(&[&leader]).await;
    assert_eq!(site.etcd().most_missing, 0, "a member was switched off before it left");
    site.made(4).await;
    site.stop().await;
}

#[tokio::test]
async fn two_dead_hosts_of_five_are_replaced_one_after_the_other() {
    let site = Site::start("two", 5).await;
    site.check(60, 1).await;
    let (leader, follower) = (site.leader(), site.follower());
    site.trouble(&leader, Trouble::Dead).await;
    site.trouble(&follower, Trouble::Dead).await;
    site.replaces(&[&leader, &follower]).await;
    assert_eq!(site.etcd().most_missing, 2);
    site.made(7).await;
    site.stop().await;
}

#[tokio::test]
async fn a_majority_of_dead_hosts_is_not_replaced_until_it_is_none() {
    let site = Site::start("most", 3).await;
    site.check(60, 1).await;
    let (leader, follower) = (site.leader(), site.follower());
    site.trouble(&follower, Trouble::Dead).await;
    site.trouble(&leader, Trouble::Dead).await;
    site.says("Remediating", "True", "").await;
    site.env.rest_for(std::time::Duration::from_secs(20)).await;
    let left = hosts(&site.env).await;
    assert!(left.len() >= 3, "a quorum was given up: {left:?}");
    site.recover(&leader).await;
    site.replaces(&[&follower]).await;
    site.stop().await;
}

#[tokio::test]
async fn a_node_that_recovers_in_time_is_not_replaced() {
    let site = Site::start("recovers", 3).await;
    site.check(60, 300).await;
    let before = hosts(&site.env).await;
    let leader = site.leader();
    for trouble in [Trouble::NotReady, Trouble::Silent] {
        site.trouble(&leader, trouble).await;
        let ready = |status: &'static str| {
            let leader = leader.clone();
            move |machines: &[Machine]| {
                let of_leader = machines.iter().find(|m| m.metadata.name.as_ref() == Some(&leader));
                let mut conditions = of_leader.iter().flat_map(|m| &m.status).flat_map(|s| &s.conditions);
                conditions.any(|c| c.type_ == "NodeReady" && c.status == status)
            }
        };
        let status = if trouble == Trouble::NotReady {
            "False"
        } else {
            "Unknown"
        };
        site.env.wait_all::<Machine>(status, ready(status)).await;
        site.recover(&leader).await;
        site.env.wait_all::<Machine>("ready again", ready("True")).await;
    }
    site.runs().await;
    assert_eq!(hosts(&site.env).await, before);
    site.made(3).await;
    site.stop().await;
}

/// The connection is lost when the Machine is deleted: nothing else goes, and after it the replacement goes on.
#[tokio::test]
async fn a_remediation_goes_on_after_a_lost_connection() {
    let site = Site::start("dark", 3).await;
    site.check(60, 1).await;
    let leader = site.leader();
    site.trouble(&leader, Trouble::Dead).await;
    site.goes(&leader).await;
    cut(&site.env, site.cluster.shape()).await;
    let before = hosts(&site.env).await;
    site.env.rest().await;
    let during = hosts(&site.env).await;
    assert!(
        before.iter().all(|host| during.contains_key(host.0)),
        "{before:?} became {during:?}"
    );
    mend(&site.env, site.cluster.shape()).await;
    site.replaces(&[&leader]).await;
    assert_eq!(site.etcd().most_missing, 1);
    site.made(4).await;
    site.stop().await;
}
