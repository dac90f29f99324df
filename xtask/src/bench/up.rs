//! Measures the time until `windlass up` answers its first request.

use std::path::Path;
use std::time::{Duration, Instant};

use kube::config::{KubeConfigOptions, Kubeconfig};

use super::child::{Ending, Folder, Running, demo};
use super::figures::{Figure, Figures, Unit};
use super::say;

/// The number of clusters in the folder with a fleet.
const CLUSTERS: u32 = 10;
/// The timeout of the first answer.
const PATIENCE: Duration = Duration::from_mins(1);
/// The interval of attempts, which is the precision of the figure.
const PACE: Duration = Duration::from_millis(2);

/// Measures a start with an empty folder, and with a folder that has a fleet.
pub(super) fn measure(program: &Path, runs: u32, figures: &mut Figures) -> Result<(), String> {
    let mut empty = Vec::new();
    for run in 1..=runs {
        say(&format!("up with an empty folder, run {run} of {runs}"));
        let folder = Folder::new()?;
        empty.push(first_answer(program, &folder)?);
    }
    figures.add(Figure::new(
        "up: first answer, empty folder",
        Unit::Seconds,
        empty,
        Some(1.0),
    ));
    let folder = Folder::new()?;
    say(&format!("a folder with {CLUSTERS} clusters"));
    let (count, data) = (CLUSTERS.to_string(), folder.argument("data"));
    let line = [
        "--clusters",
        &count,
        "--control-plane-replicas",
        "1",
        "--workers",
        "1",
        "--data-dir",
        &data,
        "--keep",
    ];
    demo(program, &line, Ending::AfterReport)?;
    let mut full = Vec::new();
    for run in 1..=runs {
        say(&format!("up with that folder, run {run} of {runs}"));
        full.push(first_answer(program, &folder)?);
    }
    figures.add(Figure::new(
        format!("up: first answer, folder with {CLUSTERS} clusters"),
        Unit::Seconds,
        full,
        Some(1.0),
    ));
    Ok(())
}

/// Seconds from the start of the process to the first answer to an authenticated request.
fn first_answer(program: &Path, folder: &Folder) -> Result<f64, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let port = windlass_envtest::reserved_port().map_err(|error| format!("no free port: {error}"))?;
    let port = port.to_string();
    let kubeconfig = folder.argument("kubeconfig");
    // The kubeconfig of an earlier run has another port.
    let _ = std::fs::remove_file(&kubeconfig);
    let data = folder.argument("data");
    let started = Instant::now();
    let running = Running::start(
        program,
        &["up", "--data-dir", &data, "--port", &port, "--kubeconfig", &kubeconfig],
    )?;
    let seconds = runtime.block_on(async {
        let client = loop {
            if let Some(client) = client(&kubeconfig).await {
                break client;
            }
            wait(started).await?;
        };
        while client.apiserver_version().await.is_err() {
            wait(started).await?;
        }
        Ok::<_, String>(started.elapsed().as_secs_f64())
    })?;
    running.stop()?;
    Ok(seconds)
}

async fn client(kubeconfig: &str) -> Option<kube::Client> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).ok()?;
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .ok()?;
    kube::Client::try_from(config).ok()
}

async fn wait(started: Instant) -> Result<(), String> {
    if started.elapsed() > PATIENCE {
        return Err(format!("windlass up did not answer within {} s", PATIENCE.as_secs()));
    }
    tokio::time::sleep(PACE).await;
    Ok(())
}
