//! An idle fleet causes no writes, and an idle control plane no requests.

use std::time::{Duration, Instant};

use windlass_testkit::rest::{HELD_BACK, more};
use windlass_testkit::wait::TIMEOUT;
use windlass_testkit::{ByHand, CLASS, ClusterOf, Env};

#[tokio::test]
async fn a_settled_fleet_writes_nothing_whatever_wakes_the_controllers() {
    let env = Env::start().await;
    env.apply_yaml(CLASS).await;
    let cluster = ClusterOf::new("rest", 1, 2);
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    let begun = Instant::now();
    let (mut before, mut quiet) = (env.writes_by_kind(), Instant::now());
    for round in 0.. {
        env.prod(&format!("look {round}")).await;
        let now = env.writes_by_kind();
        if now != before {
            assert!(begun.elapsed() < TIMEOUT, "still writing: {:?}", more(&before, &now));
            (before, quiet) = (now, Instant::now());
        } else if quiet.elapsed() > HELD_BACK {
            break;
        }
    }
    env.stop().await;
}

/// Longer than the time between two probes of a workload cluster.
const PROBED: Duration = Duration::from_secs(15);

/// A sum over all series of a metric of the controllers.
fn sum(metrics: &str, name: &str) -> i64 {
    let series = format!("{name}{{");
    let lines = metrics.lines().filter(|line| line.starts_with(&series));
    let values = lines.filter_map(|line| line.rsplit_once(' ')?.1.split('.').next()?.parse::<i64>().ok());
    values.sum()
}

/// The requests to the management cluster and to workload clusters so far, reads and writes, without watches and probes.
fn requests(env: &Env) -> i64 {
    let metrics = env.metrics();
    sum(&metrics, "rest_client_requests_total") - sum(&metrics, "windlass_watches_total") - probes(&metrics)
}

/// The probes of workload clusters so far.
fn probes(metrics: &str) -> i64 {
    sum(metrics, "capi_cluster_cache_healthchecks_total")
}

#[tokio::test]
async fn a_settled_control_plane_asks_no_server_for_anything_but_probes() {
    let env = Env::start().await;
    let cluster = ByHand::new("still", 3, 0).managed();
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    let before = env.load().reconciles;
    let begun = Instant::now();
    let (mut asked, mut quiet, mut probed) = (requests(&env), Instant::now(), probes(&env.metrics()));
    for round in 0.. {
        // Each controller reconciles everything in each round.
        env.prod(&format!("look {round}")).await;
        let now = requests(&env);
        if now != asked {
            assert!(begun.elapsed() < TIMEOUT, "still asking:\n{}", env.metrics());
            (asked, quiet, probed) = (now, Instant::now(), probes(&env.metrics()));
        } else if quiet.elapsed() > PROBED {
            break;
        }
    }
    // What was counted was asked by controllers that did reconcile, and were connected.
    let plane = "kubeadmcontrolplane";
    assert!(env.load().reconciles[plane] > before[plane] + 5);
    assert!(probes(&env.metrics()) > probed);
    env.stop().await;
}
