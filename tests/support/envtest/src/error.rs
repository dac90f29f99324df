//! Errors of the start of a control plane.

use std::path::PathBuf;
use std::time::Duration;

/// Why a control plane did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Programs are missing.
    #[error(
        "{} not in {}: build with `cargo xtask tools`, or name another folder in WINDLASS_TOOLS",
        missing.join(", "),
        folder.display()
    )]
    NotBuilt {
        /// Where they were expected.
        folder: PathBuf,
        /// Their names.
        missing: Vec<&'static str>,
    },
    /// A file of a control plane cannot be written.
    #[error("{}: cannot be written", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// Keys or certificates cannot be created.
    #[error("certificates cannot be made")]
    Identity(#[from] windlass_pki::PkiError),
    /// A program cannot be started.
    #[error("{program} cannot be started")]
    Start {
        /// The program.
        program: &'static str,
        /// The cause.
        source: std::io::Error,
    },
    /// A program ended unexpectedly.
    #[error("{program} ended with {status}; the end of its log:\n{log}")]
    Ended {
        /// The program.
        program: &'static str,
        /// Its exit status.
        status: String,
        /// Its last lines.
        log: String,
    },
    /// A program did not become ready.
    #[error("{program} was not ready after {} s; the end of its log:\n{log}", waited.as_secs())]
    NotReady {
        /// The program.
        program: &'static str,
        /// How long it was waited for.
        waited: Duration,
        /// Its last lines.
        log: String,
    },
    /// A client for the control plane cannot be created.
    #[error("no client: {0}")]
    Client(String),
    /// Its state cannot be restored.
    #[error("the state cannot be put back: {0}")]
    State(String),
}
