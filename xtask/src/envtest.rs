//! `cargo xtask envtest`: runs a command with a separate real API server.
//!
//! The programs come from `cargo xtask tools`; they end with this task, also when it is killed.

use std::process::Command;

use windlass_envtest::{ControlPlane, Options};

/// Starts a real API server, runs the command with `KUBECONFIG` set, and ends the server. Returns false if the command failed.
pub(crate) fn run(command: &[String]) -> Result<bool, String> {
    let Some((program, arguments)) = command.split_first() else {
        return Err("there is no command to run".to_owned());
    };
    let runtime = tokio::runtime::Runtime::new().map_err(|error| format!("cannot start the runtime: {error}"))?;
    let server = runtime
        .block_on(ControlPlane::start(&Options::default()))
        .map_err(|error| format!("cannot start a real API server: {error}"))?;
    let status = Command::new(program)
        .args(arguments)
        .env("KUBECONFIG", server.kubeconfig_path())
        .status()
        .map_err(|error| format!("cannot run {program}: {error}"))?;
    Ok(status.success())
}
