//! Calls of cargo, and its target folder.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The target folder.
pub(crate) fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// A command of the cargo that runs this task, in the workspace.
pub(crate) fn cargo(root: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root);
    command
}

/// Runs a command. Returns false if it failed.
pub(crate) fn run(command: &mut Command) -> Result<bool, String> {
    match command.status() {
        Ok(status) => Ok(status.success()),
        Err(error) => Err(format!("cannot run {}: {error}", command.get_program().display())),
    }
}
