//! The memory of a simulated cluster without clients. A program of its own, as it measures the process.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use windlass_infra_dev::Cloud;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Resident memory of this process in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_simulated_cluster_takes_less_than_400_kib() {
    const FIRST: u64 = 10;
    const MORE: u64 = 30;
    let cloud = Cloud::new();
    // What the first ones bring with them is there once.
    for index in 0..FIRST {
        cloud.simulate(&format!("first-{index}"), 3, 3).await.unwrap();
    }
    let before = resident();
    for index in 0..MORE {
        cloud.simulate(&format!("more-{index}"), 3, 3).await.unwrap();
    }
    let each = resident().saturating_sub(before) / MORE;
    eprintln!("{each} KiB a cluster");
    assert!(each < 400, "{each} KiB a cluster");
    cloud.shutdown().await;
}
