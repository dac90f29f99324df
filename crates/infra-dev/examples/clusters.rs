//! The cost of simulated clusters without clients: `cargo xtask bench clusters --count 2000`.

use std::io::Write as _;
use std::time::Instant;

use windlass_infra_dev::Cloud;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Resident memory of this process in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or_default()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count: u64 = std::env::args().nth(1).unwrap_or_else(|| "200".to_owned()).parse()?;
    let cloud = Cloud::new();
    let mut out = std::io::stdout();
    // What the first one brings with it is there once.
    cloud.simulate("first", 3, 3).await?;
    let (before, started) = (resident(), Instant::now());
    for index in 1..=count {
        cloud.simulate(&format!("cluster-{index}"), 3, 3).await?;
        if index == count || index.is_multiple_of(500) {
            let now = resident();
            writeln!(
                out,
                "{index} clusters of 3+3 nodes: {} KiB each, {} MiB in all, {:?}",
                (now.saturating_sub(before)) / index,
                now >> 10,
                started.elapsed()
            )?;
        }
    }
    cloud.shutdown().await;
    Ok(())
}
