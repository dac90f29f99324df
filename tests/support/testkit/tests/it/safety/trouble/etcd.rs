//! etcd members with alarms, and learners that stay.

use serde_json::json;
use windlass_infra_dev::Trouble;

use super::Site;

#[tokio::test]
async fn an_alarm_holds_up_a_scale_up_until_it_ends() {
    let mut site = Site::start("alarm", 3).await;
    let member = site.follower();
    site.trouble(&member, Trouble::AlarmNoSpace).await;
    site.scale(5).await;
    let named = format!("* Machine {member}:\n  * EtcdMemberHealthy: Etcd reports alarms: NOSPACE");
    site.says("EtcdClusterHealthy", "False", &named).await;
    let blocked = "Scaling up from 3 to 5 replicas is blocked because:\n* waiting for etcd cluster to become healthy";
    site.says("ScalingUp", "True", blocked).await;
    site.made(3).await;
    site.recover(&member).await;
    site.replaces(&[]).await;
    site.made(5).await;
    site.stop().await;
}

#[tokio::test]
async fn an_alarm_holds_up_a_rollout_until_it_ends() {
    let mut site = Site::start("held", 3).await;
    let member = site.follower();
    site.trouble(&member, Trouble::AlarmCorrupt).await;
    site.upgrade("v1.36.0").await;
    let named = format!("* Machine {member}:\n  * EtcdMemberHealthy: Etcd reports alarms: CORRUPT");
    site.says("EtcdClusterHealthy", "False", &named).await;
    site.made(3).await;
    site.recover(&member).await;
    site.replaces(&[&member]).await;
    site.made(6).await;
    site.stop().await;
}

#[tokio::test]
async fn a_rollout_without_surge_begins_with_the_member_that_has_an_alarm() {
    let rollout = json!({ "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 0 } } });
    let mut site = Site::start_with("broken", 3, json!({ "rollout": rollout }), &[]).await;
    // Not the oldest, with which a rollout begins otherwise.
    let machines = site.env.list::<windlass_api::core::Machine>().await;
    let newest = machines
        .iter()
        .max_by_key(|m| m.metadata.creation_timestamp.clone().unwrap().0);
    let broken = newest.unwrap().metadata.name.clone().unwrap();
    site.trouble(&broken, Trouble::AlarmNoSpace).await;
    site.upgrade("v1.36.0").await;
    site.goes(&broken).await;
    let after = site.env.list::<windlass_api::core::Machine>().await;
    let going = super::names(&after, super::is_going);
    assert!(going.iter().all(|name| *name == broken), "{going:?} go with it");
    assert!(after.len() >= 2, "others went first: {after:?}");
    site.replaces(&[&broken]).await;
    site.made(6).await;
    site.stop().await;
}

#[tokio::test]
async fn a_learner_that_stays_is_reported_and_no_other_member_joins() {
    let mut site = Site::start("learner", 1).await;
    site.env
        .cloud()
        .trouble_next(&site.cluster.key(), Trouble::StaysLearner);
    site.scale(3).await;
    let learner = site.troubled().await;
    let named = format!("* Machine {learner}:\n  * EtcdMemberHealthy: Waiting for learner etcd member to be promoted");
    site.says("EtcdClusterHealthy", "False", &named).await;
    let blocked = "Scaling up from 2 to 3 replicas is blocked because:\n* waiting for etcd cluster to become healthy";
    site.says("ScalingUp", "True", blocked).await;
    site.made(2).await;
    site.recover(&learner).await;
    site.replaces(&[]).await;
    site.made(3).await;
    site.stop().await;
}

#[tokio::test]
async fn a_learner_that_stays_can_be_replaced() {
    let mut site = Site::start("promoted", 1).await;
    site.check(60, 60).await;
    site.env
        .cloud()
        .trouble_next(&site.cluster.key(), Trouble::StaysLearner);
    site.scale(3).await;
    let learner = site.troubled().await;
    site.says(
        "EtcdClusterHealthy",
        "False",
        "Waiting for learner etcd member to be promoted",
    )
    .await;
    let mark = json!({ "metadata": { "annotations": { "cluster.x-k8s.io/remediate-machine": "" } } });
    site.env.merge("Machine", &learner, &mark).await;
    site.replaces(&[&learner]).await;
    assert_eq!(site.etcd().most_missing, 0);
    site.made(4).await;
    site.stop().await;
}
