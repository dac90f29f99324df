//! Starts many empty servers and measures what one costs: `cargo run -p windlass-apiserver --example many -- 1000`.

use std::io::Write as _;
use std::time::Instant;

use kube::Client;
use windlass_apiserver::{ApiServer, Options, UserInfo};
use windlass_store::{Limits, Store};

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmRSS")).unwrap_or("");
    line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0)
}

async fn start() -> Result<ApiServer, Box<dyn std::error::Error>> {
    let server = ApiServer::start(Options::new(Store::memory(Limits::small()))).await?;
    let client = Client::new(server.client_service(UserInfo::admin("many")), "default");
    let node: k8s_openapi::api::core::v1::Node = serde_json::from_str(r#"{"metadata": {"name": "n"}}"#)?;
    kube::Api::all(client)
        .create(&kube::api::PostParams::default(), &node)
        .await?;
    Ok(server)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count: u64 = std::env::args().nth(1).map_or(Ok(1000), |n| n.parse())?;
    // What all share is made by the first.
    let first = start().await?;
    let before = resident_kib();
    let began = Instant::now();
    let mut servers = Vec::new();
    for _ in 0..count {
        servers.push(start().await?);
    }
    let took = began.elapsed();
    let per_server = resident_kib().saturating_sub(before) / count.max(1);
    writeln!(
        std::io::stdout(),
        "{count} servers in {took:?}; {per_server} KiB each; {before} KiB before"
    )?;
    drop((first, servers));
    Ok(())
}
