//! `windlass up`.

use std::path::PathBuf;
use std::sync::Arc;

use windlass_controller_runtime::Panicked;
use windlass_manager::up::{self, Reconciling};
use windlass_manager::{EmbeddedOptions, Selection};

use crate::args::UpArgs;
use crate::error::CliError;
use crate::logging;
use crate::printer::{BOLD, Printer, styled};
use crate::signals::Stop;

/// Runs the embedded management cluster until it is stopped.
pub(crate) async fn run(args: Box<UpArgs>, printer: &Printer) -> Result<(), CliError> {
    let scope = args.reconciling.scope();
    let selection = selection(args.controllers.as_deref())?.within(&scope)?;
    let grace = args.reconciling.grace().map_err(CliError::Usage)?;
    let identity = args.reconciling.identity().map_err(CliError::Usage)?;
    let gates = args.reconciling.gates().map_err(CliError::Usage)?;
    let fetcher = args.fetching.fetcher()?;
    let stop = Stop::listen()?;
    let options = EmbeddedOptions {
        data_dir: args.data_dir.map_or_else(default_data_dir, Ok)?,
        kubeconfig: args.kubeconfig,
        port: args.port,
        tokens: args.token_auth_file,
        definitions: true,
        gates: gates.clone(),
        built_ins: selection.built_ins(),
    };
    let listeners = args.serving.listen(Arc::new(logging::set_level)).await?;
    let reconciling = Reconciling {
        workloads: args.workloads.policy(),
        scope,
        nodes: args.reconciling.nodes(),
        preflight: args.reconciling.preflight(),
        gates,
        concurrency: args.reconciling.concurrency(),
        grace,
        tokens: args.reconciling.tokens(),
        etcd: args.reconciling.etcd(),
        migration: args.reconciling.migration(),
        identity,
        sync_period: args.reconciling.sync_period(),
    };
    let helming = args.helm.helming();
    let up = up::start(options, &selection, &fetcher, &helming, listeners, reconciling).await?;
    up.running().warn_without_helm(&selection);
    let embedded = up.embedded();
    let kubeconfig = embedded.kubeconfig().display();
    let told = printer.text(&format!(
        "management cluster {}\ndata               {}\nkubeconfig         {kubeconfig}\n\n\
         kubectl --kubeconfig {kubeconfig} get clusters,machines\n\nCtrl-C stops it. The next \"windlass up\" continues with the same objects.\n\
         What is in simulated workload clusters is kept in memory only.\n",
        styled(BOLD, &embedded.url()),
        embedded.data_dir().display(),
    ));
    let ended = match told {
        Ok(()) => stopped(stop, up.running().panic()).await,
        Err(error) => Err(error),
    };
    up.shutdown().await;
    ended
}

/// Waits for a stop signal, or for the panic of a task, which is an error.
pub(super) async fn stopped(stop: Stop, panic: impl Future<Output = Panicked>) -> Result<(), CliError> {
    tokio::select! {
        () = stop.wait_once() => Ok(()),
        panicked = panic => Err(panicked.into()),
    }
}

/// The selected controllers.
pub(super) fn selection(names: Option<&[String]>) -> Result<Selection, CliError> {
    Ok(match names {
        Some(names) => Selection::of(names)?,
        None => Selection::all(),
    })
}

/// The default data directory.
pub(super) fn default_data_dir() -> Result<PathBuf, CliError> {
    match std::env::home_dir().filter(|home| !home.as_os_str().is_empty()) {
        Some(home) => Ok(home.join(".windlass")),
        None => Err(CliError::Usage(
            "there is no home folder: say where to keep data with --data-dir".to_owned(),
        )),
    }
}
