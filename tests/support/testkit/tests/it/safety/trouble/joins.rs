//! Machines that join late, and replacements that fail.

use serde_json::json;
use windlass_infra_dev::Trouble;

use super::{Site, startup};

#[tokio::test]
async fn replacements_that_fail_are_counted_up_to_the_limit() {
    let spec = json!({ "remediation": { "maxRetry": 1 } });
    let mut site = Site::start("limit", 1).await;
    site.change(spec).await;
    site.check(startup(), 60).await;
    for _ in 0..3 {
        site.env.cloud().trouble_next(&site.cluster.key(), Trouble::JoinFails);
    }
    site.scale(3).await;
    site.says(
        "Remediating",
        "True",
        "because the operation already failed 1 times (MaxRetry)",
    )
    .await;
    site.made(4).await;
    let last = site.troubled().await;
    site.recover(&last).await;
    site.replaces(&[]).await;
    site.made(5).await;
    site.stop().await;
}

#[tokio::test]
async fn a_machine_that_boots_slowly_is_waited_for() {
    let mut site = Site::start("slow", 1).await;
    site.check(startup(), 60).await;
    site.env.cloud().trouble_next(&site.cluster.key(), Trouble::SlowBoot);
    site.scale(3).await;
    let slow = site.troubled().await;
    site.made(2).await;
    site.recover(&slow).await;
    site.replaces(&[]).await;
    site.made(3).await;
    site.stop().await;
}
