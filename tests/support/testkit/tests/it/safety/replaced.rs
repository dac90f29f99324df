//! Machines of a control plane are replaced on every API server: when they do not come up, when they fail, and before their certificates
//! expire. Other troubles are about the simulated machines, and run on the embedded server only.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use windlass_api::core::Machine;
use windlass_infra_dev::Trouble;
use windlass_testkit::Kind;

use super::trouble::{Site, names, startup};

/// The first Machine does not come up: it is replaced.
async fn first_is_replaced(name: &str, trouble: Trouble) {
    let site = Site::start_with(name, 1, json!({}), &[trouble]).await;
    site.check(startup(), 60).await;
    let failed = site.troubled().await;
    site.replaces(&[&failed]).await;
    site.made(2).await;
    site.stop().await;
}

/// The second Machine does not join: it is replaced, and only then another one joins.
async fn is_replaced(name: &str, trouble: Trouble) {
    let mut site = Site::start(name, 1).await;
    site.check(startup(), 60).await;
    site.env.cloud().trouble_next(&site.cluster.key(), trouble);
    site.scale(3).await;
    let failed = site.troubled().await;
    site.replaces(&[&failed]).await;
    site.made(4).await;
    site.stop().await;
}

#[tokio::test]
async fn the_first_machine_is_replaced_when_its_init_fails() {
    first_is_replaced("init", Trouble::JoinFails).await;
}

#[tokio::test]
async fn the_first_machine_is_replaced_when_it_does_not_come_up() {
    first_is_replaced("first", Trouble::JoinHangs).await;
}

#[tokio::test]
async fn a_machine_that_fails_to_join_is_replaced_before_another_one_joins() {
    is_replaced("fails", Trouble::JoinFails).await;
}

#[tokio::test]
async fn a_machine_that_never_ends_to_join_is_replaced_before_another_one_joins() {
    is_replaced("hangs", Trouble::JoinHangs).await;
}

#[tokio::test]
async fn a_dead_leader_is_replaced_and_etcd_keeps_its_quorum() {
    let site = Site::start("dead", 3).await;
    site.check(60, 1).await;
    let leader = site.leader();
    site.trouble(&leader, Trouble::Dead).await;
    site.replaces(&[&leader]).await;
    assert_eq!(site.etcd().most_missing, 1);
    site.made(4).await;
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
    // Until all Machines are known to expire.
    let busy = if Kind::chosen() == Kind::Real { 150 } else { 90 };
    let expiry = Timestamp::now() + notice + SignedDuration::from_secs(busy);
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
