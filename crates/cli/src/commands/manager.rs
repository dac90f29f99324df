//! `windlass manager`.

use windlass_kit::Metrics;
use windlass_manager::{controllers, network};

use super::up::selection;
use crate::args::ManagerArgs;
use crate::error::CliError;
use crate::printer::Printer;
use crate::signals::Stop;

/// Runs controllers against an API server over the network until told to stop.
pub(crate) async fn run(args: ManagerArgs, printer: &Printer) -> Result<(), CliError> {
    let selection = selection(args.controllers.as_deref())?;
    let stop = Stop::listen()?;
    let health = match args.metrics_address {
        Some(address) => Some(network::listen(address).await?),
        None => None,
    };
    let config = network::config(args.kubeconfig.as_deref(), args.context.as_deref()).await?;
    let metrics = Metrics::new();
    let client = network::connect(&config, &metrics).await?;
    network::definitions(&client, args.install_crds).await?;
    let running = controllers::start(client, metrics, &selection);
    if let Some(listener) = health {
        running.serve(listener);
    }
    let told = printer.line(&format!("controllers run against {}", config.cluster_url));
    if told.is_ok() {
        stop.wait_once().await;
    }
    running.shutdown().await;
    told
}
