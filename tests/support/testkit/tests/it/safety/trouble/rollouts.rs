//! Rollouts with failing machines.

use serde_json::json;
use windlass_api::core::Machine;
use windlass_infra_dev::Trouble;

use super::{Site, names};

#[tokio::test]
async fn an_upgrade_that_begins_during_a_remediation_adds_one_machine_at_a_time() {
    let mut site = Site::start("upgrade", 3).await;
    site.check(60, 1).await;
    let before = names(&site.env.list::<Machine>().await, |_| true);
    let leader = site.leader();
    site.trouble(&leader, Trouble::Dead).await;
    site.goes(&leader).await;
    site.upgrade("v1.36.0").await;
    let before: Vec<&str> = before.iter().map(String::as_str).collect();
    site.replaces(&before).await;
    assert_eq!(site.etcd().most_missing, 1);
    site.made(6).await;
    site.stop().await;
}

/// The version exists as a number, but no image has it.
#[tokio::test]
async fn a_version_that_no_machine_comes_up_with_is_corrected() {
    let mut site = Site::start("typo", 3).await;
    site.env.cloud().trouble_next(&site.cluster.key(), Trouble::SlowBoot);
    let before = names(&site.env.list::<Machine>().await, |_| true);
    site.upgrade("v1.36.99").await;
    let wrong = site.troubled().await;
    site.upgrade("v1.36.0").await;
    let before: Vec<&str> = before.iter().map(String::as_str).chain([wrong.as_str()]).collect();
    site.replaces(&before).await;
    assert_eq!(site.etcd().most_missing, 0);
    site.made(7).await;
    site.stop().await;
}

#[tokio::test]
async fn a_first_version_that_no_machine_comes_up_with_is_corrected() {
    let mut site = Site::start_with("begin", 1, json!({ "version": "v1.35.99" }), &[Trouble::SlowBoot]).await;
    let wrong = site.troubled().await;
    site.upgrade("v1.35.0").await;
    site.replaces(&[&wrong]).await;
    site.made(2).await;
    site.stop().await;
}
