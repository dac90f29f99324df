//! `windlass apiserver`.

use windlass_manager::{Embedded, EmbeddedOptions};

use crate::args::ApiserverArgs;
use crate::error::CliError;
use crate::printer::{BOLD, Printer, styled};
use crate::signals::Stop;

/// Runs the embedded API server alone until it is told to stop.
pub(crate) async fn run(args: ApiserverArgs, printer: &Printer) -> Result<(), CliError> {
    let stop = Stop::listen()?;
    let embedded = Embedded::start(EmbeddedOptions {
        data_dir: args.data_dir,
        kubeconfig: args.kubeconfig,
        port: args.port,
        tokens: args.token_auth_file,
        definitions: false,
    })
    .await?;
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
