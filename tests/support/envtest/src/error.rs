//! What keeps a control plane from starting.

use std::path::PathBuf;
use std::time::Duration;

/// Why there is no control plane.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Programs are missing.
    #[error(
        "{} not in {}: build with `cargo xtask tools`, or name another folder in WINDLASS_TOOLS",
        missing.join(", "),
        folder.display()
    )]
    NotBuilt {
        /// Where they were looked for.
        folder: PathBuf,
        /// Their names.
        missing: Vec<&'static str>,
    },
    /// A file of a control plane cannot be made.
    #[error("{}: cannot be written", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Keys or certificates cannot be made.
    #[error("certificates cannot be made")]
    Identity(#[from] windlass_pki::PkiError),
    /// A program cannot be started.
    #[error("{program} cannot be started")]
    Start {
        /// Which.
        program: &'static str,
        /// Why not.
        source: std::io::Error,
    },
    /// A program ended when it should have gone on.
    #[error("{program} ended with {status}; the end of its log:\n{log}")]
    Ended {
        /// Which.
        program: &'static str,
        /// Its exit status.
        status: String,
        /// Its last lines.
        log: String,
    },
    /// A program did not become ready.
    #[error("{program} was not ready after {} s; the end of its log:\n{log}", waited.as_secs())]
    NotReady {
        /// Which.
        program: &'static str,
        /// How long it had.
        waited: Duration,
        /// Its last lines.
        log: String,
    },
    /// A client for the control plane cannot be set up.
    #[error("no client: {0}")]
    Client(String),
    /// Its state cannot be put back.
    #[error("the state cannot be put back: {0}")]
    State(String),
}
