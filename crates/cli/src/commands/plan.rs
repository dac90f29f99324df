//! `windlass plan`.

use std::path::PathBuf;
use std::process::ExitCode;

use windlass_class_check::File;
use windlass_manager::network;
use windlass_preview::model::Verdict;
use windlass_preview::render::{data, markdown, text};
use windlass_preview::{Change, Source, preview};

use crate::args::planning::{PlanArgs, PlanOutput};
use crate::commands::files;
use crate::error::CliError;
use crate::printer::Printer;

/// The exit code when something would change. Like that of `diff`, it tells a change from an error, which is 1 here.
const CHANGES: u8 = 2;

/// Prints what a change would do.
pub(crate) async fn run(args: Box<PlanArgs>, printer: &Printer) -> Result<ExitCode, CliError> {
    if args.is_empty() {
        return Err(CliError::plain(
            "nothing is to be changed",
            Some("name a change with -f FILE, --class NAME --set PATH=VALUE or --rebase CLUSTER=CLASS".to_owned()),
        ));
    }
    let (source, namespace) = if args.offline.is_empty() {
        let config = network::config(args.kubeconfig.as_deref(), args.context.as_deref()).await?;
        let namespace = config.default_namespace.clone();
        (Source::Server(network::connect_patiently(&config).await?), namespace)
    } else {
        let files = read(&args.offline)?;
        let objects = files::deeply(|| windlass_preview::cluster_objects(&files))??;
        (Source::Files(objects), "default".to_owned())
    };
    let change = Change {
        objects: {
            let files = read(&args.filename)?;
            files::deeply(|| windlass_preview::objects(&files))??
        },
        class: args.class,
        set: args.set,
        rebase: args.rebase,
        namespace: args.namespace.unwrap_or(namespace),
        field_manager: args.field_manager,
    };
    let report = preview(source, &change).await?;
    printer.text(&match args.output {
        PlanOutput::Text => text::text(&report),
        PlanOutput::Json => data::json(&report),
        PlanOutput::Yaml => data::yaml(&report),
        PlanOutput::Markdown => markdown::markdown(&report),
    })?;
    Ok(match report.verdict() {
        Verdict::Same => ExitCode::SUCCESS,
        Verdict::Changes => ExitCode::from(CHANGES),
        Verdict::Problems => ExitCode::FAILURE,
    })
}

/// Reads files. There is no plan without them: a file that cannot be read is no change.
fn read(paths: &[PathBuf]) -> Result<Vec<File>, CliError> {
    files::read_all(paths).map_err(|error| match error {
        CliError::Input {
            what,
            source: Some(source),
        } => CliError::failed(what, source),
        CliError::Input { what, source: None } => CliError::plain(what, None),
        error => error,
    })
}
