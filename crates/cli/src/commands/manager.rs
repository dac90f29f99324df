//! `windlass manager`.

use windlass_controller_runtime::Metrics;
use windlass_manager::{WebhookOptions, Webhooks, controllers, network, webhooks};

use super::up::selection;
use crate::args::ManagerArgs;
use crate::error::CliError;
use crate::printer::Printer;
use crate::signals::Stop;

/// Runs controllers against an API server over the network until it is stopped.
pub(crate) async fn run(args: ManagerArgs, printer: &Printer) -> Result<(), CliError> {
    let selection = selection(args.controllers.as_deref())?;
    let fetcher = args.fetching.fetcher()?;
    let stop = Stop::listen()?;
    let health = match args.metrics_address {
        Some(address) => Some(network::listen(address, "--metrics-address").await?),
        None => None,
    };
    let serving = match (args.webhooks.address, args.webhooks.service.or(args.webhooks.url)) {
        (Some(address), Some(target)) => Some(WebhookOptions {
            listener: network::listen(address, "--webhook-address").await?,
            target,
            certificate_dir: args.webhooks.certificate_dir,
        }),
        _ => None,
    };
    let config = network::config(args.kubeconfig.as_deref(), args.context.as_deref()).await?;
    let administrator = network::connect_patiently(&config).await?;
    network::definitions(&administrator, &selection.definitions(), args.install_crds).await?;
    // Admission starts first: our controllers need no write that it refuses.
    let serving = if let Some(options) = serving {
        Some(webhooks::start(administrator, options).await?)
    } else {
        webhooks::warn_that_none_are_served();
        None
    };
    let metrics = Metrics::new();
    let client = network::connect(&config, &metrics)?;
    let running = controllers::start(client, metrics, &selection, &fetcher, &args.helm.helming());
    running.warn_without_helm(&selection);
    if let Some(listener) = health {
        running.serve(listener);
    }
    let answering = serving.as_ref().and_then(Webhooks::address);
    let admission = answering.map(|address| format!(", admission is answered on {address}"));
    let told = printer.line(&format!(
        "controllers run against {}{}",
        config.cluster_url,
        admission.unwrap_or_default()
    ));
    if told.is_ok() {
        stop.wait_once().await;
    }
    running.shutdown().await;
    if let Some(webhooks) = serving {
        webhooks.shutdown().await;
    }
    told
}
