//! `windlass apiserver`.

use std::path::PathBuf;

use windlass_manager::{BuiltIns, Embedded, EmbeddedOptions, FeatureGates, ManagerError, snapshot};

use super::up::default_data_dir;
use crate::args::{ApiserverArgs, ApiserverCommand, SnapshotArgs, SnapshotCommand};
use crate::error::CliError;
use crate::printer::{BOLD, Printer, styled};
use crate::signals::Stop;

/// Runs only the embedded API server until it is stopped, or runs a subcommand instead.
pub(crate) async fn run(args: ApiserverArgs, printer: &Printer) -> Result<(), CliError> {
    match (args.command, args.data_dir) {
        (Some(ApiserverCommand::Snapshot(command)), _) => snapshot(command, printer).await,
        (None, None) => Err(CliError::Usage("say where to keep data with --data-dir".to_owned())),
        (None, Some(data_dir)) => {
            let options = EmbeddedOptions {
                data_dir,
                kubeconfig: args.kubeconfig,
                port: args.port,
                tokens: args.token_auth_file,
                definitions: false,
                gates: FeatureGates::default(),
                built_ins: BuiltIns::default(),
            };
            serve(options, printer).await
        }
    }
}

async fn serve(options: EmbeddedOptions, printer: &Printer) -> Result<(), CliError> {
    let stop = Stop::listen()?;
    let embedded = Embedded::start(options).await?;
    let told = printer.text(&format!(
        "API server {}\nkubeconfig {}\n",
        styled(BOLD, &embedded.url()),
        embedded.kubeconfig().display()
    ));
    if told.is_ok() {
        stop.wait_once().await;
    }
    embedded.shutdown().await;
    told
}

async fn snapshot(command: SnapshotCommand, printer: &Printer) -> Result<(), CliError> {
    let (SnapshotCommand::Save(args) | SnapshotCommand::Restore(args)) = &command;
    let SnapshotArgs { file, data_dir } = args.clone();
    let data_dir: PathBuf = data_dir.map_or_else(default_data_dir, Ok)?;
    let (saves, place) = (
        matches!(command, SnapshotCommand::Save(_)),
        data_dir.display().to_string(),
    );
    let name = file.display().to_string();
    let work = move || {
        if saves {
            snapshot::save(&data_dir, &file)
        } else {
            snapshot::restore(&file, &data_dir)
        }
    };
    let summary = tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| ManagerError::Server(error.to_string()))??;
    let what = format!("{} objects of revision {}", summary.objects, summary.revision);
    printer.line(&if saves {
        format!("saved {what} in {name} ({} bytes)", summary.bytes)
    } else {
        format!("restored {what} to {place}")
    })
}
