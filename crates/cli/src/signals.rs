//! Ctrl-C and SIGTERM.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::CliError;

/// The exit code after an interruption, as shells have it: 128 and the number of the signal SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;

/// Waits for a stop signal.
pub(crate) struct Stop {
    interrupt: Signal,
    terminate: Signal,
}

impl Stop {
    /// Installs the handlers: from now on the signals no longer end the process at once.
    pub(crate) fn listen() -> Result<Self, CliError> {
        let listen = |kind| signal(kind).map_err(|source| CliError::failed("cannot listen for signals", source));
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    /// Resolves at a stop signal.
    pub(crate) async fn wait(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// [`Self::wait`] once. A second signal ends the process without a graceful shutdown.
    pub(crate) async fn wait_once(mut self) {
        self.wait().await;
        tracing::info!("stopping");
        tokio::spawn(async move {
            self.wait().await;
            windlass_pki::stop_generating();
            std::process::exit(INTERRUPTED.into());
        });
    }
}
