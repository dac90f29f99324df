//! Managers of others as child processes: controllers with webhooks, written with controller-runtime.

use std::path::Path;

use kube::{Client, Config};
use tempfile::TempDir;
use windlass_pki::LeafRequest;

use crate::child::{Program, Programs};
use crate::control_plane::{is_found, no_client};
use crate::identity::{self, Identity};
use crate::{StartError, reserved_port};

/// The host of everything that a manager serves.
const HOST: &str = "127.0.0.1";

/// What a manager needs before it starts: its folder with a serving certificate, and its ports. An API server can be told about its
/// webhooks already, as they need an address and a CA certificate only.
pub struct Place {
    folder: TempDir,
    identity: Identity,
    webhooks: u16,
    health: u16,
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Place")
            .field("folder", &self.folder)
            .field("webhooks", &self.webhooks)
            .finish_non_exhaustive()
    }
}

impl Place {
    /// A new one, with files in the folder for temporary files.
    pub fn make() -> Result<Self, StartError> {
        let parent = std::env::temp_dir();
        let cannot = |source| StartError::File {
            path: parent.clone(),
            source,
        };
        let folder = tempfile::Builder::new().prefix("windlass-manager-").tempdir();
        let folder = folder.map_err(cannot)?;
        let identity = Identity::make_authority()?;
        identity.serve(&LeafRequest::server("webhooks", vec![HOST.to_owned()]), |name, text| {
            identity::write(&folder.path().join(format!("tls.{name}")), text)
        })?;
        Ok(Self {
            identity,
            webhooks: reserved_port().map_err(cannot)?,
            health: reserved_port().map_err(cannot)?,
            folder,
        })
    }

    /// The URL of a webhook.
    pub fn webhook(&self, path: &str) -> String {
        format!("https://{HOST}:{}{path}", self.webhooks)
    }

    /// The port of the webhooks.
    pub fn webhook_port(&self) -> u16 {
        self.webhooks
    }

    /// The folder with `tls.crt` and `tls.key`.
    pub fn certificate_folder(&self) -> &Path {
        self.folder.path()
    }

    /// The CA certificate of the webhooks, PEM.
    pub fn authority(&self) -> String {
        self.identity.authority()
    }

    /// The address for `/readyz`.
    pub fn health_address(&self) -> String {
        format!("{HOST}:{}", self.health)
    }

    /// Starts a manager against an API server, and returns when it is ready. Needs a tokio runtime.
    pub async fn start(
        self,
        program: &Path,
        name: &'static str,
        kubeconfig: &Path,
        flags: &[String],
        variables: &[(&'static str, &str)],
    ) -> Result<Manager, StartError> {
        let mut all = vec![("KUBECONFIG", kubeconfig.display().to_string())];
        all.extend(variables.iter().map(|(name, value)| (*name, (*value).to_owned())));
        let mut programs = Programs::new(self.folder.path(), all)?;
        programs.start(program, name, flags, self.folder.path())?;
        let url = format!("http://{}", self.health_address());
        let config = Config::new(url.parse().map_err(|error| no_client(&error))?);
        let client = Client::try_from(config).map_err(|error| no_client(&error))?;
        programs
            .ready(name, async || is_found(&client, "/readyz").await)
            .await?;
        Ok(Manager {
            programs,
            name,
            _place: self,
        })
    }
}

/// A running manager. Dropping it ends the program and removes its files.
#[derive(Debug)]
pub struct Manager {
    /// Declared before the folder, so that the program ends first.
    programs: Programs,
    name: &'static str,
    _place: Place,
}

impl Manager {
    /// The last lines of its log.
    pub fn log(&self) -> String {
        self.programs
            .get(self.name)
            .map(Program::last_lines)
            .unwrap_or_default()
    }

    /// An error if it has ended, with the end of its log.
    pub fn check(&mut self) -> Result<(), StartError> {
        self.programs.check()
    }
}
