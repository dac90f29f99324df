//! `windlass demo`.

use windlass_demo::{Options, Server};

use crate::args::{DemoArgs, Output};
use crate::error::CliError;
use crate::printer::Printer;
use crate::signals::Stop;

/// Runs the demo.
pub(crate) async fn run(args: DemoArgs, printer: &Printer) -> Result<(), CliError> {
    let server = match args.kubeconfig {
        None => Server::Embedded(args.data_dir),
        Some(_) if args.externally_managed && args.webhook_address.is_none() => {
            return Err(CliError::Usage(
                "--externally-managed shows what admission refuses: with --kubeconfig it needs --webhook-address"
                    .to_owned(),
            ));
        }
        Some(_)
            if args
                .webhook_address
                .is_some_and(|address| address.ip().is_unspecified()) =>
        {
            return Err(CliError::Usage(
                "--webhook-address needs the address of this machine that the API server can reach".to_owned(),
            ));
        }
        Some(kubeconfig) => Server::Running {
            kubeconfig,
            webhook_address: args.webhook_address,
        },
    };
    let options = Options {
        clusters: args.clusters,
        control_plane_replicas: args.control_plane_replicas,
        workers: args.workers,
        kubernetes_version: args.kubernetes_version,
        class: args.class,
        externally_managed: args.externally_managed,
        server,
        idle: args.idle,
        timeout: args.timeout,
        output: match args.output {
            Output::Text => windlass_demo::Output::Text,
            Output::Json => windlass_demo::Output::Json,
        },
        costs: args.costs,
        keep: args.keep,
    };
    let mut stop = Stop::listen()?;
    Ok(windlass_demo::run(options, printer, async || stop.wait().await).await?)
}
