//! Rollouts with failing machines, and because of certificates that expire.

use jiff::{SignedDuration, Timestamp};
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

#[tokio::test]
async fn a_machine_that_dies_during_an_upgrade_is_replaced_and_the_upgrade_goes_on() {
    let mut site = Site::start("during", 3).await;
    site.check(60, 1).await;
    let before = names(&site.env.list::<Machine>().await, |_| true);
    site.upgrade("v1.36.0").await;
    let more = |machines: &[Machine]| machines.len() > 3;
    site.env.wait_all::<Machine>("a Machine more", more).await;
    let member = site.follower();
    site.trouble(&member, Trouble::Dead).await;
    let before: Vec<&str> = before.iter().map(String::as_str).collect();
    site.replaces(&before).await;
    assert!(site.etcd().most_missing <= 1, "{:?}", site.etcd());
    site.stop().await;
}

#[tokio::test]
async fn machines_are_replaced_before_their_certificates_expire() {
    let notice = SignedDuration::from_hours(7 * 24);
    let expiry = Timestamp::now() + notice + SignedDuration::from_secs(90);
    let spec = json!({ "rollout": { "before": { "certificatesExpiryDays": 7 } } });
    let troubles = [Trouble::CertificateExpires(expiry); 3];
    let site = Site::start_with("expiry", 3, spec, &troubles).await;
    let ends = |machine: &Machine| {
        let date = machine
            .status
            .as_ref()
            .and_then(|status| status.certificates_expiry_date.as_ref());
        date.is_some_and(|date| date.0.as_second() == expiry.as_second())
    };
    let known = |machines: &[Machine]| names(machines, ends).len() == 3;
    let machines = site
        .env
        .wait_all::<Machine>("dates of certificates that expire soon", known)
        .await;
    let before = names(&machines, ends);
    let before: Vec<&str> = before.iter().map(String::as_str).collect();
    // From here no event leads to it but the time.
    site.replaces(&before).await;
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
