//! The program `windlass-example-extension`: serves the handlers of the example until SIGTERM or SIGINT.

use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use windlass_example_extension::extension;
use windlass_runtime_extension::{CancellationToken, tls};

/// A Runtime SDK extension with a handler for every hook: it protects Clusters, holds steps of upgrades, and patches templates
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    /// Address of the server
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:9443")]
    listen: SocketAddr,
    /// Folder with tls.crt and tls.key; renewed files are used without a restart
    #[arg(long, value_name = "DIR", default_value = "/certificates")]
    certificates: PathBuf,
}

fn main() -> ExitCode {
    let args = Args::parse();
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn run(args: Args) -> Result<(), Box<dyn Error>> {
    // From now on, the signals do not end the process at once.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let tls = tls(args.certificates)?;
    let bound = TcpListener::bind(args.listen).await;
    let listener = bound.map_err(|error| format!("cannot listen on {}: {error}", args.listen))?;
    tracing::info!("listening on {}", listener.local_addr()?);
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping");
        stopping.cancel();
    });
    extension()?.serve(listener, tls, stop).await;
    Ok(())
}
